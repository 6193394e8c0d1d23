// What kernels that are bound by memory share: macros, and when stores go past the caches.
#pragma once

#include <span>
#include <string>

#include "base/format.h"
#include "device/caches.h"
#include "netcl/capabilities.h"
#include "netcl/tensor.h"

namespace netcl {

// FETCH(p) asks for memory ahead of its use, STREAM(v, p) writes a vector past the caches, where
// the compiler has such things; the vector must lie at a multiple of its size. Prefetching only
// where it makes a CPU's own code: the translator to SPIR-V, which Mesa uses, ends the process at
// it. A FETCH that is defined before stays.
inline constexpr const char* kMemoryHints =
    "#ifdef __has_builtin\n"
    "#if !defined(FETCH) && (defined(__x86_64__) || defined(__aarch64__)) && \\\n"
    "    __has_builtin(__builtin_prefetch)\n"
    "#define FETCH(p) __builtin_prefetch(p)\n"
    "#endif\n"
    "#if __has_builtin(__builtin_nontemporal_store)\n"
    "#define STREAM(v, p) __builtin_nontemporal_store(v, p)\n"
    "#endif\n"
    "#endif\n"
    "#ifndef FETCH\n#define FETCH(p) ((void)0)\n#endif\n"
    "#ifndef STREAM\n#define STREAM(v, p) *(p) = (v)\n#endif\n";

// load_halves<n>(p) and store_halves<n>(v, p) for one n, wherever they lie: PoCL takes the vectors
// of vload_half for aligned. There bits are moved as integers, which it takes as they are. Only the
// n that is used: a driver that cannot compile longer vectors does not have to. HALF_VECTORS says
// that they are there. May be given more than once.
inline std::string half_vectors(std::int64_t n) {
  return fmt::format(
      "#ifndef HALF_VECTORS\n"
      "#define HALF_VECTORS\n"
      "#endif\n"
      "#ifndef HALF_VECTORS_{0}\n"
      "#define HALF_VECTORS_{0}\n"
      "#ifdef POCL_DEVICE_ADDRESS_BITS\n"
      "float{0} load_halves{0}(__global const half* p) {{\n"
      "  const ushort{0} bits = vload{0}(0, (__global const ushort*)p);\n"
      "  return vload_half{0}(0, (const half*)&bits);\n"
      "}}\n"
      "void store_halves{0}(float{0} v, __global half* p) {{\n"
      "  ushort{0} bits;\n"
      "  vstore_half{0}_rte(v, 0, (half*)&bits);\n"
      "  vstore{0}(bits, 0, (__global ushort*)p);\n"
      "}}\n"
      "#else\n"
      "#define load_halves{0}(p) vload_half{0}(0, p)\n"
      "#define store_halves{0}(v, p) vstore_half{0}_rte(v, 0, p)\n"
      "#endif\n"
      "#endif\n",
      n);
}

// load_<type><n>(p) and store_<type><n>(v, p) of plain elements in global memory, wherever they
// lie. PoCL's vload16 is a function that puts pairs of elements together, which its compiler may
// leave as eight narrow loads; there they are vectors that need no alignment. Not for loops that
// fill an array of vectors: the compiler takes those for copies of memory, and does not unroll
// them. May be given more than once.
inline std::string loose_vectors(std::string_view type, std::int64_t n) {
  return fmt::format(
      "#ifndef LOOSE_{0}{1}\n"
      "#define LOOSE_{0}{1}\n"
      "#ifdef POCL_DEVICE_ADDRESS_BITS\n"
      "typedef {0}{1} __attribute__((aligned(sizeof({0})))) loose_{0}{1};\n"
      "#define load_{0}{1}(p) (*(__global const loose_{0}{1}*)(p))\n"
      "#define store_{0}{1}(v, p) (*(__global loose_{0}{1}*)(p) = (v))\n"
      "#else\n"
      "#define load_{0}{1}(p) vload{1}(0, p)\n"
      "#define store_{0}{1}(v, p) vstore{1}(v, 0, p)\n"
      "#endif\n"
      "#endif\n",
      type, n);
}

inline std::uint64_t bytes_of(std::span<const Tensor> tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors)
    if (tensor) bytes += tensor.nbytes();
  return bytes;
}

using detail::outgrow_caches;

// Whether a CPU gains when kernels ask for arrays ahead. AMD's fetch them soon enough by
// themselves, and are slower with requests between the loads.
inline bool gains_by_fetching(const ExtendedDeviceProfile& profile) {
  return profile.vendor != "AuthenticAMD";
}

}  // namespace netcl
