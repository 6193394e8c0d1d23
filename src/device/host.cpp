// Reads what Linux tells about the processor. Elsewhere, or in a container that hides it, the
// values stay at what every CPU can do.
#include "device/host.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <thread>

#include "device/family.h"

namespace netcl::detail {
namespace {

constexpr std::uint64_t kTypeCpu = 2;  // CL_DEVICE_TYPE_CPU

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

void take(CpuInfo& info, std::string_view key, std::string_view value) {
  if (key == "model name" || key == "Processor") info.model = value;
  if (key == "vendor_id" || key == "CPU implementer") info.vendor = value;
  if (key == "flags" || key == "Features") info.flags = value;
  if (key == "cpu MHz") std::from_chars(value.data(), value.data() + value.size(), info.mhz);
}

std::string read_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint32_t float_width(std::string_view flags) {
  if (contains_word(flags, "avx512f")) return 16;
  return contains_word(flags, "avx") ? 8 : 4;
}

std::uint64_t positive(long value) { return value > 0 ? static_cast<std::uint64_t>(value) : 0; }

}  // namespace

CpuInfo parse_cpuinfo(std::string_view text) {
  CpuInfo info;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto colon = line.find(':');
    // A blank line ends the first processor; the others repeat it.
    if (trimmed(line).empty() && !info.model.empty()) break;
    if (colon != std::string_view::npos)
      take(info, trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return info;
}

DeviceQueries host_queries() {
  const auto info = parse_cpuinfo(read_file("/proc/cpuinfo"));
  DeviceQueries queries;
  queries.name = info.model.empty() ? "CPU" : info.model;
  queries.vendor = info.vendor;
  queries.platform_name = "netcl CPU backend";
  queries.type_bits = kTypeCpu;
  queries.compute_units = std::max(1u, std::thread::hardware_concurrency());
  queries.clock_mhz = static_cast<std::uint32_t>(info.mhz);
  queries.address_bits = 8 * sizeof(void*);
  queries.base_align_bits = 8 * 64;
  queries.max_work_group_size = 1;
  queries.max_work_item_sizes = {1, 1, 1};
  const auto page = positive(sysconf(_SC_PAGESIZE));
  queries.global_mem_size = page * positive(sysconf(_SC_PHYS_PAGES));
  queries.max_mem_alloc_size = queries.global_mem_size;
  queries.host_unified_memory = true;
  queries.cache_line_size = 64;
  queries.preferred_width_float = queries.native_width_float = float_width(info.flags);
  queries.preferred_width_double = queries.preferred_width_float / 2;
  queries.double_config = 0x3f;  // everything that IEEE asks for
  return queries;
}

}  // namespace netcl::detail
