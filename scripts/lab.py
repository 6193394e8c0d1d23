#!/usr/bin/env python3
"""Several independent OpenCL implementations on one Debian machine, and the self-test on each.

    lab.py install            what is missing, as root: Debian packages, PyPI wheels, newer releases
    lab.py compilers          the compilers of scripts/gpu_audit.py, likewise
    lab.py list               the implementations, and which of them are installed
    lab.py run NAME CMD...    a command that sees exactly this implementation
    lab.py matrix [NAME...]   the self-test of all ops on each, and tests of what netcl remembers between calls, as a
                              table (--stride, --full, --ops, --out); goes on where a run with the same executables
                              and the same cases was interrupted

Everything goes to build/lab (NETCL_LAB names another directory). An implementation of a newer Debian
release lives in a small root directory of that release, which `run` enters in a mount namespace of
its own; nothing of it is seen outside."""

import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
LAB = Path(os.environ.get("NETCL_LAB", PROJECT / "build" / "lab"))  # named as a tool's variable, not the library's
NETCL = PROJECT / "build" / "release" / "bin" / "netcl"

LLVMPIPE = {"RUSTICL_ENABLE": "llvmpipe", "RUSTICL_FEATURES": "fp64"}
FP16 = {"RUSTICL_FEATURES": "fp16,fp64"}  # Mesa 26 has float16 without being asked
ZINK = {"RUSTICL_ENABLE": "swrast", "GALLIUM_DRIVER": "zink", "LIBGL_ALWAYS_SOFTWARE": "1",
        "VK_DRIVER_FILES": "/usr/share/vulkan/icd.d/lvp_icd.json"}
GPU = {"RUSTICL_DEVICE_TYPE": "gpu"}


@dataclass
class Implementation:
    name: str
    what: str
    icd: str                 # the library, or its name inside the release's root
    release: str = ""        # a newer Debian release, or "" for this machine
    env: dict = field(default_factory=dict)
    interpreter: bool = False  # gets few and small cases

    def installed(self):
        return bool(self.library())

    def library(self):
        if self.release:
            root = LAB / "roots" / self.release
            return self.icd if (root / ".complete").exists() else ""
        for pattern in self.icd.split("|"):
            at = Path(pattern) if pattern.startswith("/") else LAB / pattern
            found = sorted(Path(at.anchor).glob(str(at.relative_to(at.anchor))))
            if found:
                return str(found[0])
        return ""


IMPLEMENTATIONS = [
    Implementation("pocl3", "PoCL 3.1, Debian 12", "/usr/lib/*/libpocl.so.2*"),
    Implementation("pocl3-pypi", "PoCL 3.0, PyPI", "venv/lib/python3*/site-packages/pyopencl/.libs/libpocl-*.so"),
    Implementation("pocl6", "PoCL 6.0, Debian 13", "libpocl.so.2", "trixie"),
    Implementation("pocl7", "PoCL 7.1, Debian forky", "libpocl.so.2", "forky"),
    Implementation("intel", "Intel's CPU runtime, PyPI", "venv/lib/libintelocl.so"),
    Implementation("rusticl25", "Mesa 25 rusticl on llvmpipe", "libRusticlOpenCL.so.1", "trixie", LLVMPIPE | FP16),
    Implementation("rusticl25-gpu", "the same, as a GPU", "libRusticlOpenCL.so.1", "trixie", LLVMPIPE | FP16 | GPU),
    Implementation("rusticl26", "Mesa 26 rusticl on llvmpipe", "libRusticlOpenCL.so.1", "forky", LLVMPIPE),
    Implementation("zink26-gpu", "Mesa 26 rusticl on zink, as a GPU without shared memory",
                   "libRusticlOpenCL.so.1", "forky", ZINK | GPU),
    Implementation("oclgrind", "Oclgrind, a checker", "/usr/lib/oclgrind/liboclgrind-rt-icd.so|"
                   "/usr/lib/*/oclgrind/liboclgrind-rt-icd.so", interpreter=True),
]


def find(name):
    for implementation in IMPLEMENTATIONS:
        if implementation.name == name:
            return implementation
    sys.exit(f"lab.py: no implementation is called '{name}'; there are: "
             + ", ".join(i.name for i in IMPLEMENTATIONS))


# ---- install

PACKAGES = "pocl-opencl-icd oclgrind mmdebstrap ocl-icd-libopencl1 python3-venv".split()
WHEELS = "intel-opencl-rt intel-cmplr-lib-rt tbb pocl-binary-distribution".split()
# What the drivers need, and the libraries that the netcl executable is linked with.
ROOT_PACKAGES = ("pocl-opencl-icd mesa-opencl-icd mesa-vulkan-drivers ocl-icd-libopencl1 libgomp1 "
                 "libstdc++6 libpng16-16t64 libjpeg62-turbo zlib1g").split()
# Ahead-of-time compilers: clang with its libraries for NVIDIA and AMD, Intel's ocloc with the two
# libraries that it opens by name; ptxas is a wheel.
COMPILERS = "compilers"
COMPILER_RELEASE = "forky"
COMPILER_PACKAGES = "clang-21 libclc-21 rocm-device-libs-21 intel-ocloc libigdfcl2 libigc2".split()
COMPILER_WHEELS = ["nvidia-cuda-nvcc"]


def mirror():
    """Where this machine's own packages come from."""
    uris = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                           "Origin: Debian", "Label: Debian"], capture_output=True, text=True).stdout.split()
    return uris[0] if uris else ""


def make_root(name, release, packages):
    root = LAB / "roots" / name
    if (root / ".complete").exists():
        return True
    root.parent.mkdir(parents=True, exist_ok=True)
    return any(bootstrap(root, release, packages) for _ in range(2))  # a mirror may fail once


def bootstrap(root, release, packages):
    shutil.rmtree(root, ignore_errors=True)
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=apt", "--mode=root",
         "--aptopt=APT::Install-Recommends false",
         # The index of a rolling release may be past its date on a mirror; its signature is checked.
         "--aptopt=Acquire::Check-Valid-Until false",
         # Not as --dpkgopt: mmdebstrap then pipes each package through a filter, which was seen to break.
         "--essential-hook=printf 'path-exclude=/usr/share/%s/*\\n' doc locale > \"$1/etc/dpkg/dpkg.cfg.d/lab\"",
         "--include=" + ",".join(packages), release, str(root),
         f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror()} {release} main"])
    if made.returncode != 0:
        shutil.rmtree(root, ignore_errors=True)
        return False
    (root / ".complete").touch()
    return True


def install_packages(packages):
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    done = subprocess.run(["apt-get", "install", "-y", "-q", "--no-remove", "--no-upgrade",
                           "--no-install-recommends", *packages])
    return [] if done.returncode == 0 else ["Debian packages"]


def install_wheels(wheels):
    LAB.mkdir(parents=True, exist_ok=True)
    pip = LAB / "venv" / "bin" / "pip"
    if not pip.exists():
        subprocess.run([sys.executable, "-m", "venv", str(LAB / "venv")], check=True)
    return [wheel for wheel in wheels
            if subprocess.run([str(pip), "install", "-q", "--only-binary", ":all:", wheel]).returncode != 0]


def install_root(name, release, packages):
    print(f"lab: Debian {release} ({name})", flush=True)
    return [] if make_root(name, release, packages) else [f"Debian {release} ({name})"]


def report(missing):
    if missing:
        sys.exit("lab.py: could not be installed: " + ", ".join(missing))


def install():
    missing = install_packages(PACKAGES) + install_wheels(WHEELS)
    for release in sorted({i.release for i in IMPLEMENTATIONS if i.release}):
        missing += install_root(release, release, ROOT_PACKAGES)
    listing()
    report(missing)


def ptxas():
    """NVIDIA's assembler from its wheel, or None."""
    found = sorted((LAB / "venv").glob("lib/python3*/site-packages/nvidia/*/bin/ptxas"))
    return found[-1] if found else None


def has_compilers():
    return (LAB / "roots" / COMPILERS / ".complete").exists() and ptxas() is not None


def install_compilers():
    if has_compilers():
        return
    missing = [] if shutil.which("mmdebstrap") else install_packages(["mmdebstrap", "python3-venv"])
    if ptxas() is None:
        missing += install_wheels(COMPILER_WHEELS)
    report(missing + install_root(COMPILERS, COMPILER_RELEASE, COMPILER_PACKAGES))


def listing():
    for i in IMPLEMENTATIONS:
        print(f"{i.name:15} {'installed' if i.installed() else 'missing':10} {i.what}")


# ---- run

def environment(i):
    """Exactly one driver is visible, and its caches are its own."""
    env = dict(os.environ) | i.env
    vendors = LAB / "icd" / i.name
    vendors.mkdir(parents=True, exist_ok=True)
    icd, line = vendors / "driver.icd", i.library() + "\n"
    if not icd.exists() or icd.read_text(encoding="ascii") != line:  # others may be reading it
        icd.write_text(line, encoding="ascii")
    cache = LAB / "cache" / i.name
    cache.mkdir(parents=True, exist_ok=True)
    env |= {"OCL_ICD_VENDORS": f"{vendors}/", "XDG_CACHE_HOME": str(cache),
            "POCL_CACHE_DIR": str(cache), "MESA_SHADER_CACHE_DIR": str(cache)}
    if i.name == "intel":
        env["LD_LIBRARY_PATH"] = str(LAB / "venv" / "lib")
    return env


ENTER = """
set -eu
root=$1 project=$2 lab=$3; shift 3
for d in /proc /dev /sys /tmp; do mount --rbind "$d" "$root$d"; done
for d in "$project" "$lab"; do mkdir -p "$root$d"; mount --rbind "$d" "$root$d"; done
exec chroot "$root" "$@"
"""


def enter(name, arguments):
    """A command inside a root, which sees the project and the lab too."""
    root = LAB / "roots" / name
    space = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        space.insert(1, "--map-root-user")
    return [*space, "sh", "-c", ENTER, "sh", str(root), str(PROJECT), str(LAB), *arguments]


def command(i, arguments):
    return enter(i.release, arguments) if i.release else arguments


def run(name, arguments):
    i = find(name)
    if not i.installed():
        sys.exit(f"lab.py: {name} is not installed: make lab")
    line = command(i, arguments)
    os.execvpe(line[0], line, environment(i))


# ---- matrix

NO_KERNELS = ("auto", "gradient")  # what the selector chooses, and gradients: made of kernels that run by themselves
FEW = 4                            # further cases for a kernel that none of its first ones was for
# Whole models, with what is kept of weights, calls and captured steps from one call to the next.
TESTS = {"ops_test": "Recipe.*", "nn_test": "WeightForms.*:Determinism.*:Threads.*", "jit_test": "Capture.*"}
# For an interpreter; Oclgrind runs one kernel at a time, and ends the process when two threads launch.
FEW_TESTS = {"ops_test": "Recipe.*-Recipe.ThreadsShareThem"}


@dataclass
class Runner:
    """The self-test in processes of their own, on one implementation."""
    i: Implementation
    arguments: list          # which cases there are
    log: Path
    limit: int               # seconds for one process

    def tool(self, *arguments):
        """Exit code (None: out of time) and standard output."""
        line = command(self.i, [str(NETCL), "selftest", "--device", "opencl", *arguments])
        with open(self.log, "a", encoding="utf-8") as errors:
            try:
                done = subprocess.run(line, timeout=self.limit, env=environment(self.i), stdout=subprocess.PIPE,
                                      stderr=errors, text=True)
            except subprocess.TimeoutExpired:
                return None, ""
        return done.returncode, done.stdout

    def program(self, *line):
        """How it ended; its output goes to the log."""
        with open(self.log, "a", encoding="utf-8") as log:
            try:
                done = subprocess.run(command(self.i, [str(word) for word in line]), timeout=self.limit, env=environment(self.i),
                                      stdout=log, stderr=log)
            except subprocess.TimeoutExpired:
                return "out of time"
        return f"exit code {done.returncode}"

    def listing(self, *arguments):
        return self.tool(*arguments, "--list")[1].split()

    def report(self, *arguments):
        """The report, and how the process ended when it has none."""
        code, text = self.tool(*arguments, "--json")
        try:
            return json.loads(text), ""
        except json.JSONDecodeError:
            return None, "out of time" if code is None else f"exit code {code}"


def kernel_of(case):
    return "/".join(case.split("/")[:2])


def elements(case):
    """About how many elements a case has, from its name: the largest of its shapes."""
    sample = case.split("/", 3)[3]
    return max([math.prod(int(n) for n in shape.split("x")) for shape in re.findall(r"\d+(?:x\d+)*", sample)], default=0)


def near(cases, wanted):
    """The cases whose size is nearest to a wanted one come first."""
    return sorted(cases, key=lambda case: (abs(math.log(max(elements(case), 1) / wanted)), case))


def few_at_a_time(cases):
    return [cases[at:at + FEW] for at in range(0, len(cases), FEW)]


def few_cases(cases):
    """For an interpreter: one small case of each kernel, and of what the selector chooses."""
    by_kernel = {}
    for case in cases:
        by_kernel.setdefault(kernel_of(case), []).append(case)
    return [near(some, 200)[0] for kernel, some in by_kernel.items() if kernel.split("/")[1] != "gradient"]


class OpRun:
    """The cases of one op, first the chosen ones, then more for every kernel that has not run yet."""

    def __init__(self, runner, op, chosen, cases):
        self.runner, self.op, self.chosen, self.cases = runner, op, chosen, cases
        self.result = {"op": op, "passed": 0, "failed": 0, "declined": 0, "repeated": 0, "kept": 0, "kernels": {}, "ended": {},
                       "failures": []}

    def add(self, report):
        for key in ("passed", "failed", "declined"):
            self.result[key] += report[key]
        self.result["failures"] += report["failures"]
        for kernel in report["kernels"]:
            ran = kernel["cases"] - kernel["empty"]
            self.result["kernels"][kernel["kernel"]] = self.result["kernels"].get(kernel["kernel"], 0) + ran
            for key in ("repeated", "kept"):
                self.result[key] += kernel[key]

    def process(self, part, *arguments):
        report, ended = self.runner.report(*arguments)
        if report is None:
            self.result["ended"][part] = ended
        else:
            self.add(report)
        return report is not None

    def first(self):
        """A process for the op; when the driver takes it down, one for each of its kernels, so that one does not
        hide the others."""
        if self.runner.i.interpreter:
            self.process(self.op, "--filter", ",".join(self.chosen))
        elif not self.process(self.op, *self.runner.arguments, "--filter", self.op + "/*"):
            for kernel in dict.fromkeys(map(kernel_of, self.chosen)):
                self.process(kernel, *self.runner.arguments, "--filter", kernel + "/*")

    def not_run(self):
        kernels = dict.fromkeys(map(kernel_of, self.cases))
        return [kernel for kernel in kernels if kernel.split("/")[1] not in NO_KERNELS
                and not self.result["kernels"].get(kernel) and kernel not in self.result["ended"]]

    def groups(self, cases):
        """In which order the others are tried. An interpreter goes from small to large, a few at a time."""
        if self.runner.i.interpreter:
            return few_at_a_time(near(cases, 200))
        spread = cases[::max(1, len(cases) // FEW)][:FEW]
        return [spread, [case for case in cases if case not in spread]]

    def further(self):
        chosen = set(self.chosen)
        for kernel in self.not_run():
            for some in self.groups([c for c in self.cases if kernel_of(c) == kernel and c not in chosen]):
                if some:
                    self.process(kernel, "--quick", "--filter", ",".join(some))
                if self.result["kernels"].get(kernel) or kernel in self.result["ended"]:
                    break

    def run(self):
        self.first()
        self.further()
        self.result["not run"] = self.not_run()
        return self.result


def finished(lines, key):
    """The results of ops that a run with the same key, which was interrupted, has written."""
    if not lines.exists():
        return {}
    results = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {result["op"]: result for result in results if result["key"] == key}


def selftest(runner, lines, jobs, ops):
    """Results of all ops. Each is a line of a file as soon as it is known, so that a run can be gone on with."""
    i = runner.i
    everything = runner.listing("--quick")
    chosen = few_cases(everything) if i.interpreter else runner.listing(*runner.arguments)
    key = hashlib.sha256(NETCL.read_bytes() + repr((i.library(), i.env, runner.arguments)).encode()).hexdigest()[:16]
    known = finished(lines, key)
    by_op = {}
    for case in everything:
        by_op.setdefault(case.split("/")[0], []).append(case)
    missing = [op for op in by_op if op not in known and (not ops or op in ops)]

    def run_op(op):
        return OpRun(runner, op, [case for case in chosen if case.split("/")[0] == op], by_op[op]).run()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, open(lines, "a", encoding="utf-8") as out:
        for future in concurrent.futures.as_completed([pool.submit(run_op, op) for op in missing]):
            result = future.result() | {"key": key}
            known[result["op"]] = result
            out.write(json.dumps(result) + "\n")
            out.flush()
    return [known[op] for op in by_op if op in known]


def run_tests(runner, lines):
    """{program: passed, failed, failures} of the tests of a few programs, known from a run before or new."""
    i, results = runner.i, {}
    for program, wanted in (FEW_TESTS if i.interpreter else TESTS).items():
        binary = NETCL.parent / program
        key = hashlib.sha256(binary.read_bytes() + repr((i.library(), i.env, wanted)).encode()).hexdigest()[:16]
        results[program] = finished(lines, key).get(program)
        if results[program]:
            continue
        report = lines.with_suffix(".json")
        report.unlink(missing_ok=True)
        ended = runner.program(binary, f"--gtest_filter={wanted}", f"--gtest_output=json:{report}")
        results[program] = tests_of(report, ended) | {"op": program, "key": key}
        with open(lines, "a", encoding="utf-8") as out:
            out.write(json.dumps(results[program]) + "\n")
    return results


def tests_of(report, ended):
    if not report.exists():
        return {"passed": 0, "failures": [f"the program ended: {ended}"]}
    tests = [test for suite in json.loads(report.read_text(encoding="utf-8"))["testsuites"] for test in suite["testsuite"]]
    ran = [test for test in tests if test["result"] == "COMPLETED"]
    failures = [f"{test['classname']}.{test['name']}: {test['failures'][0]['failure']}" for test in ran if "failures" in test]
    return {"passed": len(ran) - len(failures), "failures": failures}


def crashes(results):
    """Kernels in which the driver ended the process; an op alone when each of its kernels is right by itself."""
    crashed = [part for result in results for part in result["ended"]]
    kernels = [part for part in crashed if "/" in part]
    together = [part for part in crashed if "/" not in part and not any(k.startswith(part + "/") for k in kernels)]
    return ", ".join(kernels + [f"{op} (its kernels alone do not)" for op in together]) or "-"


def row(i, results, tests, minutes):
    total = {key: sum(result[key] for result in results) for key in ("passed", "failed", "declined", "repeated", "kept")}
    kernels = sum(1 for result in results for kernel, count in result["kernels"].items()
                  if count and kernel.split("/")[1] not in NO_KERNELS)
    never = sum(len(result["not run"]) for result in results)
    return (f"| {i.name} | {i.what} | {len(results)} | {kernels} | {never} | {total['passed']} | {total['failed']} | "
            f"{total['declined']} | {total['repeated']} | {total['kept']} | {crashes(results)} | "
            f"{sum(t['passed'] for t in tests.values())} | {sum(len(t['failures']) for t in tests.values())} | {minutes:.0f} |")


def matrix(names, cases, out, jobs, limit, ops):
    if not NETCL.exists():
        sys.exit("lab.py: build the release preset first: make build")
    chosen = [find(n) for n in names] if names else IMPLEMENTATIONS
    out.mkdir(parents=True, exist_ok=True)
    titles = ["name", "implementation", "ops", "kernels", "not for any sample", "passed", "failed", "declined", "calls repeated",
              "forms kept", "the driver ends the process in", "tests passed", "tests failed", "minutes"]
    print(f"netcl selftest {' '.join(cases)}\n\n| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    bad, missing = 0, [i.name for i in chosen if not i.installed()]
    for i in chosen:
        if i.name in missing:
            continue
        started = time.monotonic()
        runner = Runner(i, cases, out / f"{i.name}.log", limit)
        results = selftest(runner, out / f"{i.name}.jsonl", jobs, ops)
        tests = {} if ops else run_tests(runner, out / f"{i.name}.tests.jsonl")
        failures = [f"{failure['id']}: {failure['message']}" for result in results for failure in result["failures"]]
        failures += [failure for test in tests.values() for failure in test["failures"]]
        bad += not results or bool(failures) or any(result["failed"] or result["ended"] for result in results)
        print(row(i, results, tests, (time.monotonic() - started) / 60), flush=True)
        for failure in failures[:20]:
            print(f"failed on {i.name}: {failure}", file=sys.stderr, flush=True)
    if missing:
        print(f"lab.py: not installed, so not tried: {', '.join(missing)} (make lab)", file=sys.stderr)
    return 1 if bad or missing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install")
    commands.add_parser("compilers")
    commands.add_parser("list")
    runner = commands.add_parser("run")
    runner.add_argument("name")
    runner.add_argument("arguments", nargs=argparse.REMAINDER)
    table = commands.add_parser("matrix")
    table.add_argument("names", nargs="*")
    table.add_argument("--full", action="store_true", help="every dtype on every kernel, not the quick selection")
    table.add_argument("--stride", type=int, default=1, help="every kernel on each N-th of its samples")
    table.add_argument("--jobs", type=int, default=2, help="processes at a time")
    table.add_argument("--limit", type=int, default=1800, help="seconds for one process")
    table.add_argument("--ops", nargs="*", default=[], help="these alone")
    table.add_argument("--out", type=Path, default=LAB / "results")
    chosen = parser.parse_args()
    if chosen.command == "install":
        install()
    elif chosen.command == "compilers":
        install_compilers()
    elif chosen.command == "list":
        listing()
    elif chosen.command == "run":
        run(chosen.name, chosen.arguments)
    else:
        cases = ([] if chosen.full else ["--quick"]) + (["--stride", str(chosen.stride)] if chosen.stride > 1 else [])
        sys.exit(matrix(chosen.names, cases, chosen.out, chosen.jobs, chosen.limit, chosen.ops))


if __name__ == "__main__":
    main()
