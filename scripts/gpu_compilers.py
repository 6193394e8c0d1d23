"""The compilers that scripts/gpu_audit.py uses, what they say about a kernel, and how much of a GPU
a work-group of it leaves to others (occupancy).

    NVIDIA  clang with libclc to PTX for the oldest target, ptxas for each: the register allocation
            is that of NVIDIA's drivers, the code before it is clang's
    AMD     clang with AMD's device libraries: the compiler of AMD's drivers
    Intel   ocloc: likewise

All run in the root directory that `scripts/lab.py compilers` makes. The limits in the tables are
the published ones of the architectures."""

import re
import shlex
import struct
from dataclasses import dataclass
from pathlib import Path

import lab

CLANG = ("clang-21 -x cl -nogpulib -O3 -w -Xclang -fdeclare-opencl-builtins "
         "-Xclang -finclude-default-header")
AMD_BITCODE = "/usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode"
LIBCLC = "/usr/lib/clc/nvptx64--nvidiacl.bc"


@dataclass(frozen=True)
class Target:
    name: str
    vendor: str
    device: str      # label in tests/support/recorded_devices.cpp
    what: str
    main: bool = False  # the one of its vendor that everything is compiled for


TARGETS = [
    Target("sm_75", "nvidia", "rtx_2080_ti", "Turing"),
    Target("sm_80", "nvidia", "a100", "Ampere, A100"),
    Target("sm_86", "nvidia", "rtx_3090", "Ampere, RTX 30", True),
    Target("sm_90", "nvidia", "h100", "Hopper"),
    Target("gfx906", "amd", "vega_64", "Vega 20"),
    Target("gfx90a", "amd", "mi210", "CDNA2"),
    Target("gfx1030", "amd", "rx_6800", "RDNA2", True),
    Target("gfx1100", "amd", "rx_7900_xtx", "RDNA3"),
    Target("tgllp", "intel", "iris_xe", "Xe-LP, Tiger Lake"),
    Target("dg2", "intel", "arc_a770", "Xe-HPG, Arc A", True),
    Target("bmg", "intel", "b580", "Xe2, Arc B"),
]
VENDORS = ["nvidia", "amd", "intel"]


@dataclass
class Usage:
    """What one kernel needs, per work-item where bytes are private or spilled."""
    registers: int = 0
    spill: int = 0
    private: int = 0
    local: int = 0
    scalars: int = 0  # AMD's SGPRs
    width: int = 32   # items of a warp, wavefront or hardware thread
    threads: int = 0  # Intel: hardware threads of a vector engine


# ---- commands

def words_of(options):
    """Options of a recorded program; the compilers need no argument information."""
    return [w for w in options.split() if w != "-cl-kernel-arg-info"]


def link(*paths):
    return " ".join(f"-Xclang -mlink-builtin-bitcode -Xclang {p}" for p in paths)


def nvidia_script(source, options, out, targets):
    libdevice = lab.ptxas().parent.parent / "nvvm" / "libdevice" / "libdevice.10.bc"
    lines = [f"{CLANG} {options} -target nvptx64--nvidiacl -march=sm_75 -Xclang -target-feature "
             f"-Xclang +ptx63 {link(LIBCLC, libdevice)} -S -o {out}.ptx {source}"]
    for t in targets:
        lines.append(f"{lab.ptxas()} -v -arch={t} {out}.ptx -o {out}.{t}.cubin 2>{out}.{t}.txt "
                     f"|| {{ cat {out}.{t}.txt >&2; exit 1; }}")
    return lines


def amd_script(source, options, out, targets):
    lines = []
    for t in targets:
        wave64 = "on" if t.startswith("gfx9") else "off"
        names = ["opencl", "ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off",
                 "oclc_finite_only_off", "oclc_correctly_rounded_sqrt_off", f"oclc_wavefrontsize64_{wave64}",
                 f"oclc_isa_version_{t[3:]}", "oclc_abi_version_600"]
        lines.append(f"{CLANG} {options} -target amdgcn-amd-amdhsa -mcpu={t} -mcode-object-version=6 "
                     f"{link(*(f'{AMD_BITCODE}/{n}.bc' for n in names))} -S -o {out}.{t}.s {source}")
    return lines


def intel_script(source, options, out, targets):
    folder, stem = str(Path(out).parent), Path(out).name
    return [f"ocloc compile -q -file {source} -device {t} -options {shlex.quote(options)} "
            f"-output {stem}.{t} -output_no_suffix -out_dir {folder} >{out}.{t}.txt 2>&1 "
            f"|| {{ cat {out}.{t}.txt >&2; exit 1; }}" for t in targets]


SCRIPTS = {"nvidia": nvidia_script, "amd": amd_script, "intel": intel_script}


def script(vendor, source, options, out, targets):
    joined = " ".join(words_of(options))
    return "set -e\n" + "\n".join(SCRIPTS[vendor](source, joined, out, targets)) + "\n"


# ---- what they say

IMPLEMENTATION = "__clang_ocl_kern_imp_"  # clang keeps a kernel's body there, behind a stub


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0


def parse_ptxas(text):
    kernels = {}
    for name, body in re.findall(r"Compiling entry function '([^']+)'(.*?)(?=Compiling entry|\Z)", text, re.S):
        spill = number(r"(\d+) bytes spill stores", body)
        usage = Usage(registers=number(r"Used (\d+) registers", body), spill=spill,
                      private=max(number(r"(\d+) bytes stack frame", body) - spill, 0),
                      local=number(r"(\d+) bytes smem", body))
        if name.startswith(IMPLEMENTATION):
            kernels[name[len(IMPLEMENTATION):]] = usage
        else:
            kernels.setdefault(name, usage)
    return kernels


def uses_scratch(text, kernel):
    """Whether a kernel's code accesses private memory: the frame may hold slots of scalar registers
    that went to vector registers in the end."""
    begin = text.find(f"\n{kernel}:")
    body = text[begin:text.find(".amdhsa_kernel", begin)]
    return re.search(r"\b(scratch|buffer)_(load|store)", body) is not None


def parse_amd(text):
    kernels = {}
    metadata = text[max(text.rfind("amdhsa.kernels:"), 0):]
    for block in re.split(r"^  - ", metadata, flags=re.M)[1:]:
        def get(key, block=block):
            return number(rf"\.{key}:\s*(\d+)", block)
        name = re.search(r"\.name:\s*(\S+)", block)
        if not name:
            continue
        name = name.group(1).strip("'\"")
        spill = 4 * get("vgpr_spill_count")
        frame = get("private_segment_fixed_size") if uses_scratch(text, name) else 0
        kernels[name] = Usage(
            registers=get("vgpr_count"), spill=spill, scalars=get("sgpr_count"),
            private=max(frame - spill, 0),
            local=get("group_segment_fixed_size"), width=get("wavefront_size") or 64)
    return kernels


def elf_section(data, wanted):
    """The bytes of a section of a 64-bit little-endian ELF file, or b""."""
    if data[:4] != b"\x7fELF":
        return b""
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    strings = headers[names][4]
    for name, _, _, _, at, length in headers:
        begin = strings + name
        if data[begin:data.index(b"\0", begin)] == wanted.encode():
            return data[at:at + length]
    return b""


def parse_intel(text):
    kernels = {}
    begin = text.find("kernels:")
    end = text.find("\nkernels_misc_info:")
    for block in re.split(r"^  - name:", text[begin:end if end > 0 else None], flags=re.M)[1:]:
        name = block.split("\n", 1)[0].strip(" '\"")
        width = number(r"simd_size:\s*(\d+)", block) or 1
        scratch = sum(int(s) for s in re.findall(r"type:\s*scratch\s+usage:\s*\w+\s+size:\s*(\d+)", block))
        spill = number(r"spill_size:\s*(\d+)", block)
        kernels[name] = Usage(
            registers=number(r"grf_count:\s*(\d+)", block) or 128, width=width,
            spill=-(-spill // width), private=-(-max(scratch - spill, number(r"private_size:\s*(\d+)", block), 0) // width),
            local=number(r"slm_size:\s*(\d+)", block), threads=number(r"eu_thread_count:\s*(\d+)", block))
    return kernels


def results(vendor, out, targets):
    """{target: {kernel: Usage}} of what a script left behind."""
    found = {}
    for t in targets:
        if vendor == "nvidia":
            found[t] = parse_ptxas(Path(f"{out}.{t}.txt").read_text(errors="replace"))
        elif vendor == "amd":
            found[t] = parse_amd(Path(f"{out}.{t}.s").read_text(errors="replace"))
        else:
            binary = next(p for p in (Path(f"{out}.{t}"), Path(f"{out}.{t}.bin")) if p.exists())
            found[t] = parse_intel(elf_section(binary.read_bytes(), ".ze_info").decode(errors="replace"))
    return found


# ---- occupancy

# Warps, groups and bytes of shared memory of a multiprocessor, bytes that a group costs beside its own.
NVIDIA = {"sm_75": (32, 16, 64 << 10, 0), "sm_80": (64, 32, 164 << 10, 1 << 10),
          "sm_86": (48, 16, 100 << 10, 1 << 10), "sm_90": (64, 32, 228 << 10, 1 << 10)}
# Waves and vector registers of a SIMD, the registers' granule, scalar registers (0: no limit),
# bytes of local memory and groups of several waves of four SIMDs.
AMD = {"gfx906": (10, 256, 4, 800, 64 << 10, 16), "gfx90a": (8, 512, 8, 800, 64 << 10, 16),
       "gfx1030": (16, 1024, 8, 0, 128 << 10, 32), "gfx1100": (16, 1536, 24, 0, 128 << 10, 32)}
# Vector engines and threads of each, bytes of local memory of an Xe core.
INTEL = {"tgllp": (16, 7, 64 << 10), "dg2": (16, 8, 128 << 10), "bmg": (8, 8, 128 << 10)}


def rounded_up(value, unit):
    return -(-value // unit) * unit


def nvidia_occupancy(target, usage, items, local):
    warps, groups, shared, reserved = NVIDIA[target]
    each = -(-items // 32)
    limits = [warps // each, groups, 65536 // rounded_up(max(usage.registers, 1) * 32, 256) // each]
    if local + reserved > 0:
        limits.append(shared // rounded_up(local + reserved, 128))
    return min(limits) * each / warps


def amd_occupancy(target, usage, items, local):
    waves, registers, granule, scalars, shared, groups = AMD[target]
    each = -(-items // usage.width)
    by_registers = registers // rounded_up(max(usage.registers, 1), granule)
    if scalars:
        by_registers = min(by_registers, scalars // rounded_up(max(usage.scalars, 1), 16))
    fitting = 4 * min(waves, by_registers) // each  # groups on four SIMDs
    if local:
        fitting = min(fitting, shared // local)
    if each > 1:
        fitting = min(fitting, groups)
    return min(fitting * each, 4 * waves) / (4 * waves)


def intel_occupancy(target, usage, items, local):
    engines, threads, shared = INTEL[target]
    all_threads = engines * threads
    available = engines * (usage.threads or threads)
    each = -(-items // usage.width)
    fitting = available // each
    if local:  # is given out in powers of two
        fitting = min(fitting, shared // max(1 << (local - 1).bit_length(), 1 << 10))
    return min(fitting * each, all_threads) / all_threads


def occupancy(target, usage, items, local):
    """The share of a GPU's threads that can be in flight, for groups of `items` with `local` bytes."""
    compute = {"sm_": nvidia_occupancy, "gfx": amd_occupancy}.get(target[:3], intel_occupancy)
    return compute(target, usage, items, local)
