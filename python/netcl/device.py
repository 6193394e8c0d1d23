"""Devices. The module is also the context manager: `with netcl.device("gpu"): ...`.

>>> import netcl as nc
>>> with nc.device("cpu") as dev:
...     nc.Tensor([1.0]).backend
'cpu'
>>> context, queue = nc.device.manager.default("cpu")
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ._netcl import (
    Context,
    CPUQueue,
    Device,
    DeviceHandle,
    DeviceManager,
    Queue,
    device_profile,
    get_active_device,
    manager,
)
from ._netcl import device as _Scope

__all__ = [
    "CPUQueue",
    "Context",
    "Device",
    "DeviceHandle",
    "DeviceManager",
    "Queue",
    "get_active_device",
    "manager",
    "profile",
]


def profile(device):
    """The profile of a device, a queue or a handle."""
    return device.profile if isinstance(device, DeviceHandle) else device_profile(device)


class _DeviceModule(ModuleType):
    manager: DeviceManager
    Context: type[Context]
    CPUQueue: type[CPUQueue]
    Device: type[Device]
    DeviceHandle: type[DeviceHandle]
    DeviceManager: type[DeviceManager]
    Queue: type[Queue]
    get_active_device = staticmethod(get_active_device)
    profile = staticmethod(profile)

    def __call__(self, selector: Any = "auto") -> _Scope:
        return _Scope(selector)


sys.modules[__name__].__class__ = _DeviceModule
