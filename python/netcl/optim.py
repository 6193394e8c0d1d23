"""Optimisers, schedules of their rate, clipping, averages of weights, loss scaling."""

from ._netcl.optim import (
    EMA,
    SGD,
    Adam,
    AdamW,
    CosineSchedule,
    GradScaler,
    Optimizer,
    PlateauSchedule,
    RMSProp,
    Schedule,
    StepSchedule,
    WarmupSchedule,
    clip_grad_norm,
    clip_grad_value,
)

__all__ = [
    "Adam",
    "AdamW",
    "CosineSchedule",
    "EMA",
    "GradScaler",
    "Optimizer",
    "PlateauSchedule",
    "RMSProp",
    "SGD",
    "Schedule",
    "StepSchedule",
    "WarmupSchedule",
    "clip_grad_norm",
    "clip_grad_value",
]
