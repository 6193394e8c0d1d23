"""Where things are that people look for in other places: the text of AttributeErrors."""

from __future__ import annotations

import sys
from typing import Any, Callable

# Names of NumPy and PyTorch for what is called differently here.
_HERE = {
    "netcl": {
        **dict.fromkeys(["tensor", "array", "asarray", "as_tensor", "from_numpy"], "netcl.Tensor(values)"),
        **{name: f"netcl.Tensor.{name}(shape)" for name in ("zeros", "ones", "empty", "full")},
        **dict.fromkeys(["rand", "randn", "random"], 'netcl.Tensor.random(shape, distribution="normal")'),
        **dict.fromkeys(["cat", "concatenate"], "netcl.ops.concat"),
        **dict.fromkeys(["float16", "float32", "float64", "int32", "int64", "uint8", "bool"], 'the name: dtype="float32"'),
        "cuda": 'netcl.device.manager.default("gpu")',
        "devices": "netcl.device.manager.discover()",
        "save": "netcl.io.save_model and netcl.io.save_safetensors",
        "load": "netcl.io.load_model and netcl.io.load_safetensors",
    },
    "netcl.nn": {
        "functional": "netcl.nn.cross_entropy and other losses, netcl.ops",
        "CrossEntropyLoss": "netcl.nn.cross_entropy",
        "MSELoss": "netcl.nn.mse_loss",
        "L1Loss": "netcl.nn.l1_loss",
        "BCEWithLogitsLoss": "netcl.nn.bce_with_logits_loss",
        "utils": "netcl.optim.clip_grad_norm",
        "LeakyReLU": 'netcl.nn.Activation("leaky_relu")',
        "LogSoftmax": 'netcl.nn.Activation("log_softmax")',
        "ELU": 'netcl.nn.Activation("elu")',
        "Softplus": 'netcl.nn.Activation("softplus")',
    },
    "netcl.optim": {"lr_scheduler": "netcl.optim.CosineSchedule, StepSchedule, WarmupSchedule and PlateauSchedule"},
    "netcl.autograd": {"grad": "tape.gradient(loss, tensors)", "backward": "tape.backward(loss)"},
    "netcl.data": {"TensorDataset": "netcl.data.ArrayDataset(images, labels), or a list of pairs"},
    "Tensor": {
        "backward": "tape.backward(loss), where the loss is computed inside `with netcl.autograd.Tape() as tape:`",
        "cuda": '.to("gpu")',
        "cpu": '.to("cpu")',
        "float": '.astype("float32")',
        "half": '.astype("float16")',
        "double": '.astype("float64")',
        "int": '.astype("int32")',
        "long": '.astype("int64")',
        "bool": '.astype("bool")',
        "type": ".astype(dtype)",
        "dim": ".ndim",
        "t": ".T",
        "swapaxes": ".transpose(a, b)",
        "ravel": ".flatten()",
        "data": ".detach()",
        "clip": ".clamp(min, max)",
        "zero_": ".fill_(0)",
        "stride": ".strides",
        **dict.fromkeys(["mm", "dot"], "a @ b"),
        **dict.fromkeys(["randn", "rand"], 'netcl.Tensor.random(shape, distribution="normal")'),
    },
}
_MODULES = ("autograd", "autograd.compiler", "data", "device", "errors", "io", "nn", "ops", "optim", "profiling",
            "runtime", "train")  # fmt: skip


def _found(name: str) -> str:
    """A module that has the name, perhaps with other capitals."""
    for module in _MODULES:
        for key in getattr(sys.modules.get(f"netcl.{module}"), "__all__", ()):
            if key.lower() == name.lower().rstrip("_"):
                return f"netcl.{module}.{key}"
    return ""


def _missing(what: str, where: str, name: str, thing: Any) -> AttributeError:
    text = f"{what} has no attribute {name!r}"
    hint = "" if name.startswith("_") else _HERE.get(where, {}).get(name) or _found(name)
    return AttributeError(f"{text}; there is {hint}" if hint else text, name=name, obj=thing)


def _of_module(module: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        raise _missing(f"module {module!r}", module, name, sys.modules[module])

    return __getattr__


def _of_tensor(self: Any, name: str) -> Any:
    raise _missing("'Tensor' object", "Tensor", name, self)


def install(tensor: Any) -> None:
    """Only asked for names that are not there. Not in the modules' text, where a type checker would
    take it for leave to use any name."""
    tensor.__getattr__ = _of_tensor
    for module in ("netcl", "netcl.autograd", "netcl.data", "netcl.io", "netcl.nn", "netcl.ops", "netcl.optim"):
        setattr(sys.modules[module], "__getattr__", _of_module(module))
