"""The exceptions of netcl. Each is also the built-in exception that a Python program would expect.

Messages have the form "[where] rule broken: actual values". Ctrl+C is KeyboardInterrupt.
"""

from __future__ import annotations

import builtins

__all__ = [
    "AnomalyError",
    "ArgumentError",
    "BuildError",
    "DeviceError",
    "DtypeError",
    "Error",
    "FileError",
    "ForkError",
    "FormatError",
    "OutOfMemory",
    "ShapeError",
    "TimeoutError",
]


class Error(Exception):
    """The base of all exceptions of netcl."""


class ArgumentError(Error, ValueError):
    """A bad argument."""


class ShapeError(ArgumentError):
    """Shapes that do not fit."""


class DtypeError(Error, TypeError):
    """An element type, or the type of an argument, that does not fit."""


class DeviceError(Error, RuntimeError):
    """A failed OpenCL call, or a device that is not there."""

    call: str = ""
    code: int = 0
    name: str = ""


class BuildError(Error, RuntimeError):
    """The OpenCL compiler refused a program; `log` is what it said."""

    log: str = ""
    device: str = ""
    options: str = ""


class OutOfMemory(Error, MemoryError):
    """An allocation failed, also after the caches were trimmed. Sizes are in bytes."""

    requested: int = 0
    in_use: int = 0
    cached: int = 0


class ForkError(Error, RuntimeError):
    """This process is the fork of one that used OpenCL. Start workers with "spawn"."""


class FormatError(Error, ValueError):
    """A file is damaged, of the wrong kind, or hostile."""


class FileError(Error, OSError):
    """The file system refused."""


class TimeoutError(Error, builtins.TimeoutError):
    """A wait ran into its time limit. The work itself goes on."""


class AnomalyError(Error, ArithmeticError):
    """An op made NaN or infinity of finite values, while detect_anomaly was on."""
