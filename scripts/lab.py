#!/usr/bin/env python3
"""Several independent OpenCL implementations on one Debian machine, and the self-test on each.

    lab.py install            what is missing, as root: Debian packages, PyPI wheels, newer releases
    lab.py compilers          the compilers of scripts/gpu_audit.py, likewise
    lab.py list               the implementations, and which of them are installed
    lab.py run NAME CMD...    a command that sees exactly this implementation
    lab.py matrix [NAME...]   the self-test of all ops on each, as a table (--stride, --full, --out)

Everything goes to build/lab (NETCL_LAB names another directory). An implementation of a newer Debian
release lives in a small root directory of that release, which `run` enters in a mount namespace of
its own; nothing of it is seen outside."""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
LAB = Path(os.environ.get("NETCL_LAB", PROJECT / "build" / "lab"))  # named as a tool's variable, not the library's
NETCL = PROJECT / "build" / "release" / "bin" / "netcl"

LLVMPIPE = {"RUSTICL_ENABLE": "llvmpipe", "RUSTICL_FEATURES": "fp16,fp64"}
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
    Implementation("rusticl25", "Mesa 25 rusticl on llvmpipe", "libRusticlOpenCL.so.1", "trixie", LLVMPIPE),
    Implementation("rusticl25-gpu", "the same, as a GPU", "libRusticlOpenCL.so.1", "trixie", LLVMPIPE | GPU),
    Implementation("rusticl26", "Mesa 26 rusticl on llvmpipe", "libRusticlOpenCL.so.1", "forky", LLVMPIPE),
    Implementation("zink26-gpu", "Mesa 26 rusticl on zink, as a GPU without shared memory",
                   "libRusticlOpenCL.so.1", "forky", ZINK | GPU),
    Implementation("oclgrind", "Oclgrind, a checker", "/usr/lib/oclgrind/liboclgrind-rt-icd.so|"
                   "/usr/lib/*/oclgrind/liboclgrind-rt-icd.so"),
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
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=apt", "--mode=root",
         "--aptopt=APT::Install-Recommends false",
         # The index of a rolling release may be past its date on a mirror; its signature is checked.
         "--aptopt=Acquire::Check-Valid-Until false",
         "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
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

def tool(i, arguments, errors, limit):
    """Exit code (None: out of time) and standard output of the self-test."""
    try:
        done = subprocess.run(command(i, [str(NETCL), "selftest", "--device", "opencl", *arguments]), timeout=limit,
                              env=environment(i), stdout=subprocess.PIPE, stderr=errors, text=True)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def selftest_of(i, arguments, op, ids, log, limit):
    """A process for the op; when the driver takes it down, one for each of its kernels, so that one does not
    hide the others. What ended (part, how, told by its exit code), and the reports of the parts that did not."""
    ended, reports = [], []
    with open(log, "a", encoding="utf-8") as errors:
        parts = [op]
        while parts:
            part = parts.pop(0)
            code, text = tool(i, [*arguments, "--filter", part + "/*", "--json"], errors, limit)
            try:
                reports.append(json.loads(text))
            except json.JSONDecodeError:
                ended.append((part, "out of time" if code is None else f"exit code {code}"))
                if part == op:
                    parts = list(dict.fromkeys("/".join(one.split("/")[:2]) for one in ids))
    return ended, reports


def selftest(i, arguments, log, jobs, limit):
    result = {"passed": 0, "failed": 0, "declined": 0, "ops": {}, "crashed": {}, "failures": []}
    log.write_text("", encoding="utf-8")
    with open(log, "a", encoding="utf-8") as errors:
        _, ids = tool(i, [*arguments, "--list"], errors, limit)
    by_op = {}
    for one in ids.split():
        by_op.setdefault(one.split("/")[0], []).append(one)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for op, (ended, reports) in zip(by_op, pool.map(
                lambda op: selftest_of(i, arguments, op, by_op[op], log, limit), by_op)):
            result["crashed"] |= dict(ended)
            counts = {key: sum(r[key] for r in reports) for key in ("passed", "failed", "declined")}
            result["ops"][op] = counts
            for key, count in counts.items():
                result[key] += count
            result["failures"] += [failure for r in reports for failure in r["failures"]]
    return result


def crashes(crashed):
    """Kernels in which the driver ended the process; an op alone when each of its kernels is right by itself."""
    kernels = [part for part in crashed if "/" in part]
    together = [part for part in crashed if "/" not in part and not any(k.startswith(part + "/") for k in kernels)]
    return ", ".join(kernels + [f"{op} (its kernels alone do not)" for op in together]) or "-"


def matrix(names, chosen_cases, out, jobs, limit):
    if not NETCL.exists():
        sys.exit("lab.py: build the release preset first: make build")
    chosen = [find(n) for n in names] if names else IMPLEMENTATIONS
    out.mkdir(parents=True, exist_ok=True)
    print(f"netcl selftest {' '.join(chosen_cases)}\n\n"
          "| name | implementation | ops | passed | failed | declined | the driver ends the process in | minutes |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    bad = 0
    for i in chosen:
        if not i.installed():
            print(f"| {i.name} | {i.what} | not installed | | | | | |", flush=True)
            continue
        started = time.monotonic()
        result = selftest(i, chosen_cases, out / f"{i.name}.log", jobs, limit)
        (out / f"{i.name}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
        bad += bool(result["failed"] or result["crashed"] or not result["passed"])
        print(f"| {i.name} | {i.what} | {len(result['ops'])} | {result['passed']} | {result['failed']} | "
              f"{result['declined']} | {crashes(result['crashed'])} | "
              f"{(time.monotonic() - started) / 60:.0f} |", flush=True)
    return 1 if bad else 0


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
        sys.exit(matrix(chosen.names, cases, chosen.out, chosen.jobs, chosen.limit))


if __name__ == "__main__":
    main()
