#!/usr/bin/env python3
"""What Python costs: an op on 16 elements from Python and from C++, and importing the package.

    PYTHONPATH=build/release/python .venv/bin/python bench/python_overhead.py
"""

import json
import statistics
import subprocess
import sys
import timeit

import numpy as np

import netcl as nc
from netcl._netcl.ops import _time_unary

CALLS, ROUNDS = 100, 1000  # short rounds, of which some are undisturbed on a busy machine


def op_overhead(selector):
    """Microseconds per call; the least of several rounds, taken in turn."""
    with nc.device(selector):
        x = nc.Tensor(np.ones(16, np.float32))
        relu = nc.relu
        relu(x).wait()
        python, native = [], []
        for _ in range(ROUNDS):
            python.append(timeit.timeit(lambda: relu(x), number=CALLS) / CALLS * 1e6)
            x.wait()
            native.append(_time_unary("relu", x, CALLS) * 1e6)
            x.wait()
    return {"bench": "relu of 16 elements", "device": selector, "python_us": round(min(python), 2),
            "cpp_us": round(min(native), 2), "difference_us": round(min(python) - min(native), 2)}


def import_time():
    """Milliseconds of `import netcl` after NumPy's own import, in new processes: least and median."""
    code = ("import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); import netcl; "
            "print(b - a, time.perf_counter() - b)")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(25)]
    numpy, netcl = ([1e3 * float(run[i]) for run in runs] for i in (0, 1))
    return {"bench": "import", "numpy_ms": round(min(numpy), 1), "netcl_ms": round(min(netcl), 1),
            "netcl_median_ms": round(statistics.median(netcl), 1)}


if __name__ == "__main__":
    for name in ("cpu", "opencl"):
        if nc.device.manager.default(name, required=False) is not None:
            print(json.dumps(op_overhead(name)))
    print(json.dumps(import_time()))
