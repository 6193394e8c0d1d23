"""Writing kernels."""

from ..._netcl import Kernel, Program
from .primitives import (
    PRIMITIVE_PREAMBLE,
    KernelSpec,
    PrimitiveBuilder,
    WorkGroupTuner,
    build_elementwise_kernel,
)

__all__ = [
    "Kernel",
    "KernelSpec",
    "PRIMITIVE_PREAMBLE",
    "PrimitiveBuilder",
    "Program",
    "WorkGroupTuner",
    "build_elementwise_kernel",
]
