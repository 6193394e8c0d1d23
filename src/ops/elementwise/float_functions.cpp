#include "ops/elementwise/float_functions.h"

#include <algorithm>

#include "base/format.h"
#include "kernel/builtin.h"
#include "ops/elementwise/words.h"

namespace netcl {
namespace {

constexpr std::string_view kFunctions[] = {"erf", "erfc", "exp", "expm1", "log1p", "tanh"};

bool is_function(std::string_view word) {
  return std::find(std::begin(kFunctions), std::end(kFunctions), word) != std::end(kFunctions);
}

bool names_one(const std::string& text) {
  bool found = false;
  for_each_word(text, [&](std::string_view word) { found |= is_function(word); });
  return found;
}

std::string text_for(int vec) {
  const auto width = vec > 1 ? std::to_string(vec) : std::string();
  return fmt::format(
             "#define FUNCTION\n#define FV float{0}\n#define IV int{0}\n"
             "#define FN(name) name##_of_{1}\n"
             "#define AS_FV(x) as_float{0}(x)\n#define AS_IV(x) as_int{0}(x)\n"
             "#define FLOATS_OF(x) convert_float{0}(x)\n"
             "#define FMA(x, y, z) fma(x, y, z)\n#define SQUARE_REST(x, s) fma(x, x, -(s))\n",
             width, vec) +
         assemble_source("ops/elementwise/float_math.cl") +
         "#undef FUNCTION\n#undef FV\n#undef IV\n#undef FN\n#undef AS_FV\n#undef AS_IV\n"
         "#undef FLOATS_OF\n#undef FMA\n#undef SQUARE_REST\n";
}

}  // namespace

std::string float_functions(const ElementProgram& program, int vec) {
  const auto uses = [](const std::vector<std::string>& lines) {
    return std::any_of(lines.begin(), lines.end(), names_one);
  };
  if (!uses(program.statements) && !uses(program.results)) return {};
  return vec > 1 ? text_for(1) + text_for(vec) : text_for(1);
}

std::string with_float_functions(const std::string& text, int vec) {
  std::string result;
  for_each_word(text, [&](std::string_view word) {
    result += word;
    if (is_function(word)) result += fmt::format("_of_{}", vec);
  });
  return result;
}

}  // namespace netcl
