"""The profile that the rules of the kernel selector read."""

from .._netcl import ExtendedDeviceProfile, device_profile

__all__ = ["ExtendedDeviceProfile", "device_profile"]
