#!/usr/bin/env python3
"""Checks which folder includes which (docs/layout.md explains the layers), and the size of files.

    scripts/check_includes.py               check this tree; exit code 1 and one line per violation
    scripts/check_includes.py --self-test   plant every kind of violation and see that it is found
"""
import re
import sys
import tempfile
from pathlib import Path

# A layer may include itself, the layers named here and what those may include.
DIRECT = {
    "base": [],
    "cl": ["base"],
    "device": ["cl"],
    "memory": ["device"],
    "profiling": ["device"],
    "kernel": ["memory", "profiling"],
    "tune": ["kernel"],
    "tensor": ["tune"],
    "io": ["tensor"],
    "ops": ["tensor"],
    "selftest": ["autograd"],
    "autograd": ["ops"],
    "jit": ["autograd"],
    "nn": ["jit", "io"],
    "optim": ["nn"],
    "data": ["io", "ops"],
    "train": ["data", "optim"],
    "bench": ["train"],
    "dist": ["data", "optim"],
}

# The layer behind each public header. A new header says here where it belongs.
PUBLIC = {
    "dtype": "base",
    "environment": "base",
    "error": "base",
    "log": "base",
    "shape": "base",
    "version": "base",
    "capabilities": "cl",
    "opencl": "cl",
    "runtime": "cl",
    "device": "device",
    "diagnostics": "device",
    "profile": "device",
    "profiling": "profiling",
    "memory": "memory",
    "compile_ahead": "kernel",
    "kernel": "kernel",
    "kernel_selector": "kernel",
    "program_cache": "kernel",
    "autotuner": "tune",
    "tunables": "tune",
    "tuning_store": "tune",
    "backend": "tensor",
    "host_memory": "tensor",
    "tensor": "tensor",
    "io": "io",
    "ops": "ops",
    "op_info": "ops",
    "primitive": "ops",
    "selftest": "selftest",
    "autograd": "autograd",
    "capture": "jit",
    "jit": "jit",
    "nn": "nn",
    "optim": "optim",
    "data": "data",
    "train": "train",
    "bench": "bench",
    "dist": "dist",
    "netcl": "everything",
}
# Folders that see netcl as a user does: public headers, the system's, and their own.
# What is made of OpenCL's own types: the calls, and the layer that fails them in tests.
OPENCL = ("src/cl/opencl", "tests/cpu_layer/", "tests/fault_layer/", "tests/kernel_record/")
USERS = ("tools/", "python/", "examples/", "tests/consumer/")
SOURCES = (".cpp", ".h", ".hpp", ".cc", ".cl")
CHECKED = ("include", "src", "tools", "python", "examples", "tests", "bench")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>; not <stdint.h>, not <fmt/format.h>
MAX_LINES = 800
MAX_README = 150


def reachable(layer):
    seen, todo = set(), [layer]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += DIRECT[one]
    return seen


ALLOWED = {layer: reachable(layer) for layer in DIRECT}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL)


class Checker:
    def __init__(self, root):
        self.root = Path(root)
        self.problems = []

    def report(self, where, text):
        self.problems.append(f"{where}: {text}")

    def resolve(self, file, target):
        """The included file relative to the root, as the compiler would find it, or None."""
        for base in (file.parent, self.root / "src", self.root / "include", self.root / "tests"):
            found = base / target
            if found.is_file():
                return found.resolve().relative_to(self.root.resolve()).as_posix()
        return None

    @staticmethod
    def public_layer(target):
        return PUBLIC.get(target.removeprefix("netcl/").removesuffix(".h"))

    def check_direction(self, where, layer, other, target):
        if other is None:
            return
        if other == "everything":
            self.report(where, f"{target} is for users; include the header that is needed")
        elif other in DIRECT and other not in ALLOWED[layer]:
            self.report(where, f"{layer} must not include {other} ({target})")

    def check_public(self, where, name, target, quoted):
        if target.startswith("netcl/"):
            mine = self.public_layer(name.removeprefix("include/"))
            if mine in DIRECT:
                self.check_direction(where, mine, self.public_layer(target), target)
        elif quoted or not STANDARD.fullmatch(target):
            self.report(where, f"a public header includes only public and standard headers ({target})")

    def check_src(self, where, file, layer, target, quoted):
        if target.startswith("netcl/"):
            self.check_direction(where, layer, self.public_layer(target), target)
        elif quoted:
            found = self.resolve(file, target)
            if found is None or not found.startswith("src/"):
                self.report(where, f"not a file under src/ ({target})")
            else:
                self.check_direction(where, layer, found.split("/")[1], target)

    def check_user(self, where, file, name, target, quoted):
        if target.startswith("netcl/"):
            return
        found = self.resolve(file, target)
        folder = next(user for user in USERS if name.startswith(user))
        if found is None and quoted:
            self.report(where, f"no such file ({target})")
        elif found is not None and not found.startswith(folder):
            self.report(where, f"{folder} includes only netcl/*.h and its own files ({target})")

    def check_file(self, file):
        name = file.relative_to(self.root).as_posix()
        layer = None
        if name.startswith("src/"):
            layer = name.split("/")[1]
            if layer not in DIRECT:
                self.report(name, f"unknown layer src/{layer}: a new room is a decision; name it "
                                  "in scripts/check_includes.py and docs/layout.md")
                return
        text = file.read_text(encoding="utf-8", errors="replace")
        self.check_length(name, text)
        if file.suffix == ".cl":
            return
        if name.startswith("include/") and self.public_layer(name.removeprefix("include/")) is None:
            self.report(name, "unknown public header: name its layer in PUBLIC of "
                              "scripts/check_includes.py")
        text = without_comments(text)
        for match in INCLUDE.finditer(text):
            where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            quoted, target = match[1] == '"', match[2]
            if target.startswith(("CL/", "OpenCL/")) and not name.startswith(OPENCL):
                self.report(where, f"only src/cl/opencl* includes OpenCL headers ({target})")
            elif name.startswith("include/"):
                self.check_public(where, name, target, quoted)
            elif layer:
                self.check_src(where, file, layer, target, quoted)
            elif name.startswith(USERS):
                self.check_user(where, file, name, target, quoted)

    def check_length(self, name, text):
        lines = text.count("\n")
        if lines <= MAX_LINES:
            return
        comment = re.match(r"\s*((?://[^\n]*\n\s*)+|/\*.*?\*/)", text, re.DOTALL)
        if not comment or f"{MAX_LINES} lines" not in comment.group():
            self.report(name, f"{lines} lines; split it, or say in its first comment why it has "
                              f"over {MAX_LINES} lines (in these words)")

    def run(self):
        for folder in CHECKED:
            for file in sorted((self.root / folder).rglob("*")):
                if file.suffix in SOURCES and file.is_file():
                    self.check_file(file)
        readme = self.root / "README.md"
        if readme.is_file() and (lines := readme.read_text(encoding="utf-8").count("\n")) > MAX_README:
            self.report("README.md", f"{lines} lines; at most {MAX_README}, the rest belongs in docs/")
        return self.problems


# Each case: files of a tree, and a part of the one message expected (None: the tree is clean).
LONG = "int x;\n" * (MAX_LINES + 1)
CASES = [
    ({"src/device/a.cpp": '#include "base/b.h"\n#include <fmt/format.h>\n', "src/base/b.h": ""}, None),
    ({"src/base/a.cpp": '#include "device/b.h"\n', "src/device/b.h": ""}, "base must not include device"),
    ({"src/base/a.cpp": '#include "../device/b.h"\n', "src/device/b.h": ""}, "base must not include device"),
    ({"src/base/a.cpp": '// c\n/*\n*/ int y;\n#include "device/b.h"\n', "src/device/b.h": ""}, "src/base/a.cpp:4:"),
    ({"src/memory/a.cpp": '# include "tensor/b.h"\n', "src/tensor/b.h": ""}, "memory must not include tensor"),
    ({"src/tune/a.cpp": '#include "kernel/b.h"\n', "src/kernel/b.h": ""}, None),
    ({"src/tune/a.cpp": '#include "tensor/b.h"\n', "src/tensor/b.h": ""}, "tune must not include tensor"),
    ({"src/tensor/a.cpp": '#include "tune/b.h"\n', "src/tune/b.h": ""}, None),
    ({"src/ops/relu/a.cpp": '#include "tune/b.h"\n', "src/tune/b.h": ""}, None),
    ({"src/kernel/a.cpp": '#include "profiling/b.h"\n', "src/profiling/b.h": ""}, None),
    ({"src/profiling/a.cpp": '#include "memory/b.h"\n', "src/memory/b.h": ""}, "profiling must not include memory"),
    ({"src/ops/a.cpp": '#include "io/b.h"\n', "src/io/b.h": ""}, "ops must not include io"),
    ({"src/train/a.cpp": '#include "dist/b.h"\n', "src/dist/b.h": ""}, "train must not include dist"),
    ({"src/base/a.cpp": '#include "netcl/tensor.h"\n'}, "base must not include tensor"),
    ({"src/tensor/a.cpp": '#include "netcl/netcl.h"\n'}, "is for users"),
    ({"src/tensor/a.cpp": '#include "missing.h"\n'}, "not a file under src/"),
    ({"src/backend/a.cpp": ""}, "unknown layer src/backend"),
    ({"src/cl/opencl_a.cpp": "#include <CL/cl.h>\n"}, None),
    ({"tests/fault_layer/a.cpp": "#include <CL/cl_layer.h>\n"}, None),
    ({"src/cl/a.cpp": "#include <CL/cl.h>\n"}, "only src/cl/opencl*"),
    ({"src/device/a.cpp": "#include <CL/cl.h>\n"}, "only src/cl/opencl*"),
    ({"tests/device/a_test.cpp": '#include "CL/opencl.hpp"\n'}, "only src/cl/opencl*"),
    ({"include/netcl/device.h": '#include <vector>\n#include "netcl/error.h"\n'}, None),
    ({"include/netcl/device.h": "#include <fmt/format.h>\n"}, "only public and standard"),
    ({"include/netcl/device.h": "#include <stdint.h>\n"}, "only public and standard"),
    ({"include/netcl/device.h": '#include "base/log.h"\n'}, "only public and standard"),
    ({"include/netcl/device.h": '#include "netcl/tensor.h"\n'}, "device must not include tensor"),
    ({"include/netcl/novelty.h": ""}, "unknown public header"),
    ({"tools/netcl/a.cpp": '#include <netcl/netcl.h>\n#include <CLI/CLI.hpp>\n#include "b.h"\n',
      "tools/netcl/b.h": ""}, None),
    ({"tools/netcl/a.cpp": '#include "base/log.h"\n', "src/base/log.h": ""}, "includes only netcl/*.h"),
    ({"tools/netcl/a.cpp": "#include <base/log.h>\n", "src/base/log.h": ""}, "includes only netcl/*.h"),
    ({"examples/a.cpp": '#include "../src/base/log.h"\n', "src/base/log.h": ""}, "includes only netcl/*.h"),
    ({"python/a.cpp": '#include "tensor/t.h"\n', "src/tensor/t.h": ""}, "includes only netcl/*.h"),
    ({"tests/consumer/main.cpp": '#include "base/log.h"\n', "src/base/log.h": ""}, "includes only netcl/*.h"),
    ({"tests/base/a_test.cpp": '#include "base/log.h"\n', "src/base/log.h": ""}, None),
    ({"src/base/a.cpp": LONG}, "801 lines"),
    ({"src/tensor/kernels/a.cl": LONG}, "801 lines"),
    ({"src/base/a.cpp": "// A table: over 800 lines because nothing in it can be read alone.\n" + LONG}, None),
    ({"README.md": "x\n" * (MAX_README + 1)}, "151 lines"),
]


def self_test():
    failures = 0
    for files, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                file = Path(root) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            problems = Checker(root).run()
        good = not problems if expected is None else len(problems) == 1 and expected in problems[0]
        if not good:
            failures += 1
            print(f"self-test: {sorted(files)}: expected {expected!r}, got {problems}", file=sys.stderr)
    print(f"check_includes: self-test, {len(CASES) - failures} of {len(CASES)} cases")
    return 1 if failures else 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    problems = Checker(Path(__file__).resolve().parent.parent).run()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"check_includes: {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
