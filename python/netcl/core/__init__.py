"""Devices, tensors, memory, kernels."""

from .._netcl import BufferHandle, BufferPool, DeviceHandle, DeviceManager, Tensor, manager
from .kernel_selector import KernelSpec

__all__ = [
    "BufferHandle",
    "BufferPool",
    "DeviceHandle",
    "DeviceManager",
    "KernelSpec",
    "Tensor",
    "manager",
]
