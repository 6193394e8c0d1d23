// A language model of characters: learns from a text file what comes next, then goes on writing.
//
//   example_char_gpt [FILE [STEPS]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "netcl/netcl.h"

namespace {

using netcl::Tensor;
namespace nn = netcl::nn;
namespace ops = netcl::ops;

constexpr std::int64_t kContext = 32, kBatch = 16;

const char* const kVerse =
    "one two three four five six seven eight nine ten, and back again: "
    "ten nine eight seven six five four three two one. ";

std::string read_text(int argc, char** argv) {
  if (argc < 2) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += kVerse;
    return text;
  }
  std::ifstream file(argv[1], std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Pieces of the text from random places, and the same moved by one character.
struct Pieces {
  Tensor given, next;
};
Pieces random_pieces(const std::vector<std::int64_t>& text, std::uint64_t seed) {
  const auto places = Tensor::random({kBatch}, seed).to_vector<double>();
  std::vector<std::int64_t> given, next;
  for (const double place : places) {
    const auto room = static_cast<double>(text.size() - kContext - 1);
    const auto start = text.begin() + static_cast<std::ptrdiff_t>(place * room);
    given.insert(given.end(), start, start + kContext);
    next.insert(next.end(), start + 1, start + kContext + 1);
  }
  return {Tensor::from_host({given, netcl::Shape{kBatch, kContext}}), Tensor::from_host(next)};
}

}  // namespace

int main(int argc, char** argv) {
  const auto text = read_text(argc, argv);
  const int steps = argc > 2 ? std::atoi(argv[2]) : 120;
  if (text.size() < 4 * kContext) {
    std::fprintf(stderr, "the text must have at least %d characters\n", int{4 * kContext});
    return 1;
  }
  std::string alphabet = text;
  std::sort(alphabet.begin(), alphabet.end());
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  std::vector<std::int64_t> indices;
  for (const char c : text) indices.push_back(static_cast<std::int64_t>(alphabet.find(c)));

  nn::manual_seed(1);
  nn::GPT model({.vocabulary = static_cast<std::int64_t>(alphabet.size()),
                 .context = kContext,
                 .layers = 2,
                 .heads = 2,
                 .width = 32});
  std::printf("%zu characters, %zu different, %lld parameters\n", text.size(), alphabet.size(),
              static_cast<long long>(model.parameter_count()));
  netcl::optim::AdamW adam(model.parameters(), {.lr = 3e-3, .weight_decay = 0.01});
  double first = 0, last = 0;
  for (int step = 0; step <= steps; ++step) {
    const auto [given, next] = random_pieces(indices, static_cast<std::uint64_t>(step));
    netcl::Tape tape;
    const auto logits = model(given).reshape({kBatch * kContext, -1});
    const auto loss = nn::cross_entropy(logits, next);
    tape.backward(loss, {}, {.retain = false});
    netcl::optim::clip_grad_norm(model.parameters(), 1);
    adam.step();
    adam.zero_grad();
    if (step % 20 != 0 && step != steps) continue;
    last = loss.item();
    if (step == 0) first = last;
    std::printf("step %4d  loss %.3f\n", step, last);
  }

  std::string written;
  for (const auto index : model.generate({indices.begin(), indices.begin() + 8}, 60, 0.5, 1))
    written += alphabet[static_cast<std::size_t>(index)];
  std::printf("%s\n", written.c_str());
  return last < first ? 0 : 1;
}
