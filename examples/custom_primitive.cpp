// An op of one's own: once from a kernel's macros, once from a function in OpenCL C; on every
// device there is, with gradients and gradients of gradients.
#include <cmath>
#include <cstdio>

#include "netcl/netcl.h"

namespace {

using netcl::PrimitiveArgs, netcl::PrimitiveAttributes, netcl::Tensor;
using Strings = std::vector<std::string>;

constexpr const char* kSource = R"(
#define MY_OP(a, b) ((a) * (b))
__kernel void my_op(__global const float* a, __global const float* b, __global float* c) {
  const int i = get_global_id(0);
  c[i] = MY_OP(a[i], b[i]);
}
)";

// A spec that is built makes its macros known to the primitive of the same name.
void register_my_op(const netcl::Queue& queue) {
  netcl::AutogradPrimitive primitive;
  primitive.name = "my_op";
  primitive.arity = 2;
  primitive.forward = [](const PrimitiveArgs& args, const PrimitiveAttributes&) {
    return "MY_OP(" + args[0] + ", " + args[1] + ")";
  };
  primitive.backward = [](const PrimitiveArgs& args, const std::string& grad_var,
                          const PrimitiveAttributes&, const std::string&) {
    return Strings{"MUL(" + grad_var + ", " + args[1] + ")",
                   "MUL(" + grad_var + ", " + args[0] + ")"};
  };
  if (queue.is_cpu())
    primitive.source = kSource;  // no OpenCL here: the text is enough
  else
    netcl::KernelSpec{.name = "my_op", .src = kSource}.build(queue);
  netcl::register_primitive(primitive);
}

// A function instead of a macro, and an attribute.
void register_bump() {
  netcl::AutogradPrimitive primitive;
  primitive.name = "bump";
  primitive.source = R"(
    double bump_of(double x, double width) {
      const double t = x / width;
      return exp(-t * t);
    })";
  primitive.forward = [](const PrimitiveArgs& args, const PrimitiveAttributes& attrs) {
    return "bump_of(" + args[0] + ", " + std::to_string(attrs.at("width")) + ")";
  };
  primitive.backward = [](const PrimitiveArgs& args, const std::string& grad_var,
                          const PrimitiveAttributes& attrs, const std::string& out_var) {
    const auto width = std::to_string(attrs.at("width"));
    return Strings{"-2 * " + grad_var + " * " + out_var + " * " + args[0] + " / (" + width + " * " +
                   width + ")"};
  };
  netcl::register_primitive(primitive);
}

bool try_my_op(const netcl::Queue& queue) {
  auto a = Tensor::from_host(queue, std::vector<float>{1, 2, 3});
  auto b = Tensor::from_host(queue, std::vector<float>{4, 5, 6});
  a.set_requires_grad();
  b.set_requires_grad();
  netcl::Tape tape;
  const auto y = netcl::call_primitive("my_op", {a, b});
  tape.backward(netcl::ops::sum(y));
  std::printf("  my_op: %s, gradient of a %s\n", y.to_string().c_str(),
              a.grad().to_string().c_str());
  return y.to_vector<float>() == std::vector<float>{4, 10, 18} &&
         a.grad().to_vector<float>() == std::vector<float>{4, 5, 6};
}

bool try_bump(const netcl::Queue& queue) {
  auto x = Tensor::from_host(queue, std::vector<double>{-1, 0, 0.5});
  x.set_requires_grad();
  netcl::Tape tape;
  const auto y = netcl::call_primitive("bump", {x}, {{"width", 2}});
  const auto slope = tape.gradient(netcl::ops::sum(y), {x}, {}, {.create_graph = true})[0];
  const auto curvature = tape.gradient(netcl::ops::sum(slope), {x})[0];
  std::printf("  bump(0) = %.3f, slope %.3f, curvature %.3f\n", y.to_vector<double>()[1],
              slope.to_vector<double>()[1], curvature.to_vector<double>()[1]);
  return std::fabs(curvature.to_vector<double>()[1] + 0.5) < 1e-12;
}

}  // namespace

int main() {
  std::vector<netcl::Queue> queues{netcl::manager().default_device().queue};
  if (!queues[0].is_cpu()) queues.push_back(netcl::manager().default_device("cpu").queue);
  register_my_op(queues[0]);
  register_bump();
  bool good = true;
  for (const auto& queue : queues) {
    std::printf("on %s\n", queue.name().c_str());
    good &= try_my_op(queue) && try_bump(queue);
  }
  return good ? 0 : 1;
}
