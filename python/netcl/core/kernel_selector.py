"""Which kernel runs an op: an ordered list of rules per op. Your own come first."""

from __future__ import annotations

from .._netcl import (
    KernelConfig,
    KernelRule,
    KernelSelector,
    KernelVariant,
    _process_selector,
    select_conv2d_config,
    select_matmul_config,
)
from .kernels.spec import KernelSpec

__all__ = [
    "KernelConfig",
    "KernelRule",
    "KernelSelector",
    "KernelSpec",
    "KernelVariant",
    "get_kernel_selector",
    "select_conv2d_config",
    "select_matmul_config",
]


def get_kernel_selector() -> KernelSelector:
    """The selector of the process, which the built-in ops use."""
    return _process_selector
