"""Where the time goes, and tuning."""

from .._netcl.profiling import (
    EventTimer,
    KernelSummary,
    ProfileRecord,
    RegionSummary,
    clear_profile,
    is_profiling,
    kernel_summary,
    profile_report,
    region_summary,
    start_profiling,
    stop_profiling,
    timing_region,
    write_chrome_trace,
)
from .autotuner import AutotuneCandidate, AutotuneResult, Autotuner, WorkGroupTuner

__all__ = [
    "AutotuneCandidate",
    "AutotuneResult",
    "Autotuner",
    "EventTimer",
    "KernelSummary",
    "ProfileRecord",
    "RegionSummary",
    "WorkGroupTuner",
    "clear_profile",
    "is_profiling",
    "kernel_summary",
    "profile_report",
    "region_summary",
    "start_profiling",
    "stop_profiling",
    "timing_region",
    "write_chrome_trace",
]
