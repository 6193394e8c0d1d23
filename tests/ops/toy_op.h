// An op of the tests' own, y = 2 x, whose parts can be replaced by wrong ones.
#pragma once

#include <string>

#include "netcl/ops.h"
#include "ops/kernels.h"
#include "ops/op.h"

namespace netcl::test {

// A variant that runs "__kernel void twice" with this body over x, y, i and n.
inline OpVariant toy_variant(const char* name, const char* kernel, std::string body) {
  OpVariant variant{name, kernel};
  variant.run = [body = std::move(body)](const OpCall& call, const VariantRun&) {
    const auto source =
        "__kernel void twice(__global const float* x, __global float* y, long8 at, ulong n) {\n"
        "  const size_t i = get_global_id(0);\n  x += at.s0;\n  y += at.s1;\n"
        "  if (i >= n) return;\n  " +
        body + "\n}\n";
    const auto n = call.outputs[0].numel();
    const KernelKey key("tests/toy_op", "twice",
                        {static_cast<std::int64_t>(std::hash<std::string>{}(body))});
    const auto compiled = generated_kernel(call.queue, key, [&] { return source; });
    OpArgs()
        .tensor(call.inputs[0])
        .tensor(call.outputs[0])
        .value(static_cast<std::uint64_t>(n))
        .enqueue(call.queue, compiled, rounded_up(n, 16), std::size_t{16});
  };
  return variant;
}

using HostBody = void (*)(float* x, float* y, std::int64_t n);

inline std::function<void(const OpCall&)> toy_host(HostBody body) {
  return [body](const OpCall& call) {
    body(static_cast<float*>(call.inputs[0].host_data()),
         static_cast<float*>(call.outputs[0].host_data()), call.outputs[0].numel());
  };
}

inline void twice(float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}

inline OpDef toy_op() {
  OpDef op;
  op.name = "twice";
  op.summary = "2 x";
  op.dtypes = {DType::float32};
  op.infer = [](const OpSpec& spec) {
    return std::vector<TensorSpec>{{spec.shape(0), spec.dtype()}};
  };
  op.reference = [](RefCall& call) {
    for (std::size_t i = 0; i < call.outputs[0].values.size(); ++i)
      call.outputs[0].values[i] = 2 * call.inputs[0].values[i];
  };
  op.host = toy_host(twice);
  op.variants = {toy_variant("twice.simple", "", "y[i] = 2.0f * x[i];")};
  op.samples = [] { return std::vector<OpSample>{{"17", {{{17}}}}, {"5x3", {{{5, 3}}}}}; };
  return op;
}

}  // namespace netcl::test
