// The CPU that this process runs on, described as if a driver had been asked.
#pragma once

#include "netcl/capabilities.h"

namespace netcl::detail {

// The queries behind the profile of the CPU backend.
DeviceQueries host_queries();

// The fields of the first processor in the text of /proc/cpuinfo; empty where it names none.
struct CpuInfo {
  std::string model, vendor, flags;
  double mhz = 0;
};
CpuInfo parse_cpuinfo(std::string_view text);

}  // namespace netcl::detail
