"""Finding the best work-group size of a kernel by measuring, and keeping it."""

from .._netcl import AutotuneCandidate, AutotuneResult, Autotuner, WorkGroupTuner

__all__ = ["AutotuneCandidate", "AutotuneResult", "Autotuner", "WorkGroupTuner"]
