#include "ops/elementwise/row_function.h"

#include "base/check.h"
#include "ops/elementwise/words.h"

namespace netcl {
namespace {

constexpr std::string_view kScalarNames[] = {"p", "q"};

class RowFunction final : public ElementFunction {
 public:
  RowFunction(const ElementRow& row, const ElementCode& code, std::vector<ElementName> names)
      : code_(code), names_(std::move(names)) {
    is_condition = row.kind == ElementKind::predicate;
    vectors = row.vectors;
    ulps = row.ulps;
    for (const auto* scalar : row.scalars)
      if (scalar != nullptr) scalars.emplace_back(scalar);
  }

  void write(DType, std::span<const std::string> inputs, std::span<const std::string> scalar_names,
             const std::string& result, std::vector<std::string>& statements) const override {
    std::string text;
    for_each_word(code_.text,
                  [&](std::string_view word) { text += named(word, inputs, scalar_names); });
    statements.push_back(is_condition
                             ? fmt::format("const V {} = ({}) ? K(1) : K(0);", result, text)
                             : fmt::format("const V {} = K({});", result, text));
  }

  void run(std::int64_t n, const float* const* inputs, const float* values,
           float* out) const override {
    run_block(n, inputs, values, out);
  }
  void run(std::int64_t n, const double* const* inputs, const double* values,
           double* out) const override {
    run_block(n, inputs, values, out);
  }

 private:
  std::string_view named(std::string_view word, std::span<const std::string> inputs,
                         std::span<const std::string> scalar_names) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (word == kElementNameText[names_[i]]) return inputs[i];
    for (std::size_t i = 0; i < scalar_names.size(); ++i)
      if (word == kScalarNames[i]) return scalar_names[i];
    return word;
  }

  template <class V>
  void run_block(std::int64_t n, const V* const* inputs, const V* values, V* out) const {
    // Names that the expression does not use must be readable all the same.
    const V* in[kElementNames];
    for (auto& one : in) one = inputs[0];
    for (std::size_t i = 0; i < names_.size(); ++i) in[names_[i]] = inputs[i];
    const auto count = scalars.size();
    code_.block<V>()(n, in, count > 0 ? values[0] : V{0}, count > 1 ? values[1] : V{0}, out);
  }

  const ElementCode& code_;
  const std::vector<ElementName> names_;
};

}  // namespace

bool ElementCode::names(ElementName name) const {
  bool found = false;
  for_each_word(text, [&](std::string_view word) { found |= word == kElementNameText[name]; });
  return found;
}

std::shared_ptr<const ElementFunction> row_function(const ElementRow& row, const ElementCode& code,
                                                    const std::vector<ElementName>& names) {
  return std::make_shared<RowFunction>(row, code, names);
}

}  // namespace netcl
