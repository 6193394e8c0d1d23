"""The OpenCL backend, interruptible waits and the Ctrl+C handler."""

from __future__ import annotations

from typing import Any

from ..._netcl import Queue, Tensor, install_sigint_handler, interruptible_finish
from ..._netcl.profiling import device_advice
from ...errors import DeviceError
from ._base import DeviceBackend

__all__ = ["OpenCLBackend", "install_sigint_handler", "interruptible_finish"]


class OpenCLBackend(DeviceBackend):
    """Arrays in device memory. Transfers own their staging memory: the caller's array is free to
    go when from_host returns."""

    name = "cl"
    is_opencl = True

    def __init__(self, queue: Any) -> None:
        if not isinstance(queue, Queue):
            queue = Tensor.empty(queue, (1,)).queue  # pyopencl's queue, or a device handle
        if queue.backend != "cl":
            raise DeviceError(f"[OpenCLBackend] the queue must be of an OpenCL device: {queue!r}; {device_advice()}")
        super().__init__(queue)

    def from_host(
        self, data: Any, dtype: Any = None, async_copy: Any = None, use_pinned: Any = None
    ) -> tuple[Tensor, None, None, None]:
        """A copy of an array as (array, event, pending_release, host_ref). The last three are None:
        nothing has to be waited for or kept."""
        array = Tensor.from_host(self.queue, data, dtype, async_copy=async_copy, use_pinned=use_pinned)
        return array, None, None, None

    def from_shape(self, shape: Any, dtype: Any = "float32") -> Tensor:
        """Zeros."""
        return Tensor.from_shape(self.queue, shape, dtype)
