// Text that is read as an expression: of elementwise_binary, the body of a C function, or a whole
// OpenCL C source of which primitives take the functions.
#include <cmath>

#include "fuzz/fuzz.h"
#include "ops/expression/derivative.h"
#include "ops/expression/expression.h"
#include "ops/primitive/c_source.h"
#include "ops/primitive/library.h"

namespace {

using namespace netcl;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void use(const Expression& expression) {
  const double values[] = {0.5, -2};
  const auto value = expression.evaluate(values);
  // In blocks it must be the same.
  const double* variables[] = {&values[0], &values[1]};
  std::vector<double> scratch(expression.scratch_blocks() + 1);
  const auto* block = expression.evaluate_block<double>(
      1, variables, static_cast<const double*>(nullptr), scratch.data());
  fuzz::require(same(value, *block), "a block has the same values");
  (void)expression.to_opencl(DType::float32);
  (void)expression.structure();
  for (const std::size_t variable : {0, 1}) {
    const auto gradient = derivative(expression, variable, "dy");
    const double more[] = {0.5, -2, 1};
    (void)gradient.evaluate(more);
  }
}

}  // namespace

FUZZ_TARGET(expression) {
  fuzz::Reader reader(input);
  const auto kind = reader.byte() % 3;
  const auto text = fuzz::text_of(reader.rest());
  if (kind == 0) return use(Expression::parse("fuzz", text, {"v0", "v1"}));
  if (kind == 1) return use(Expression::parse_c("fuzz", text, {"v0", "v1"}, ExpressionLibrary()));
  const auto library = make_library(std::string(text), "").functions;
  if (library == nullptr) return;
  for (const auto& function : library->functions)
    if (function.body != nullptr && function.arity == 2) use(*function.body);
}
