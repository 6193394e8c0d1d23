"""The CPU backend: always there, no OpenCL needed."""

from __future__ import annotations

from typing import Any

from ..._netcl import CPUQueue, Tensor
from ._base import DeviceBackend

__all__ = ["CPUBackend"]


class CPUBackend(DeviceBackend):
    """Arrays in host memory.

    >>> be = CPUBackend()
    >>> x = be.from_host([[1, 2], [3, 4]], dtype="float32")
    >>> be.to_host(x, (4,), "float32").tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    name = "cpu"

    def __init__(self, queue: Any = None) -> None:
        super().__init__(CPUQueue() if queue is None else queue)

    def from_host(self, data: Any, dtype: Any = None, async_copy: Any = None, use_pinned: Any = None) -> Tensor:
        """A copy of an array."""
        return Tensor.from_host(self.queue, data, dtype)

    def from_shape(self, shape: Any, dtype: Any = "float32") -> Tensor:
        """Zeros."""
        return Tensor.from_shape(self.queue, shape, dtype)
