"""NumPy's functions on tensors. Those that netcl has too are computed where the tensor is and give
tensors; the others take its values and give arrays."""

from __future__ import annotations

from typing import Any, Callable

from ._netcl import Tensor, ops

# ufunc -> methods of Tensor, as the first operand and as the second
_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
}
_FUNCTIONS = {"absolute": "abs", "negative": "neg"} | {
    name: name
    for name in "ceil cos exp floor log maximum minimum sign sin sqrt square tan tanh".split()
    if hasattr(ops, name)
}


def _values(thing: Any) -> Any:
    """Arguments with arrays in the places of tensors, also in lists, tuples and dictionaries."""
    if isinstance(thing, Tensor):
        return thing.numpy()
    if type(thing) in (list, tuple):
        return type(thing)(_values(item) for item in thing)
    if type(thing) is dict:
        return {key: _values(item) for key, item in thing.items()}
    return thing


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    name = ufunc.__name__
    if method == "__call__" and not options:
        if name in _OPERATORS:
            first, second = inputs
            if isinstance(first, Tensor):
                return getattr(first, _OPERATORS[name][0])(second)
            return getattr(second, _OPERATORS[name][1])(first)
        if name in _FUNCTIONS:
            return getattr(ops, _FUNCTIONS[name])(*inputs)
    return getattr(ufunc, method)(*_values(inputs), **_values(options))


def array_function(self: Tensor, function: Callable, types: Any, args: Any, options: Any) -> Any:
    return function(*_values(args), **_values(options))


def install() -> None:
    Tensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    Tensor.__array_function__ = array_function  # type: ignore[attr-defined]
