// netcl as a contender.
#include "base/format.h"
#include "bench/work.h"
#include "netcl/kernel_selector.h"
#include "netcl/memory.h"

namespace netcl::bench {

void serve(const std::string& selector, std::istream& requests, std::ostream& answers) {
  const auto device = manager().default_device(selector);
  const bool is_cpu = device.backend == "cpu";
  Answerer answerer;
  answerer.name = is_cpu ? "netcl cpu" : "netcl opencl";
  answerer.device = device.device_name;
  answerer.prepare = [&](const std::string& parameters, const std::string&) {
    if (!is_cpu) get_persistent_pool(device.queue)->clear();
    return prepare(device, parameters);
  };
  if (!is_cpu) {
    answerer.memory = [&] {
      const auto stats = get_persistent_pool(device.queue)->get_stats();
      return static_cast<double>(stats.bytes_in_use + stats.bytes_cached);
    };
    // A slower kernel has taken the place of one that does not compile: not what is to be measured.
    answerer.remarks = [&] {
      std::vector<std::string> remarks;
      for (const auto& [kernel, reason] :
           get_kernel_selector().struck_out(device_profile(device.queue)))
        remarks.push_back(fmt::format("{} is not used: {}", kernel, reason));
      return remarks;
    };
  }
  answer(answerer, requests, answers);
}

}  // namespace netcl::bench
