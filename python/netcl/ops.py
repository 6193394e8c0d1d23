"""Operations on tensors. `list_ops()` tells their dtypes, kernels and tolerances."""

from ._netcl import ops as _ops
from ._netcl.ops import *  # noqa: F403

__all__ = sorted(name for name in vars(_ops) if not name.startswith("_"))
