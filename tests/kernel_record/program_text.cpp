#include "kernel_record/program_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/hash.h"

namespace netcl::record {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where `word` stands by itself, from `at` on.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t at) {
  for (at = text.find(word, at); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end >= text.size() || !is_word(text[end])))
      return at;
  }
  return std::string_view::npos;
}

// Behind the bracket that closes the one at `at`.
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return text.size();
}

std::size_t count_parameters(std::string_view list) {
  const auto has_text = [](std::string_view part) {
    return std::any_of(part.begin(), part.end(),
                       [](unsigned char c) { return std::isspace(c) == 0; });
  };
  if (!has_text(list) || (find_word(list, "void", 0) != std::string_view::npos &&
                          list.find('*') == std::string_view::npos))
    return 0;
  int depth = 0;
  std::size_t count = 1;
  for (const char c : list) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) ++count;
  }
  return count;
}

// "reqd_work_group_size(8, 8, 1)" in the attributes before a kernel's name.
std::array<std::size_t, 3> required_size(std::string_view attributes) {
  std::array<std::size_t, 3> sizes{};
  auto at = attributes.find("reqd_work_group_size");
  for (auto& size : sizes) {
    at = attributes.find_first_of("0123456789", std::min(at, attributes.size()));
    if (at == std::string_view::npos) return {};
    const auto* end = attributes.data() + attributes.size();
    const auto parsed = std::from_chars(attributes.data() + at, end, size);
    at = static_cast<std::size_t>(parsed.ptr - attributes.data());
  }
  return sizes;
}

std::string read_all(std::FILE* stream) {
  std::string text;
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, stream)) > 0;) text.append(part, n);
  return text;
}

// Options of an OpenCL compiler that a preprocessor of C knows too.
std::string definitions(std::string_view options) {
  std::string text;
  for (std::size_t at = 0; at < options.size();) {
    const auto end = std::min(options.find(' ', at), options.size());
    const auto word = options.substr(at, end - at);
    if (word.starts_with("-D")) text.append(" '").append(word).append("'");
    at = end + 1;
  }
  return text;
}

std::string preprocess(const std::string& path, std::string_view options) {
  const auto command =
      "c++ -E -P -x c -undef -w -D__OPENCL_VERSION__=120 -D__OPENCL_C_VERSION__=120"
      " -Dcl_khr_fp64=1 -Dcl_khr_fp16=1" +
      definitions(options) + " '" + path + "'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                             ::pclose);
  return pipe == nullptr ? std::string() : read_all(pipe.get());
}

}  // namespace

std::vector<KernelText> find_kernels(std::string_view text) {
  std::vector<KernelText> kernels;
  std::size_t at = 0;
  for (;;) {
    const auto plain = find_word(text, "kernel", at), underscored = find_word(text, "__kernel", at);
    const auto begin = std::min(plain, underscored);
    if (begin == std::string_view::npos) return kernels;
    const auto word_void = find_word(text, "void", begin);
    if (word_void == std::string_view::npos) return kernels;
    // Attributes may stand on either side of `void`; the name is the word before the brackets of
    // the parameters.
    auto from = word_void + 4;
    while (from < text.size()) {
      const auto open = text.find('(', from);
      if (open == std::string_view::npos) return kernels;
      auto end = open;
      while (end > from && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
      auto start = end;
      while (start > from && is_word(text[start - 1])) --start;
      const auto close = behind_bracket(text, open);
      const auto name = text.substr(start, end - start);
      from = close;
      if (name == "__attribute__") continue;
      kernels.push_back({std::string(name),
                         count_parameters(text.substr(open + 1, close - open - 2)),
                         required_size(text.substr(begin, start - begin))});
      break;
    }
    at = from;
  }
}

bool write_file(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "kernel_record: cannot write %s\n", path.c_str());
  return static_cast<bool>(out);
}

// What an earlier run found: the preprocessor is most of the time of a recording.
static std::vector<KernelText> read_kernels(const std::string& path) {
  std::vector<KernelText> kernels;
  std::ifstream in(path);
  for (KernelText k;
       in >> k.name >> k.parameters >> k.required[0] >> k.required[1] >> k.required[2];)
    kernels.push_back(k);
  return kernels;
}

static bool write_kernels(const std::string& path, const std::vector<KernelText>& kernels) {
  std::string text;
  for (const auto& k : kernels) {
    text += k.name + ' ' + std::to_string(k.parameters);
    for (const auto size : k.required) text += ' ' + std::to_string(size);
    text += '\n';
  }
  return write_file(path, text);
}

bool ProgramText::keep(const std::string& folder) {
  Sha256 content;
  content.update_field(source);
  content.update_field(options);
  hash = content.hex().substr(0, 16);
  const auto path = folder + "/" + hash;
  kernels = read_kernels(path + ".kernels");
  if (!kernels.empty()) return true;
  if (!write_file(path + ".cl", source) || !write_file(path + ".options", options)) return false;
  kernels = find_kernels(preprocess(path + ".cl", options));
  if (kernels.empty()) std::fprintf(stderr, "kernel_record: no kernel in %s.cl\n", path.c_str());
  return !kernels.empty() && write_kernels(path + ".kernels", kernels);
}

}  // namespace netcl::record
