// netcl as a contender.
#include "bench/work.h"
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
  if (!is_cpu)
    answerer.memory = [&] {
      const auto stats = get_persistent_pool(device.queue)->get_stats();
      return static_cast<double>(stats.bytes_in_use + stats.bytes_cached);
    };
  answer(answerer, requests, answers);
}

}  // namespace netcl::bench
