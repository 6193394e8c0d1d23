"""Fixtures of the tests of the Python package. The suite passes without any OpenCL driver too."""

import os
import signal

import pytest

# A shell starts background jobs with SIGINT ignored, which children inherit: Ctrl+C could not be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests of programs other than the package: CTest says where these are.
PROGRAMS = {
    "test_references.py": "NETCL_REFERENCE_DUMP",
    "test_files.py": "NETCL_FILE_CONVERT",
    "test_onnx.py": "NETCL_ONNX_EXPORT",
}
collect_ignore = [name for name, variable in PROGRAMS.items() if variable not in os.environ]

try:
    import netcl as nc
except ImportError:  # the tests of references and files need no package
    nc = None


@pytest.fixture(scope="session")
def opencl():
    """An OpenCL device, which the code under test then also finds as "auto"."""
    handle = nc.device.manager.default("opencl", required=False)
    if handle is None:
        pytest.skip("no OpenCL device")
    return handle


def devices():
    """Selectors of what there is to test on."""
    return ["cpu", "opencl"]


@pytest.fixture(params=devices())
def on(request):
    """Both backends, one after the other, as the active device."""
    if nc.device.manager.default(request.param, required=False) is None:
        pytest.skip(f"no device {request.param!r}")
    with nc.device(request.param) as handle:
        yield handle
