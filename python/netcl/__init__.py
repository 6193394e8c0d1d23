"""netcl: deep learning on any OpenCL device, and on plain CPUs.

>>> import netcl as nc
>>> x = nc.Tensor([[1.0, -2.0], [3.0, -4.0]])
>>> nc.relu(x).tolist()
[[1.0, 0.0], [3.0, 0.0]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _hints, _numpy, errors
from ._netcl import Tensor, __version__, built_with_opencl, get_active_device, install_sigint_handler
from ._netcl.ops import (
    bias_add,
    build_matmul_kernel,
    conv2d,
    elementwise_binary,
    matmul,
    reduce_sum,
    relu,
    softmax,
)
from ._types import DType, Shape
from .errors import Error
from . import autograd, core, data, io, nn, ops, optim, profiling, progress, runtime, train
from .core.kernel_selector import KernelSpec
from .train import fit

if TYPE_CHECKING:  # that a module can be called is beyond type checkers
    from .device import _DeviceModule

    device: _DeviceModule
else:
    from . import device

_numpy.install()
_hints.install(Tensor)
# Where Python's own Ctrl+C handler is in place: a stuck device must not make a process immortal.
install_sigint_handler()

__all__ = [
    "DType",
    "Error",
    "KernelSpec",
    "Shape",
    "Tensor",
    "__version__",
    "autograd",
    "bias_add",
    "build_matmul_kernel",
    "built_with_opencl",
    "conv2d",
    "core",
    "data",
    "device",
    "elementwise_binary",
    "errors",
    "fit",
    "get_active_device",
    "io",
    "matmul",
    "nn",
    "ops",
    "optim",
    "profiling",
    "progress",
    "reduce_sum",
    "relu",
    "runtime",
    "softmax",
    "train",
]
