// Primitives of users: registration, calls, gradients, errors.
#include "netcl/primitive.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "netcl/autograd.h"
#include "netcl/kernel.h"
#include "ops/dispatch.h"
#include "ops/element_function.h"
#include "ops/registry.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::message_of;
using Strings = std::vector<std::string>;
using Args = PrimitiveArgs;
using Attrs = PrimitiveAttributes;

// A primitive that goes with its test.
class Registered {
 public:
  explicit Registered(AutogradPrimitive primitive) : name_(primitive.name) {
    register_primitive(std::move(primitive));
  }
  ~Registered() { unregister_primitive(name_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::string name_;
};

PrimitiveForward text(std::string expression) {
  return [expression](const Args&, const Attrs&) { return expression; };
}
PrimitiveBackward texts(Strings expressions) {
  return [expressions](const Args&, const std::string&, const Attrs&, const std::string&) {
    return expressions;
  };
}
// The message of a registration that must fail, which must leave nothing behind.
std::string refusal(AutogradPrimitive primitive) {
  const auto name = primitive.name;
  const auto message = message_of<ArgumentError>([&] { register_primitive(std::move(primitive)); });
  EXPECT_FALSE(has_primitive(name));
  unregister_primitive(name);
  return message;
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

Tensor doubles(const Queue& queue, const std::vector<double>& values) {
  return Tensor::from_host(queue, values);
}

// d(sum(w * f)) / dx of every operand by a tape, against central differences, in float64.
void check_gradients(const std::string& name, std::vector<Tensor> operands, const Attrs& attrs = {},
                     double tolerance = 1e-6) {
  const auto call = [&] { return call_primitive(name, {operands.begin(), operands.end()}, attrs); };
  const auto weights =
      Tensor::random(operands[0].queue(), call().shape(), 7, Distribution::normal, DType::float64);
  for (auto& operand : operands) operand.set_requires_grad();
  std::vector<Tensor> gradients;
  {
    Tape tape;
    gradients = tape.gradient(ops::sum(call() * weights), operands);
  }
  for (auto& operand : operands) operand = operand.detach();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    ASSERT_EQ(gradients[k].shape(), operands[k].shape()) << name;
    const auto actual = gradients[k].to_vector<double>();
    const auto values = operands[k].to_vector<double>();
    const auto kept = operands[k];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto moved = [&](double by) {
        auto other = values;
        other[i] += by;
        operands[k] = Tensor::from_host(kept.queue(), {other, kept.shape()});
        return ops::sum(call() * weights).item();
      };
      const double expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
      EXPECT_NEAR(actual[i], expected, tolerance * std::max(1.0, std::fabs(expected)))
          << name << " operand " << k << " element " << i;
    }
    operands[k] = kept;
  }
}

constexpr const char* kMySource = R"(
#define MY_OP(a, b) ((a) * (b))
__kernel void my_op(__global const float* a, __global const float* b, __global float* c) {
  const int i = get_global_id(0);
  c[i] = MY_OP(a[i], b[i]);
}
)";

AutogradPrimitive my_op() {
  return {"my_op",
          [](const Args& args, const Attrs&) { return "MY_OP(" + args[0] + ", " + args[1] + ")"; },
          [](const Args& args, const std::string& grad_var, const Attrs&, const std::string&) {
            return Strings{"MUL(" + grad_var + ", " + args[1] + ")",
                           "MUL(" + grad_var + ", " + args[0] + ")"};
          },
          2};
}

// A kernel, its spec and its gradient, as the documentation of KernelSpec has it.
TEST(Primitive, goes_with_a_kernel_spec) {
  NETCL_NEED_OPENCL();
  KernelSpec spec{.name = "my_op", .src = kMySource};
  const auto program = spec.build(test::opencl_devices()[0].queue);
  const auto [name, forward, backward, arity, fusible, source] = my_op();
  register_primitive(name, forward, backward, arity, fusible);
  test::on_every_device([&](const Queue& queue) {
    auto a = Tensor::from_host(queue, std::vector<float>{1, 2, 3});
    auto b = Tensor::from_host(queue, std::vector<float>{4, 5, 6});
    a.set_requires_grad();
    b.set_requires_grad();
    Tape tape;
    const auto y = call_primitive("my_op", {a, b});
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{4, 10, 18}));
    tape.backward(ops::sum(y));
    EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{1, 2, 3}));
    if (!queue.is_cpu()) {  // the kernel computes the same
      const auto c = Tensor::empty(queue, {3});
      program.run(queue, 3, nullptr, a.detach(), b.detach(), c);
      EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{4, 10, 18}));
    }
  });
  EXPECT_EQ(get_primitive("my_op").arity, 2);
  EXPECT_EQ(&find_op("my_op"), find_op_or_null("my_op"));
  EXPECT_TRUE(find_op("my_op").element);
  for (const auto* op : all_ops()) EXPECT_NE(op->name, "my_op");
  EXPECT_TRUE(unregister_primitive("my_op"));
}

TEST(Primitive, needs_no_kernel) {
  Registered swish({"test_swish", text("x0 / (1 + EXP(-x0))"),
                    texts({"MUL(dy, (1 + x0 * (1 - 1 / (1 + exp(-x0)))) / (1 + exp(-x0)))"}), 1});
  test::on_every_device([](const Queue& queue) {
    const auto x = doubles(queue, {-2, -0.5, 0, 0.5, 2});
    const auto y = call_primitive("test_swish", {x}).to_vector<double>();
    const auto expected = ops::silu(x).to_vector<double>();
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-14);
    check_gradients("test_swish", {x});
  });
}

TEST(Primitive, calls_functions_and_nested_macros_of_its_source) {
  const char* source = R"(
// Comments, /* of both kinds */ and names that netcl uses itself.
#define K 2.0
#define TWICE(x) ((x) * K)
#define \
  SUM(a, b) a + b  /* no parentheses: SUM(x, y) * 2 is x + y * 2 */
#define DOUBLE_SUM(a, b) (SUM(a, b) * 2)
typedef double real;
constant double half_of = 0.5;
double squared(double x) { return x * x; }
static inline double in1(const double x, double y) {
  const double t = squared(x) + TWICE(y);  // a constant
  double u = half_of * t;
  return u > 3 ? t : -t;
}
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void unused(__global float* V) {
  #pragma unroll
  for (int i = 0; i < 4; ++i) { V[i] = squared(V[i]); }
}
double n(int i, double x) { return i / 2 * x + 1 / 2; }
)";
  Registered one({"test_functions", text("in1(x0, x1) + DOUBLE_SUM(x0, x1) - n(x1, TWICE(x0)) + K"),
                  nullptr, 2, true, source});
  test::on_every_device([](const Queue& queue) {
    const auto x = doubles(queue, {0.5, 1.5, -2.5}), z = doubles(queue, {1.5, 3.5, 5});
    const auto y = call_primitive("test_functions", {x, z}).to_vector<double>();
    const double xs[] = {0.5, 1.5, -2.5}, zs[] = {1.5, 3.5, 5};
    for (std::size_t i = 0; i < 3; ++i) {
      const double t = xs[i] * xs[i] + zs[i] * 2, u = 0.5 * t;
      const double n = static_cast<int>(zs[i]) / 2 * (2 * xs[i]);
      EXPECT_NEAR(y[i], (u > 3 ? t : -t) + xs[i] + zs[i] * 2 - n + 2, 1e-13) << i;
    }
  });
}

TEST(Primitive, float_functions_round_to_float_everywhere) {
  Registered one({"test_float", text("third(x0)"), nullptr, 1, true,
                  "float third(float x) { return x / 3.0f; }"});
  test::on_every_device([](const Queue& queue) {
    const auto y = call_primitive("test_float", {doubles(queue, {0.1, 1, 2})}).to_vector<double>();
    const float expected[] = {0.1f / 3.0f, 1 / 3.0f, 2 / 3.0f};
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], expected[i], 1e-7 * expected[i]);
    for (const double value : y) EXPECT_EQ(value, static_cast<float>(value));
  });
}

TEST(Primitive, says_what_the_cpu_backend_cannot_evaluate) {
  const char* source = R"(
float loop(float x) { float s = 0; for (int i = 0; i < 3; ++i) s += x; return s; }
float through(float x) { return loop(x) + 1; }
)";
  Registered one({"test_loop", text("through(x0)"), texts({"loop(dy)"}), 1, true, source});
  test::on_every_device([](const Queue& queue) {
    auto x = Tensor::full(queue, {3}, 2);
    if (!queue.is_cpu()) {
      x.set_requires_grad();
      Tape tape;
      const auto y = call_primitive("test_loop", {x});
      EXPECT_EQ(y.to_vector<float>(), std::vector<float>(3, 7));
      const auto dx = tape.gradient(ops::sum(y), {x}, {}, {.create_graph = true});
      EXPECT_EQ(dx[0].to_vector<float>(), std::vector<float>(3, 3));
      return;
    }
    const auto message =
        message_of<ArgumentError>([&] { call_primitive("test_loop", {x}).wait(); });
    expect_part(message, "[test_loop] through cannot be evaluated outside of OpenCL kernels");
    expect_part(message, "loop cannot be evaluated");
    expect_part(message, "for");
    expect_part(message, "one return");
  });
}

TEST(Primitive, takes_attributes_as_arguments_of_one_kernel) {
  std::atomic<int> asked = 0;
  Registered one({"test_scaled",
                  [&](const Args& args, const Attrs& attrs) {
                    ++asked;
                    return args[0] + " * " + std::to_string(attrs.at("scale")) + " + " +
                           std::to_string(attrs.at("shift"));
                  },
                  [](const Args&, const std::string& grad, const Attrs& attrs, const std::string&) {
                    return Strings{grad + " * " + std::to_string(attrs.at("scale"))};
                  },
                  1});
  test::on_every_device([&](const Queue& queue) {
    const auto x = doubles(queue, {1, 2, -3});
    const auto inf = std::numeric_limits<double>::infinity();
    for (const double scale : {2.0, -0.5, 0.0, inf}) {
      const auto y = call_primitive("test_scaled", {x}, {{"scale", scale}, {"shift", 1}});
      EXPECT_EQ(y.to_vector<double>()[1], 2 * scale + 1);
    }
    const auto y = call_primitive("test_scaled", {x}, {{"scale", NAN}, {"shift", 1}});
    EXPECT_TRUE(std::isnan(y.to_vector<double>()[1]));
    check_gradients("test_scaled", {x}, {{"scale", -1.5}, {"shift", 4}});
    // Read once per set of attributes.
    const int before = asked;
    for (int i = 0; i < 5; ++i)
      call_primitive("test_scaled", {x}, {{"scale", 2}, {"shift", 1}}).wait();
    EXPECT_EQ(asked, before);
    expect_part(message_of<ArgumentError>([&] { call_primitive("test_scaled", {x}); }),
                "[test_scaled] its forward failed for the attributes ()");
    expect_part(message_of<ArgumentError>([&] {
                  call_primitive("test_scaled", {x}, {{"a", 1}});
                }),
                "[test_scaled] its forward failed for the attributes (a=1)");
  });
  EXPECT_THROW(find_op("test_scaled").infer({find_op("test_scaled"), {}, {}}), ArgumentError);
}

// Attributes may change the expression itself, and of the gradient alone.
TEST(Primitive, attributes_may_choose_the_expression) {
  Registered one(
      {"test_choice",
       [](const Args& args, const Attrs& attrs) {
         return attrs.count("cube") != 0 ? args[0] + "*" + args[0] + "*" + args[0]
                                         : args[0] + " * " + args[0];
       },
       [](const Args& args, const std::string& grad, const Attrs& attrs, const std::string& out) {
         if (attrs.count("stop") != 0) return Strings{"0"};
         const std::string power = attrs.count("cube") != 0 ? "3" : "2";
         return Strings{power + " * " + grad + " * " + out + " / " + args[0]};
       },
       1});
  test::on_every_device([](const Queue& queue) {
    auto x = doubles(queue, {2, 3});
    EXPECT_EQ(call_primitive("test_choice", {x}).to_vector<double>(), (std::vector<double>{4, 9}));
    EXPECT_EQ(call_primitive("test_choice", {x}, {{"cube", 1}}).to_vector<double>(),
              (std::vector<double>{8, 27}));
    check_gradients("test_choice", {x});
    check_gradients("test_choice", {x}, {{"cube", 1}});
    x.set_requires_grad();
    Tape tape;
    const auto y = call_primitive("test_choice", {x}, {{"stop", 1}});
    EXPECT_EQ(tape.gradient(ops::sum(y), {x})[0].to_vector<double>(), (std::vector<double>{0, 0}));
  });
}

TEST(Primitive, broadcasts_and_mixes_dtypes) {
  Registered one({"test_mix", text("x0 * x1 + x2"), texts({"dy * x1", "dy * x0", "dy"}), 3});
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::arange(queue, 1, 4, 1, DType::float32).reshape({3, 1});
    const auto b = Tensor::arange(queue, 1, 3, 1, DType::int32);
    const auto y = call_primitive("test_mix", {a, b, 10.0});
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    EXPECT_EQ(y.dtype(), DType::float32);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{11, 12, 12, 14, 13, 16}));
    const auto wide = call_primitive("test_mix", {a, b.astype(DType::float64), 0.5});
    EXPECT_EQ(wide.dtype(), DType::float64);
    const auto half = call_primitive("test_mix", {a.astype(DType::float16), 2.0, b});
    EXPECT_EQ(half.dtype(), DType::float16);
    EXPECT_EQ(half.to_vector<float>(), (std::vector<float>{3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(call_primitive("test_mix", {b, b, b}).dtype(), DType::float32);
    // Views, no elements, special values.
    const auto t = Tensor::arange(queue, 0, 6, 1, DType::float32).reshape({2, 3}).transpose();
    EXPECT_EQ(call_primitive("test_mix", {t, t, 1.0}).to_vector<float>(),
              (std::vector<float>{1, 10, 2, 17, 5, 26}));
    EXPECT_EQ(call_primitive("test_mix", {Tensor::full(queue, {0, 3}, 1), 1.0, 2.0}).shape(),
              (Shape{0, 3}));
    const auto special = doubles(queue, {NAN, INFINITY, -INFINITY, 0});
    const auto result = call_primitive("test_mix", {special, 2.0, 1.0}).to_vector<double>();
    EXPECT_TRUE(std::isnan(result[0]));
    EXPECT_EQ(result[1], INFINITY);
    EXPECT_EQ(result[2], -INFINITY);
    EXPECT_EQ(result[3], 1);
    const auto d = [&](const Shape& shape) {
      return Tensor::random(queue, shape, 11, Distribution::normal, DType::float64);
    };
    check_gradients("test_mix", {d({2, 1}), d({3}), d({2, 3})});
    check_gradients("test_mix", {d({}), d({2}), d({1, 1})});
  });
}

TEST(Primitive, of_many_operands_and_axes) {
  std::string sum = "x0";
  Strings gradients{"dy"};
  for (int i = 1; i < 16; ++i) {
    sum += " + " + std::to_string(i + 1) + " * x" + std::to_string(i);
    gradients.push_back(std::to_string(i + 1) + " * dy");
  }
  Registered one({"test_many", text(sum), texts(gradients), 16});
  test::on_every_device([](const Queue& queue) {
    std::vector<ops::Operand> operands;
    for (int i = 0; i < 16; ++i) {
      std::vector<std::int64_t> sizes(10, 1);
      sizes[static_cast<std::size_t>(i % 10)] = 2;
      operands.emplace_back(Tensor::full(queue, Shape(sizes), 1));
    }
    const auto y = call_primitive("test_many", operands);
    EXPECT_EQ(y.numel(), 1024);
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(1024, 136));
  });
}

TEST(Primitive, has_no_gradient_where_none_is_given) {
  Registered none({"test_none", text("x0 * 2"), nullptr, 1});
  Registered some({"test_some", text("x0 * x1"), texts({"dy * x1", ""}), 2});
  EXPECT_FALSE(find_op("test_none").backward);
  EXPECT_EQ(find_op("test_some").saves({true, false}, {}).inputs, 2u);
  test::on_every_device([](const Queue& queue) {
    auto x = doubles(queue, {1, 2}), z = doubles(queue, {3, 4});
    x.set_requires_grad();
    Tape tape;
    EXPECT_THROW(tape.backward(ops::sum(call_primitive("test_none", {x}))), ArgumentError);
    tape.backward(ops::sum(call_primitive("test_some", {x, z})));
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{3, 4}));
  });
}

TEST(Primitive, gradients_of_gradients) {
  Registered one({"test_cube", text("CUBE(x0)"), texts({"3 * dy * x0 * x0"}), 1, true,
                  "#define CUBE(x) ((x) * (x) * (x))"});
  Registered two({"test_own", text("x0 * x0"), texts({"OWN(dy, x0)"}), 1, true,
                  "#define OWN(d, x) (2.0 * (d) * (x))"});
  test::on_every_device([](const Queue& queue) {
    auto x = doubles(queue, {1, 2, -3});
    x.set_requires_grad();
    Tape tape;
    const BackwardOptions options{.create_graph = true};
    const auto first =
        tape.gradient(ops::sum(call_primitive("test_cube", {x})), {x}, {}, options)[0];
    const auto second = tape.gradient(ops::sum(first), {x}, {}, options)[0];
    const auto third = tape.gradient(ops::sum(second), {x})[0];
    EXPECT_EQ(first.to_vector<double>(), (std::vector<double>{3, 12, 27}));
    EXPECT_EQ(second.to_vector<double>(), (std::vector<double>{6, 12, -18}));
    EXPECT_EQ(third.to_vector<double>(), (std::vector<double>{6, 6, 6}));
    const auto own = tape.gradient(ops::sum(call_primitive("test_own", {x})), {x}, {}, options)[0];
    EXPECT_EQ(tape.gradient(ops::sum(own), {x})[0].to_vector<double>(),
              (std::vector<double>{2, 2, 2}));
  });
}

TEST(Primitive, can_stay_out_of_fusion) {
  Registered one({"test_alone", text("x0 + 1"), texts({"dy"}), 1, false});
  EXPECT_FALSE(find_op("test_alone").element);
  Registered pasted({"test_pasted", text("GLUE(x0)"), nullptr, 1, true,
                     "#define PART_a(x) ((x) + 1)\n#define GLUE(x) PART_##a(x)"});
  EXPECT_FALSE(find_op("test_pasted").element);
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {3}, 1);
    EXPECT_EQ(call_primitive("test_alone", {x}).to_vector<float>(), std::vector<float>(3, 2));
    if (queue.is_cpu())
      expect_part(message_of<ArgumentError>([&] { call_primitive("test_pasted", {x}); }),
                  "GLUE uses ##");
    else
      EXPECT_EQ(call_primitive("test_pasted", {x}).to_vector<float>(), std::vector<float>(3, 2));
  });
}

// ---- errors

TEST(Primitive, refuses_bad_registrations) {
  expect_part(refusal({"", text("x0"), nullptr, 1}), "the name must be a C identifier");
  expect_part(refusal({"two words", text("x0"), nullptr, 1}), "'two words'");
  expect_part(refusal({"test_bad", nullptr, nullptr, 1}), "there must be a forward");
  expect_part(refusal({"test_bad", text("x0"), nullptr, 0}), "the arity must be 1 ... 16: 0");
  expect_part(refusal({"test_bad", text("x0"), nullptr, 17}), "the arity must be 1 ... 16: 17");
  expect_part(refusal({"relu", text("x0"), nullptr, 1}),
              "[relu] the name is that of an op of netcl");
  expect_part(refusal({"test_bad", text("x0 +"), nullptr, 1}),
              "[test_bad] cannot read the expression: it ends where a value is expected\n  x0 +\n");
  expect_part(refusal({"test_bad", text(""), nullptr, 1}), "the expression is empty");
  expect_part(refusal({"test_bad", text("x1"), nullptr, 1}), "'x1' is unknown");
  expect_part(refusal({"test_bad", text("MY_OO(x0)"), nullptr, 1, true, "#define MY_OP(a) (a)"}),
              "did you mean MY_OP?");
  expect_part(refusal({"test_bad", text("MY_OP(x0, 1)"), nullptr, 1, true, "#define MY_OP(a) (a)"}),
              "MY_OP takes 1 argument");
  expect_part(refusal({"test_bad", text("x0"), texts({"dy", "dy"}), 1}),
              "[test_bad] backward must give one expression per operand, 1: 2");
  expect_part(refusal({"test_bad", text("x0"), texts({"dy *"}), 1}),
              "[test_bad, gradient 0] cannot read the expression");
  expect_part(refusal({"test_bad", text("dy"), nullptr, 1}), "'dy' is unknown");
  EXPECT_EQ(find_op_or_null("test_bad"), nullptr);
}

TEST(Primitive, names_are_taken_once) {
  Registered one({"test_once", text("x0 + 1"), nullptr, 1});
  expect_part(message_of<ArgumentError>([] {
                register_primitive({"test_once", text("x0 + 2"), nullptr, 1});
              }),
              "[register_primitive test_once] there is a primitive of this name");
  const auto cpu = manager().default_device("cpu").queue;
  const auto x = Tensor::full(cpu, {1}, 1);
  EXPECT_EQ(call_primitive("test_once", {x}).item(), 2);
  const auto* before = &find_op("test_once");
  register_primitive({"test_once", text("x0 + 2"), nullptr, 1}, true);
  EXPECT_EQ(call_primitive("test_once", {x}).item(), 3);
  EXPECT_EQ(call_op(*before, {x})[0].item(), 2);  // its address stays good
  const auto names = primitive_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "test_once"), 1);
  EXPECT_TRUE(unregister_primitive("test_once"));
  EXPECT_FALSE(unregister_primitive("test_once"));
  expect_part(message_of<ArgumentError>([] { get_primitive("test_once"); }),
              "there is no primitive called 'test_once'");
  Registered two({"test_twice", text("x0"), nullptr, 1});
  expect_part(message_of<ArgumentError>([] { get_primitive("test_twic"); }),
              "did you mean test_twice?");
}

TEST(Primitive, refuses_bad_calls) {
  Registered one({"test_calls", text("x0 * x1"), nullptr, 2});
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {3}, 1);
    const auto message = [](auto&& f) { return message_of<ArgumentError>(f); };
    expect_part(message([&] { call_primitive("test_calls", {x}); }),
                "[test_calls] it takes 2 operands: 1 were given");
    expect_part(message([&] {
                  call_primitive("test_calls", {1.0, 2.0});
                }),
                "[test_calls] at least one operand must be a tensor");
    expect_part(message([&] {
                  call_primitive("test_calls", {x, Tensor()});
                }),
                "must not be an empty");
    expect_part(message([&] {
                  call_op(find_op("test_calls"), {x, x}, {{"a", 1.0}});
                }),
                "[test_calls] attributes are given to call_primitive: a");
    EXPECT_THROW(call_primitive("test_calls", {x, Tensor::full(queue, {2}, 1)}), ShapeError);
    const auto storage = x.astype(DType::bfloat16);
    expect_part(message_of<DtypeError>([&] {
                  call_primitive("test_calls", {storage, storage});
                }),
                "[test_calls] bfloat16 is for storage");
  });
}

// What the compiler says of the user's text is told, and costs the ops of netcl nothing.
TEST(Primitive, a_macro_that_does_not_compile) {
  NETCL_NEED_OPENCL();
  Registered one({"test_broken", text("BROKEN(x0)"), nullptr, 1, true,
                  "#define BROKEN(x) no_such_function(x)"});
  const auto queue = test::opencl_devices()[0].queue;
  const auto x = Tensor::full(queue, {3, 1}, -1), z = Tensor::full(queue, {5}, -1);
  for (int i = 0; i < 2; ++i)
    expect_part(message_of<BuildError>([&] { call_primitive("test_broken", {x}).wait(); }),
                "no_such_function");
  EXPECT_EQ(ops::add(x, z).to_vector<float>(), std::vector<float>(15, -2));
}

// ---- threads and processes

TEST(Primitive, may_be_registered_and_called_from_threads) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {100}, 3, DType::float64);
    x.wait();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        const auto name = "test_thread" + std::to_string(t % 4);
        for (int i = 0; i < 20; ++i) {
          register_primitive({name,
                              [](const Args& args, const Attrs& attrs) {
                                return args[0] + " * " + std::to_string(attrs.at("by"));
                              },
                              nullptr, 1},
                             true);
          const auto y = call_primitive(name, {x}, {{"by", i + 1.0}}).to_vector<double>();
          if (y[99] != 3.0 * (i + 1)) ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (int t = 0; t < 4; ++t) unregister_primitive("test_thread" + std::to_string(t));
  });
}

std::string source_hash() {
  const auto& op = find_op("test_text");
  std::vector<std::string> statements;
  const std::string names[] = {"a", "b"};
  op.element->write(DType::float32, names, {}, "y", statements);
  Sha256 hash;
  for (const auto& statement : statements) hash.update_field(statement);
  return hash.update_field(op.element->preamble).hex();
}

TEST(Primitive, has_the_same_text_in_every_process) {
  Registered one(
      {"test_text", text("MINE(x0, other(x1)) * 0.3"), nullptr, 2, true,
       "#define MINE(a, b) ((a) + (b))\nfloat other(float x) { return MINE(x, 1.0f); }"});
  if (const auto role = test::child_role()) {
    std::ofstream(*role) << source_hash();
    return;
  }
  const test::TempDir folder;
  const auto file = folder / "hash";
  test::ChildProcess child(file);
  EXPECT_EQ(child.wait(), 0);
  std::string theirs;
  std::ifstream(file) >> theirs;
  EXPECT_EQ(theirs, source_hash());
  EXPECT_EQ(theirs.size(), 64u);
}

}  // namespace
}  // namespace netcl
