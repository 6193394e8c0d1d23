"""Finding devices and choosing one."""

from .._netcl import (
    Context,
    CPUQueue,
    Device,
    DeviceHandle,
    DeviceManager,
    DiscoveredDevice,
    Event,
    Queue,
    device,
    get_active_device,
    manager,
)

__all__ = [
    "CPUQueue",
    "Context",
    "Device",
    "DeviceHandle",
    "DeviceManager",
    "DiscoveredDevice",
    "Event",
    "Queue",
    "device",
    "get_active_device",
    "manager",
]
