// Philox counters: (block, transform, sample) under a key that mixes seed and epoch, and a tag that
// keeps shuffling apart from transforms.
#include <numeric>

#include "base/check.h"
#include "netcl/data.h"
#include "tensor/random.h"

namespace netcl::data {
namespace {

using Block = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

Key split(std::uint64_t value) {
  return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
}

// A key per seed and epoch: one block of the generator itself, so that near numbers are far apart.
Key key_of(std::uint64_t seed, std::uint64_t epoch, std::uint32_t tag) {
  const auto [low, high] = split(epoch);
  const Block block = philox({low, high, tag, 0x6e65746cu}, split(seed));
  return {block[0], block[1]};
}

constexpr std::uint32_t kTransforms = 1, kShuffle = 2;

// Draws below 2^64 mod bound are left out: without them each remainder is equally likely.
template <class Next>
std::uint64_t draw_below(std::uint64_t bound, Next&& next) {
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t draw = next();
  while (draw < unfair) draw = next();
  return draw % bound;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample,
                           std::uint32_t transform)
    : seed_(seed), epoch_(epoch), sample_(sample), transform_(transform) {}

std::uint32_t RandomStream::next() {
  if (used_ == 4) {
    const auto [low, high] = split(sample_);
    const Block block =
        philox({block_++, transform_, low, high}, key_of(seed_, epoch_, kTransforms));
    std::copy(block.begin(), block.end(), words_);
    used_ = 0;
  }
  return words_[used_++];
}

double RandomStream::uniform() {
  const auto high = static_cast<std::uint64_t>(next() >> 5);
  return static_cast<double>(high << 26 | next() >> 6) * 0x1p-53;
}

std::uint32_t RandomStream::below(std::uint32_t bound) {
  check<ArgumentError>(bound > 0, "[below] the bound must not be 0");
  return static_cast<std::uint32_t>(draw_below(bound, [&] {
    const auto high = static_cast<std::uint64_t>(next());
    return high << 32 | next();
  }));
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  check<ArgumentError>(count >= 0, "[shuffled] the count must not be negative: {}", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto key = key_of(seed, epoch, kShuffle);
  std::uint64_t counter = 0;
  Block words{};
  const auto next = [&] {
    const bool fresh = counter % 2 == 0;
    const auto [low, high] = split(counter / 2);
    if (fresh) words = philox({low, high, 0, 0}, key);
    ++counter;
    const auto at = fresh ? 0u : 2u;
    return static_cast<std::uint64_t>(words[at]) << 32 | words[at + 1];
  };
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[draw_below(i, next)]);
  return order;
}

}  // namespace netcl::data
