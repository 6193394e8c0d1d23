// Reading and evaluating expressions, and elementwise_binary.
#include "ops/expression/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "netcl/ops.h"
#include "ops/elementwise/table.h"
#include "support/devices.h"

namespace netcl {
namespace {

Expression parsed(const std::string& text) { return Expression::parse("test", text, {"v0", "v1"}); }

double value_of(const std::string& text, double v0 = 3, double v1 = 5) {
  const double values[] = {v0, v1};
  return parsed(text).evaluate(values);
}

std::string error_of(const std::string& text) {
  try {
    parsed(text);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Expressions, have_the_precedence_of_c) {
  const std::pair<const char*, double> cases[] = {{"1", 1},
                                                  {"v0", 3},
                                                  {" v1\n", 5},
                                                  {"1 + 2 * 3", 7},
                                                  {"(1 + 2) * 3", 9},
                                                  {"2 - 3 - 4", -5},
                                                  {"2 / 4 / 2", 0.25},
                                                  {"1 / 2", 0.5},
                                                  {"-v0 * -v1", 15},
                                                  {"--v0", 3},
                                                  {"-+-v0", 3},
                                                  {"- 2 - -2", 0},
                                                  {"!0 + !7", 1},
                                                  {"1 < 2 == 1", 1},
                                                  {"3 > 2 > 1", 0},
                                                  {"1 <= 1 && 2 >= 3", 0},
                                                  {"1 || 0 && 0", 1},
                                                  {"!v0 == 0", 1},
                                                  {"1 != 2", 1},
                                                  {"1 ? 2 : 3", 2},
                                                  {"0 ? 1 : 0 ? 2 : 3", 3},
                                                  {"1 ? 0 ? 1 : 2 : 3", 2},
                                                  {"v0 > v1 ? v0 : v1", 5},
                                                  {"1 + 1 ? 4 : 5", 4},
                                                  {"v0<v1", 1},
                                                  {"v0<=v1&&v1>=v0", 1}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
}

TEST(Expressions, read_numbers) {
  const std::pair<const char*, double> cases[] = {{"2.0f", 2},
                                                  {"2.F", 2},
                                                  {".5", .5},
                                                  {"1e3", 1e3},
                                                  {"1.5e-3f", 1.5e-3},
                                                  {"1E+2", 100},
                                                  {"007", 7},
                                                  {"0.1f", .1},
                                                  {"INFINITY", INFINITY},
                                                  {"M_PI", M_PI},
                                                  {"inf", INFINITY},
                                                  {"-inf", -INFINITY},
                                                  {"1e400", INFINITY},
                                                  {"-1e400f", -INFINITY},
                                                  {"1e-400", 0},
                                                  {"1e308 * 10", INFINITY}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
  for (const auto* text : {"NAN", "nan", "-nan", "inf - inf"})
    EXPECT_TRUE(std::isnan(value_of(text))) << text;
}

TEST(Expressions, call_functions) {
  const std::pair<const char*, double> cases[] = {{"MUL(ADD(v0, v1), 2.0f)", 16},
                                                  {"SUB(v0, DIV(v1, 2))", 0.5},
                                                  {"RELU(-v0) + RELU(v0)", 3},
                                                  {"ABS(-v1)", 5},
                                                  {"MAX(v0, v1) - MIN(v0, v1)", 2},
                                                  {"EXP(0) + LOG(1) + SQRT(4) + TANH(0)", 3},
                                                  {"pow(v0, 2)", 9},
                                                  {"fma(v0, v1, 1)", 16},
                                                  {"clamp(v1, 0, 4)", 4},
                                                  {"rsqrt(4)", 0.5},
                                                  {"floor(2.7) + ceil(2.2) + trunc(-1.5)", 4},
                                                  {"rint(2.5) + round(2.5)", 5},
                                                  {"sign(-3) + sign(0)", -1},
                                                  {"exp ( 0 )", 1},
                                                  {"isnan(NAN) + isinf(-INFINITY)", 2}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
}

TEST(Expressions, keep_nan_where_the_macros_do) {
  EXPECT_TRUE(std::isnan(value_of("MAX(v0, v1)", NAN, 1)));
  EXPECT_TRUE(std::isnan(value_of("MAX(v0, v1)", 1, NAN)));
  EXPECT_TRUE(std::isnan(value_of("MIN(v0, v1)", NAN, 1)));
  EXPECT_TRUE(std::isnan(value_of("RELU(v0)", NAN)));
  EXPECT_EQ(value_of("fmax(v0, v1)", NAN, 1), 1);
  EXPECT_EQ(value_of("v0 ? 1 : 2", NAN), 1);
}

TEST(Expressions, say_what_was_expected_and_where) {
  EXPECT_EQ(error_of("v0 + * v1"),
            "[test] cannot read the expression: expected a value\n  v0 + * v1\n       ^");
  EXPECT_EQ(
      error_of("(v0 + v1"),
      "[test] cannot read the expression: expected ')' or an operator\n  (v0 + v1\n          ^");
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"  \t ", "is empty"},
      {"v0 v1", "expected an operator or the end"},
      {"v0)", "expected an operator or the end"},
      {"v0;", "expected an operator or the end"},
      {"v0 = v1", "expected an operator or the end"},
      {"v0 +", "ends where a value is expected"},
      {"()", "expected a value"},
      {"exp()", "exp takes 1 argument"},
      {"exp(v0, v1)", "exp takes 1 argument"},
      {"ADD(v0)", "ADD takes 2 arguments"},
      {"ADD(v0, )", "expected a value"},
      {"ADD(v0 v1)", "expected ')' or ',' in the call of ADD"},
      {"exp", "expected '(' and 1 argument behind exp"},
      {"exp v0", "expected '(' and 1 argument behind exp"},
      {"v2", "'v2' is unknown; there are the variables v0, v1"},
      {"negated(v0)", "'negated' is unknown"},
      {"system(v0)", "'system' is unknown"},
      {"v0(1)", "expected an operator or the end"},
      {"2x", "behind the number"},
      {"1.2.3", "behind the number"},
      {"0x10", "behind the number"},
      {".", "expected a number"},
      {"v0 ? v1", "expected ':' of ?:"},
      {"v0 & v1", "& is for conditions"},
      {"v0 | (v0 < v1)", "| is for conditions"},
      {"(v0 < v1) ^ 1", "^ is for conditions"},
      {"v0 % v1", "expected an operator or the end"},
      {"v0[0]", "expected an operator or the end"},
      {"\"v0\"", "expected a value"},
      {"#define", "expected a value"},
      {"v0 /* */", "expected a value"},
      {"\xff\x01", "expected a value"}};
  for (const auto& [text, part] : cases)
    EXPECT_NE(error_of(text).find(part), std::string::npos) << text << "\n" << error_of(text);
}

TEST(Expressions, list_what_is_known) {
  const auto text = error_of("foo(v0)");
  for (const char* name : {"v0, v1", "ADD", "RELU", "MAX", "exp", "log1p", "rsqrt", "erf"})
    EXPECT_NE(text.find(name), text.npos) << name;
  EXPECT_EQ(text.find("?:"), text.npos);
}

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Expressions, cannot_overflow_the_stack) {
  for (const auto* open : {"(", "-", "!", "exp(", "1 ? ", "1 ? 1 : "})
    EXPECT_NE(error_of(repeated(open, 2000)).find("nested deeper than 100"), std::string::npos)
        << open;
  EXPECT_NE(error_of(repeated("v0+", 10000)).find("at most 16384 characters"), std::string::npos);
  EXPECT_EQ(value_of(repeated("(", 90) + "v0" + repeated(")", 90)), 3);
  EXPECT_EQ(value_of("v0" + repeated("+v0", 5000)), 15003);
  EXPECT_EQ(parsed("v0" + repeated("+v0", 5000)).scratch_blocks(), 1u);
}

TEST(Expressions, show_only_the_place_of_long_texts) {
  const auto text = error_of(repeated("v0 + ", 1000) + "?");
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find("..."), text.npos);
}

TEST(Expressions, suggest_what_was_meant) {
  EXPECT_NE(error_of("expm(v0)").find("did you mean EXP or exp or exp2?"), std::string::npos)
      << error_of("expm(v0)");
  EXPECT_NE(error_of("relu(v0)").find("did you mean RELU?"), std::string::npos);
  EXPECT_NE(error_of("V0").find("did you mean v0"), std::string::npos);
  EXPECT_EQ(error_of("nothing_like_it(v0)").find("did you mean"), std::string::npos);
}

TEST(Expressions, compute_equal_parts_once) {
  const auto expression = parsed("exp(v0) * exp(v0) + exp(v0)");
  EXPECT_EQ(expression.nodes().size(), 4u);
  EXPECT_EQ(value_of("exp(v0) * exp(v0) + exp(v0)", 0), 2);
  // A value that is used late keeps its place.
  EXPECT_EQ(value_of("(v0 + 1) * (v0 + 2) - (v0 + 1) + (v0 + 2) * ((v0 + 1) - v1)"), 11);
}

// The texts of the element-wise ops are expressions too.
TEST(Expressions, read_the_table_of_element_wise_ops) {
  for (const auto& row : element_rows()) {
    const auto expression =
        Expression::parse(row.name, row.forward.text, {{"a", "b", "c"}, {"p", "q"}});
    const double p = row.sample_scalars[0], q = row.sample_scalars[1];
    for (const double t : {0.0, 0.13, 0.5, 0.77, 1.0}) {
      const double a = row.low + t * (row.high - row.low);
      const double b = row.low_b + (1 - t) * (row.high_b - row.low_b), c = 2 * t - 1;
      const double values[] = {a, b, c}, scalars[] = {p, q};
      const double expected = row.reference(a, b, c, p, q);
      EXPECT_NEAR(expression.evaluate(values, scalars), expected, 1e-13 * (1 + std::fabs(expected)))
          << row.name << " of " << a << ", " << b;
    }
    for (std::size_t i = 0; i < 3; ++i)
      if (row.gradients[i])
        EXPECT_NO_THROW(Expression::parse(row.name, row.gradients[i].text,
                                          {{"a", "b", "c", "y", "dy"}, {"p", "q"}}))
            << row.name;
  }
}

TEST(Expressions, have_numbers_that_can_become_parameters) {
  const std::string names[] = {"n0", "n1"};
  std::vector<double> values;
  const auto expression = parsed("v0 * 2 + 3 - 4").with_numbers_as_parameters(names, values);
  EXPECT_EQ(values, (std::vector<double>{2, 3}));
  EXPECT_EQ(expression.parameters(), (std::vector<std::string>{"n0", "n1"}));
  const double variables[] = {10, 0}, other[] = {5, 1};
  EXPECT_EQ(expression.evaluate(variables, values), 19);
  EXPECT_EQ(expression.evaluate(variables, other), 47);
  std::vector<double> more;
  EXPECT_EQ(parsed("v0 * 7 + inf - 4").with_numbers_as_parameters(names, more).structure(),
            expression.structure());
}

TEST(Expressions, know_their_variables_and_any_names) {
  const auto expression = Expression::parse("test", "x * x + scale_2", {"x", "y", "scale_2"});
  EXPECT_TRUE(expression.uses(0));
  EXPECT_FALSE(expression.uses(1));
  EXPECT_TRUE(expression.uses(2));
  const double values[] = {3, 100, 1};
  EXPECT_EQ(expression.evaluate(values), 10);
}

TEST(Expressions, become_statements_without_repetition) {
  const auto code = parsed("MAX(MAX(v0, v1), 2)").to_opencl(DType::float32);
  EXPECT_EQ(code.statements, (std::vector<std::string>{"const V t0 = larger(v0, v1);",
                                                       "const V t1 = larger(t0, K(2.0f));"}));
  EXPECT_EQ(code.result, "t1");
  EXPECT_EQ(parsed("0.1").to_opencl(DType::float64).result, "K(0.10000000000000001)");
  EXPECT_EQ(parsed("1e300").to_opencl(DType::float32).result, "K(INFINITY)");
}

TEST(ElementwiseBinary, computes_on_every_device) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::arange(queue, 0, 3, 1, DType::float32).reshape({3, 1});
    const auto b = Tensor::arange(queue, 1, 3, 1, DType::int32);
    const auto y = elementwise_binary(a, b, "MUL(ADD(v0, v1), 2.0f)");
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    EXPECT_EQ(y.dtype(), DType::float32);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 4, 4, 6, 6, 8}));
  });
}

TEST(ElementwiseBinary, tells_expressions_of_equal_operands_apart) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {40}, 3);
    for (int i = 0; i < 3; ++i) {
      // A temporary text: its memory is used again.
      const auto y = elementwise_binary(x, x, "v0 + v1 * " + std::to_string(i));
      EXPECT_EQ(y.to_vector<float>()[0], static_cast<float>(3 + 3 * i));
    }
  });
}

TEST(ElementwiseBinary, refuses_bad_input) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {3}, 1);
    EXPECT_THROW(elementwise_binary(x, x, "v0 +"), ArgumentError);
    EXPECT_THROW(elementwise_binary(x, x, "v2"), ArgumentError);
    EXPECT_THROW(elementwise_binary(x, Tensor(), "v0"), ArgumentError);
    EXPECT_THROW(elementwise_binary(x, Tensor::full(queue, {2}, 1), "v0"), ShapeError);
    const auto storage = x.astype(DType::bfloat16);
    EXPECT_THROW(elementwise_binary(storage, storage, "v0"), DtypeError);
  });
}

}  // namespace
}  // namespace netcl
