"""Devices, tensors, memory, kernels."""

from . import backend, capabilities, device, device_profile, kernels, memory, tensor
from .._netcl import BufferHandle, BufferPool, DeviceHandle, DeviceManager, Tensor, manager
from .kernel_selector import KernelSpec

__all__ = [
    "BufferHandle",
    "BufferPool",
    "DeviceHandle",
    "DeviceManager",
    "KernelSpec",
    "Tensor",
    "backend",
    "capabilities",
    "device",
    "device_profile",
    "kernels",
    "manager",
    "memory",
    "tensor",
]
