#include "ops/expression/element.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlock = 256;  // elements; the values of most expressions fit the L1 cache

class ExpressionElement final : public ElementFunction {
 public:
  ExpressionElement(const std::string& name, const Expression& expression)
      : expression_(expression) {
    scalars = expression.parameters();
    vectors = expression.takes_vectors();
    ulps = expression.ulps();
    if (expression.library() != nullptr) preamble = expression.library()->preamble;
    try {
      on_host_ = expression.expanded(name);
    } catch (const ArgumentError& error) {
      why_not_ = error.what();
    }
  }

  void write(DType compute, std::span<const std::string> inputs,
             std::span<const std::string> scalar_names, const std::string& result,
             std::vector<std::string>& statements) const override {
    auto code = expression_.to_opencl(compute, result + "_", inputs, scalar_names);
    std::move(code.statements.begin(), code.statements.end(), std::back_inserter(statements));
    statements.push_back(fmt::format("const V {} = {};", result, code.result));
  }

  void run(std::int64_t n, const float* const* inputs, const float* values,
           float* out) const override {
    run_blocks(n, inputs, values, out);
  }
  void run(std::int64_t n, const double* const* inputs, const double* values,
           double* out) const override {
    run_blocks(n, inputs, values, out);
  }

 private:
  template <class V>
  void run_blocks(std::int64_t n, const V* const* inputs, const V* values, V* out) const {
    check<ArgumentError>(on_host_.has_value(), "{}", why_not_);
    const auto count = on_host_->variables().size();
    thread_local std::vector<V> scratch;
    thread_local std::vector<const V*> variables;
    scratch.resize(std::max(scratch.size(), on_host_->scratch_blocks() * kBlock));
    variables.resize(std::max(variables.size(), count));
    for (std::int64_t done = 0; done < n; done += kBlock) {
      const auto block = std::min(kBlock, n - done);
      for (std::size_t i = 0; i < count; ++i) variables[i] = inputs[i] + done;
      const V* result = on_host_->evaluate_block(block, variables.data(), values, scratch.data());
      std::copy_n(result, block, out + done);
    }
  }

  const Expression expression_;
  std::optional<Expression> on_host_;
  std::string why_not_;
};

}  // namespace

std::shared_ptr<const ElementFunction> expression_element(const std::string& name,
                                                          const Expression& expression) {
  return std::make_shared<ExpressionElement>(name, expression);
}

}  // namespace netcl
