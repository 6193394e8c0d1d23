"""The n-dimensional array."""

from .._netcl import AsyncHostArray, Tensor
from .._netcl.ops import reshape

__all__ = ["AsyncHostArray", "Tensor", "reshape"]
