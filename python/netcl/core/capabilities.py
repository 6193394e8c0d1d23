"""What a device can do."""

from .._netcl import DeviceProfile, device_profile, kernel_strategy

__all__ = ["DeviceProfile", "device_profile", "kernel_strategy"]
