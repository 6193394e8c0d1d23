"""Waiting, recorded steps, caches on disk, the installation."""

from ._netcl import install_sigint_handler, interruptible_finish
from ._netcl.autograd import CapturedStep, CaptureStats
from ._netcl.profiling import (
    ProgramCacheStats,
    cache_directory,
    check_installation,
    environment,
    program_cache_clear,
    program_cache_stats,
)

__all__ = [
    "CaptureStats",
    "CapturedStep",
    "ProgramCacheStats",
    "cache_directory",
    "check_installation",
    "environment",
    "install_sigint_handler",
    "interruptible_finish",
    "program_cache_clear",
    "program_cache_stats",
]
