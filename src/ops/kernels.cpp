#include "ops/kernels.h"

#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/env.h"
#include "cl/state.h"
#include "kernel/builtin.h"
#include "ops/memory_hints.h"
#include "tensor/access.h"

namespace netcl {
namespace {

struct OpKernelMemo {
  std::mutex mutex;
  std::unordered_map<std::string, KernelPtr> kernels;
};

OpKernelMemo& memo_of(const Queue& queue) {
  return queue.context().state().attachments.ref<OpKernelMemo>([] { return new OpKernelMemo(); });
}

void append_bytes(std::string& text, const void* from, std::size_t size) {
  text.append(static_cast<const char*>(from), size);
}

// A context may have several devices, and a kernel is compiled for one.
std::string on_device(const Queue& queue, const std::string& bytes) {
  const auto device = queue.device().int_ptr();
  std::string key;
  key.reserve(sizeof device + bytes.size());
  append_bytes(key, &device, sizeof device);
  return key.append(bytes);
}

KernelPtr compile_text(const Queue& queue, const char* kernel, const std::string& source) {
  check<DeviceError>(!queue.is_cpu(), "[{}] a kernel needs an OpenCL device", kernel);
  auto state = compile(queue.context(), queue.device(), source, {"-cl-std=CL1.2"})->find(kernel);
  check(state != nullptr, "[kernel] the source must define the kernel {}", kernel);
  return state;
}

constexpr const char* kBfloat16Store =
    "#ifndef BFLOAT16_STORE\n#define BFLOAT16_STORE\n"
    "ushort netcl_bfloat16(float x) {\n"
    "  const uint bits = as_uint(x);\n"
    "  if (isnan(x)) return (ushort)((bits >> 16) | 0x40u);\n"
    "  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n}\n#endif\n";

}  // namespace

DType compute_dtype(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return DType::float32;
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return DType::int32;
    default:
      return dtype;
  }
}

std::string_view compute_type(DType dtype) { return opencl_type(compute_dtype(dtype)); }

std::string define(std::string_view name, std::string_view value) {
  return fmt::format("#define {} {}\n", name, value);
}

std::string define(std::string_view name, std::int64_t value) {
  return fmt::format("#define {} {}\n", name, value);
}

std::string type_macros(std::string_view name, DType dtype) {
  std::string text = define(name, opencl_type(dtype));
  const auto macros = [&](std::string_view load, std::string_view store) {
    text += fmt::format("#define LOAD_{}(p, i) {}\n#define STORE_{}(p, i, x) {}\n", name, load,
                        name, store);
  };
  switch (dtype) {
    case DType::float16:
      macros("vload_half(i, p)", "vstore_half_rte(x, i, p)");
      break;
    case DType::bfloat16:
      text = kBfloat16Store + text;
      macros("as_float((uint)(p)[i] << 16)", "(p)[i] = netcl_bfloat16(x)");
      break;
    case DType::float64:
      text = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + text;
      [[fallthrough]];
    case DType::float32:
    case DType::int32:
    case DType::int64:
      macros("(p)[i]", "(p)[i] = (x)");
      break;
    case DType::boolean:
      macros("(int)(p)[i]", "(p)[i] = (uchar)((x) != 0)");
      break;
    default:
      macros("(int)(p)[i]", fmt::format("(p)[i] = ({})(x)", opencl_type(dtype)));
  }
  return text;
}

std::string t_and_acc(DType dtype) {
  return type_macros("T", dtype) + define("ACC", compute_type(dtype));
}

std::string vector_macros(DType dtype, std::int64_t vec) {
  const auto acc = compute_type(dtype);
  auto text = define("VEC", vec) + define("ACCV", fmt::format("{}{}", acc, vec)) +
              fmt::format("#define VLOAD(j, p) vload{}(j, p)\n", vec) +
              fmt::format("#define STORE_LANES(v, p) vstore{}(v, 0, p)\n", vec);
  text +=
      dtype == DType::float16 && vec > 1
          ? half_vectors(vec) + fmt::format("#define LOADV(p, i) load_halves{}((p) + (i))\n", vec)
          : fmt::format("#define LOADV(p, i) vload{}(0, (p) + (i))\n", vec);
  // One rounding instead of two, and one instruction.
  text += is_floating(dtype) ? "#define MULTIPLY_ADD(x, y, z) fma(x, y, z)\n"
                             : "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n";
  return text;
}

KernelKey::KernelKey(const char* path, const char* kernel, std::initializer_list<std::int64_t> bits)
    : path_(path), kernel_(kernel) {
  bytes_.reserve(2 * sizeof(void*) + bits.size() * sizeof(std::int64_t));
  // Literals: their addresses tell them apart, and a second copy of one only compiles once more.
  append_bytes(bytes_, &path_, sizeof path_);
  append_bytes(bytes_, &kernel_, sizeof kernel_);
  for (const auto bit : bits) append_bytes(bytes_, &bit, sizeof bit);
}

KernelPtr find_op_kernel(const Queue& queue, const KernelKey& key) {
  auto& memo = memo_of(queue);
  const auto bytes = on_device(queue, key.bytes());
  const std::lock_guard lock(memo.mutex);
  const auto found = memo.kernels.find(bytes);
  return found == memo.kernels.end() ? nullptr : found->second;
}

KernelPtr compile_op_kernel(const Queue& queue, const KernelKey& key, const std::string& source) {
  auto kernel = compile_text(queue, key.kernel(), source);
  if (!env::text("NETCL_KERNEL_DIR").empty()) return kernel;  // edited files must be seen
  auto& memo = memo_of(queue);
  const std::lock_guard lock(memo.mutex);
  return memo.kernels.emplace(on_device(queue, key.bytes()), std::move(kernel)).first->second;
}

std::string with_prologue(const std::string& prologue, const char* path) {
  return prologue + assemble_source(path);
}

OpArgs& OpArgs::tensor(const Tensor& tensor) {
  check(tensors_.size() < at_.size(), "[launch] a kernel takes at most {} tensors", at_.size());
  at_[tensors_.size()] = tensor.offset();
  tensors_.emplace_back(TensorAccess::buffer(tensor));
  return *this;
}

OpArgs& OpArgs::number(double value, DType dtype) {
  switch (compute_dtype(dtype)) {
    case DType::float64:
      return this->value(value);
    case DType::int32:
      return this->value(static_cast<std::int32_t>(value));
    case DType::int64:
      return this->value(static_cast<std::int64_t>(value));
    default:
      return this->value(static_cast<float>(value));
  }
}

void OpArgs::enqueue(const Queue& queue, const KernelPtr& kernel, const WorkSize& global,
                     const WorkSize& local) const {
  std::vector<KernelArg> all;
  all.reserve(tensors_.size() + 1 + others_.size());
  all.insert(all.end(), tensors_.begin(), tensors_.end());
  all.push_back(KernelArg::by_value(at_.data(), sizeof at_));
  all.insert(all.end(), others_.begin(), others_.end());
  enqueue_kernel(queue, *kernel, global, local, all);
}

std::size_t clamped_local(const KernelPtr& kernel, std::int64_t wanted) {
  const auto limit = std::min(kernel->limits.work_group_size, kernel->max_items[0]);
  auto local = static_cast<std::size_t>(wanted);
  while (local > 1 && local > limit) local /= 2;
  return std::max<std::size_t>(local, 1);
}

}  // namespace netcl
