// The side of the protocol that measures (docs/performance.md): netcl's own workers and the peers
// in bench/peers answer with it.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace netcl::bench {

// A case that is ready to be computed.
struct Work {
  std::function<void()> call;  // begins one repetition
  // Some elements of a result; calls the work where nothing was called yet.
  std::function<std::vector<double>()> probe;
  std::function<void()> finish = [] {};  // waits for all repetitions
};

struct Answerer {
  std::string name, device;
  std::vector<std::string> contenders = {""};
  // Throws where a contender does not do a case; the message is the reason.
  std::function<Work(const std::string& parameters, const std::string& contender)> prepare;
  std::function<double()> memory;  // bytes held now; may be empty
  // What it had to do without until now; may be empty.
  std::function<std::vector<std::string>()> remarks;
};

void answer(const Answerer& answerer, std::istream& requests, std::ostream& answers);

// The values that every contender computes with: the same function of place and seed everywhere,
// in [-0.5, 0.5) times `scale`.
std::vector<float> input_values(std::size_t count, std::uint32_t seed, double scale = 1);
// The elements of a result that are compared.
std::vector<double> probe_of(const float* values, std::size_t count);

}  // namespace netcl::bench
