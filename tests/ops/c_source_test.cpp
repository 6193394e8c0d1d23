// Reading OpenCL C without a compiler: what a source defines, macros, and what the host makes of
// it.
#include "ops/primitive/c_source.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/primitive/library.h"
#include "support/errors.h"

namespace netcl {
namespace {

using Strings = std::vector<std::string>;

std::string expanded(const std::string& source, const std::string& text) {
  std::string result;
  for (const auto& token : expanded_macros(read_c_source(source), c_tokens(text)))
    result += (result.empty() ? "" : " ") + token.text;
  return result;
}

TEST(CSource, leaves_out_kernels_alone) {
  const auto source = read_c_source(R"(
#define A 1
float before(float x) { if (x > 0) { return x; } return -x; }
__kernel void first(__global float* x) { x[0] = before("}"[0]); { } }
kernel __attribute__((vec_type_hint(float4))) void second(global float* x) {
#define INNER 3
#pragma unroll
  x[0] = '}';
}
__kernel void declared(__global float* x);
constant float table[2] = {1.0f, 2.0f};
constant float k = 2.0f;
typedef struct pair { float a, b; } pair_t;
float declared_only(float);
static float after(void) { return k; }
// __kernel void comment() {}
)");
  EXPECT_EQ(source.names, (Strings{"A", "INNER", "after", "before", "declared_only", "k", "pair",
                                   "pair_t", "table"}));
  const auto text = joined(source.tokens);
  for (const auto* gone : {"first", "second", "kernel", "unroll", "comment", "__global"})
    EXPECT_EQ(text.find(gone), text.npos) << gone << "\n" << text;
  for (const auto* kept : {"before(float x)", "#define INNER 3\n", "table[2] =", "pair_t;"})
    EXPECT_NE(text.find(kept), text.npos) << kept << "\n" << text;
}

TEST(CSource, expands_macros_as_a_preprocessor_does) {
  const std::string source = R"(
#define ONE 1
#define ADD1(x) x + ONE
#define TWICE(x) ADD1(x) * ADD1(x)
#define ALIAS TWICE
#define SELF(x) SELF(x) + 1
#define PING(x) PONG(x)
#define PONG(x) PING(x)
#define PAIR(a, b) (a, b)
#define NOTHING
#define CALL() f
# define SPACED (x)
)";
  EXPECT_EQ(expanded(source, "ONE"), "1");
  EXPECT_EQ(expanded(source, "TWICE(a)"), "a + 1 * a + 1");
  EXPECT_EQ(expanded(source, "ALIAS(ALIAS(b))"), "b + 1 * b + 1 + 1 * b + 1 * b + 1 + 1");
  EXPECT_EQ(expanded(source, "SELF(SELF(1))"), "SELF ( SELF ( 1 ) + 1 ) + 1");
  EXPECT_EQ(expanded(source, "PING(1)"), "PING ( 1 )");
  EXPECT_EQ(expanded(source, "PAIR((1, 2), PAIR(3, 4))"), "( ( 1 , 2 ) , ( 3 , 4 ) )");
  EXPECT_EQ(expanded(source, "ADD1 + 1"), "ADD1 + 1");
  EXPECT_EQ(expanded(source, "NOTHING x CALL()(y) SPACED"), "x f ( y ) ( x )");
  const auto why = [&](const std::string& more, const std::string& text) {
    return test::message_of<ArgumentError>([&] { expanded(source + more, text); });
  };
  EXPECT_EQ(why("", "PAIR(1)"), "PAIR takes 2 arguments, not 1");
  EXPECT_EQ(why("", "PAIR(1"), "a call of PAIR does not end");
  EXPECT_EQ(why("#define ONE 2\n", "ONE"), "ONE is defined in more than one way");
  EXPECT_EQ(why("#define V(...) 1\n", "V(1)"), "V has a variable number of arguments");
  EXPECT_EQ(why("#define P(a) a##b\n", "P(1)"), "P uses ##");
  EXPECT_EQ(why("#define D(x) x x\n#define E(x) D(D(D(D(x))))\n", "E(E(E(E(E(1)))))"),
            "its macros grow to more than 20000 tokens");
}

TEST(CSource, names_in_kernels_are_those_of_the_text_alone) {
  const auto one = make_library("#define F(x) (x)\nfloat g(float x) { return F(x).x + x; }", "");
  const auto* f = one.functions->find("F");
  ASSERT_NE(f, nullptr);
  const auto prefix = f->opencl.substr(0, f->opencl.find('F'));
  EXPECT_EQ(f->opencl, prefix + "F($a)");
  EXPECT_EQ(prefix.size(), 14u);
  const auto& text = one.functions->preamble;
  EXPECT_NE(text.find("#define " + prefix + "F(x) (x)"), text.npos) << text;
  EXPECT_NE(text.find(prefix + "g(float x)"), text.npos) << text;
  EXPECT_NE(text.find(prefix + "F(x).x + x"), text.npos) << text;
  const auto two = make_library("#define F(x) (x + 1)", "");
  EXPECT_NE(two.functions->find("F")->opencl, f->opencl);
  EXPECT_EQ(make_library("__kernel void k() {}", "").functions, nullptr);
  EXPECT_EQ(make_library("", "").functions, nullptr);
}

TEST(CSource, values_on_the_host) {
  const struct {
    const char *source, *call;
    double expected;
  } cases[] = {
      {"#define F(x) x + 1", "F(2) * 3", 9},  // a call is a value
      {"#define F(x) (1 / 2 * x)", "F(2)", 0},
      {"#define F(x) (1 / 2.0 * x)", "F(2)", 1},
      {"#define F(x) (7 / 2 + (x > 1) / 2)", "F(2)", 3},
      {"double f(int n) { return n; }", "f(2.7)", 2},
      {"int f(double x) { return x; }", "f(-2.7)", -2},
      {"double f(double x) { return (int)x + (float)0.5; }", "f(2.7)", 2.5},
      {"#define REAL double\nREAL f(REAL x) { return x * 0.1; }", "f(3)", 3 * 0.1},
      {"double f(double x) { return x * 0.1f; }", "f(1)", 0.1f},
      {"float f(float x) { return x; }\n"
       "double __attribute__((overloadable)) f(double x) { return x; }",
       "f(0.1)", 0.1},
      {"double g(double x) { return f(x) + 1; } double f(double x) { return x * x; }", "g(3)", 10},
      {"__constant double k = 3;", "k * 2", 6},
      {"double f() { return 4; }", "f() + 1", 5},
      {"#define exp(x) (x)", "exp(7)", 7},
      {"double f(double exp) { const double t = exp, u = 1; return t; }", "f(1)", NAN},
      {"double f(double x) { return f(x); }", "f(1)", NAN},
      {"double f(double x) { x = 2; return x; }", "f(1)", NAN},
      {"double f(double* x) { return x[0]; }", "f(1)", NAN},
      {"double f(float4 x) { return 1; }", "f(1)", NAN},
      {"double f(double x) { if (x > 0) return 1; return 2; }", "f(1)", NAN}};
  for (const auto& [source, call, expected] : cases) {
    const auto library = make_library(source, "");
    const auto expression = Expression::parse("test", call, {{}, {}, library.functions});
    const auto value = [&] { return expression.expanded("test").evaluate({}); };
    if (std::isnan(expected))
      EXPECT_NE(test::message_of<ArgumentError>(value).find("f cannot be evaluated outside"),
                std::string::npos)
          << source;
    else
      EXPECT_EQ(value(), expected) << source;
  }
}

// Text that is no C at all must be an error or nothing, and never hang.
TEST(CSource, survives_any_text) {
  const std::string whole = R"(#define A(x, y) ((x) + B(y) ## "s" 'c')
#define B A
float f(float x) { const float t = A(x, 1.5e-3f); return t ? B(t, 2) : -t; } /* c */ // d
__kernel void k(__global float* p) { p[0] = f(1); } typedef struct s { int a[3]; } s_t;
)";
  const auto read = [](const std::string& text) {
    try {
      const auto library = make_library(text, "");
      if (library.functions)
        Expression::parse("test", "f(1) + A(1, 2)", {{}, {}, library.functions}).expanded("test");
    } catch (const ArgumentError&) {
    }
  };
  for (std::size_t i = 0; i <= whole.size(); ++i) {
    read(whole.substr(0, i));
    read(whole.substr(i));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    auto text = whole;
    for (int k = 0; k < 4; ++k) {
      const auto at = random() % text.size();
      const char* symbols = "(){}[];,#\"'\\\n=x1 ";
      if (random() % 2 == 0)
        text[at] = symbols[random() % 17];
      else
        text.erase(at, random() % 20);
      if (text.empty()) text = " ";
    }
    read(text);
  }
}

}  // namespace
}  // namespace netcl
