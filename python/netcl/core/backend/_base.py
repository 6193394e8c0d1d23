"""What the two backends share. An array of a backend is a Tensor without arithmetic in mind."""

from __future__ import annotations

from typing import Any

from ..._netcl import Tensor


class DeviceBackend:
    """Moves arrays to and from one queue."""

    name = ""
    is_opencl = False

    def __init__(self, queue: Any) -> None:
        self.queue = queue

    def to_host(self, storage: Any, shape: Any = None, dtype: Any = None):
        """The values as a new array, in the given shape and dtype if there is one."""
        return _tensor_of(storage, shape, dtype).to_host()

    def to_host_async(self, storage: Any, shape: Any = None, dtype: Any = None):
        """A download under way; its wait() gives the array."""
        return _tensor_of(storage, shape, dtype).to_host_async()

    def reshape(self, storage: Any, shape: Any) -> Tensor:
        """The same memory under another shape."""
        return _tensor_of(storage, shape)

    def wait(self, event: Any = None) -> None:
        """Until an event, or all work on the queue, is done."""
        if event is None:
            self.queue.finish()
        else:
            event.wait()


def _tensor_of(storage: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    # OpenCLBackend.from_host returns a tuple that begins with the array.
    tensor = storage[0] if isinstance(storage, tuple) else storage
    if dtype is not None:
        tensor = tensor.astype(dtype)
    return tensor if shape is None else tensor.reshape(shape)
