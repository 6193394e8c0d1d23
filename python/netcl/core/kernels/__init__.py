"""Writing kernels."""

from .primitives import (
    PRIMITIVE_PREAMBLE,
    KernelSpec,
    PrimitiveBuilder,
    WorkGroupTuner,
    build_elementwise_kernel,
)

__all__ = [
    "KernelSpec",
    "PRIMITIVE_PREAMBLE",
    "PrimitiveBuilder",
    "WorkGroupTuner",
    "build_elementwise_kernel",
]
