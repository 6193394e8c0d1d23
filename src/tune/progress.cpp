// The bar is one line that is written over.
#include "tune/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/format.h"

namespace netcl::tune {
namespace {

constexpr std::size_t kWidth = 20, kNameWidth = 40;

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

ProgressBar::ProgressBar(std::size_t total, bool wanted)
    : total_(total), enabled_(wanted && total > 0 && ::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (open_) std::fputc('\n', stderr);
}

void ProgressBar::show(std::size_t done, const std::string& name, double seconds) {
  if (!enabled_) return;
  put("\r\033[K" + line(done, total_, name, seconds));  // clears what a longer name left
  open_ = true;
}

std::string ProgressBar::line(std::size_t done, std::size_t total, const std::string& name,
                              double seconds) {
  const auto filled = total == 0 ? kWidth : std::min(kWidth, done * kWidth / total);
  return fmt::format("[{}{}] {:>{}}/{} {:6.1f} s  {}", std::string(filled, '#'),
                     std::string(kWidth - filled, '-'), done, std::to_string(total).size(), total,
                     seconds, name.substr(0, kNameWidth));
}

}  // namespace netcl::tune
