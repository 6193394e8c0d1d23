#!/usr/bin/env python3
"""SIGINT and SIGTERM at random moments of `netcl train`: it ends within 4 s with the documented exit code, the
checkpoint is whole, and a run that goes on from it ends.

    test_signals.py [--moments N] [--device SELECTOR] [--seed N]"""

import argparse
import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NETCL = Path(__file__).resolve().parent.parent / "build" / "release" / "bin" / "netcl"
LIMIT = 4.0
RUN = ["--batch", "20", "--model", "cnn", "--epochs", "100000", "--json"]


def toy_data(directory):
    """MNIST's files with 400 pictures of 12 x 12, in which a bright bar is the class."""
    directory.mkdir()
    dice = random.Random(1)
    for prefix, count in (("train", 400), ("t10k", 40)):
        images, labels = bytearray(struct.pack(">IIII", 0x803, count, 12, 12)), bytearray(struct.pack(">II", 0x801, count))
        for i in range(count):
            labels.append(i % 4)
            images += bytes(dice.randrange(60) + (150 if x // 3 == i % 4 else 0) for _ in range(12) for x in range(12))
        (directory / f"{prefix}-images-idx3-ubyte").write_bytes(images)
        (directory / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


def checkpoint(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8:8 + size])["__metadata__"]["netcl.checkpoint"])


def interrupt(arguments, number, delay):
    """(exit code, seconds from the signal to the end, lines of the output)."""
    run = subprocess.Popen([str(NETCL), "train", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(delay)
    run.send_signal(number)
    seconds, last = 0.0, time.monotonic()
    while run.poll() is None and seconds < 60:
        time.sleep(0.01)
        now = time.monotonic()
        seconds += min(now - last, 0.2)  # time in which this script itself was stopped does not count
        last = now
    if run.poll() is None:
        run.kill()
    out, errors = run.communicate()
    return run.returncode, seconds, out, errors


def problem(code, number, seconds, file, before, out):
    """What is wrong, or an empty text."""
    # Before main the signal has its default action; the shell shows the same code for both.
    if code not in (128 + number, -number):
        return f"exit code {code}"
    if code == -number and out:
        return "ended by the signal although it had begun"
    if seconds > LIMIT:
        return f"took {seconds:.1f} s"
    if not file.exists():
        return "" if before is None else "the checkpoint is gone"
    try:
        steps = checkpoint(file)["optimizer"]["steps"]
    except (ValueError, KeyError) as error:
        return f"the checkpoint is damaged: {error}"
    return "" if before is None or steps >= before else f"the checkpoint went back from {before} to {steps}"


def resumes(file, device):
    """Goes on for what is left of the epoch and one more."""
    done = checkpoint(file)["loader"]["epoch"]
    return subprocess.run([str(NETCL), "train", "--device", device, "--resume", str(file), "--epochs", str(done + 1), "--json"],
                          capture_output=True, text=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    # A background job of a script ignores SIGINT, and what it starts would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work = Path(tempfile.mkdtemp(prefix="netcl-signals-"))
    dice, bad, slowest, saved, resumed = random.Random(chosen.seed), 0, 0.0, 0, 0
    try:
        toy_data(work / "toy")
        file = work / "run.safetensors"
        for moment in range(chosen.moments):
            number = dice.choice([signal.SIGINT, signal.SIGTERM])
            # A third in the first moments of the process, the others later.
            delay = dice.uniform(0, 0.3) if moment % 3 == 0 else dice.uniform(0.2, 2.5)
            before = checkpoint(file)["optimizer"]["steps"] if file.exists() else None
            arguments = ["--data", str(work / "toy"), "--device", chosen.device, "--save", str(file), *RUN]
            if before is not None:
                arguments += ["--resume", str(file)]
            code, seconds, out, errors = interrupt(arguments, number, delay)
            slowest = max(slowest, seconds)
            wrong = problem(code, number, seconds, file, before, out)
            saved += '"interrupted"' in out and '"saved":""' not in out
            if not wrong and file.exists() and moment % 10 == 9:
                resumed += 1
                if not resumes(file, chosen.device):
                    wrong = "the run cannot go on from the checkpoint"
            if wrong:
                bad += 1
                print(f"moment {moment}: signal {int(number)} after {delay:.3f} s: {wrong}\n{errors}", flush=True)
            if file.exists() and (moment % 25 == 24 or wrong):
                file.unlink()  # so that beginnings are tried too
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{chosen.moments} signals: {bad} failed; {saved} runs said what they saved, {resumed} were gone on with; "
          f"the slowest end took {slowest:.2f} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
