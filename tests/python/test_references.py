"""The references of all ops, which everything else is tested against, against NumPy and SciPy, and
against PyTorch where it can be imported.

NETCL_REFERENCE_DUMP names the executable that writes what the references compute. An op without a
counterpart here is a failure: counterparts/ has one function per op.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import counterparts  # noqa: E402
from counterparts import attention, elementwise, images, norms, reductions, shapes  # noqa: E402,F401

try:
    import torch  # noqa: F401
    from counterparts import with_torch  # noqa: F401
    NO_TORCH = ""
except ImportError:
    NO_TORCH = "PyTorch cannot be imported (make test-torch runs where it can)"

# Sums in another order, and functions that two libraries compute each in its way. Further ones have
# their reason beside them.
RTOL, ATOL = 1e-9, 1e-12


def dump():
    program = os.environ.get("NETCL_REFERENCE_DUMP")
    if not program:
        raise RuntimeError("NETCL_REFERENCE_DUMP must name the executable reference_dump")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, directory], check=True)
        index = json.loads((Path(directory) / "index.json").read_text())
        return index, {op: np.load(Path(directory) / f"{op}.npy") for op in index}


INDEX, VALUES = dump()


def values_of(op, place):
    size = int(np.prod(place["shape"], dtype=int))
    return VALUES[op][place["at"]:place["at"] + size].reshape(place["shape"])


def input_of(op, place):
    if place is None:
        return None
    # References compute in double precision, whatever the dtype.
    return values_of(op, place).astype("float64" if "float" in place["dtype"] else place["dtype"])


def attributes_of(sample):
    numbers = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
    return SimpleNamespace(**{name: numbers.get(value, value) if isinstance(value, str) else value
                              for name, value in sample["attributes"].items()})


def compare(actual, expected, dtype, what):
    actual = np.asarray(actual)
    assert actual.shape == expected.shape, f"{what}: {actual.shape} instead of {expected.shape}"
    if dtype.startswith(("int", "uint", "bool")):
        np.testing.assert_array_equal(actual.astype(float), expected, err_msg=what)
        return
    if dtype in ("float16", "float32"):  # references are not rounded to their dtype
        with np.errstate(over="ignore"):
            actual, expected = actual.astype(dtype), expected.astype(dtype)
    rtol = {"float16": 1e-3, "float32": 1e-6}.get(dtype, RTOL)
    np.testing.assert_allclose(actual.astype(float), expected.astype(float), rtol=rtol, atol=ATOL,
                               err_msg=what)


def check(op, counterpart, kind):
    for sample in INDEX[op]:
        inputs = [input_of(op, place) for place in sample["inputs"]]
        with np.errstate(all="ignore"):
            results = counterpart(inputs, attributes_of(sample))
        if results is None:  # this form of the op has no counterpart there
            continue
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == len(sample["outputs"]), f"{op} {sample['id']}: number of outputs"
        for i, (result, place) in enumerate(zip(results, sample["outputs"])):
            if result is not None:
                compare(result, values_of(op, place), place["dtype"],
                        f"{op} {sample['id']} output {i} against {kind}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of nothing: NaN is what is asked for
@pytest.mark.parametrize("op", sorted(INDEX))
def test_numpy(op):
    if op not in counterparts.NUMPY:
        pytest.fail(f"op '{op}' has no counterpart in tests/python/counterparts/: nothing checks "
                    "its reference")
    check(op, counterparts.NUMPY[op], "NumPy")


@pytest.mark.skipif(bool(NO_TORCH), reason=NO_TORCH or "there is PyTorch")
@pytest.mark.parametrize("op", sorted(set(INDEX) & set(counterparts.TORCH)) or ["none"])
def test_torch(op):
    check(op, counterparts.TORCH[op], "PyTorch")


def test_no_counterpart_is_left_over():
    """A counterpart of an op that does not exist any more checks nothing."""
    gone = (set(counterparts.NUMPY) | set(counterparts.TORCH)) - set(INDEX)
    assert not gone, f"counterparts without an op: {sorted(gone)}"
