"""copy and pickle for modules. Layers of netcl's own are made again from their description, those of
Python without calling their __init__; what is one tensor or module in a model is one in the copy."""

from __future__ import annotations

import weakref
from typing import Any

from .._netcl import Tensor
from .._netcl.autograd import Node
from .._netcl.nn import Module, Sequential, from_json, to_json

# Every access to a tensor of a module makes a new object; copy and pickle know shared ones by being
# the same object.
_objects: weakref.WeakValueDictionary[Any, Tensor] = weakref.WeakValueDictionary()


def _same_object(tensor: Tensor) -> Tensor:
    place = tensor.buffer.int_ptr if tensor.array is None else tensor.array.ctypes.data
    key = (place, tensor.offset, tensor.shape, tensor.strides)
    known = _objects.get(key)
    if known is not None and Node.of(known) == Node.of(tensor):
        return known
    _objects[key] = tensor
    return tensor


def _same_objects(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: _same_object(tensor) for name, tensor in tensors.items()}


def _new(cls: type) -> Module:
    module = cls.__new__(cls)
    Module.__init__(module)
    return module


def _new_sequential(cls: type, *layers: Module) -> Module:
    module = cls.__new__(cls)
    Sequential.__init__(module, *layers)
    return module


def _from_description(text: str) -> Module:
    return from_json(text)  # which pickle cannot name itself


def reduce(self: Module) -> tuple:
    cls, modes = type(self), [module.training for _, module in self.named_modules()]
    own = self._own_tensors()
    if own is not None:
        parameters, buffers = map(_same_objects, own)
        return _new, (cls,), (modes, dict(self.__dict__), parameters, buffers, dict(self.named_children()))
    if isinstance(self, Sequential):
        return _new_sequential, (cls, *self.children()), (modes, dict(self.__dict__))
    if not cls.__module__.startswith("netcl."):
        raise TypeError(f"[copy] a subclass of a layer cannot be copied, only one of Module: {cls.__name__}")
    return _from_description, (to_json(self),), (modes, dict(self.__dict__), _same_objects(self.state_dict()))


def set_state(self: Module, state: tuple) -> None:
    modes, attributes, *rest = state
    self.__dict__.update(attributes)
    if self._own_tensors() is not None:
        parameters, buffers, children = rest
        for name, tensor in parameters.items():
            is_trained = tensor.requires_grad
            self.register_parameter(name, tensor)
            getattr(self, name).requires_grad = is_trained
        for name, module in children.items():
            setattr(self, name, module)
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)
    elif rest:
        _fill(self, rest[0])
    for (_, module), training in zip(self.named_modules(), modes):
        module.train(training)


def _fill(layer: Module, tensors: dict[str, Tensor]) -> None:
    """A new layer gets these very tensors where it has a place for them, else their values."""
    floats = [tensor for tensor in tensors.values() if tensor.dtype.startswith(("float", "bfloat"))]
    if floats:
        layer.to(floats[0].queue).astype(floats[0].dtype)
        layer.requires_grad_(any(tensor.requires_grad for tensor in floats))
    layer.load_state_dict(tensors)
    for name, tensor in tensors.items():
        if hasattr(type(layer), name):
            is_trained = tensor.requires_grad
            setattr(layer, name, tensor)
            getattr(layer, name).requires_grad = is_trained


def init_subclass(cls: type, **options: Any) -> None:
    """Layers of netcl's own call each other in C++, where methods of subclasses are not seen."""
    super(Module, cls).__init_subclass__(**options)
    layer = next(base for base in cls.__mro__ if base.__module__.startswith("netcl._netcl"))
    if layer is not Module and "forward" in vars(cls):
        raise TypeError(
            f"[Module] forward() can be defined in subclasses of Module only: make {cls.__name__} one that has "
            f"a {layer.__name__} as an attribute"
        )


def install() -> None:
    Module.__reduce__ = reduce  # type: ignore[method-assign]
    Module.__setstate__ = set_state  # type: ignore[attr-defined]
    Module.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]
