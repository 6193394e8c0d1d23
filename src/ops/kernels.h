// What the variants of all ops need to launch kernels: element types as macros, compiled kernels
// remembered under small keys, arguments with their offsets.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/launch.h"
#include "netcl/tensor.h"

namespace netcl {

// The type in which elements of `dtype` are computed: float for float16, itself for the others,
// int for the small integers and bool.
DType compute_dtype(DType dtype);
// The OpenCL C name of a compute type: "float", "double", "int", "long".
std::string_view compute_type(DType dtype);

// Macros for an operand: NAME is its storage type, LOAD_NAME(p, i) reads an element into the
// compute type, STORE_NAME(p, i, x) rounds and writes one. Half needs no extension this way.
std::string type_macros(std::string_view name, DType dtype);
// The usual ones: T of type_macros, ACC the compute type, EPS and the like are left to the kernels.
std::string t_and_acc(DType dtype);
// Vectors of `vec` elements: VEC, ACCV (the type), LOADV(p, i) from T, VLOAD(j, p) from ACC,
// STORE_LANES(v, p) into an array of ACC, MULTIPLY_ADD(x, y, z) with one rounding.
std::string vector_macros(DType dtype, std::int64_t vec);
// "#define NAME value\n"
std::string define(std::string_view name, std::int64_t value);
std::string define(std::string_view name, std::string_view value);

// A kernel of a .cl file, compiled behind `prologue()` at the first use of this key on a device.
// Everything that the prologue depends on belongs in the key.
class KernelKey {
 public:
  KernelKey(const char* path, const char* kernel, std::initializer_list<std::int64_t> bits);
  const std::string& bytes() const { return bytes_; }
  const char* path() const { return path_; }
  const char* kernel() const { return kernel_; }

 private:
  const char* path_;
  const char* kernel_;
  std::string bytes_;
};

using KernelPtr = std::shared_ptr<detail::KernelState>;
KernelPtr find_op_kernel(const Queue& queue, const KernelKey& key);  // null when not compiled yet
KernelPtr compile_op_kernel(const Queue& queue, const KernelKey& key, const std::string& source);
// The text of a .cl file behind a prologue of defines.
std::string with_prologue(const std::string& prologue, const char* path);

template <class Prologue>
KernelPtr op_kernel(const Queue& queue, const KernelKey& key, Prologue&& prologue) {
  auto found = find_op_kernel(queue, key);
  return found ? found : compile_op_kernel(queue, key, with_prologue(prologue(), key.path()));
}

// A kernel whose whole text the host code writes; the key's path is any literal that tells it.
template <class Source>
KernelPtr generated_kernel(const Queue& queue, const KernelKey& key, Source&& source) {
  auto found = find_op_kernel(queue, key);
  return found ? found : compile_op_kernel(queue, key, source());
}

// The arguments of one launch: tensors first, then their offsets as one `long8 at` (at.s0 belongs
// to the first tensor), then everything else in the order of the calls.
class OpArgs {
 public:
  OpArgs& tensor(const Tensor& tensor);  // at most eight
  template <class T>
  OpArgs& value(T value) {
    others_.emplace_back(value);
    return *this;
  }
  // A number as the compute type of `dtype`.
  OpArgs& number(double value, DType dtype);
  OpArgs& by_value(const void* memory, std::size_t bytes) {
    others_.push_back(KernelArg::by_value(memory, bytes));
    return *this;
  }
  void enqueue(const Queue& queue, const KernelPtr& kernel, const WorkSize& global,
               const WorkSize& local) const;

 private:
  alignas(64) std::array<std::int64_t, 8> at_{};
  std::vector<KernelArg> tensors_, others_;
};

// Up to eight sizes or strides as a long8, innermost first.
struct alignas(64) Long8 {
  std::array<std::int64_t, 8> values{};
};

inline std::size_t ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>((a + b - 1) / b);
}
// The global size for `n` items in groups of `local`, at least one group.
inline std::size_t rounded_up(std::int64_t n, std::int64_t local) {
  return std::max<std::size_t>(ceil_div(n, local), 1) * static_cast<std::size_t>(local);
}

// A work-group of `wanted` items where device and kernel allow it, else the largest power of two.
std::size_t clamped_local(const KernelPtr& kernel, std::int64_t wanted);

}  // namespace netcl
