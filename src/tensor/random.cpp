// The streams: 32-bit types take word i % 4 of block i / 4, float64 takes two words. Only exact
// integer steps and single multiplications and additions are used (no library functions, no fused
// multiply-add), because those have the same result on every IEEE device.
#include "tensor/random.h"

#include <algorithm>
#include <bit>

#include "base/parallel.h"

#define __constant static const
#include "tensor/kernels/normal_table.cl"
#undef __constant

namespace netcl {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;

float uniform_from(std::uint32_t word, int bits) {
  return static_cast<float>(word >> (32 - bits)) / static_cast<float>(1u << bits);
}

double uniform_from(std::uint32_t high, std::uint32_t low) {
  const auto bits = (static_cast<std::uint64_t>(high >> 5) << 26) | (low >> 6);
  return static_cast<double>(bits) * 0x1p-53;
}

// Where a word falls in the table of the inverse distribution: a piece, and the bits that say how
// far into it. The top bit is the sign; the others count down into the tail, where each octave has
// eight pieces, so the pieces are as fine as the tail is thin.
struct Place {
  std::uint32_t piece;
  std::uint32_t rest;  // the bits below the piece
  int rest_bits;
};

Place place_of(std::uint32_t magnitude) {
  if (magnitude < 8) return {magnitude, 0, 0};
  const int exponent = 31 - std::countl_zero(magnitude);
  const int rest_bits = exponent - 3;
  const auto piece =
      8u + static_cast<std::uint32_t>(rest_bits) * 8u + ((magnitude >> rest_bits) & 7u);
  return {piece, magnitude & ((1u << rest_bits) - 1u), rest_bits};
}

template <class F>
F cubic(const float* c, F t) {
  F value = static_cast<F>(c[3]) * t;
  value = value + static_cast<F>(c[2]);
  value = value * t;
  value = value + static_cast<F>(c[1]);
  value = value * t;
  return value + static_cast<F>(c[0]);
}

// Exact: a power of two as a float, from its exponent field.
float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
}

float normal_from(std::uint32_t word) {
  const auto place = place_of(word & 0x7fffffffu);
  // 24 bits at most, so that the conversion to float is exact.
  const int drop = std::max(place.rest_bits - 24, 0);
  const auto t = static_cast<float>(static_cast<std::int32_t>(place.rest >> drop)) *
                 power_of_two(drop - place.rest_bits);
  const auto value = cubic(kNormalTable + 4 * place.piece, t);
  // The sign by its bit: nobody could foresee a branch.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (word & 0x80000000u));
}

double normal_from(std::uint32_t word, std::uint32_t low) {
  const auto place = place_of(word & 0x7fffffffu);
  const auto t = (static_cast<double>(place.rest) + static_cast<double>(low) * 0x1p-32) /
                 static_cast<double>(1u << place.rest_bits);
  const auto value = cubic(kNormalTable + 4 * place.piece, t);
  return (word >> 31) != 0 ? -value : value;
}

std::array<std::uint32_t, 4> block_of(std::uint64_t index, std::uint64_t seed) {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

template <class T>
void store(T* to, std::uint32_t word, Distribution distribution) {
  // A uniform value has no more bits than T keeps: rounding up could otherwise give 1.
  constexpr int kBits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, float16_t> ? 11 : 8;
  *to = T(distribution == Distribution::normal ? normal_from(word) : uniform_from(word, kBits));
}

constexpr std::int64_t kGrain = 4096;  // blocks below which threads do not pay

// Calls f(block, words) for the blocks of so many elements, on several threads.
template <class F>
void for_each_block(std::int64_t count, std::int64_t per_block, std::uint64_t seed, const F& f) {
  parallel_for((count + per_block - 1) / per_block, kGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto block = begin; block < end; ++block)
                   f(block, block_of(static_cast<std::uint64_t>(block), seed));
               });
}

template <class T>
void fill_single(T* to, std::int64_t count, std::uint64_t seed, Distribution distribution) {
  for_each_block(count, 4, seed, [=](std::int64_t block, const auto& words) {
    for (std::int64_t i = 4 * block; i < std::min(4 * block + 4, count); ++i)
      store(to + i, words[static_cast<std::size_t>(i % 4)], distribution);
  });
}

void fill_double(double* to, std::int64_t count, std::uint64_t seed, Distribution distribution) {
  for_each_block(count, 2, seed, [=](std::int64_t block, const auto& words) {
    for (std::int64_t i = 2 * block; i < std::min(2 * block + 2, count); ++i) {
      const auto word = static_cast<std::size_t>(2 * (i % 2));
      to[i] = distribution == Distribution::normal ? normal_from(words[word], words[word + 1])
                                                   : uniform_from(words[word], words[word + 1]);
    }
  });
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const auto product0 = static_cast<std::uint64_t>(kMultiplier0) * counter[0];
    const auto product1 = static_cast<std::uint64_t>(kMultiplier1) * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

void host_random(void* to, std::int64_t count, DType dtype, std::uint64_t seed,
                 Distribution distribution) {
  switch (dtype) {
    case DType::float16:
      return fill_single(static_cast<float16_t*>(to), count, seed, distribution);
    case DType::bfloat16:
      return fill_single(static_cast<bfloat16_t*>(to), count, seed, distribution);
    case DType::float64:
      return fill_double(static_cast<double*>(to), count, seed, distribution);
    default:
      return fill_single(static_cast<float*>(to), count, seed, distribution);
  }
}

}  // namespace netcl
