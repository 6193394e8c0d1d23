"""What peers in Python share: the inputs that every contender makes for itself, the 16 elements that are compared, and the
lines of JSON (docs/performance.md describes them). Knows no library but NumPy."""
import json
import math
import os
import sys
import time

import numpy as np

SAMPLE = 4e-3
SLOW = 0.5  # seconds of a call that is not made more often than it must be
PROBES = 16


class Declined(Exception):
    pass


def values(shape, seed, scale=1.0):
    """The same numbers as every contender's: a function of place and seed."""
    index = np.arange(math.prod(shape), dtype=np.uint32)
    with np.errstate(over="ignore"):
        h = index * np.uint32(0x9E3779B1) + np.uint32(seed * 0x85EBCA77 & 0xFFFFFFFF)
        h ^= h >> np.uint32(15)
        h *= np.uint32(0x2C1B3C6D)
        h ^= h >> np.uint32(13)
    numbers = (h >> np.uint32(8)).astype(np.float32) / np.float32(16777216) - np.float32(0.5)
    return (numbers * np.float32(scale)).reshape(shape)


def probe_of(flat):
    count = len(flat)
    return [float(flat[i * (count - 1) // (PROBES - 1)]) for i in range(PROBES)] if count else []


def seconds_of(call, calls, finish):
    start = time.perf_counter()
    for _ in range(calls):
        call()
    finish()
    return time.perf_counter() - start


class Ready:
    """One case of one contender, ready to be measured again and again."""

    def __init__(self, parameters, call, probe, finish):
        self.parameters, self.call, self.probe, self.finish = parameters, call, probe, finish
        once = seconds_of(call, 1, finish)
        if once < SLOW:
            once = min(seconds_of(call, 1, finish) for _ in range(5))
        self.least = 3 if once < SLOW else 1
        self.calls = min(1000, max(1, int(SAMPLE / once)))

    def measure(self, budget):
        if self.least > 1:
            seconds_of(self.call, 1, self.finish)
        samples, start = [], time.perf_counter()
        while len(samples) < self.least or time.perf_counter() - start < budget:
            samples.append(seconds_of(self.call, self.calls, self.finish) / self.calls)
        return {"seconds": samples, "probe": self.probe}


def serve(name, contenders, threads, prepare, finish=lambda: None):
    """Answers requests until the input ends. `prepare(parameters, contender)` gives a function that does the work once, and
    the probe of its result."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not end up among the answers
    print(json.dumps({"name": name, "threads": threads, "contenders": contenders}), file=output, flush=True)
    ready = {}

    def answer(request):
        parameters, contender = request["case"], request.get("contender", contenders[0])
        if contender not in ready or ready[contender].parameters != parameters:
            ready.pop(contender, None)
            ready[contender] = Ready(parameters, *prepare(parameters, contender), finish)
        return ready[contender].measure(request.get("seconds", 0.1))

    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Declined as reason:
            result = {"declined": str(reason)}
        except Exception as error:  # noqa: BLE001: one case that fails must not end the others
            result = {"declined": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(result), file=output, flush=True)
