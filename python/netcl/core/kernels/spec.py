"""KernelSpec: a kernel and how to build and run it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from ... import _netcl


class _WorkgroupSize:
    """The size that was given, else the one that tuning found for the program built last."""

    def __get__(self, spec: Any, owner: Any = None) -> Any:
        if spec is None:
            return None  # the default of the field
        given = spec.__dict__.get("_given_size")
        program = spec.__dict__.get("program")
        if given is not None or program is None:
            return given
        return program.kernel().tuned_size

    def __set__(self, spec: Any, size: Any) -> None:
        spec.__dict__["_given_size"] = size


@dataclass
class KernelSpec:
    """Give either `src` (a whole program, one or more kernels) or `params` and `body` (netcl writes
    the function). The macros of PRIMITIVE_PREAMBLE come first unless `preamble` says otherwise.
    `workgroup_size` is the local size of runs without one. Unless it is given, each global size is
    tuned at its first run, and it shows what was found last (None before that).

    >>> spec = KernelSpec(name="twice", params=["__global float* x"],
    ...                   body="int i = get_global_id(0); x[i] = MUL(x[i], 2.0f);")
    >>> "__kernel void twice(" in spec.to_source()
    True
    """

    name: str
    src: str = ""
    shape_sig: tuple = ()
    workgroup_size: int | tuple | None = _WorkgroupSize()  # type: ignore[assignment]
    extra_flags: tuple = ()
    tune: bool = True
    params: Any = ()
    body: str = ""
    preamble: str | None = None
    max_workgroup_size: int = 0
    guards_range: bool = False
    program: Any = field(default=None, init=False, repr=False, compare=False)

    def to_source(self) -> str:
        """Exactly what is compiled."""
        return self._native().to_source()

    def build(self, queue_or_context: Any):
        """Compiles through the program cache. The program has run() and its kernels as attributes;
        the spec keeps the latest one. Any number of threads may build at once."""
        program = self._native().build(queue_or_context)
        program.spec = self
        self.program = program
        return program

    def run(self, queue: Any, global_size: Any, local_size: Any, *args: Any):
        """Builds for the queue (which is quick the second time) and launches the kernel `name`."""
        return self.build(queue).run(queue, global_size, local_size, *args)

    def _native(self):
        signature = repr(tuple(self.shape_sig)) if self.shape_sig else ""
        return _netcl._KernelSpec(
            self.name,
            self.src,
            list(self.params),
            self.body,
            self.preamble,
            signature,
            self.__dict__.get("_given_size"),
            list(self.extra_flags),
            self.tune,
            self.max_workgroup_size,
            self.guards_range,
        )

    def __getstate__(self) -> dict:
        return {**self.__dict__, "program": None}  # built again where it is needed

    @classmethod
    def _from_native(cls, native: Any) -> "KernelSpec":
        return cls(
            name=native.name,
            src=native.src,
            shape_sig=ast.literal_eval(native.shape_sig) if native.shape_sig else (),
            workgroup_size=native.workgroup_size,
            extra_flags=tuple(native.extra_flags),
            tune=native.tune,
            params=tuple(native.params),
            body=native.body,
            preamble=native.preamble,
            max_workgroup_size=native.max_workgroup_size,
            guards_range=native.guards_range,
        )


def find_kernel_spec(name: str, shape_sig: tuple = ()) -> KernelSpec | None:
    """The spec that was last built under this name and shape signature."""
    found = _netcl._find_kernel_spec(name, repr(tuple(shape_sig)) if shape_sig else "")
    return None if found is None else KernelSpec._from_native(found)
