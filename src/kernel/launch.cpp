// Argument checks, conversions and the launch itself. What goes wrong here is the user's kernel or
// the user's call, so every message names the kernel and the parameter. The good case costs little
// more than the OpenCL calls (bench/launch_bench.cpp): text is built only when it is thrown.
#include "kernel/launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/recording.h"
#include "cl/state.h"
#include "kernel/compile_ahead.h"
#include "kernel/launch_listener.h"
#include "kernel/local_memory.h"
#include "kernel/source_scan.h"
#include "netcl/capabilities.h"
#include "profiling/recorder.h"

namespace netcl::launching {

// Names a parameter in a message.
struct Where {
  const detail::KernelState& kernel;
  std::size_t index;

  std::string to_string() const {
    const auto& name = kernel.parameters[index].name;
    return name.empty() ? fmt::format("kernel {}, argument {}", kernel.name, index)
                        : fmt::format("kernel {}, parameter '{}'", kernel.name, name);
  }
};

// Arguments of check() that become text when the message does.
template <class T>
struct TextFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const T& value, Context& context) const {
    return fmt::format_to(context.out(), "{}", value.to_string());
  }
};

}  // namespace netcl::launching

template <>
struct fmt::formatter<netcl::launching::Where>
    : netcl::launching::TextFormatter<netcl::launching::Where> {};
template <>
struct fmt::formatter<netcl::WorkSize> : netcl::launching::TextFormatter<netcl::WorkSize> {};

namespace netcl {
namespace {

using detail::KernelState;

launching::Where where(const KernelState& kernel, std::size_t index) { return {kernel, index}; }

bool accepts_elements(std::string_view type, DType dtype) {
  const auto scalar = scalar_of(type);
  switch (dtype) {
    case DType::float16:
      return scalar == "half" || scalar == "ushort";
    case DType::bfloat16:
      return scalar == "ushort";
    case DType::float32:
      return scalar == "float";
    case DType::float64:
      return scalar == "double";
    case DType::int8:
      return scalar == "char";
    case DType::uint8:
    case DType::boolean:
      return scalar == "uchar" || scalar == "bool";
    case DType::int32:
      return scalar == "int" || scalar == "uint";
    case DType::int64:
      return scalar == "long" || scalar == "ulong";
  }
  return false;
}

bool is_plain_scalar(std::string_view scalar) {
  constexpr std::string_view kNames[] = {"char", "uchar", "short", "ushort", "int",   "uint",
                                         "long", "ulong", "half",  "float",  "double"};
  return std::find(std::begin(kNames), std::end(kNames), scalar) != std::end(kNames);
}

struct ScalarBytes {
  alignas(8) std::byte bytes[8];
  std::size_t size;
};

template <class T>
ScalarBytes pack(T value) {
  ScalarBytes packed{{}, sizeof value};
  std::memcpy(packed.bytes, &value, sizeof value);
  return packed;
}

template <class T>
ScalarBytes pack_integer(const KernelState& kernel, std::size_t index, const KernelArg& arg) {
  const auto reject = [&](auto value) {
    fail<ArgumentError>("[{}] the value must fit {}: {}", where(kernel, index),
                        kernel.parameters[index].type, value);
  };
  if (arg.kind() == KernelArg::Kind::floating) {
    const double value = arg.as_double();
    // Both bounds are exact in double: the upper one is a power of two.
    const double upper = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double lower = std::numeric_limits<T>::is_signed ? -upper : 0.0;
    if (!(value == std::floor(value) && value >= lower && value < upper)) reject(value);
    return pack(static_cast<T>(value));
  }
  if (arg.kind() == KernelArg::Kind::unsigned_integer) {
    if (!std::in_range<T>(arg.as_unsigned())) reject(arg.as_unsigned());
    return pack(static_cast<T>(arg.as_unsigned()));
  }
  if (!std::in_range<T>(arg.as_signed())) reject(arg.as_signed());
  return pack(static_cast<T>(arg.as_signed()));
}

double as_double(const KernelArg& arg) {
  switch (arg.kind()) {
    case KernelArg::Kind::signed_integer:
      return static_cast<double>(arg.as_signed());
    case KernelArg::Kind::unsigned_integer:
      return static_cast<double>(arg.as_unsigned());
    default:
      return arg.as_double();
  }
}

ScalarBytes pack_float(const KernelState& kernel, std::size_t index, const KernelArg& arg) {
  const double value = as_double(arg);
  const auto narrowed = static_cast<float>(value);
  check<ArgumentError>(std::isfinite(narrowed) || !std::isfinite(value),
                       "[{}] the value must fit float: {}", where(kernel, index), value);
  return pack(narrowed);
}

// The bytes of a number as the parameter's declared type.
ScalarBytes convert(const KernelState& kernel, std::size_t index, const KernelArg& arg) {
  const std::string_view type = kernel.parameters[index].type;
  if (type == "int") return pack_integer<std::int32_t>(kernel, index, arg);
  if (type == "uint") return pack_integer<std::uint32_t>(kernel, index, arg);
  if (type == "long") return pack_integer<std::int64_t>(kernel, index, arg);
  if (type == "ulong") return pack_integer<std::uint64_t>(kernel, index, arg);
  if (type == "float") return pack_float(kernel, index, arg);
  if (type == "double") return pack(as_double(arg));
  if (type == "char") return pack_integer<std::int8_t>(kernel, index, arg);
  if (type == "uchar") return pack_integer<std::uint8_t>(kernel, index, arg);
  if (type == "short") return pack_integer<std::int16_t>(kernel, index, arg);
  if (type == "ushort") return pack_integer<std::uint16_t>(kernel, index, arg);
  if (type == "half") return pack(double_to_half(as_double(arg)));
  fail<DtypeError>("[{}] a number cannot be passed as {}", where(kernel, index), type);
}

// What the driver does not tell is taken as the caller gave it.
ScalarBytes as_given(const KernelArg& arg) {
  if (arg.kind() == KernelArg::Kind::floating)
    return arg.size() == 4 ? pack(static_cast<float>(arg.as_double())) : pack(arg.as_double());
  ScalarBytes packed = pack(arg.as_signed());
  packed.size = arg.size();  // little endian: the low bytes come first
  return packed;
}

bool is_pointer(const KernelParameterInfo& parameter) {
  return parameter.address_space == "global" || parameter.address_space == "constant";
}

// One launch: the arguments set so far, and what must live until they are enqueued.
class Binder {
 public:
  // The arguments are set on `target`: the kernel's own object, or one of this launch.
  Binder(const Queue& queue, KernelState& kernel, _cl_kernel* target,
         std::span<const KernelArg> args)
      : queue_(queue), kernel_(kernel), target_(target), args_(args) {}

  void bind(std::size_t index, const KernelArg& arg) {
    switch (arg.kind()) {
      case KernelArg::Kind::memory:
        return bind_memory(index, arg);
      case KernelArg::Kind::local:
        return bind_local(index, arg);
      case KernelArg::Kind::bytes:
        return cl::set_argument(target_, static_cast<unsigned>(index), arg.size(), arg.data());
      default:
        return bind_number(index, arg);
    }
  }

  // After the launch: brings back what was written into copies.
  void finish() {
    for (const auto& copy : copies_)
      if (copy.written)
        cl::copy(queue_.get(), copy.lease.buffer(), 0, *copy.arg->buffer(), copy.arg->offset(),
                 copy.arg->size());
  }

  // What the arguments point to.
  std::vector<Buffer> memory(std::span<const KernelArg> args) const {
    auto all = views_;
    for (const auto& copy : copies_) all.push_back(copy.lease.buffer());
    for (const auto& arg : args)
      if (arg.kind() == KernelArg::Kind::memory) all.push_back(*arg.buffer());
    return all;
  }

  // Other queues whose tensors take part: they wait for this launch, and it for them.
  const std::vector<const Queue*>& other_queues() const { return other_queues_; }

 private:
  const KernelParameterInfo& parameter(std::size_t index) const {
    return kernel_.parameters[index];
  }

  void bind_number(std::size_t index, const KernelArg& arg) {
    const auto& info = parameter(index);
    check<DtypeError>(!kernel_.parameters_known || info.address_space == "value",
                      "[{}] a {} {} must be given memory, not a number", where(kernel_, index),
                      info.address_space, info.type);
    const auto packed = kernel_.parameters_known ? convert(kernel_, index, arg) : as_given(arg);
    cl::set_argument(target_, static_cast<unsigned>(index), packed.size, packed.bytes);
  }

  void bind_local(std::size_t index, const KernelArg& arg) {
    const auto& info = parameter(index);
    check<DtypeError>(!kernel_.parameters_known || info.address_space == "local",
                      "[{}] local memory can only be given to a local pointer: {} {}",
                      where(kernel_, index), info.address_space, info.type);
    check<ArgumentError>(arg.size() > 0, "[{}] local memory must not be empty: 0 bytes",
                         where(kernel_, index));
    const auto bytes = local_argument_bytes(kernel_.device, kernel_.limits, args_, index);
    cl::set_argument(target_, static_cast<unsigned>(index), bytes, nullptr);
  }

  void bind_memory(std::size_t index, const KernelArg& arg) {
    check_memory(index, arg);
    auto* memory = arg.buffer()->get();
    if (arg.offset() != 0) memory = inner_pointer(index, arg);
    cl::set_argument(target_, static_cast<unsigned>(index), sizeof memory, &memory);
    if (arg.queue() != nullptr && !(*arg.queue() == queue_)) other_queues_.push_back(arg.queue());
    if (arg.version() != nullptr && may_write(kernel_, index, arg)) cl::count_change(arg.version());
  }

  void check_memory(std::size_t index, const KernelArg& arg) {
    const auto& info = parameter(index);
    check<DtypeError>(!kernel_.parameters_known || is_pointer(info),
                      "[{}] memory can only be given to a pointer: {} {}", where(kernel_, index),
                      info.address_space, info.type);
    check<ArgumentError>(static_cast<bool>(*arg.buffer()),
                         "[{}] the memory must be that of an OpenCL device: it was released, or is "
                         "on the CPU backend",
                         where(kernel_, index));
    // The usual case first; types that netcl has no dtype for take any elements.
    if (arg.dtype() && kernel_.parameters_known && !accepts_elements(info.type, *arg.dtype()) &&
        is_plain_scalar(scalar_of(info.type)))
      fail<DtypeError>("[{}] the elements must be {}: the tensor is {}", where(kernel_, index),
                       scalar_of(info.type), name_of(*arg.dtype()));
    const auto* context = arg.queue() != nullptr ? arg.queue()->state().context.get()
                                                 : cl::buffer_context(arg.buffer()->get());
    check<DeviceError>(context == queue_.state().context.get(),
                       "[{}] the memory must be of the launching queue's context: it is on another "
                       "device",
                       where(kernel_, index));
  }

  // A pointer to the inside of a buffer. OpenCL allows that only at aligned offsets; at others the
  // kernel gets a copy, and what it may have written goes back.
  _cl_mem* inner_pointer(std::size_t index, const KernelArg& arg) {
    if (arg.offset() % device_profile(queue_).base_align_bytes == 0) {
      views_.push_back(cl::create_sub_buffer(*arg.buffer(), arg.offset(), arg.size()));
      return views_.back().get();
    }
    copies_.push_back(
        {get_persistent_pool(queue_)->allocate(arg.size()), &arg, may_write(kernel_, index, arg)});
    const auto& copy = copies_.back().lease.buffer();
    cl::copy(queue_.get(), *arg.buffer(), arg.offset(), copy, 0, arg.size());
    return copy.get();
  }

  struct Copy {
    BufferHandle lease;
    const KernelArg* arg;
    bool written;
  };

  const Queue& queue_;
  KernelState& kernel_;
  _cl_kernel* target_;
  std::span<const KernelArg> args_;
  std::vector<Buffer> views_;
  std::vector<Copy> copies_;
  std::vector<const Queue*> other_queues_;
};

void check_sizes(const KernelState& kernel, const WorkSize& global, const WorkSize& local) {
  check<ShapeError>(!global.empty(), "[kernel {}] the global size must be given", kernel.name);
  if (local.empty()) return;
  check<ShapeError>(local.rank() <= global.rank(),
                    "[kernel {}] the local size must not have more dimensions than the global one: "
                    "{} for {}",
                    kernel.name, local, global);
  for (unsigned i = 0; i < global.rank(); ++i) {
    check<ShapeError>(local[i] > 0 && global[i] % local[i] == 0,
                      "[kernel {}] the global size must be a multiple of the local size: {} and {}",
                      kernel.name, global, local);
    check<ShapeError>(local[i] <= kernel.max_items[i],
                      "[kernel {}] the local size must be within the device's {} in dimension {}: "
                      "{}",
                      kernel.name, kernel.max_items[i], i, local);
  }
  check<ShapeError>(local.total() <= kernel.limits.work_group_size,
                    "[kernel {}] a work-group must have at most {} items on this device: {} has {}",
                    kernel.name, kernel.limits.work_group_size, local, local.total());
}

void wait_for_others(const Queue& queue, const std::vector<const Queue*>& others) {
  for (const auto* other : others) {
    const Event done[] = {cl::marker(other->get())};
    cl::flush(other->get());
    cl::barrier(queue.get(), done);
    if (cl::is_recording()) [[unlikely]]
      cl::t_recorder->order(*other, queue);
  }
}

void let_others_wait(const Event& launched, const Queue& queue,
                     const std::vector<const Queue*>& others) {
  if (others.empty()) return;
  cl::flush(queue.get());
  const Event done[] = {launched};
  for (const auto* other : others) {
    cl::barrier(other->get(), done);
    if (cl::is_recording()) [[unlikely]]
      cl::t_recorder->order(queue, *other);
  }
}

double memory_bytes(std::span<const KernelArg> args) {
  double bytes = 0;
  for (const auto& arg : args)
    if (arg.kind() == KernelArg::Kind::memory) bytes += static_cast<double>(arg.size());
  return bytes;
}

cl::LaunchRecord describe(const Queue& queue, const KernelState& kernel, Ref<_cl_kernel> own,
                          const WorkSize& global, const WorkSize& local, const Binder& binder,
                          std::span<const KernelArg> args) {
  cl::LaunchRecord record{queue, std::move(own), kernel.interned,    global.rank(),      {},
                          {},    !local.empty(), memory_bytes(args), binder.memory(args)};
  std::copy_n(global.data(), 3, record.global.begin());
  std::copy_n(local.data(), 3, record.local.begin());
  return record;
}

}  // namespace

bool may_write(const KernelState& kernel, std::size_t index, const KernelArg& arg) {
  if (arg.kind() != KernelArg::Kind::memory) return false;
  return !kernel.parameters_known || kernel.parameters[index].writable;
}

WorkSize default_local_size(const KernelState& kernel, const WorkSize& global,
                            const WorkSize& preferred) {
  if (kernel.limits.required_size[0] != 0) {
    const auto& required = kernel.limits.required_size;
    return WorkSize(std::vector<std::size_t>(required.begin(), required.begin() + global.rank()));
  }
  const auto wanted = preferred.empty() ? WorkSize(64) : preferred;
  const bool divides =
      global[0] % wanted[0] == 0 && global[1] % wanted[1] == 0 && global[2] % wanted[2] == 0;
  if (wanted.rank() > global.rank() || !divides) return {};
  return wanted.total() <= kernel.limits.work_group_size ? wanted : WorkSize();
}

Event enqueue_kernel(const Queue& queue, KernelState& kernel, const WorkSize& global,
                     const WorkSize& local, std::span<const KernelArg> args) {
  check<DeviceError>(!queue.is_cpu(),
                     "[kernel {}] a launch needs an OpenCL device: the queue is of "
                     "the CPU backend",
                     kernel.name);
  check<ArgumentError>(args.size() == kernel.parameters.size(),
                       "[kernel {}] the number of arguments must be {}: {}", kernel.name,
                       kernel.parameters.size(), args.size());
  check_sizes(kernel, global, local);
  Event done;
  if (global.total() == 0) return done;
  const auto padded = local.padded(global.rank());
  const bool withheld = compiling::withholds();
  auto own = cl::is_recording() || withheld ? cl::create_kernel(kernel.program.get(), kernel.name)
                                            : Ref<_cl_kernel>();
  auto* target = own ? own.get() : kernel.kernel.get();
  Binder binder(queue, kernel, target, args);
  const std::lock_guard lock(kernel.mutex);
  for (std::size_t i = 0; i < args.size(); ++i) binder.bind(i, args[i]);
  if (withheld) [[unlikely]] {
    compiling::withhold(kernel,
                        describe(queue, kernel, std::move(own), global, padded, binder, args));
    return done;
  }
  wait_for_others(queue, binder.other_queues());
  queue.state().recent.add(kernel.interned);
  finish_queues_before_exit_handlers();
  cl::enqueue(queue.get(), target, global.rank(), global.data(),
              padded.empty() ? nullptr : padded.data(), &done);
  if (own) [[unlikely]]
    cl::t_recorder->launch(describe(queue, kernel, std::move(own), global, padded, binder, args));
  binder.finish();
  if (t_launch_listener != nullptr) [[unlikely]]
    t_launch_listener->launched(kernel, global, padded, args);
  let_others_wait(done, queue, binder.other_queues());
  if (!std::exchange(kernel.was_launched, true) && compiling::in_turns()) queue.finish();
  if (profiling::enabled())
    profiling::record_launch(queue, kernel.interned, done, memory_bytes(args));
  log::debug(4, "launch {} global {} local {}", kernel.name, global, local);
  return done;
}

}  // namespace netcl
