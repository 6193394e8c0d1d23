// Derivatives of expressions, and gradients of gradients of the element-wise ops.
#include "ops/expression/derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expression/expression_op.h"
#include "ops/registry.h"
#include "support/devices.h"

namespace netcl {
namespace {

double central(const Expression& of, std::vector<double> at, std::size_t k,
               std::span<const double> parameters = {}) {
  const double x = at[k], step = 1e-5 * std::max(1.0, std::fabs(x));
  at[k] = x + step;
  const double above = of.evaluate(at, parameters);
  at[k] = x - step;
  return (above - of.evaluate(at, parameters)) / (2 * step);
}

double slope(const Expression& of, std::vector<double> at, std::size_t k, double seed = 1,
             std::span<const double> parameters = {}) {
  at.push_back(seed);
  return derivative(of, k, "g").evaluate(at, parameters);
}

double slope_of(const std::string& text, double x, double seed = 1) {
  return slope(Expression::parse("test", text, {"x"}), {x}, 0, seed);
}

void expect_close(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 2e-5 * std::max(1.0, std::fabs(expected))) << what;
}

// Where a function is defined and smooth.
std::vector<std::vector<double>> points_of(const ExpressionFunction& function) {
  if (function.name == "acos" || function.name == "asin") return {{-0.6}, {0.1}, {0.7}};
  if (function.arity == 1) return {{0.3}, {0.81}, {1.7}};
  if (function.arity == 2) return {{0.3, 1.9}, {1.7, 0.6}, {2.3, 1.1}};
  return {{0.3, 0.5, 1.9}, {1.2, 0.5, 1.9}, {2.4, 0.5, 1.9}};
}

TEST(Derivatives, of_every_function_of_first_and_second_order) {
  const std::string letters[] = {"a", "b", "c"};
  int tried = 0;
  for (const auto& function : expression_functions()) {
    if (function.is_operator()) continue;
    const auto arity = static_cast<std::size_t>(function.arity);
    std::string text = function.name + "(a";
    for (std::size_t i = 1; i < arity; ++i) text += ", " + letters[i];
    // Not alone, so that the chain rule is needed.
    const auto of = Expression::parse("test", text + ") * a", {letters, letters + arity});
    for (const auto& point : points_of(function))
      for (std::size_t k = 0; k < arity; ++k) {
        ++tried;
        expect_close(slope(of, point, k, 1), central(of, point, k), of.text());
        expect_close(slope(of, point, k, -3), -3 * central(of, point, k), of.text());
        auto with_seed = point;
        with_seed.push_back(0.7);
        const auto first = derivative(of, k, "g");
        for (std::size_t j = 0; j <= arity; ++j)
          expect_close(slope(first, with_seed, j), central(first, with_seed, j),
                       of.text() + " twice");
      }
  }
  EXPECT_GT(tried, 150);
}

TEST(Derivatives, of_operators_at_known_points) {
  const struct {
    const char* text;
    double x, expected;
  } cases[] = {{"x * x * x", 2, 12},
               {"1 / x", 2, -0.25},
               {"-x", 7, -1},
               {"x - 2 * x", 1, -1},
               {"x > 1 ? x * x : 3 * x", 2, 4},
               {"x > 1 ? x * x : 3 * x", 0, 3},
               {"5", 1, 0},
               {"floor(x) + rint(x) + sign(x)", 1.3, 0},
               {"x < 2", 1, 0},
               {"(x < 2) * x", 1, 1},
               {"(x < 2) & (x > 0) ? x : 0", 1, 1},
               {"fmod(x, 3)", 7, 1},
               {"fmod(7, x)", 3, -2},
               {"MAX(x, 1)", 1, 0.5},
               {"clamp(x, 0, 1)", 1, 1},
               {"clamp(x, 0, 1)", 2, 0},
               {"RELU(x)", 0, 0},
               {"hypot(x, 0)", 0, 0},
               {"pow(x, 2)", 0, 0}};
  for (const auto& one : cases) EXPECT_EQ(slope_of(one.text, one.x), one.expected) << one.text;
}

// A branch that is not taken must not bring in NaN, whatever its slope is.
TEST(Derivatives, of_the_branch_that_is_taken) {
  EXPECT_EQ(slope_of("x > 0 ? sqrt(x) : 0", 0), 0);
  EXPECT_EQ(slope_of("x > 0 ? log(x) : x", -1), 1);
  EXPECT_EQ(slope_of("sqrt(RELU(x))", -1), 0);
  EXPECT_EQ(slope_of("RELU(x)", -1, INFINITY), 0);
  EXPECT_EQ(slope_of("RELU(x)", 1, INFINITY), INFINITY);
  EXPECT_EQ(slope_of("MAX(x, 0) * 2", -1, NAN), 0);
  EXPECT_TRUE(std::isnan(slope_of("sqrt(x)", -1)));
}

TEST(Derivatives, stay_small_where_paths_are_many) {
  std::string nested = "x", squares = "x";
  for (int i = 0; i < 60; ++i) nested = "MAX(" + nested + ", " + std::to_string(i) + ")";
  for (int i = 0; i < 20; ++i) squares = "pow(" + squares + ", 1.01) * x";
  const auto first = derivative(Expression::parse("test", nested, {"x"}), 0, "g");
  EXPECT_LT(first.nodes().size(), 20000u);
  const double at[] = {100, 1};
  EXPECT_EQ(first.evaluate(at), 1);
  auto higher = Expression::parse("test", squares, {"x"});
  for (int order = 0; order < 3; ++order)
    higher = derivative(higher, 0, "g" + std::to_string(order));
  EXPECT_LT(higher.nodes().size(), 20000u);
}

// ---- the rows of the element-wise table

std::vector<double> row_point(const ElementRow& row, double t) {
  std::vector<double> at = {row.low + t * (row.high - row.low),
                            row.low_b + (1 - t) * (row.high_b - row.low_b), 2 * t - 1};
  if (row.inputs == 3) at[0] = t > 0.5;
  at.resize(static_cast<std::size_t>(row.inputs));
  return at;
}

TEST(Derivatives, agree_with_the_gradients_of_the_table) {
  for (const auto& row : element_rows()) {
    std::vector<std::string> names{"a", "b", "c"};
    names.resize(static_cast<std::size_t>(row.inputs));
    const auto forward = Expression::parse(row.name, row.forward.text, {names, {"p", "q"}});
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!row.gradients[i]) continue;
      auto more = names;
      more.insert(more.end(), {"y", "dy"});
      const auto given = Expression::parse(row.name, row.gradients[i].text, {more, {"p", "q"}});
      for (const double t : {0.07, 0.31, 0.52, 0.93}) {
        auto at = row_point(row, t);
        const double derived = slope(forward, at, i, 1.3, row.sample_scalars);
        at.push_back(forward.evaluate(at, row.sample_scalars));
        at.push_back(1.3);
        const double expected = given.evaluate(at, row.sample_scalars);
        EXPECT_NEAR(derived, expected, 1e-10 * (1 + std::fabs(expected)))
            << row.name << " for input " << i << " at " << at[0];
      }
    }
  }
}

constexpr std::int64_t kElements = 7;

Tensor row_tensor(const Queue& queue, const ElementRow& row, std::size_t input) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kElements; ++i) {
    const double t = (static_cast<double>(i) + 0.37) / static_cast<double>(kElements);
    values.push_back(row_point(row, t)[input]);
  }
  return Tensor::from_host(queue, values);
}

// The gradient op of a row, differentiated by its own backward, against central differences of it.
void check_second_order(const Queue& queue, const ElementRow& row, std::size_t input) {
  const auto& [names, op] = gradient_op(row, input);
  ASSERT_TRUE(op.backward) << row.name;
  Attributes attributes;
  for (int i = 0; i < 2; ++i)
    if (row.scalars[i] != nullptr) attributes.set(row.scalars[i], row.sample_scalars[i]);
  std::vector<Tensor> given, inputs;
  for (std::size_t i = 0; i < static_cast<std::size_t>(row.inputs); ++i)
    given.push_back(row_tensor(queue, row, i));
  for (const auto name : names)
    inputs.push_back(
        name == kDy  ? Tensor::random(queue, {kElements}, 3, Distribution::normal, DType::float64)
        : name == kY ? call_op(find_op(row.name), given, attributes)[0]
                     : given[name]);
  const std::vector<bool> wanted(inputs.size(), true);
  const auto outputs = call_op(op, inputs, attributes);
  const std::vector<Tensor> grads{
      Tensor::random(queue, {kElements}, 5, Distribution::normal, DType::float64)};
  const auto result = op.backward({inputs, attributes, outputs, grads, wanted, true});
  const auto weights = grads[0].to_vector<double>();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (row.inputs == 3 && k == 0) continue;  // a condition
    ASSERT_TRUE(result[k]) << row.name;
    auto above = inputs, below = inputs;
    above[k] = inputs[k] + 1e-5;
    below[k] = inputs[k] - 1e-5;
    const auto high = call_op(op, above, attributes)[0].to_vector<double>();
    const auto low = call_op(op, below, attributes)[0].to_vector<double>();
    const auto actual = result[k].to_vector<double>();
    const auto at = inputs[k].to_vector<double>();
    for (std::size_t i = 0; i < actual.size(); ++i)
      // The gradient of relu jumps where its result is 0.
      if (names[k] != kY || at[i] != 0)
        expect_close(actual[i], weights[i] * (high[i] - low[i]) / 2e-5,
                     std::string(row.name) + " by " + kElementNameText[names[k]]);
  }
}

TEST(HigherOrder, gradients_of_the_element_wise_gradients) {
  // Every derivative is a kernel to compile: on OpenCL a few rows that have all there is.
  const std::set<std::string_view> few = {"mul", "div", "pow", "sigmoid", "elu", "gelu", "where"};
  test::on_every_device([&](const Queue& queue) {
    for (const auto& row : element_rows())
      for (std::size_t i = 0; i < 3; ++i)
        if (row.gradients[i] && (queue.is_cpu() || few.contains(row.name)))
          check_second_order(queue, row, i);
  });
}

// Broadcast operands, and a number in the place of one.
TEST(HigherOrder, gradients_have_the_shapes_of_their_inputs) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::full(queue, {4, 1}, 3), dy = Tensor::full(queue, {4, 5}, 2);
    const auto& [names, op] = gradient_op(
        *std::find_if(element_rows().begin(), element_rows().end(),
                      [](const auto& row) { return std::string_view(row.name) == "mul"; }),
        1);
    ASSERT_EQ(names, (std::vector<ElementName>{kA, kDy}));
    const std::vector<Tensor> outputs{Tensor::full(queue, {4, 5}, 6)}, grads = outputs;
    const auto both = op.backward({{a, dy}, {}, outputs, grads, {true, true}, true});
    EXPECT_EQ(both[0].shape(), a.shape());
    EXPECT_EQ(both[0].to_vector<float>(), std::vector<float>(4, 60));  // the sum of 5 times 2 * 6
    EXPECT_EQ(both[1].to_vector<float>(), std::vector<float>(20, 18));
    const Attributes number{{"scalar0", 4.0}};
    const auto one = op.backward({{Tensor(), dy}, number, outputs, grads, {false, true}, true});
    EXPECT_FALSE(one[0]);
    EXPECT_EQ(one[1].to_vector<float>(), std::vector<float>(20, 24));
  });
}

// Three times: exp(2 x) has the derivative 8 exp(2 x).
TEST(HigherOrder, any_order) {
  test::on_every_device([](const Queue& queue) {
    const auto of = Expression::parse("test", "exp(2 * x)", {"x"});
    const auto op =
        make_expression_op({"test", of, std::make_shared<ExpressionGradients>("test", of)});
    const auto x = Tensor::full(queue, {3}, 0.25, DType::float64);
    auto made = derivative(derivative(derivative(of, 0, "g"), 0, "h"), 0, "k");
    const auto third = make_expression_op({"third", made});
    const auto one = Tensor::full(queue, {3}, 1, DType::float64);
    for (const double y : call_op(third, {x, one, one, one})[0].to_vector<double>())
      EXPECT_NEAR(y, 8 * std::exp(0.5), 1e-12);
    EXPECT_EQ(op.saves({true}, {}).outputs, 0u);
    EXPECT_EQ(op.saves({true}, {}).inputs, 1u);
    EXPECT_EQ(op.saves({false}, {}).inputs, 0u);
  });
}

TEST(ElementwiseBinary, has_a_gradient) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::from_host(queue, std::vector<double>{1, 2, 3}).reshape({3, 1});
    const auto b = Tensor::from_host(queue, std::vector<double>{4, 5});
    const auto& op = find_op("elementwise_binary");
    const Attributes attributes{{"expression", std::string("v0 * v0 * v1 + 3 * floor(v1)")}};
    const std::vector<Tensor> inputs{a, b}, outputs = call_op(op, inputs, attributes);
    const std::vector<Tensor> grads{Tensor::full(queue, {3, 2}, 1, DType::float64)};
    const auto result = op.backward({inputs, attributes, outputs, grads, {true, true}});
    EXPECT_EQ(result[0].shape(), a.shape());
    EXPECT_EQ(result[0].to_vector<double>(), (std::vector<double>{18, 36, 54}));
    EXPECT_EQ(result[1].to_vector<double>(), (std::vector<double>{14, 14}));
  });
}

}  // namespace
}  // namespace netcl
