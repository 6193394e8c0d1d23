"""Kernels from parts: the macros, the builder of element-wise kernels, work-group sizes."""

from __future__ import annotations

from typing import Any

from ..._netcl import (
    PRIMITIVE_PREAMBLE,
    LocalMemory,
    WorkGroupTuner,
    _build_elementwise_kernel,
    _PrimitiveBuilder,
)
from .spec import KernelSpec, find_kernel_spec

__all__ = [
    "KernelSpec",
    "LocalMemory",
    "PRIMITIVE_PREAMBLE",
    "PrimitiveBuilder",
    "WorkGroupTuner",
    "build_elementwise_kernel",
    "find_kernel_spec",
]


def _largest(tuner: WorkGroupTuner | None) -> int:
    return 0 if tuner is None else tuner.max_local


class PrimitiveBuilder:
    """Writes element-wise kernels from an expression over v0, v1, ...: inputs in0, in1, ..., the
    output `out`, `ulong n`. Half is stored as half and computed in float.

    >>> PrimitiveBuilder().elementwise_spec("mul_add", 2, "MUL(ADD(v0, v1), 2.0f)").name
    'mul_add'
    """

    def __init__(self, dtype: str = "float", tuner: WorkGroupTuner | None = None) -> None:
        self.dtype = dtype
        self._builder = _PrimitiveBuilder(dtype, _largest(tuner))

    def elementwise_spec(self, name: str, arity: int, expression: str) -> KernelSpec:
        """A spec that computes an expression over v0, v1, ... for each element."""
        return KernelSpec._from_native(self._builder.elementwise_spec(name, arity, expression))

    def build(self, context: Any, spec: KernelSpec):
        """The kernel of a spec."""
        return spec.build(context).kernel()


def build_elementwise_kernel(
    context: Any,
    name: str,
    arity: int,
    expression: str,
    dtype: str = "float",
    options: Any = (),
    tuner: WorkGroupTuner | None = None,
):
    """(spec, kernel) of an element-wise kernel; the kernel is None without a context."""
    spec, kernel = _build_elementwise_kernel(
        context, name, arity, expression, dtype, list(options), _largest(tuner)
    )
    return KernelSpec._from_native(spec), kernel
