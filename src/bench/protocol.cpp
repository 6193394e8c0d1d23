#include "bench/protocol.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "netcl/error.h"

namespace netcl::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Calls that follow each other without a wait until a sample is this long, so that the wait at its
// end does not count as a cost of the call.
constexpr double kSample = 4e-3;
constexpr std::size_t kProbes = 16;

double seconds_of(const Work& work, std::int64_t calls) {
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) work.call();
  work.finish();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One case of one contender, measured turn by turn.
struct Ready {
  std::string parameters;
  Work work;
  std::vector<double> probe;
  std::int64_t calls = 1;

  Ready(std::string text, Work prepared) : parameters(std::move(text)), work(std::move(prepared)) {
    probe = work.probe();
    for (int i = 0; i < 3; ++i) seconds_of(work, 1);  // compiles, tunes, captures
    double once = 1e9;
    for (int i = 0; i < 3; ++i) once = std::min(once, seconds_of(work, 1));
    calls = std::clamp<std::int64_t>(static_cast<std::int64_t>(kSample / once), 1, 1000);
  }

  std::vector<double> turn(double budget) const {
    seconds_of(work, 1);  // the turn of another contender has emptied the caches
    std::vector<double> samples;
    const auto start = Clock::now();
    while (samples.size() < 3 ||
           std::chrono::duration<double>(Clock::now() - start).count() < budget)
      samples.push_back(seconds_of(work, calls) / static_cast<double>(calls));
    return samples;
  }
};

class Session {
 public:
  explicit Session(const Answerer& answerer) : answerer_(answerer) {}

  json answer(const std::string& line) {
    try {
      const auto request = json::parse(line);
      const auto parameters = request.at("case").dump();
      const auto contender = request.value("contender", answerer_.contenders.front());
      if (request.value("once", false)) {
        const auto work = answerer_.prepare(parameters, contender);
        return {{"seconds", {seconds_of(work, 1)}}};
      }
      return measure(parameters, contender, request.value("seconds", 0.1));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      return {{"declined", error.what()}};
    }
  }

 private:
  json measure(const std::string& parameters, const std::string& contender, double budget) {
    auto found = ready_.find(contender);
    if (found == ready_.end() || found->second.parameters != parameters) {
      if (found != ready_.end()) ready_.erase(found);
      found = ready_.emplace(contender, Ready(parameters, answerer_.prepare(parameters, contender)))
                  .first;
    }
    json result = {{"seconds", found->second.turn(budget)}, {"probe", found->second.probe}};
    if (answerer_.memory) result["memory"] = answerer_.memory();
    if (answerer_.remarks)
      if (const auto remarks = answerer_.remarks(); !remarks.empty()) result["remarks"] = remarks;
    return result;
  }

  const Answerer& answerer_;
  std::map<std::string, Ready> ready_;
};

}  // namespace

void answer(const Answerer& answerer, std::istream& requests, std::ostream& answers) {
  answers << json{{"name", answerer.name},
                  {"contenders", answerer.contenders},
                  {"device", answerer.device},
                  {"threads", std::thread::hardware_concurrency()}}
                 .dump()
          << std::endl;
  Session session(answerer);
  for (std::string line; std::getline(requests, line);)
    answers << session.answer(line).dump() << std::endl;
}

std::vector<float> input_values(std::size_t count, std::uint32_t seed, double scale) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 0x9E3779B1u + seed * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 13;
    values[i] = (static_cast<float>(h >> 8) / 16777216.0f - 0.5f) * static_cast<float>(scale);
  }
  return values;
}

std::vector<double> probe_of(const float* values, std::size_t count) {
  std::vector<double> probe;
  for (std::size_t i = 0; i < kProbes && count > 0; ++i)
    probe.push_back(values[i * (count - 1) / (kProbes - 1)]);
  return probe;
}

}  // namespace netcl::bench
