// The stream of seeds behind initial weights and dropout.
#include <mutex>

#include "cl/recording.h"
#include "netcl/nn.h"

namespace netcl::nn {
namespace {

struct Source {
  std::mutex mutex;
  RandomState state;
};

Source& source() {
  static auto* const instance = new Source();
  return *instance;
}

// Seeds that are near each other must not give streams that look alike (the finaliser of
// SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

void manual_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

RandomState random_state() {
  auto& from = source();
  const std::lock_guard lock(from.mutex);
  return from.state;
}

void set_random_state(RandomState state) {
  auto& to = source();
  const std::lock_guard lock(to.mutex);
  to.state = state;
}

std::uint64_t next_seed() {
  cl::changes_on_host("next_seed() draws another seed at each call");
  auto& from = source();
  const std::lock_guard lock(from.mutex);
  const auto draw = ++from.state.draws;
  return mixed(mixed(from.state.seed) + draw * 0x9e3779b97f4a7c15ULL);
}

}  // namespace netcl::nn
