"""The page of scripts/gpu_audit.py."""

from collections import defaultdict

import gpu_compilers as compilers

NAMES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
REGISTERS = {"nvidia": "registers", "amd": "vector registers", "intel": "GRF"}

HEAD = """# GPU audit

Which resources netcl's kernels take on GPUs, from the compilers of their makers, without a GPU. Written by `make gpu-audit`
(`scripts/gpu_audit.py`); do not edit.

1. `bin/kernel_record` calls every op, in every variant that takes the sample and every dtype, fused graphs and the optimisers'
   steps, on a pretended device: an OpenCL layer answers with the properties of a real one
   (`tests/support/recorded_devices.cpp`), keeps sources, options and launches, and runs nothing. So what is compiled is what
   netcl would compile there, with its default parameters for that device; a full run adds, for one target of each vendor, every
   combination that `netcl tune` would try.
2. Each program is compiled ahead of time: for NVIDIA by clang and libclc to PTX, then by NVIDIA's `ptxas`, so that registers and
   spills are NVIDIA's and the code before is clang's; for AMD by clang with AMD's device libraries; for Intel by `ocloc`. The last
   two are what the drivers use. `scripts/lab.py compilers` installs them from Debian and PyPI, into a directory of their own.
3. The script checks the rules below and writes this page. It fails when one is broken.

{targets}

## Rules
| rule for default parameters | state |
|---|---|
| no register is spilled | {spills} |
| no private array is kept in memory | {privates} |
| local memory up to 32 KiB | {locals} |
| occupancy of 50 % at least, or the kernel's comment says why not (`// occupancy(kernel): ...`) | {occupancies} |
| barriers only where all items of a group come: not behind conditions, loops or returns that depend on an item's id (`scripts/gpu_notes.py` reads every program with a barrier) | {barriers} |
| memory is accessed by neighbours at neighbouring places, or the comment says why not (`// coalescing(kernel): ...`, of every kernel) | {comments} |

Kernels for CPUs (`// device(kernel): CPU`: {cpu}) are not audited: no rule chooses them on a GPU.

## How to read the tables
One row is one kernel function, the worst over its ops, dtypes, shapes and the vendor's targets. *spill* and *private* are bytes
per work-item in memory that should have been registers, *local* bytes per work-group, *items* the size of the work-group with the
least occupancy. *Occupancy* is how many of the threads that a multiprocessor (compute unit, Xe core) can hold are in flight when
it is full of such groups: limited by registers, local memory and the number of groups, by the published limits of the target.
On {mains} every program is compiled, on the other targets the longest source of each kernel and dtype (with bias, residual,
activation and mask). `elementwise`, `cast` and `copy`, which are generated or compiled for hundreds of ops and pairs of dtypes,
are compiled for those three targets, the longest source for each op and dtype. `gpu_audit.py --quick` takes the longest source
of each kernel and dtype there, of each kernel on the other targets, {many} programs each of those three kernels, and no tunables.
"""


def details(findings):
    """One line for each kernel, dtype and target, the worst launch of each."""
    rows = {}
    for f in findings:
        i = f.launch
        key = i.kernel, i.target, i.dtype, i.level == "tunable"
        if key not in rows or f.occupancy < rows[key].occupancy:
            rows[key] = f
    lines = [f"{'kernel':28} {'target':8} {'dtype':9} {'regs':>5} {'spill':>6} {'private':>8} {'local':>6} "
             f"{'items':>5} {'occup.':>6}  program"]
    for (kernel, target, dtype, tunable), f in sorted(rows.items()):
        lines.append(f"{kernel:28} {target:8} {dtype:9} {f.usage.registers:5} {f.usage.spill:6} "
                     f"{f.usage.private:8} {f.local:6} {f.launch.items:5} {f.occupancy:6.0%}  "
                     f"{f.launch.program}{' tunable' if tunable else ''}")
    return "\n".join(lines)


def by_kernel(findings):
    groups = defaultdict(list)
    for f in findings:
        groups[f.launch.kernel].append(f)
    return sorted(groups.items())


def worst_row(kernel, group):
    low = min(group, key=lambda f: f.occupancy)
    return (f"| `{kernel}` | {len({f.launch.program for f in group})} | {max(f.usage.registers for f in group)} | "
            f"{max(f.usage.spill for f in group)} | {max(f.usage.private for f in group)} | "
            f"{max(f.local for f in group)} | {low.launch.items} | {low.occupancy:.0%} | "
            f"{low.launch.target}, {low.launch.dtype} |")


def vendor_table(vendor, findings):
    lines = [f"## {NAMES[vendor]}",
             f"| kernel | programs | {REGISTERS[vendor]} | spill | private | local | items | occupancy | least on |",
             "|---|---|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [worst_row(k, g) for k, g in by_kernel(findings)])


def tunable_table(findings, vendor_of):
    lines = ["## Tunables", "What `netcl tune` may choose, on " + main_names() + ". A combination that spills is slower "
             "than the default, which it is measured against, and so not taken.", "",
             "| kernel | vendor | programs | registers | that spill | with private memory | local | occupancy |",
             "|---|---|---|---|---|---|---|---|"]
    for kernel, group in by_kernel(findings):
        for vendor in compilers.VENDORS:
            mine = [f for f in group if vendor_of[f.launch.target] == vendor]
            if not mine:
                continue
            registers = [f.usage.registers for f in mine]
            count = [len({f.launch.program for f in mine if test(f)})
                     for test in (lambda f: True, lambda f: f.usage.spill > 0, lambda f: f.usage.private > 0)]
            lines.append(f"| `{kernel}` | {NAMES[vendor]} | {count[0]} | {min(registers)} to {max(registers)} | "
                         f"{count[1]} | {count[2]} | up to {max(f.local for f in mine)} | "
                         f"{min(f.occupancy for f in mine):.0%} to {max(f.occupancy for f in mine):.0%} |")
    return "\n".join(lines)


def notes_table(kernels, notes):
    lines = ["## Memory access and occupancy, kernel by kernel", "From the comments above the kernels.", "",
             "| kernel | access | less than half occupied, because |", "|---|---|---|"]
    for kernel in kernels:
        lines.append(f"| `{kernel}` | {notes['coalescing'].get(kernel, '?')} | {notes['occupancy'].get(kernel, '')} |")
    return "\n".join(lines)


def main_names():
    return ", ".join(t.name for t in compilers.TARGETS if t.main)


def target_table():
    lines = ["| target | GPU | recorded device |", "|---|---|---|"]
    return "\n".join(lines + [f"| {t.name} | {NAMES[t.vendor]} {t.what} | {t.device} |" for t in compilers.TARGETS])


def state(defaults, broken):
    kernels = sorted({f.launch.kernel for f in defaults if broken(f)})
    return "kept" if not kernels else "broken by " + ", ".join(f"`{k}`" for k in kernels)


def page(findings, notes, divergent, quick, many):
    """`divergent`: what is wrong with barriers, as text."""
    vendor_of = {t.name: t.vendor for t in compilers.TARGETS}
    defaults = [f for f in findings if f.launch.level != "tunable"]
    tunables = [f for f in findings if f.launch.level == "tunable"]
    reasons = {f.launch.kernel for f in defaults if f.occupancy < 0.5} & set(notes["occupancy"])
    parts = [HEAD.format(
        targets=target_table(), mains=main_names(), many=many, cpu=", ".join(f"`{k}`" for k in sorted(notes["device"])),
        spills=state(defaults, lambda f: f.usage.spill > 0),
        privates=state(defaults, lambda f: f.usage.private > 0),
        locals=state(defaults, lambda f: f.local > 32 << 10),
        occupancies=state(defaults, lambda f: f.occupancy < 0.5 and f.launch.kernel not in notes["occupancy"])
        + f"; {len(reasons)} kernels with a reason",
        barriers="broken: " + "; ".join(divergent) if divergent else "kept",
        comments=state(findings, lambda f: f.launch.kernel not in notes["coalescing"]))]
    compiled = {(f.launch.program, f.launch.target) for f in findings}
    parts.append(f"This run{' (`--quick`)' if quick else ''}: {len({p for p, _ in compiled})} programs, "
                 f"{len(compiled)} compilations, {len({f.launch.kernel for f in findings})} kernels.\n")
    for vendor in compilers.VENDORS:
        parts.append(vendor_table(vendor, [f for f in defaults if vendor_of[f.launch.target] == vendor]) + "\n")
    if tunables:
        parts.append(tunable_table(tunables, vendor_of) + "\n")
    kernels = sorted({f.launch.kernel for f in findings})
    parts.append(notes_table(kernels, notes) + "\n")
    return "\n".join(parts)
