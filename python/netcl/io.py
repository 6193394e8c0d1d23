"""Files: safetensors, npy, npz, IDX, PNG and JPEG. Whole models by their state."""

from __future__ import annotations

from typing import Any

from ._netcl.nn import save_onnx
from ._netcl.io import (
    SafetensorsFile,
    load_idx,
    load_image,
    load_npy,
    load_npz,
    load_safetensors,
    save_npy,
    save_npz,
    save_png,
    save_safetensors,
)

__all__ = [
    "SafetensorsFile",
    "load_idx",
    "load_image",
    "load_model",
    "load_npy",
    "load_npz",
    "load_safetensors",
    "save_model",
    "save_npy",
    "save_npz",
    "save_onnx",
    "save_png",
    "save_safetensors",
]


def save_model(path: Any, model: Any) -> None:
    """The state of a model as a safetensors file."""
    save_safetensors(path, model.state_dict())


def load_model(path: Any, model: Any, strict: bool = True):
    """Copies the state in a safetensors file into a model, which it returns."""
    model.load_state_dict(load_safetensors(path), strict)
    return model
