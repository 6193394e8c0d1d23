"""Gradients: `with Tape() as tape:` follows ops on tensors that require gradients."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .._netcl.autograd import (
    GradcheckResult,
    Node,
    Tape,
    apply_op,
    checkpoint,
    gradcheck,
    is_anomaly_detected,
    is_grad_enabled,
    retain_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from ..errors import AnomalyError
from .compiler import jit_compile, register_primitive

__all__ = [
    "AnomalyError",
    "GradcheckResult",
    "Node",
    "Tape",
    "apply_op",
    "checkpoint",
    "detect_anomaly",
    "gradcheck",
    "is_grad_enabled",
    "jit_compile",
    "no_grad",
    "register_primitive",
    "retain_grad",
    "set_grad_enabled",
]


class _Switch:
    """A setting of the thread for the length of a `with`, or of every call of a function."""

    def __init__(self, read: Callable, write: Callable, value: bool) -> None:
        self._read, self._write, self._value = read, write, value
        self._before: list[bool] = []

    def __enter__(self):
        self._before.append(self._read())
        self._write(self._value)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._write(self._before.pop())

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any):
            with _Switch(self._read, self._write, self._value):  # each call its own: threads
                return function(*args, **kwargs)

        return wrapped


def no_grad(function: Callable | None = None):
    """Nothing is recorded on this thread inside `with no_grad():`, or in a function that is
    decorated with @no_grad or @no_grad().

    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """
    switch = _Switch(is_grad_enabled, set_grad_enabled, False)
    return switch if function is None else switch(function)


def detect_anomaly(on: bool = True):
    """Inside `with detect_anomaly():` the first op that makes NaN or infinity of finite values is
    an AnomalyError. Slow."""
    return _Switch(is_anomaly_detected, set_detect_anomaly, on)
