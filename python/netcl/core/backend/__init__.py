"""The two transports behind Tensor, usable on their own."""

from .cpu import CPUBackend
from .opencl import OpenCLBackend

__all__ = ["CPUBackend", "OpenCLBackend"]
