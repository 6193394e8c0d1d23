"""The examples in docstrings and the Python blocks of the pages are run."""

import doctest
import enum
import importlib
import pkgutil
import re
import types
from pathlib import Path

import pytest

import netcl as nc

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.stem)
def test_page(page, tmp_path, monkeypatch):
    """All blocks of a page, one after the other, where data/ is what it is in the source tree."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    try:
        for number, block in enumerate(blocks(page), 1):
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    finally:
        for primitive in nc.autograd.compiler.primitive_names():
            nc.autograd.compiler.unregister_primitive(primitive)


def modules():
    found = [nc]
    for info in pkgutil.walk_packages(nc.__path__, "netcl."):
        if info.name.split(".")[-1] not in ("__main__", "_netcl"):
            found.append(importlib.import_module(info.name))
    return found


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__)
def test_docstrings_of_modules(module):
    assert module.__doc__, "every module says what it is for"
    failed, _ = doctest.testmod(module, extraglobs={"nc": nc})
    assert failed == 0


def extension_examples():
    """(name, docstring) of everything in the extension that has an example."""
    seen = set()

    def walk(scope, name):
        for key, value in sorted(vars(scope).items()):
            path = f"{name}.{key}"
            if isinstance(value, types.ModuleType) and value.__name__.startswith("netcl._netcl"):
                yield from walk(value, path)
                continue
            text = getattr(value, "__doc__", None)
            if isinstance(text, str) and ">>>" in text and id(value) not in seen:
                seen.add(id(value))
                yield path, text
            if isinstance(value, type) and value.__module__.startswith("netcl._netcl"):
                yield from walk(value, path)

    return list(walk(nc._netcl, "_netcl"))


@pytest.mark.parametrize("name, text", extension_examples(), ids=lambda value: value if len(value) < 60 else "")
def test_docstrings_of_the_extension(name, text):
    test = doctest.DocTestParser().get_doctest(text, {"nc": nc}, name, None, 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 0 and results.failed == 0


def test_the_extension_has_examples():
    names = {name.split(".")[-1] for name, _ in extension_examples()}
    assert {"Tensor", "Tape", "Linear", "elementwise_binary", "from_host"} <= names


def is_described(value):
    """Whether help() says more than the signature, which the extension puts first."""
    text = getattr(value, "__doc__", None) or ""
    if type(value).__module__ == "nanobind" and not isinstance(value, type):
        text = text.partition("\n\n")[2]
    return bool(text.strip())


def undescribed(scope, name):
    """Public names of modules and classes of the package without a word on what they are."""
    public = getattr(scope, "__all__", None) or [key for key in vars(scope) if not key.startswith("_")]
    for key in sorted(public):
        value = vars(scope)[key] if isinstance(scope, type) else getattr(scope, key)
        is_class = isinstance(value, type)
        if is_class and not value.__module__.startswith("netcl"):
            continue
        if (is_class or callable(value)) and not is_described(value):
            yield f"{name}.{key}"
        if is_class and not issubclass(value, (BaseException, enum.Enum)):
            yield from undescribed(value, f"{name}.{key}")


@pytest.mark.parametrize("module", [m for m in modules() if not m.__name__.split(".")[-1].startswith("_")],
                         ids=lambda m: m.__name__)
def test_help_has_something_to_say(module):
    assert list(undescribed(module, module.__name__)) == []
