#!/usr/bin/env python3
"""Every kernel of every op in Oclgrind, once with its check for data races and once with the one for
uninitialised values; both report accesses out of bounds. Oclgrind exits with 0 whatever it finds, so
the reports in its log are counted; kernels with planted mistakes prove that they would be.

    oclgrind.py [--samples N] [--limit SECONDS] [--jobs N] [OP...]

Oclgrind is an interpreter: each kernel of an op runs in its first dtype on the N samples of the
self-test that are nearest to 200 elements, one of them as views. Logs: build/oclgrind."""

import argparse
import concurrent.futures
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lab

PROJECT = lab.PROJECT
OUT = PROJECT / "build" / "oclgrind"
BIN = PROJECT / "build" / "release" / "bin"
# The check for uninitialised values stops at LLVM's freeze, which optimised code has. Both: a buffer
# that is used again would be one of which Oclgrind knows the old contents.
MODES = {"races": {"OCLGRIND_DATA_RACES": "1"},
         "uninitialised": {"OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable"}}
# Ops that begin with a copy into their output, of which the self-test has a part of a buffer only: after
# clEnqueueCopyBuffer into a part Oclgrind reports values that were written (the planted kernel copied_part, which has
# no mistake). Views are copied by a kernel: these are checked for uninitialised values.
COPYING = {"scatter_add", "index_add"}
REPORT = re.compile(r"^(Invalid |Uninitialized |Instruction depends on |Controlflow depends on |.*data race|"
                    r"OCLGRIND |Work-group divergence|Barrier |.*unaligned|.*[Ee]rror)", re.MULTILINE)


def environment(mode, log):
    env = lab.environment(lab.find("oclgrind")) | MODES[mode]
    return env | {"OCLGRIND_LOG": str(log), "OCLGRIND_MAX_ERRORS": "1000", "NETCL_MAX_CACHED_GB": "0",
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


def call(mode, name, command, limit):
    """Exit code (None: out of time), standard output, reports. Oclgrind 21.10 crashes when it is called while the
    process ends, so that a signal says nothing."""
    log = OUT / f"{name}.{mode}.log"
    log.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, env=environment(mode, log), capture_output=True, text=True, timeout=limit)
        code, text = done.returncode, done.stdout
        (OUT / f"{name}.{mode}.err").write_text(done.stderr, encoding="utf-8")
    except subprocess.TimeoutExpired as late:
        code, text = None, (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
    return code, text, reports(log)


def planted():
    """The checks find what they are for and say nothing about a kernel that is right."""
    expected = {"races": {"clean": 0, "race": 1, "local_race": 1, "out_of_bounds": 1},
                "uninitialised": {"clean": 0, "copied": 0, "copied_part": 1, "uninitialized": 1, "out_of_bounds": 1}}
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


def elements(sample):
    """About how many elements a sample has, from its name: the largest of its shapes."""
    return max([math.prod(int(n) for n in shape.split("x")) for shape in re.findall(r"\d+(?:x\d+)*", sample)], default=0)


def chosen_cases(ids, samples):
    groups = {}
    for one in ids:
        parts = one.split("/", 3)
        if len(parts) == 4 and parts[1] not in ("gradient", "auto", "special") and elements(parts[3]) > 0:
            groups.setdefault((parts[0], parts[1]), {}).setdefault(parts[2], []).append((parts[3], one))
    chosen = []
    for by_dtype in groups.values():
        cases = next(iter(by_dtype.values()))
        near = sorted(cases, key=lambda c: (abs(math.log(elements(c[0]) / 200)), c[0]))
        views = [c for c in near if "@views" in c[0]][:1]
        dense = [c for c in near if "@views" not in c[0]][:samples - len(views)]
        chosen += [c[1] for c in dense + views]
    return chosen


def run_op(op, cases, limit):
    result = {"op": op, "cases": len(cases), "kernels": len({c.split("/")[1] for c in cases}), "passed": 0, "failed": 0,
              "declined": 0, "reports": [], "unfinished": []}
    # What it keeps about uninitialised values is wrong for memory that another case had before: a process for each.
    parts = [("races", op, cases)] + [("uninitialised", f"{op}-{i}", [case]) for i, case in enumerate(cases)
                                      if op not in COPYING or "@views" in case]
    for mode, name, some in parts:
        code, text, found = call(mode, name, [str(BIN / "netcl"), "selftest", "--device", "opencl", "--json", "--filter",
                                              ",".join(some)], limit)
        result["reports"] += [[mode, *report] for report in found]
        try:
            report = json.loads(text)
            for key in ("passed", "failed", "declined"):
                result[key] += report[key]
        except json.JSONDecodeError:
            result["unfinished"].append(f"{mode} {some[0]}: {'out of time' if code is None else f'exit code {code}'}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600, help="seconds for one op and check")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    if not lab.find("oclgrind").installed():
        sys.exit("oclgrind.py: Oclgrind is not installed (Debian: apt-get install oclgrind)")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    planted()
    _, listing, _ = call("races", "list", [str(BIN / "netcl"), "selftest", "--device", "opencl", "--list"], 600)
    cases = chosen_cases(listing.split(), chosen.samples)
    by_op = {}
    for one in cases:
        by_op.setdefault(one.split("/")[0], []).append(one)
    ops = chosen.ops or list(by_op)
    results = []
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for result in pool.map(lambda op: run_op(op, by_op[op], chosen.limit), ops):
            results.append(result)
            print(f"{result['op']:24} {result['kernels']:3} kernels {result['cases']:4} cases, {result['failed']} failed, "
                  f"{len(result['reports'])} reports {'; '.join(result['unfinished'])}", flush=True)
            for line in sorted({" ".join(r) for r in result["reports"]})[:5]:
                print("    " + line, flush=True)
    (OUT / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    total = {key: sum(r[key] for r in results) for key in ("kernels", "cases", "passed", "failed", "declined")}
    found, unfinished = sum(len(r["reports"]) for r in results), [r["op"] for r in results if r["unfinished"]]
    print(f"\n{len(results)} ops, {total['kernels']} kernels, {total['cases']} cases under {len(MODES)} checks: "
          f"{total['passed']} passed, {total['failed']} failed, {total['declined']} declined, {found} reports; "
          f"not finished: {', '.join(unfinished) or 'none'}")
    sys.exit(1 if found or unfinished or total["failed"] else 0)


if __name__ == "__main__":
    main()
