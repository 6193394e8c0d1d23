// Copies of real arguments and inventions for missing ones.
#include "tune/scratch.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "cl/state.h"
#include "kernel/launch.h"
#include "netcl/capabilities.h"
#include "tune/compare.h"

namespace netcl::tune {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
// Results larger than this are compared in pieces: reading gigabytes back for every candidate
// would take longer than measuring it.
constexpr std::size_t kComparedBytes = std::size_t{64} << 20;
constexpr std::size_t kPieces = 64;

std::string name_of_parameter(const detail::KernelState& kernel, std::size_t index) {
  const auto& name = kernel.parameters[index].name;
  return name.empty() ? fmt::format("argument {}", index) : fmt::format("parameter '{}'", name);
}

// The number behind a vector type's name: 4 of "float4*", 1 of "float*"; three take four's room.
std::size_t width_of(std::string_view type) {
  std::size_t width = 0, unit = 1;
  for (auto c = type.rbegin(); c != type.rend(); ++c) {
    if (*c == '*' || *c == ' ') continue;
    if (*c < '0' || *c > '9') break;
    width += static_cast<std::size_t>(*c - '0') * unit;
    unit *= 10;
  }
  return width == 0 ? 1 : width == 3 ? 4 : std::min<std::size_t>(width, 16);
}

// Structs and 16-bit integers have no dtype: 16 bytes hold what they usually are.
std::size_t element_bytes(const std::string& type) {
  const auto element = element_type(type);
  return (element ? size_of(*element) : 16) * width_of(type);
}

// Values between -1 and 1 that repeat late: equal ones would hide a wrong order.
template <class T>
void fill_with_numbers(std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const T value(static_cast<float>((i * 7919) % 2003) / 1001.0F - 1.0F);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

std::vector<std::byte> invented_content(std::size_t bytes, std::optional<DType> type) {
  std::vector<std::byte> content(bytes);
  if (type == DType::float16) fill_with_numbers<float16_t>(content);
  if (type == DType::float32) fill_with_numbers<float>(content);
  if (type == DType::float64) fill_with_numbers<double>(content);
  return content;
}

}  // namespace

ScratchArgs::ScratchArgs(const Queue& queue, const detail::KernelState& kernel,
                         std::span<const KernelArg> args)
    : queue_(queue) {
  check<ArgumentError>(args.size() == kernel.parameters.size(),
                       "[tune {}] the number of arguments must be {}: {}", kernel.name,
                       kernel.parameters.size(), args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto& arg = args[i];
    if (arg.queue() != nullptr && !(*arg.queue() == queue)) arg.queue()->finish();
    if (arg.kind() == KernelArg::Kind::local) limit_items(arg.size(), kernel.parameters[i].type);
    if (may_write(kernel, i, arg) && arg.size() > 0 && find_copy(arg) == nullptr)
      add_copy(kernel, i, arg);
  }
  for (const auto& arg : args) {
    // A copy also for what the kernel only reads, where it is memory that it writes elsewhere.
    const auto* copy = find_copy(arg);
    const auto& buffer = copy != nullptr ? &copy->lease.buffer() : arg.buffer();
    const auto offset = copy != nullptr ? 0 : arg.offset();
    if (buffer == nullptr || (copy == nullptr && !arg.dtype()))
      args_.push_back(arg);
    else if (arg.dtype())
      args_.push_back(KernelArg::memory(*buffer, offset, arg.size(), *arg.dtype(), queue));
    else
      args_.emplace_back(copy->lease);
  }
}

const ScratchArgs::Copy* ScratchArgs::find_copy(const KernelArg& arg) const {
  if (arg.kind() != KernelArg::Kind::memory) return nullptr;
  for (const auto& copy : copies_)
    if (copy.origin.get() == arg.buffer()->get() && copy.origin_offset == arg.offset() &&
        copy.bytes == arg.size())
      return &copy;
  return nullptr;
}

void ScratchArgs::add_copy(const detail::KernelState& kernel, std::size_t index,
                           const KernelArg& arg) {
  check<ArgumentError>(static_cast<bool>(*arg.buffer()),
                       "[tune {}, {}] the memory must be that of an OpenCL device", kernel.name,
                       name_of_parameter(kernel, index));
  const auto type = arg.dtype() ? arg.dtype() : element_type(kernel.parameters[index].type);
  copies_.push_back({get_persistent_pool(queue_)->allocate(arg.size()), *arg.buffer(), arg.offset(),
                     arg.size(), type, true});
}

ScratchArgs::ScratchArgs(const Queue& queue, const detail::KernelState& kernel,
                         const WorkSize& global)
    : queue_(queue) {
  check<ArgumentError>(kernel.parameters_known || kernel.parameters.empty(),
                       "[tune {}] arguments must be given: the driver does not tell the types of "
                       "the parameters",
                       kernel.name);
  values_.reserve(kernel.parameters.size());
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto& parameter = kernel.parameters[i];
    if (parameter.address_space == "value") {
      args_.push_back(invented_value(kernel, i, global));
    } else if (parameter.address_space == "local") {
      const auto items = std::min<std::size_t>(kernel.limits.work_group_size, 1024);
      const auto room = device_profile(queue).local_mem_size / 2 / kernel.parameters.size();
      const auto bytes = std::min<std::size_t>(items * element_bytes(parameter.type), room);
      limit_items(bytes, parameter.type);
      args_.push_back(KernelArg::local(bytes));
    } else {
      add_memory(parameter, global);
    }
  }
}

void ScratchArgs::add_memory(const KernelParameterInfo& parameter, const WorkSize& global) {
  const auto& profile = device_profile(queue_);
  const auto wanted = std::max(global.total() * element_bytes(parameter.type), kLeastBytes);
  const auto bytes = std::min<std::size_t>(wanted, profile.max_mem_alloc_size);
  const auto type = element_type(parameter.type);
  const auto content = invented_content(bytes, type);
  const auto pool = get_persistent_pool(queue_);
  const auto fresh = [&] {
    auto lease = pool->allocate(bytes);
    cl::write(queue_.get(), lease.buffer(), 0, bytes, content.data(), true);
    return lease;
  };
  copies_.push_back({fresh(), Buffer(), 0, bytes, type, false});
  if (parameter.writable) {
    // What was just made stays as the origin that restore() copies from.
    const Buffer origin = copies_.back().lease.buffer();
    copies_.push_back({pool->allocate(bytes), origin, 0, bytes, type, true});
  }
  args_.emplace_back(copies_.back().lease);
}

std::size_t ScratchArgs::next_integer(const WorkSize& global) {
  const auto position = integers_++;
  if (position < global.rank()) return global[position];
  if (global.rank() == 2 && position == 2) return std::min(global[0], global[1]);
  return 1;
}

KernelArg ScratchArgs::invented_value(const detail::KernelState& kernel, std::size_t index,
                                      const WorkSize& global) {
  const auto& type = kernel.parameters[index].type;
  const auto element = element_type(type);
  const bool is_short = type == "short" || type == "ushort";
  check<ArgumentError>(element || is_short,
                       "[tune {}, {}] an argument must be given: netcl cannot invent a {}",
                       kernel.name, name_of_parameter(kernel, index), type);
  if (width_of(type) > 1) {
    values_.emplace_back(size_of(*element) * width_of(type));
    return KernelArg::by_value(values_.back().data(), values_.back().size());
  }
  if (element && is_floating(*element)) return 1.0;
  const auto size = next_integer(global);
  // A size that the type cannot hold would be refused at the launch.
  const bool is_small = is_short || size_of(*element) == 1;
  return std::min<std::size_t>(size, is_small ? 127 : 0x7fffffff);
}

void ScratchArgs::limit_items(std::size_t local_bytes, const std::string& type) {
  max_items_ = std::min(max_items_, std::max<std::size_t>(local_bytes / element_bytes(type), 1));
}

bool ScratchArgs::has_outputs() const {
  return std::any_of(copies_.begin(), copies_.end(),
                     [](const Copy& copy) { return copy.is_output; });
}

void ScratchArgs::restore() const {
  for (const auto& copy : copies_)
    if (copy.is_output)
      cl::copy(queue_.get(), copy.origin, copy.origin_offset, copy.lease.buffer(), 0, copy.bytes);
}

Outputs ScratchArgs::read() const {
  Outputs outputs;
  for (const auto& copy : copies_) {
    if (!copy.is_output) continue;
    auto& bytes = outputs.emplace_back(std::min(copy.bytes, kComparedBytes));
    const auto pieces = copy.bytes <= kComparedBytes ? 1 : kPieces;
    const auto piece = bytes.size() / pieces;
    for (std::size_t i = 0; i < pieces; ++i) {
      // Multiples of 64 bytes, so that no element is cut.
      const auto from = pieces == 1 ? 0 : (copy.bytes - piece) / (pieces - 1) * i / 64 * 64;
      cl::read(queue_.get(), copy.lease.buffer(), from, piece, bytes.data() + i * piece, true);
    }
  }
  return outputs;
}

bool ScratchArgs::same(const Outputs& expected, const Outputs& actual) const {
  std::size_t i = 0;
  for (const auto& copy : copies_) {
    if (!copy.is_output) continue;
    if (!same_result(expected[i], actual[i], copy.type)) return false;
    ++i;
  }
  return true;
}

}  // namespace netcl::tune
