// Damages bytes the way accidents and attackers do, the same for the same seed: bits turned over,
// cut off, numbers replaced, bytes put in or taken out.
#pragma once

#include <algorithm>
#include <random>
#include <string>

namespace netcl::test {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string operator()(std::string text) {
    for (auto n = below(3) + 1; n > 0; --n) text = once(std::move(text));
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % std::max<std::size_t>(bound, 1); }

  std::string once(std::string text) {
    if (text.empty()) return text;
    // Half of the changes hit the beginning, where the headers are.
    const auto at =
        below(2) == 0 ? below(std::min<std::size_t>(text.size(), 128)) : below(text.size());
    const auto room = std::min<std::size_t>(8, text.size() - at);
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, below(40), static_cast<char>(below(256)));
        break;
      case 3:
        text.erase(at, below(40));
        break;
      case 4:  // a length or a size that is far too large
        for (std::size_t i = 0; i < room; ++i) text[at + i] = '\xff';
        break;
      case 5:
        for (std::size_t i = 0; i < room; ++i) text[at + i] = '\0';
        break;
      default:
        text[at] = "0123456789{}[](),:\"'"[below(20)];
    }
    return text;
  }

  std::mt19937 random_;
};

}  // namespace netcl::test
