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
    def __call__(self, selector="auto"):
        return _Scope(selector)


sys.modules[__name__].__class__ = _DeviceModule
