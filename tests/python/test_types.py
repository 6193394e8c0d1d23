"""The type stubs: complete, and what a type checker makes of a program that uses the package."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import netcl as nc

PACKAGE = Path(nc.__file__).parent
SAMPLE = Path(__file__).parent / "typed_sample.py"


def stub_of(module):
    path = PACKAGE / Path(*module.__name__.split(".")[1:])
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


@pytest.mark.parametrize("name", ["", "ops", "autograd", "nn", "optim", "data", "io", "train", "profiling"])
def test_stubs_are_complete(name):
    module = getattr(nc._netcl, name) if name else nc._netcl
    tree = ast.parse(stub_of(module).read_text(encoding="utf-8"))
    declared = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    there = {key for key, value in vars(module).items()
             if getattr(value, "__module__", "") == module.__name__ and callable(value)}
    assert there and there <= declared


def test_marker():
    assert (PACKAGE / "py.typed").exists()


def test_a_type_checker_agrees(tmp_path):
    pytest.importorskip("mypy")
    env = dict(os.environ)
    if PACKAGE.parent.name != "site-packages":  # installed, it is found by its py.typed
        env["MYPYPATH"] = str(PACKAGE.parent)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--ignore-missing-imports",
               "--follow-imports=silent", "--no-error-summary", str(SAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    wrong = [i for i, line in enumerate(SAMPLE.read_text().splitlines(), 1) if "# wrong" in line]
    assert [int(line.split(":")[1]) for line in lines] == wrong, done.stdout + done.stderr
