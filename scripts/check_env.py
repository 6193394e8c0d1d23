#!/usr/bin/env python3
"""Checks that the environment is read in one place and that its table is complete.

Only src/base/env.cpp calls getenv; every NETCL_ name in a string of the C++ sources is a row of its
table; every row is described in docs/environment.md.

    scripts/check_env.py [--self-test]
"""
import re
import sys
import tempfile
from pathlib import Path

TABLE = "src/base/env.cpp"
DOCS = "docs/environment.md"
LIBRARY = ("src", "include", "tools", "python", "examples")
SOURCES = (".cpp", ".h", ".hpp", ".cc")
READS = re.compile(r"\b((?:secure_)?getenv|environ)\b")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
NAME = re.compile(r"\bNETCL_[A-Z0-9]+(?:_[A-Z0-9]+)*\b")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(NETCL_\w+)", re.MULTILINE)


def code_of(file):
    """The text without comments, so that prose about getenv is not a call of it; lines are kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
    text = file.read_text(encoding="utf-8", errors="replace")
    return token.sub(lambda m: m[0] if m[0][0] == '"' else "\n" * m[0].count("\n"), text)


def check(root):
    problems = []
    files = {}
    for folder in LIBRARY:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SOURCES and file.is_file():
                files[file.relative_to(root).as_posix()] = code_of(file)
    rows = set()
    for text in STRING.findall(files.get(TABLE, "")):
        rows |= set(NAME.findall(text))
    # Macros and CMake options are also called NETCL_..., and messages may mention them.
    macros = {name for text in files.values() for name in MACRO.findall(text)}
    cmake = [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]
    for file in cmake:
        if file.is_file():
            macros |= set(re.findall(r"(?:option|set)\((NETCL_\w+)", file.read_text(encoding="utf-8")))

    for name, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            where = f"{name}:{number}"
            found = READS.search(STRING.sub('""', line))
            if found and name != TABLE:
                problems.append(f"{where}: {found[1]}: only {TABLE} reads the environment; "
                                "use netcl::env")
            for string in STRING.findall(line):
                for variable in NAME.findall(string):
                    if variable not in rows and variable not in macros:
                        problems.append(f"{where}: {variable} is not in the table of {TABLE}")
    if (root / DOCS).is_file():
        described = set(NAME.findall((root / DOCS).read_text(encoding="utf-8")))
        for variable in sorted(rows - described):
            problems.append(f"{DOCS}: {variable} of {TABLE} is missing")
        for variable in sorted(described - rows - macros):
            problems.append(f"{DOCS}: {variable} is not in the table of {TABLE}")
    return problems


ENV = {TABLE: '{"NETCL_DEVICE", "auto", "x"},\nstd::getenv(name);\n'}
CASES = [
    (ENV, None),
    ({**ENV, "src/device/a.cpp": 'env::text("NETCL_DEVICE"); // getenv\n'}, None),
    ({**ENV, "src/device/a.cpp": 'log("getenv failed");\n'}, None),
    ({**ENV, "src/device/a.cpp": '\nstd::getenv("HOME");\n'}, "src/device/a.cpp:2: getenv"),
    ({**ENV, "tools/netcl/a.cpp": 'secure_getenv("HOME");\n'}, "secure_getenv: only"),
    ({**ENV, "src/base/log.cpp": "extern char** environ;\n"}, "environ: only"),
    ({**ENV, "src/device/a.cpp": 'fail("unset NETCL_DEVICES");\n'}, "NETCL_DEVICES is not in the table"),
    ({**ENV, "src/base/check.h": '#define NETCL_CHECK(x) y\nz("NETCL_CHECK");\n'}, None),
    ({**ENV, "CMakeLists.txt": 'option(NETCL_OPENCL "x" ON)', "src/a/a.cpp": '"NETCL_OPENCL"'}, None),
    ({**ENV, DOCS: "| NETCL_DEVICE |\n"}, None),
    ({**ENV, DOCS: "nothing\n"}, "NETCL_DEVICE of src/base/env.cpp is missing"),
    ({**ENV, DOCS: "NETCL_DEVICE NETCL_GHOST\n"}, "NETCL_GHOST is not in the table"),
]


def self_test():
    failures = 0
    for files, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                file = Path(root) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            problems = check(Path(root))
        good = not problems if expected is None else len(problems) == 1 and expected in problems[0]
        if not good:
            failures += 1
            print(f"self-test: {files}: expected {expected!r}, got {problems}", file=sys.stderr)
    print(f"check_env: self-test, {len(CASES) - failures} of {len(CASES)} cases")
    return 1 if failures else 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    problems = check(Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"check_env: {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
