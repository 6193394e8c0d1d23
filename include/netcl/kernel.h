// Writing an OpenCL kernel and running it: KernelSpec -> build -> Program -> Kernel -> launch.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl/dtype.h"
#include "netcl/memory.h"
#include "netcl/opencl.h"

namespace netcl {

// A global or local size of one to three dimensions; an empty one means "netcl chooses".
class WorkSize {
 public:
  WorkSize() = default;
  WorkSize(std::nullptr_t) {}  // NOLINT: nullptr and {} both read as "None"
  template <std::integral T>
  WorkSize(T size) : WorkSize({static_cast<std::int64_t>(size)}) {}  // NOLINT: 64 is a size
  WorkSize(std::initializer_list<std::int64_t> sizes);
  explicit WorkSize(const std::vector<std::size_t>& sizes);

  unsigned rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::size_t operator[](unsigned i) const { return i < rank_ ? sizes_[i] : 1; }  // padded with 1
  std::size_t total() const;
  const std::size_t* data() const { return sizes_.data(); }
  std::vector<std::size_t> to_vector() const;
  WorkSize padded(unsigned rank) const;
  std::string to_string() const;  // "(256, 256)", "None"
  bool operator==(const WorkSize& other) const = default;

 private:
  std::array<std::size_t, 3> sizes_{1, 1, 1};
  unsigned rank_ = 0;
};

// One argument of a launch. Made implicitly from numbers, Buffers, leases of pools and Tensors.
class KernelArg {
 public:
  enum class Kind : std::uint8_t {
    signed_integer,
    unsigned_integer,
    floating,
    memory,
    local,
    bytes
  };

  template <std::signed_integral T>
  KernelArg(T value) : kind_(Kind::signed_integer), size_(sizeof(T)) {  // NOLINT
    value_.i = value;
  }
  template <std::unsigned_integral T>
  KernelArg(T value) : kind_(Kind::unsigned_integer), size_(sizeof(T)) {  // NOLINT
    value_.u = value;
  }
  template <std::floating_point T>
  KernelArg(T value) : kind_(Kind::floating), size_(sizeof(T)) {  // NOLINT
    value_.f = static_cast<double>(value);
  }
  KernelArg(const Buffer& buffer);        // NOLINT
  KernelArg(const BufferHandle& handle);  // NOLINT

  // `bytes` of local memory for a __local parameter.
  static KernelArg local(std::size_t bytes);
  // A vector or struct passed by value; `value` must live until the launch returns.
  static KernelArg by_value(const void* value, std::size_t bytes);
  // What Tensor uses: memory with an element type, of a queue, starting at a byte offset. `version`
  // is counted up by launches that may write the memory.
  static KernelArg memory(const Buffer& buffer, std::size_t offset, std::size_t bytes, DType dtype,
                          const Queue& queue,
                          std::shared_ptr<std::atomic<std::uint64_t>> version = nullptr);

  Kind kind() const { return kind_; }
  std::size_t size() const { return size_; }
  std::int64_t as_signed() const { return value_.i; }
  std::uint64_t as_unsigned() const { return value_.u; }
  double as_double() const { return value_.f; }
  const void* data() const { return value_.pointer; }
  const Buffer* buffer() const { return buffer_; }
  std::size_t offset() const { return offset_; }
  std::optional<DType> dtype() const { return dtype_; }
  const Queue* queue() const { return queue_; }
  const std::shared_ptr<std::atomic<std::uint64_t>>& version() const { return version_; }

 private:
  KernelArg(Kind kind, std::size_t size) : kind_(kind), size_(size) {}
  Kind kind_;
  std::optional<DType> dtype_;
  std::size_t size_ = 0;  // of the value, the local memory or the buffer, in bytes
  union {
    std::int64_t i;
    std::uint64_t u;
    double f;
    const void* pointer;
  } value_{};
  // Arguments live for one launch, in which the caller keeps their owners alive.
  const Buffer* buffer_ = nullptr;
  const Queue* queue_ = nullptr;
  std::shared_ptr<std::atomic<std::uint64_t>> version_;
  std::size_t offset_ = 0;
};

struct KernelParameterInfo {
  std::string name;
  std::string type;           // "float*", "int"
  std::string address_space;  // "global", "local", "constant", "value"
  bool writable = false;
};

namespace detail {
struct KernelState;
struct ProgramState;
}  // namespace detail

// How a launch without a local size is to be made; comes from the KernelSpec.
struct LaunchPolicy {
  WorkSize workgroup_size;             // taken when set
  std::size_t max_workgroup_size = 0;  // the largest to choose; 0 leaves it to device and kernel
  bool guards_range = false;  // the kernel checks its global id: the global size may be rounded up
  bool tune = false;          // measure at the first launch
};

// One __kernel function of a built program. Copies share it; any number of threads may launch it.
class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(std::shared_ptr<detail::KernelState> state, LaunchPolicy policy = {})
      : state_(std::move(state)), policy_(policy) {}
  // A kernel that was made elsewhere, for a device that its program was built for (by default the
  // first). Arguments that were set on it stay as they are: launches use an object of their own.
  static Kernel wrap(_cl_kernel* kernel, const Device& device = {});

  const std::string& name() const;
  const std::vector<KernelParameterInfo>& parameters() const;
  // Largest work-group the device takes for this kernel.
  std::size_t max_work_group_size() const;
  // What tuning found last for this kernel, for any global size; empty before that. Where the
  // driver's own choice was fastest, the next best size.
  WorkSize tuned_size() const;
  std::string to_source() const;
  std::uintptr_t int_ptr() const;

  // Enqueues the kernel. A local size of None is the tuned one (see KernelSpec::tune), else the
  // spec's, else 64 where that divides the global size, else the driver's choice. Wrong arguments
  // are errors that name the parameter, before anything is enqueued.
  template <class... Args>
  Event operator()(const Queue& queue, const WorkSize& global, const WorkSize& local,
                   const Args&... args) const {
    const std::array<KernelArg, sizeof...(Args)> list{KernelArg(args)...};
    return launch(queue, global, local, list.data(), list.size());
  }
  // The same with a list of arguments.
  Event launch(const Queue& queue, const WorkSize& global, const WorkSize& local,
               const KernelArg* args, std::size_t count) const;

  explicit operator bool() const { return state_ != nullptr; }
  const std::shared_ptr<detail::KernelState>& state() const { return state_; }
  const LaunchPolicy& policy() const { return policy_; }

 private:
  std::shared_ptr<detail::KernelState> state_;
  LaunchPolicy policy_;
};

class Program;

// The macros that generated and hand-written kernels may use: LOAD STORE ADD SUB MUL DIV RELU EXP
// LOG SQRT TANH ABS MAX MIN. RELU, MAX and MIN keep NaN and evaluate their arguments once.
extern const std::string_view PRIMITIVE_PREAMBLE;

// A kernel and how to build and run it. Give either `src` (a whole program, one or more kernels) or
// `params` and `body` (netcl writes the function).
struct KernelSpec {
  std::string name;  // the kernel that Program::run launches
  std::string src = {};
  std::vector<std::string> params = {};  // "__global const float* a", "int n"
  std::string body = {};
  std::optional<std::string> preamble = {};  // PRIMITIVE_PREAMBLE unless given; "" for none
  std::string shape_sig = {};                // the dispatch slot in the registry
  WorkSize workgroup_size = {};              // local size of run(..., None, ...), when known
  std::vector<std::string> extra_flags = {};
  bool tune = true;                    // measure local sizes at the first run without one
  std::size_t max_workgroup_size = 0;  // the largest local size to choose; 0: the device's limit
  bool guards_range = false;  // the kernels check their global id, so netcl may round sizes up

  // Exactly what is compiled.
  std::string to_source() const;
  // Compiles through the program cache and registers the spec under its name.
  Program build(const Queue& queue) const;
  Program build(const Context& context) const;
};

// A built spec. Copies share it.
class Program {
 public:
  Program() = default;
  explicit Program(std::shared_ptr<detail::ProgramState> state) : state_(std::move(state)) {}
  // A program that was built elsewhere, for one of its devices (by default the first). Nothing is
  // compiled again. Its spec has the source, if the driver knows it, and the name of its only
  // kernel.
  static Program wrap(_cl_program* program, const Device& device = {});

  const KernelSpec& spec() const;
  std::vector<std::string> kernel_names() const;
  Kernel kernel(std::string_view name) const;  // ArgumentError that lists the names
  Kernel kernel() const;                       // the one named like the spec
  bool has_kernel(std::string_view name) const;
  std::uintptr_t int_ptr() const;

  template <class... Args>
  Event run(const Queue& queue, const WorkSize& global, const WorkSize& local,
            const Args&... args) const {
    return kernel()(queue, global, local, args...);
  }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  std::shared_ptr<detail::ProgramState> state_;
};

// The spec that was last built under this name and shape signature.
std::optional<KernelSpec> find_kernel_spec(std::string_view name, std::string_view shape_sig = "");

// Anything that bounds work-group sizes, such as a WorkGroupTuner.
template <class T>
concept BoundsWorkGroups = requires(const T& tuner) {
  { tuner.max_local() } -> std::convertible_to<std::size_t>;
};

// Writes element-wise kernels from an expression over v0, v1, ...: inputs in0, in1, ..., output
// `out`, `ulong n`. `dtype` is float, half or double (or their dtype names). Half is stored as half
// and computed in float, so it needs no cl_khr_fp16.
class PrimitiveBuilder {
 public:
  // The largest work-group that launches may choose; 0 leaves it to the device.
  explicit PrimitiveBuilder(std::string_view dtype = "float", std::size_t max_workgroup_size = 0);
  template <BoundsWorkGroups Tuner>
  PrimitiveBuilder(std::string_view dtype, const Tuner& tuner)
      : PrimitiveBuilder(dtype, tuner.max_local()) {}
  KernelSpec elementwise_spec(const std::string& name, int arity,
                              const std::string& expression) const;

 private:
  DType dtype_;
  std::size_t max_workgroup_size_ = 0;
};

struct ElementwiseKernel {
  KernelSpec spec;
  Kernel kernel;  // empty when no context was given
};
ElementwiseKernel build_elementwise_kernel(const Context& context, const std::string& name,
                                           int arity, const std::string& expression,
                                           std::string_view dtype = "float",
                                           const std::vector<std::string>& options = {},
                                           std::size_t max_workgroup_size = 0);

}  // namespace netcl
