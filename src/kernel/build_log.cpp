// Finds line numbers in compiler logs. Every OpenCL compiler at hand is a clang or prints like one:
// "<anything>:LINE:COLUMN: error: ...".
#include "kernel/build_log.h"

#include <cctype>
#include <set>
#include <vector>

#include "base/format.h"

namespace netcl {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The number that starts at `at` and ends with a colon, or 0.
std::size_t number_before_colon(std::string_view text, std::size_t& at) {
  std::size_t value = 0;
  const auto begin = at;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < 1000000)
    value = value * 10 + static_cast<std::size_t>(text[at++] - '0');
  if (at == begin || at >= text.size() || text[at] != ':') return 0;
  ++at;
  return value;
}

std::set<std::size_t> line_numbers(std::string_view log) {
  std::set<std::size_t> numbers;
  for (auto at = log.find(':'); at != std::string_view::npos; at = log.find(':', at)) {
    auto next = ++at;
    const auto line = number_before_colon(log, next);
    const auto column = line == 0 ? 0 : number_before_colon(log, next);
    if (column != 0) numbers.insert(line);
  }
  return numbers;
}

// Compilers count from a "#line 1", which KernelSpec puts before the user's own text.
std::string_view counted_part(std::string_view source) {
  constexpr std::string_view kRestart = "#line 1\n";
  const auto at = source.rfind(kRestart);
  return at == std::string_view::npos ? source : source.substr(at + kRestart.size());
}

}  // namespace

std::string lines_of_log(std::string_view log, std::string_view source) {
  constexpr std::size_t kMostLines = 30;
  const auto lines = split_lines(counted_part(source));
  const auto marked = line_numbers(log);
  std::set<std::size_t> shown;
  for (const auto number : marked)
    for (auto line = number > 1 ? number - 1 : number; line <= number + 1; ++line)
      if (line <= lines.size() && shown.size() < kMostLines) shown.insert(line);
  std::string text;
  for (const auto line : shown)
    text += fmt::format("{} {:4} | {}\n", marked.contains(line) ? '>' : ' ', line, lines[line - 1]);
  return text;
}

BuildError make_build_error(std::string_view what, const std::string& log, std::string_view source,
                            const std::string& device, const std::string& options) {
  const auto lines = lines_of_log(log, source);
  auto message = fmt::format(
      "[build] the OpenCL compiler must accept the program: {}\ndevice: {}\n"
      "options: {}\n{}",
      what, device, options, log.empty() ? "(the compiler said nothing)" : log);
  if (!lines.empty()) message += fmt::format("\nsource:\n{}", lines);
  return BuildError(message, log, device, options);
}

}  // namespace netcl
