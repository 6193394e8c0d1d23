#!/usr/bin/env python3
"""Every kernel that netcl would launch on eleven GPUs, compiled ahead of time: registers, spills,
private and local memory, occupancy. No GPU is needed.

    gpu_audit.py                 record, compile, check the rules, write docs/gpu-audit.md
    gpu_audit.py --kernel NAME   only kernels of this name (repeatable); prints, writes nothing
    gpu_audit.py --quick         default parameters alone, one program of each kernel and dtype (of
                                 each kernel on the targets beside the main ones): the longest
                                 source, which has bias, residual, activation and mask
    gpu_audit.py --self-test     the parts that read compilers' answers and sources

bin/kernel_record calls every op on a pretended device and keeps the programs; scripts/lab.py has the
compilers. What was compiled is kept below build/gpu-audit by its content, so a second run is quick."""

import argparse
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import gpu_compilers as compilers
import gpu_notes
import gpu_report
import lab

PROJECT = lab.PROJECT
BUILD = PROJECT / "build" / "release"
WORK = PROJECT / "build" / "gpu-audit"
PROGRAMS, RESULTS, OUT = WORK / "programs", WORK / "results", WORK / "out"
# Kernels that are generated or compiled for hundreds of ops and pairs of dtypes, and differ little:
# compiled for the main target of each vendor only, the longest source for each op and dtype.
MANY = {"elementwise", "cast", "copy"}
QUICK_MANY = 24  # of each of them with --quick
JOBS = 2
DRIVERS_CHOICE = 64  # items of a group, where a launch leaves it to the driver


@dataclass(frozen=True)
class Launch:
    target: str
    level: str      # default, forced (another variant than the chosen one), tunable
    op: str
    variant: str
    dtype: str
    program: str
    kernel: str
    items: int
    local: int      # bytes of local memory given as arguments


# ---- recording

def record(target, tunables):
    path = WORK / f"{target.name}.tsv"
    path.unlink(missing_ok=True)
    env = os.environ | {"OPENCL_LAYERS": str(BUILD / "libnetcl_pretend_layer.so"),
                        "PRETEND_DEVICE": target.device, "PRETEND_PROGRAMS": str(PROGRAMS),
                        "XDG_CACHE_HOME": str(WORK / "cache")}
    command = [str(BUILD / "bin" / "kernel_record"), str(path)] + (["--tunables"] if tunables else [])
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"gpu_audit.py: recording for {target.name} failed:\n{done.stderr[-2000:]}")
    return read_launches(target.name, path.read_text(encoding="utf-8"))


def read_launches(target, text):
    launches = []
    for line in text.splitlines():
        level, op, variant, dtype, program, kernel, items, local = line.split("\t")
        launches.append(Launch(target, level, op, variant, dtype, program, kernel,
                               int(items) or DRIVERS_CHOICE, int(local)))
    return launches


def record_all(tunables):
    for folder in (PROGRAMS, RESULTS, OUT):
        folder.mkdir(parents=True, exist_ok=True)
    launches = []
    for target in compilers.TARGETS:
        launches += record(target, tunables and target.main)
    return launches


def is_audited(launch, main_targets, notes, only):
    if only and launch.kernel not in only:
        return False
    if launch.kernel in notes["device"]:  # for CPUs
        return False
    return launch.target in main_targets or launch.kernel not in MANY


def selected(launches, main_targets, length, quick):
    """The launches whose programs are compiled; `length` gives that of a program's source. All on the
    main targets, on the others the longest for each kernel and dtype."""
    groups = defaultdict(set)
    for i in launches:
        if i.kernel in MANY:
            groups[i.target, i.kernel, *(() if quick else (i.op, i.variant, i.dtype))].add(i.program)
        elif i.target not in main_targets:
            groups[i.target, i.kernel, *(() if quick else (i.dtype,))].add(i.program)
        elif quick:
            groups[i.target, i.kernel, i.dtype].add(i.program)
        else:
            groups[i.target, i.program].add(i.program)
    chosen = set()
    for key, programs in groups.items():
        count = QUICK_MANY if quick and key[1] in MANY else 1
        chosen |= {(key[0], p) for p in sorted(programs, key=lambda p: (-length(p), p))[:count]}
    return [i for i in launches if (i.target, i.program) in chosen]


def source_length(program):
    return (PROGRAMS / f"{program}.cl").stat().st_size


# ---- compiling

def without_comments(text):
    """So that a comment costs no compilation. Kernels have no strings that could hold one."""
    return re.sub(r"[ \t]*//[^\n]*|\n(?=\n)", "", text)


@functools.lru_cache(maxsize=None)
def content(program):
    """The key of what was compiled."""
    source = (PROGRAMS / f"{program}.cl").read_text(encoding="utf-8")
    options = (PROGRAMS / f"{program}.options").read_text(encoding="utf-8")
    return hashlib.sha256((options + "\n" + without_comments(source)).encode()).hexdigest()[:16]


def result_path(program, vendor, target):
    commands = compilers.script(vendor, "SOURCE", "", "OUT", [target])
    return RESULTS / f"{content(program)}.{target}.{hashlib.sha256(commands.encode()).hexdigest()[:6]}.json"


def kept(program, vendor, target):
    path = result_path(program, vendor, target)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def compile_program(program, vendor, targets):
    """{target: {kernel: usage}}, and the compiler's error where there is one; only good ones are kept."""
    folder = OUT / f"{program}.{vendor}"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "program"
    options = (PROGRAMS / f"{program}.options").read_text(encoding="utf-8")
    text = compilers.script(vendor, PROGRAMS / f"{program}.cl", options, str(out), targets)
    done = subprocess.run(lab.enter(lab.COMPILERS, ["sh", "-c", text]), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    found = compilers.results(vendor, str(out), targets) if done.returncode == 0 else {}
    stored = {t: {k: asdict(u) for k, u in kernels.items()} for t, kernels in found.items()}
    for target, kernels in stored.items():
        result_path(program, vendor, target).write_text(json.dumps(kernels), encoding="utf-8")
    shutil.rmtree(folder)
    return stored, done.stderr[-3000:]


def compile_all(launches, problems):
    """{(program, target): {kernel: usage}}, compiling what is not kept."""
    vendor_of = {t.name: t.vendor for t in compilers.TARGETS}
    missing, wanted = defaultdict(list), {(i.program, i.target) for i in launches}
    order = {t.name: not t.main for t in compilers.TARGETS}
    for program, target in sorted(wanted, key=lambda w: (order[w[1]], w)):
        if kept(program, vendor_of[target], target) is None:
            missing[order[target], program, vendor_of[target]].append(target)
    started = time.monotonic()
    count = sum(len(t) for t in missing.values())
    print(f"{len(wanted)} programs for targets, {count} to compile", flush=True)
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = {pool.submit(compile_program, p, v, t): (p, t) for (_, p, v), t in sorted(missing.items())}
        for n, job in enumerate(as_completed(jobs), 1):
            program, targets = jobs[job]
            stored, error = job.result()
            if not stored:
                problems.append(f"program {program} for {', '.join(targets)} was refused: {error[-600:]}")
            if n % 100 == 0:
                print(f"  {n} of {len(jobs)}, {time.monotonic() - started:.0f} s", flush=True)
    return {(p, t): kept(p, vendor_of[t], t) or {} for p, t in wanted}


# ---- rules

@dataclass
class Finding:
    """One launch with what the compiler said."""
    launch: Launch
    usage: compilers.Usage
    local: int
    occupancy: float


def findings_of(launches, stored):
    found = []
    for i in launches:
        if i.kernel in stored[i.program, i.target]:
            usage = compilers.Usage(**stored[i.program, i.target][i.kernel])
            local = usage.local + i.local
            found.append(Finding(i, usage, local, compilers.occupancy(i.target, usage, i.items, local)))
    return found


def check(findings, notes):
    """Breaches of the rules by default parameters, as text; each kernel and target once."""
    worst = {}
    for f in findings:
        i = f.launch
        if i.level == "tunable":
            continue
        told = [(f.usage.spill > 0, "spill", f.usage.spill, f"spills {f.usage.spill} bytes"),
                (f.usage.private > 0, "private", f.usage.private, f"keeps {f.usage.private} private bytes in memory"),
                (f.local > 32 << 10, "local", f.local, f"takes {f.local} bytes of local memory"),
                (f.occupancy < 0.5 and i.kernel not in notes["occupancy"], "occupancy", -f.occupancy,
                 f"occupancy {f.occupancy:.0%}, {f.usage.registers} registers, {f.local} local, {i.items} items")]
        for broken, rule, weight, text in told:
            key = i.kernel, i.target, rule
            if broken and (key not in worst or worst[key][0] < weight):
                worst[key] = weight, f"{i.kernel} on {i.target}: {text} ({i.op}, {i.variant}, {i.dtype}, {i.program})"
    return [text for _, text in worst.values()]


def unexplained(findings, notes):
    kernels = {f.launch.kernel for f in findings}
    return [f"{k}: no comment says how it accesses memory: // coalescing({k}): ..."
            for k in sorted(kernels - set(notes["coalescing"]))]


def divergent(findings):
    problems = set()
    for program in sorted({f.launch.program for f in findings}):
        text = (PROGRAMS / f"{program}.cl").read_text(encoding="utf-8")
        for problem in gpu_notes.divergent_barriers(gpu_notes.preprocessed(PROGRAMS / f"{program}.cl")) \
                if "barrier" in text else []:
            problems.add(problem)
    return sorted(problems)


def audit(only, quick):
    notes = gpu_notes.read_notes(PROJECT / "src")
    main_targets = {t.name for t in compilers.TARGETS if t.main}
    launches = [i for i in record_all(not quick) if is_audited(i, main_targets, notes, only)]
    launches = selected(launches, main_targets, source_length, quick)
    if not launches:
        sys.exit("gpu_audit.py: nothing is launched by this name")
    problems = []
    findings = findings_of(launches, compile_all(launches, problems))
    barriers = divergent(findings)
    problems += check(findings, notes) + unexplained(findings, notes) + barriers
    if only:
        print(gpu_report.details(findings))
    else:
        text = gpu_report.page(findings, notes, barriers, quick, QUICK_MANY)
        (PROJECT / "docs" / "gpu-audit.md").write_text(text, encoding="utf-8")
    for problem in dict.fromkeys(problems):
        print("BROKEN " + problem)
    print(f"{len({(f.launch.program, f.launch.target) for f in findings})} programs on targets, "
          f"{len({f.launch.kernel for f in findings})} kernels, {len(set(problems))} rules broken")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    chosen = parser.parse_args()
    if chosen.self_test:
        import gpu_audit_test
        sys.exit(gpu_audit_test.run())
    if not lab.has_compilers():
        sys.exit("gpu_audit.py: the compilers are missing: scripts/lab.py compilers (as root)")
    sys.exit(audit(set(chosen.kernel), chosen.quick))


if __name__ == "__main__":
    main()
