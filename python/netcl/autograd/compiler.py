"""Fusion of functions, and element-wise ops of your own."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .._netcl.autograd import (
    CapturedStep,
    CaptureStats,
    Explanation,
    FusedGroup,
    FusionScope,
    FusionStats,
    call_primitive,
    explain,
    fusion_stats,
    has_primitive,
    primitive_names,
    register_primitive,
    unregister_primitive,
)

__all__ = [
    "CaptureStats",
    "CapturedStep",
    "Explanation",
    "FusedGroup",
    "FusionScope",
    "FusionStats",
    "call_primitive",
    "explain",
    "fusion_stats",
    "get_primitive",
    "has_primitive",
    "jit_compile",
    "primitive_names",
    "register_primitive",
    "unregister_primitive",
]


def jit_compile(function: Callable) -> Callable:
    """Calls of ops inside the function wait and are computed together: a chain of element-wise ops
    becomes one kernel, forward and backward. The function runs at every call, so it may do
    anything; only the kernels are kept.

    >>> import netcl as nc
    >>> @jit_compile
    ... def scaled(a, b):
    ...     return nc.relu(a * b + 1.0)
    >>> scaled(nc.Tensor([1.0, -2.0]), nc.Tensor([3.0, 3.0])).tolist()
    [4.0, 0.0]
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any):
        with FusionScope():
            return function(*args, **kwargs)

    wrapped.explain = lambda *args, **kwargs: explain(function, *args, **kwargs)  # type: ignore[attr-defined]
    return wrapped


def get_primitive(name: str) -> Callable:
    """The registered primitive as a function: get_primitive("my_op")(a, b, slope=0.1)."""
    if not has_primitive(name):
        raise ValueError(f"[get_primitive] there is no primitive {name!r}; there are: {primitive_names()}")
    return functools.partial(call_primitive, name)
