"""Layers and networks. Subclass Module and write forward()."""

from __future__ import annotations

from typing import Any, Iterable

from . import _copying
from .._netcl import Tensor
from .._netcl.nn import (
    GPT,
    Activation,
    AdaptiveAvgPool2d,
    AvgPool2d,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    Module,
    MultiheadAttention,
    RMSNorm,
    Sequential,
    TransformerBlock,
    bce_loss,
    bce_with_logits_loss,
    cross_entropy,
    from_json,
    hinge_loss,
    huber_loss,
    init,
    kl_div_loss,
    l1_loss,
    manual_seed,
    mse_loss,
    nll_loss,
    random_state,
    resnet18,
    resnet34,
    resnet50,
    set_random_state,
    smooth_l1_loss,
    to_json,
)


_copying.install()


def Parameter(values: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor that is trained when a Module has it as an attribute."""
    tensor = values.detach() if isinstance(values, Tensor) else Tensor(values, dtype, device)
    return tensor.requires_grad_()


class ModuleList(Module):
    """Modules in a list; all of them belong to the module that has the list as an attribute."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        """Another module at the end."""
        setattr(self, str(len(self)), module)

    def __len__(self) -> int:
        return len(self.children())

    def __getitem__(self, index: int) -> Module:
        return self.children()[index]

    def __iter__(self):
        return iter(self.children())

    def forward(self, *args: Any) -> Tensor:
        """A list computes nothing by itself."""
        raise NotImplementedError("a ModuleList is called layer by layer")


def ReLU() -> Activation:
    """max(x, 0) as a layer."""
    return Activation("relu")


def GELU(tanh_form: bool = False) -> Activation:
    """x times the normal distribution function as a layer; tanh_form approximates it."""
    return Activation("gelu_tanh" if tanh_form else "gelu")


def SiLU() -> Activation:
    """x * sigmoid(x) as a layer."""
    return Activation("silu")


def Sigmoid() -> Activation:
    """1 / (1 + exp(-x)) as a layer."""
    return Activation("sigmoid")


def Tanh() -> Activation:
    """The hyperbolic tangent as a layer."""
    return Activation("tanh")


def Softmax() -> Activation:
    """softmax over the last axis as a layer."""
    return Activation("softmax")


__all__ = [
    "Activation",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "GPT",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "TransformerBlock",
    "bce_loss",
    "bce_with_logits_loss",
    "cross_entropy",
    "from_json",
    "hinge_loss",
    "huber_loss",
    "init",
    "kl_div_loss",
    "l1_loss",
    "manual_seed",
    "mse_loss",
    "nll_loss",
    "random_state",
    "resnet18",
    "resnet34",
    "resnet50",
    "set_random_state",
    "smooth_l1_loss",
    "to_json",
]
