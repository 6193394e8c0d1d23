// The worker: measures what it is asked for and answers in lines of JSON. Each request is one turn
// of one case, so that the contenders can take turns.
#include <algorithm>
#include <chrono>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "base/check.h"
#include "bench/work.h"
#include "netcl/memory.h"
#include "netcl/version.h"

namespace netcl::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Calls that follow each other without a wait until a sample is this long, so that the wait at its
// end does not count as a cost of the call.
constexpr double kSample = 4e-3;

double seconds_of(const Queue& queue, const Work& work, std::int64_t calls) {
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) work.call();
  queue.finish();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Worker {
 public:
  explicit Worker(const std::string& selector) : device_(manager().default_device(selector)) {}

  json greeting() const {
    return {{"name", device_.backend == "cpu" ? "netcl cpu" : "netcl opencl"},
            {"contenders", {""}},
            {"device", device_.device_name},
            {"threads", std::thread::hardware_concurrency()},
            {"version", NETCL_VERSION}};
  }

  json answer(const std::string& line) {
    try {
      const auto request = json::parse(line);
      const auto parameters = request.at("case").dump();
      if (request.value("once", false)) return once(parameters);
      return measure(parameters, request.value("seconds", 0.1));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      return {{"declined", error.what()}};
    }
  }

 private:
  json once(const std::string& parameters) {
    const auto work = prepare(device_, parameters);
    return {{"seconds", {seconds_of(device_.queue, work, 1)}}};
  }

  json measure(const std::string& parameters, double budget) {
    if (parameters != parameters_) begin(parameters);
    seconds_of(device_.queue, work_, 1);  // the turn of another contender has emptied the caches
    std::vector<double> samples;
    const auto start = Clock::now();
    while (samples.size() < 3 ||
           std::chrono::duration<double>(Clock::now() - start).count() < budget)
      samples.push_back(seconds_of(device_.queue, work_, calls_) / static_cast<double>(calls_));
    json result = {{"seconds", samples}, {"probe", probe_}};
    if (device_.backend != "cpu") {
      const auto stats = get_persistent_pool(device_.queue)->get_stats();
      result["memory"] = stats.bytes_in_use + stats.bytes_cached;
    }
    return result;
  }

  void begin(const std::string& parameters) {
    parameters_.clear();
    work_ = {};
    if (device_.backend != "cpu") get_persistent_pool(device_.queue)->clear();
    work_ = prepare(device_, parameters);
    probe_ = work_.probe();
    for (int i = 0; i < 3; ++i) seconds_of(device_.queue, work_, 1);  // compiles, tunes, captures
    double once = 1e9;
    for (int i = 0; i < 3; ++i) once = std::min(once, seconds_of(device_.queue, work_, 1));
    calls_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(kSample / once), 1, 1000);
    parameters_ = parameters;
  }

  DeviceHandle device_;
  std::string parameters_;
  Work work_;
  std::vector<double> probe_;
  std::int64_t calls_ = 1;
};

}  // namespace

void serve(const std::string& device, std::istream& requests, std::ostream& answers) {
  Worker worker(device);
  answers << worker.greeting().dump() << std::endl;
  for (std::string line; std::getline(requests, line);)
    answers << worker.answer(line).dump() << std::endl;
}

}  // namespace netcl::bench
