#!/usr/bin/env python3
"""Runs the libFuzzer targets of build/fuzz, two at a time, and prints a table of what they did.

    fuzz.py [--seconds N] [--jobs N] [--keep] [TARGET...]

Each starts from tests/fuzz/corpus/<target>; what it finds goes to build/fuzz/corpus/<target>. --keep
adds some of the inputs that reach other code than the repository's corpus to it, a dozen for each
target. An input that ends a target is kept in build/fuzz/findings."""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
BUILD = PROJECT / "build" / "fuzz"
SEEDS = PROJECT / "tests" / "fuzz" / "corpus"
KEPT_FILES = 12        # for each target, besides the seeds that are there
KEPT_INPUT = 400       # bytes; larger ones are not worth keeping
MALLOC_MB = 256        # one allocation of an input of a few KB
MEMORY_MB = 2048


def environment():
    options = "detect_leaks=1:allocator_may_return_null=0"
    return dict(os.environ) | {"OMP_NUM_THREADS": "1", "ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1"}


def executable(target):
    return BUILD / "bin" / f"fuzz_{target}"


def start(target, seconds):
    corpus, findings = BUILD / "corpus" / target, BUILD / "findings" / target
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    log = open(BUILD / f"{target}.log", "w", encoding="utf-8", errors="replace")
    return subprocess.Popen(
        [str(executable(target)), str(corpus), str(SEEDS / target), f"-max_total_time={seconds}", "-max_len=4096", "-timeout=300",
         f"-malloc_limit_mb={MALLOC_MB}", f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={findings}/",
         "-print_final_stats=1", "-seed=1"], stdout=log, stderr=log, env=environment())


def figures(target, code):
    text = (BUILD / f"{target}.log").read_text(encoding="utf-8", errors="replace")
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    cover = re.findall(r"cov: (\d+)", text)
    return (int(runs[1]) if runs else 0), (int(cover[-1]) if cover else 0), "0" if code == 0 else f"1 (see {target}.log)"


def run(targets, seconds, jobs):
    waiting, running, bad = list(targets), {}, 0
    print("| target | seconds | inputs | places in the code | findings |\n|---|---|---|---|---|", flush=True)
    while waiting or running:
        while waiting and len(running) < jobs:
            target = waiting.pop(0)
            running[target] = (start(target, seconds), time.monotonic())
        time.sleep(0.5)
        for target, (process, began) in list(running.items()):
            if process.poll() is None:
                continue
            inputs, cover, findings = figures(target, process.returncode)
            bad += process.returncode != 0 or inputs == 0
            print(f"| {target} | {time.monotonic() - began:.0f} | {inputs} | {cover} | {findings} |", flush=True)
            del running[target]
    return bad


def keep(target):
    """libFuzzer's own merge: only inputs that reach something that the seeds do not."""
    merged = BUILD / "merged" / target
    merged.mkdir(parents=True, exist_ok=True)
    for old in merged.iterdir():
        old.unlink()
    subprocess.run([str(executable(target)), "-merge=1", f"-max_len={KEPT_INPUT}", str(merged), str(SEEDS / target),
                    str(BUILD / "corpus" / target)], check=True, env=environment(),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    known = {seed.read_bytes() for seed in (SEEDS / target).iterdir()}
    found = [f for f in sorted(merged.iterdir(), key=lambda f: (f.stat().st_size, f.name)) if f.read_bytes() not in known]
    for one in found[::max(1, -(-len(found) // KEPT_FILES))]:  # of all sizes
        (SEEDS / target / one.name).write_bytes(one.read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    there = sorted(p.name.removeprefix("fuzz_") for p in (BUILD / "bin").glob("fuzz_*"))
    targets = chosen.targets or there
    unknown = [t for t in targets if t not in there]
    if unknown or not targets:
        sys.exit(f"fuzz.py: no such target: {', '.join(unknown) or 'none is built'}; there are: {', '.join(there)}")
    bad = run(targets, chosen.seconds, chosen.jobs)
    if chosen.keep and not bad:
        for target in targets:
            keep(target)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
