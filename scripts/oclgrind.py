#!/usr/bin/env python3
"""Every kernel of every op in Oclgrind, once with its check for data races and once with the one for
uninitialised values; both report accesses out of bounds. Oclgrind exits with 0 whatever it finds, so
the reports in its log are counted; kernels with planted mistakes prove that they would be.

    oclgrind.py [--samples N] [--limit SECONDS] [--jobs N] [OP...]

Kernels run as on a GPU, which is what netcl takes Oclgrind's device for; those that decline there, and what would be
chosen on a CPU, run as on one.

Oclgrind is an interpreter: each kernel of an op runs in its first dtype on the N samples of the
self-test that are nearest to 200 elements, one of them as views; a kernel that declines these gets others.
A run that was interrupted goes on. Logs: build/oclgrind."""

import argparse
import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import lab

PROJECT = lab.PROJECT
OUT = PROJECT / "build" / "oclgrind"
BIN = PROJECT / "build" / "release" / "bin"
MODES = {"races": {"OCLGRIND_DATA_RACES": "1"}, "uninitialised": {"OCLGRIND_UNINITIALIZED": "1"}}
# Its device is of all types at once, which netcl takes for a GPU; kernels for CPUs run under a layer that says so. They
# keep their panels in local memory, which is a CPU's ordinary memory.
AS_CPU = {"OPENCL_LAYERS": str(BIN.parent / "libnetcl_cpu_layer.so"), "OCLGRIND_LOCAL_MEM_SIZE": str(1 << 20)}
# Its check for uninitialised values reports values that clEnqueueCopyBuffer wrote into a part of a buffer, or
# clEnqueueFillBuffer anywhere (the planted kernels copied_part and filled, which have no mistake). Ops that use these are
# checked on the samples in which a kernel copies, which are views, or in which nobody reads what was filled.
ONLY_VIEWS = {"scatter_add", "index_add"}
NO_VIEWS = {"pad"}
# It ends itself in these kernels, in both checks (docs/devices.md): they run under guard zones and on other drivers alone.
ENDS_ITSELF = {"upsample_nearest_backward/rows", "upsample_bilinear_backward/rows"}
REPORT = re.compile(r"^(Invalid |Uninitialized |Instruction depends on |Controlflow depends on |.*data race|"
                    r"OCLGRIND |Work-group divergence|Barrier |.*unaligned|.*[Ee]rror)", re.MULTILINE)


def environment(mode, log, cpu):
    """No buffer is kept for reuse: Oclgrind would know its old contents."""
    env = lab.environment(lab.find("oclgrind")) | MODES[mode]
    return env | (AS_CPU if cpu else {}) | {"OCLGRIND_LOG": str(log), "OCLGRIND_MAX_ERRORS": "1000", "NETCL_MAX_CACHED_GB": "0",
                  "XDG_CACHE_HOME": str(OUT / "cache" / mode)}


def reports(log):
    """(kernel, first line) of each report; a log that is not there has none."""
    if not log.exists():
        return []
    found = []
    for block in re.split(r"\n\s*\n", log.read_text(encoding="utf-8", errors="replace")):
        text = block.strip()
        if text and REPORT.search(text):
            kernel = re.search(r"Kernel:\s*(\S+)", text)
            found.append((kernel[1] if kernel else "?", text.splitlines()[0]))
    return found


def call(mode, name, command, limit, cpu=False):
    """Exit code (None: out of time), standard output, reports. Oclgrind 21.10 crashes when it is called while the
    process ends, so that a signal says nothing."""
    log = OUT / f"{name}.{mode}.log"
    log.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, env=environment(mode, log, cpu), capture_output=True, text=True, timeout=limit)
        code, text = done.returncode, done.stdout
        (OUT / f"{name}.{mode}.err").write_text(done.stderr, encoding="utf-8")
    except subprocess.TimeoutExpired as late:
        code, text = None, (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
    return code, text, reports(log)


def planted():
    """The checks find what they are for and say nothing about a kernel that is right."""
    expected = {"races": {"clean": 0, "race": 1, "local_race": 1, "out_of_bounds": 1},
                "uninitialised": {"clean": 0, "copied": 0, "copied_part": 1, "filled": 1, "uninitialized": 1, "out_of_bounds": 1}}
    bad = []
    for mode, kernels in expected.items():
        for kernel, wanted in kernels.items():
            code, _, found = call(mode, f"planted-{kernel}", [str(BIN / "planted_kernels"), kernel], 120)
            right = code is not None and bool(found) == bool(wanted)
            print(f"planted: {mode:14} {kernel:14} {len(found):4} reports  {'ok' if right else 'WRONG'}", flush=True)
            if not right:
                bad.append(kernel)
    if bad:
        sys.exit("oclgrind.py: the check itself does not work")


def by_op(ids):
    """The cases that may be chosen: op -> kernel -> those of its first dtype, the nearest to 200 elements first."""
    groups, dtypes = {}, {}
    for one in ids:
        op, kernel, dtype, _ = one.split("/", 3)
        if kernel != "gradient" and lab.elements(one) > 0 and dtypes.setdefault((op, kernel), dtype) == dtype:
            groups.setdefault(op, {}).setdefault(f"{op}/{kernel}", []).append(one)
    return {op: {kernel: lab.near(cases, 200) for kernel, cases in kernels.items()} for op, kernels in groups.items()}


def first_of(cases, samples):
    views = [case for case in cases if "@views" in case][:1]
    return [case for case in cases if "@views" not in case][:samples - len(views)] + views


class OpRun:
    """The kernels of an op, each on samples that it is for."""

    def __init__(self, op, kernels, samples, limit):
        self.op, self.samples, self.limit = op, samples, limit
        self.kernels = {kernel: cases for kernel, cases in kernels.items() if kernel != f"{op}/auto" and kernel not in ENDS_ITSELF}
        # One of those is chosen on a CPU.
        self.chosen_by_netcl = kernels.get(f"{op}/auto", []) if ENDS_ITSELF.isdisjoint(kernels) else []
        self.runs = {}  # kernel -> number of cases that it did not decline
        self.cpu = set()  # kernels that run on CPUs only
        self.result = {"op": op, "cases": 0, "kernels": 0, "passed": 0, "failed": 0, "declined": 0, "reports": [],
                       "failures": [], "unfinished": [], "not run": []}

    def process(self, mode, name, cases, cpu=False):
        """The report, or None when there is none."""
        code, text, found = call(mode, f"{self.op}-{name}", [str(BIN / "netcl"), "selftest", "--device", "opencl", "--once", "--json",
                                                           "--filter", ",".join(cases)], self.limit, cpu)
        self.result["reports"] += [[mode, *report] for report in found]
        try:
            report = json.loads(text)
        except json.JSONDecodeError:
            self.result["unfinished"].append(f"{mode} {cases[0]}: {'out of time' if code is None else f'exit code {code}'}")
            return None
        for key in ("passed", "failed", "declined"):
            self.result[key] += report[key]
        self.result["failures"] += report["failures"]
        return report

    def races(self, name, cases, cpu=False):
        report = self.process("races", name, cases, cpu)
        for kernel in report["kernels"] if report else []:
            self.runs[kernel["kernel"]] = self.runs.get(kernel["kernel"], 0) + kernel["cases"] - kernel["empty"]

    def find_cases(self, kernel, cases):
        """For a kernel that none of its first samples was for: the same on a CPU, then others, a few at a time."""
        groups = [first_of(cases, self.samples)] + lab.few_at_a_time(cases)
        for number, some in enumerate(groups):
            for cpu in (False, True) if number else (True,):
                self.races(f"{kernel.split('/')[1]}-{number}{'-cpu' if cpu else ''}", some, cpu)
                if self.runs.get(kernel):
                    self.cpu |= {kernel} if cpu else set()
                    return some
        return []

    def uninitialised(self, kernel, cases, cpu):
        """What it keeps about these values is wrong for memory that another case had before: a process for each."""
        for number, case in enumerate(cases):
            if self.op not in (NO_VIEWS if "@views" in case else ONLY_VIEWS):
                self.process("uninitialised", f"{kernel.split('/')[1]}-{number}{'-cpu' if cpu else ''}", [case], cpu)

    def as_on_a_cpu(self):
        """What is chosen there: a name that ran before may stand for other code, with vectors and few items. For races
        and bounds alone: the upper half of a float16, x.hi, counts as uninitialised."""
        cases = first_of(self.chosen_by_netcl, self.samples)
        if cases:
            self.races("auto-cpu", cases, cpu=True)

    def run(self):
        chosen = {kernel: first_of(cases, self.samples) for kernel, cases in self.kernels.items()}
        self.races("all", [case for cases in chosen.values() for case in cases])
        for kernel, cases in self.kernels.items():
            if not self.runs.get(kernel) and not self.result["unfinished"]:
                chosen[kernel] = self.find_cases(kernel, cases)
        ran = [kernel for kernel in self.kernels if self.runs.get(kernel)]
        for kernel in ran:
            self.uninitialised(kernel, chosen[kernel], kernel in self.cpu)
        self.as_on_a_cpu()
        self.result["kernels"] = len(ran)
        self.result["cases"] = sum(self.runs.values())
        self.result["not run"] = [kernel for kernel in self.kernels if not self.runs.get(kernel)]
        return self.result


def tell(result):
    print(f"{result['op']:24} {result['kernels']:3} kernels {result['cases']:4} cases, {result['failed']} failed, "
          f"{len(result['reports'])} reports {'; '.join(result['unfinished'])}", flush=True)
    found = sorted({" ".join(r) for r in result["reports"]} | {f"{f['id']}: {f['message']}" for f in result["failures"]})
    for line in found[:5]:
        print("    " + line, flush=True)


def run_ops(ops, groups, samples, limit, jobs):
    """Each result is a line of a file as soon as it is known, so that a run can be gone on with."""
    key = hashlib.sha256((BIN / "netcl").read_bytes() + str(samples).encode()).hexdigest()[:16]
    lines = OUT / "results.jsonl"
    known = lab.finished(lines, key)
    missing = [op for op in ops if op not in known]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, open(lines, "a", encoding="utf-8") as out:
        started = [pool.submit(OpRun(op, groups[op], samples, limit).run) for op in missing]
        for future in concurrent.futures.as_completed(started):
            result = future.result() | {"key": key}
            known[result["op"]] = result
            out.write(json.dumps(result) + "\n")
            out.flush()
            tell(result)
    return [known[op] for op in ops]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600, help="seconds for one op and check")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    if not lab.find("oclgrind").installed():
        sys.exit("oclgrind.py: Oclgrind is not installed (Debian: apt-get install oclgrind)")
    OUT.mkdir(parents=True, exist_ok=True)
    planted()
    _, listing, _ = call("races", "list", [str(BIN / "netcl"), "selftest", "--device", "opencl", "--list"], 600)
    groups = by_op(listing.split())
    results = run_ops(chosen.ops or list(groups), groups, chosen.samples, chosen.limit, chosen.jobs)
    total = {key: sum(r[key] for r in results) for key in ("kernels", "cases", "passed", "failed", "declined")}
    found, unfinished = sum(len(r["reports"]) for r in results), [r["op"] for r in results if r["unfinished"]]
    never = [kernel for r in results for kernel in r["not run"]]
    print(f"\n{len(results)} ops, {total['kernels']} kernels, {total['cases']} cases under {len(MODES)} checks: "
          f"{total['passed']} passed, {total['failed']} failed, {total['declined']} declined, {found} reports; "
          f"not finished: {', '.join(unfinished) or 'none'}; kernels that decline every sample: {', '.join(never) or 'none'}")
    sys.exit(1 if found or unfinished or total["failed"] else 0)


if __name__ == "__main__":
    main()
