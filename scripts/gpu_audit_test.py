"""The parts of scripts/gpu_audit.py that read compilers' answers and sources; gpu_audit.py --self-test."""

import struct
import unittest

import gpu_audit
import gpu_compilers as compilers
import gpu_notes
import gpu_report

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '__clang_ocl_kern_imp_tile' for 'sm_86'
ptxas info    : Function properties for __clang_ocl_kern_imp_tile
    48 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 95 registers, used 1 barriers, 8320 bytes smem, 608 bytes cmem[0]
ptxas info    : Compiling entry function 'tile' for 'sm_86'
ptxas info    : Function properties for tile
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers, 608 bytes cmem[0]
ptxas info    : Compiling entry function 'copy' for 'sm_86'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 400 bytes cmem[0]
"""

AMD = """
tile:                                   ; @tile
	buffer_store_dword v40, off, s[0:3], 0
	s_endpgm
	.amdhsa_kernel tile
amdhsa.kernels:
  - .agpr_count:     0
    .group_segment_fixed_size: 8320
    .name:           tile
    .private_segment_fixed_size: 40
    .sgpr_count:     62
    .vgpr_count:     86
    .vgpr_spill_count: 2
    .wavefront_size: 32
"""

INTEL = """---
kernels:
  - name:            tile
    execution_env:
      grf_count:       128
      simd_size:       16
      slm_size:        1024
      spill_size:      128
      eu_thread_count: 8
    per_thread_memory_buffers:
      - type:            scratch
        usage:           spill_fill_space
        size:            640
kernels_misc_info:
  - name:            tile
"""


class Answers(unittest.TestCase):
    def test_ptxas(self):
        kernels = compilers.parse_ptxas(PTXAS)
        self.assertEqual(set(kernels), {"tile", "copy"})
        tile = kernels["tile"]  # the body, not the stub of the same name
        self.assertEqual((tile.registers, tile.spill, tile.private, tile.local), (95, 16, 32, 8320))
        self.assertEqual(kernels["copy"].registers, 12)

    def test_amd(self):
        tile = compilers.parse_amd(AMD)["tile"]
        self.assertEqual((tile.registers, tile.spill, tile.private, tile.local, tile.width), (86, 8, 32, 8320, 32))
        unused = compilers.parse_amd(AMD.replace("buffer_store", "global_store"))["tile"]
        self.assertEqual(unused.private, 0)

    def test_intel(self):
        kernels = compilers.parse_intel(INTEL)
        self.assertEqual(list(kernels), ["tile"])
        tile = kernels["tile"]
        self.assertEqual((tile.registers, tile.spill, tile.private, tile.local, tile.width), (128, 8, 32, 1024, 16))

    def test_elf_section(self):
        names = b"\0.ze_info\0.names\0"
        data = b"kernels:"
        head = bytearray(64)
        head[:4] = b"\x7fELF"
        table = 64 + len(names) + len(data)
        struct.pack_into("<Q", head, 0x28, table)
        struct.pack_into("<HHH", head, 0x3A, 64, 3, 2)
        sections = [(0, 0, 0), (1, 64 + len(names), len(data)), (10, 64, len(names))]
        file = bytes(head) + names + data + b"".join(
            struct.pack("<IIQQQQ", n, 0, 0, 0, at, size) + bytes(24) for n, at, size in sections)
        self.assertEqual(compilers.elf_section(file, ".ze_info"), data)
        self.assertEqual(compilers.elf_section(file, ".text"), b"")
        self.assertEqual(compilers.elf_section(b"text", ".ze_info"), b"")


class Occupancy(unittest.TestCase):
    def test_nvidia(self):
        at = compilers.occupancy
        self.assertEqual(at("sm_80", compilers.Usage(registers=32), 256, 0), 1)
        # 128 registers: 16 warps of the 64; 48 KiB: three groups of 164 KiB
        self.assertEqual(at("sm_80", compilers.Usage(registers=128), 256, 0), 0.25)
        self.assertEqual(at("sm_80", compilers.Usage(registers=32), 256, 48 << 10), 3 * 8 / 64)
        self.assertEqual(at("sm_86", compilers.Usage(registers=32), 32, 0), 16 / 48)

    def test_amd(self):
        at = compilers.occupancy
        self.assertEqual(at("gfx906", compilers.Usage(registers=24, width=64), 64, 0), 1)
        self.assertEqual(at("gfx906", compilers.Usage(registers=128, width=64), 64, 0), 0.2)
        self.assertEqual(at("gfx1030", compilers.Usage(registers=64, width=32), 64, 32 << 10), 8 / 64)

    def test_intel(self):
        at = compilers.occupancy
        self.assertEqual(at("dg2", compilers.Usage(registers=128, width=16, threads=8), 256, 0), 1)
        self.assertEqual(at("dg2", compilers.Usage(registers=256, width=16, threads=4), 256, 0), 0.5)
        self.assertEqual(at("dg2", compilers.Usage(registers=128, width=16, threads=8), 64, 17 << 10), 16 / 128)


class Notes(unittest.TestCase):
    def test_comments(self):
        notes = gpu_notes.notes_of("// coalescing(a, b): one\n// two.\n\n// device(c): CPU\n__kernel void c() {}\n"
                                   "  // occupancy(a): because\n// coalescing(c): x\n")
        self.assertEqual(notes["coalescing"], {"a": "one two.", "b": "one two.", "c": "x"})
        self.assertEqual(notes["device"], {"c": "CPU"})
        self.assertEqual(notes["occupancy"], {"a": "because"})

    def test_a_kernel_for_gpus_with_a_twin_for_cpus(self):
        notes = {"coalescing": {"a": "neighbours"}, "occupancy": {}, "device": {"a": "CPU", "b": "CPU"}}
        self.assertEqual(gpu_notes.for_gpus_too(notes)["device"], {"b": "CPU"})

    def test_barriers(self):
        def problems(body):
            return gpu_notes.divergent_barriers("__kernel void f(__global float* x, int n) {" + body + "}")
        self.assertEqual(problems("for (int i = 0; i < n; ++i) { x[get_local_id(0)] = i; barrier(1); }"), [])
        self.assertEqual(problems("int i = get_local_id(0); if (i < n) x[i] = 0; barrier(1);"), [])
        self.assertEqual(problems("if (n > 3) barrier(1);"), [])
        self.assertEqual(len(problems("if (get_local_id(0) < 3) barrier(1);")), 1)
        self.assertEqual(len(problems("int i = get_global_id(0); int j = i * 2; if (j < n) return; barrier(1);")), 1)
        self.assertEqual(len(problems("int i = get_local_id(0); for (int k = i; k < n; ++k) { barrier(1); }")), 1)
        self.assertEqual(len(problems("int i = get_local_id(0); if (n) x[0] = 1; else if (i) x[0] = 2; else barrier(1);")), 1)
        self.assertEqual(len(gpu_notes.divergent_barriers(
            "void g(int n) { barrier(1); } void f(int n) { if (get_local_id(0) > n) g(n); }")), 1)


class Rules(unittest.TestCase):
    LINE = "default\tadd\tadd.scalar\tfloat32\tabc\ttile\t0\t128\n"

    def finding(self, occupancy=1.0, level="default", **usage):
        launch = gpu_audit.read_launches("sm_86", self.LINE.replace("default", level))[0]
        used = compilers.Usage(**usage)
        return gpu_audit.Finding(launch, used, used.local + launch.local, occupancy)

    def test_launches(self):
        launch = gpu_audit.read_launches("sm_86", self.LINE)[0]
        self.assertEqual((launch.kernel, launch.items, launch.local), ("tile", 64, 128))

    def test_check(self):
        none = {"occupancy": {}, "coalescing": {}, "device": {}}
        self.assertEqual(gpu_audit.check([self.finding()], none), [])
        self.assertEqual(len(gpu_audit.check([self.finding(spill=4), self.finding(spill=8)], none)), 1)
        self.assertEqual(len(gpu_audit.check([self.finding(private=4)], none)), 1)
        self.assertEqual(len(gpu_audit.check([self.finding(local=32 << 10)], none)), 1)
        self.assertEqual(len(gpu_audit.check([self.finding(occupancy=0.4)], none)), 1)
        self.assertEqual(gpu_audit.check([self.finding(occupancy=0.4)], none | {"occupancy": {"tile": "why"}}), [])
        self.assertEqual(gpu_audit.check([self.finding(level="tunable", spill=4)], none), [])
        self.assertEqual(len(gpu_audit.unexplained([self.finding()], none)), 1)

    def test_page_tells_what_is_broken(self):
        told = {"occupancy": {}, "coalescing": {"tile": "neighbours"}, "device": {}}
        kept = gpu_report.page([self.finding()], told, [], False, 1)
        self.assertNotIn("| broken", kept)
        self.assertIn("of every kernel) | broken by `tile` |",
                      gpu_report.page([self.finding()], told | {"coalescing": {}}, [], False, 1))
        self.assertIn("| broken: tile: a barrier in a branch |",
                      gpu_report.page([self.finding()], told, ["tile: a barrier in a branch"], False, 1))


def run():
    suite = unittest.defaultTestLoader.loadTestsFromModule(__import__(__name__))
    return 0 if unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful() else 1
