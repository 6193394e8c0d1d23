// elementwise_binary: an expression of the user over two tensors, as one kernel.
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expression/expression_op.h"

namespace netcl {
namespace {

// An expression ready to be called: its op, and its numbers as attributes.
struct Prepared {
  Expression expression;  // with its numbers as parameters
  std::vector<double> numbers;
  Attributes attributes;
  const OpDef* op = nullptr;

  OpCall call(const OpCall& of) const { return {*op, of.queue, of.inputs, attributes, of.outputs}; }
};

std::shared_ptr<const Prepared> prepare(const std::string& text) {
  static auto* const forms = new ExpressionForms();
  auto made = std::make_shared<Prepared>();
  made->expression = Expression::parse("elementwise_binary", text, {"v0", "v1"})
                         .with_numbers_as_parameters(number_names(), made->numbers);
  made->attributes = number_attributes(made->numbers);
  const auto& expression = made->expression;
  made->op = &forms->get(expression.structure(), [&] {
    const std::string name = "elementwise_binary";
    return make_expression_op(
        {name, expression, std::make_shared<ExpressionGradients>(name, expression)});
  });
  return made;
}

// Reading an expression costs more than a small call: the texts of late are remembered.
std::shared_ptr<const Prepared> prepared(const std::string& text) {
  constexpr std::size_t kMost = 1024;
  struct Memo {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const Prepared>> of;
  };
  static auto* const memo = new Memo();
  {
    const std::lock_guard lock(memo->mutex);
    if (const auto found = memo->of.find(text); found != memo->of.end()) return found->second;
  }
  auto made = prepare(text);
  const std::lock_guard lock(memo->mutex);
  if (memo->of.size() >= kMost) memo->of.clear();
  return memo->of.emplace(text, std::move(made)).first->second;
}

std::shared_ptr<const Prepared> prepared(const Attributes& attributes) {
  return prepared(attributes.text("expression"));
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  for (std::size_t i = 0; i < 2; ++i)
    check<DtypeError>(spec.dtype(i) == spec.dtype(0) && is_floating(spec.dtype(i)) &&
                          spec.dtype(i) != DType::bfloat16,
                      "[elementwise_binary] both tensors must be float16, float32 or float64: {} "
                      "and {}",
                      name_of(spec.dtype(0)), name_of(spec.dtype(1)));
  prepared(spec.attributes);
  return {{broadcast_shapes(spec.op.name, spec.shape(0), spec.shape(1)), spec.dtype()}};
}

void reference(RefCall& call) {
  const auto form = prepared(call.attributes);
  auto& y = call.outputs[0];
  std::vector<Strides> strides;
  for (const auto& input : call.inputs)
    strides.push_back(broadcast_strides(input.shape, contiguous_strides(input.shape), y.shape));
  std::size_t at = 0;
  for_each_run(plan_broadcast(y.shape, strides), 0, y.shape.numel(),
               [&](const auto& offsets, const auto& steps, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   const double values[] = {
                       call.inputs[0].values[static_cast<std::size_t>(offsets[0] + i * steps[0])],
                       call.inputs[1].values[static_cast<std::size_t>(offsets[1] + i * steps[1])]};
                   y.values[at++] = form->expression.evaluate(values, form->numbers);
                 }
               });
}

// The op by its name: for lists and tests, its calls are those of the expression's own op.
std::vector<OpVariant> variants() {
  std::vector<OpVariant> all = prepared("v0 + v1")->op->variants;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].declines)
      all[k].declines = [k](const OpCall& call, const ExtendedDeviceProfile& profile) {
        const auto form = prepared(call.attributes);
        return form->op->variants[k].declines(form->call(call), profile);
      };
    all[k].run = [k](const OpCall& call, const VariantRun& with) {
      const auto form = prepared(call.attributes);
      form->op->variants[k].run(form->call(call), with);
    };
  }
  return all;
}

std::vector<Tensor> backward(const OpGradient& gradient) {
  const auto form = prepared(gradient.attributes);
  return form->op->backward({gradient.inputs, form->attributes, gradient.outputs, gradient.grads,
                             gradient.wanted, gradient.differentiable});
}

// ---- samples

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](const std::string& id, const char* text,
                       std::vector<Shape> shapes = {{37}, {37}}) {
    OpSample sample{id, {}, {{"expression", std::string(text)}}};
    for (const auto& shape : shapes) sample.inputs.push_back({shape, Fill::uniform, 0.25, 2});
    all.push_back(std::move(sample));
  };
  const char* const plain = "MUL(ADD(v0, v1), 2.0f) - v0 / v1";
  add("0", plain, {{0}, {0}});
  add("1", plain, {{1}, {1}});
  add("1031", plain, {{1031}, {1031}});
  add("scalar", plain, {{}, {}});
  add("5x1+1x7", plain, {{5, 1}, {1, 7}});
  add("3x4x5+5", plain, {{3, 4, 5}, {5}});
  add("scalar+11x3", plain, {{}, {11, 3}});
  // More sizes of the same few kernels: an expression is a kernel to compile.
  for (const std::int64_t n : {2, 3, 15, 16, 17, 31, 33, 63, 65, 257})
    add(fmt::format("{}", n), plain, {{n}, {n}});
  add("3x5x7", plain, {{3, 5, 7}, {3, 5, 7}});
  add("3x0", plain, {{3, 0}, {3, 0}});
  add("17x1+1x31", plain, {{17, 1}, {1, 31}});
  add("2x3x16+16", plain, {{2, 3, 16}, {16}});
  add("scalar+7x2x3", plain, {{}, {7, 2, 3}});
  add("logic", "v0 > v1 && !(v0 < 1) || v1 == v0 ? RELU(v0 - v1) : -v1 * .5");
  add("functions", "MAX(exp(-v0), TANH(v1)) + MIN(log1p(v0), SQRT(v1)) * ABS(v0 - 1e0)");
  const std::vector<std::pair<const char*, const char*>> single = {
      {"trigonometry", "sin(v0) * cos(v1) + tan(v0 * .5) + atan2(v0, v1)"},
      {"powers", "pow(v0, v1) + rsqrt(v0) + cbrt(v1) + hypot(v0, v1)"},
      {"rounding", "floor(v0 * 4) + ceil(v1 * 4) - trunc(v0 * 3) + rint(v1 * 8) + round(v0 * 5)"},
      {"errors", "erf(v0) - erfc(v1) + expm1(v0) * clamp(v1, 0.5, 1)"},
      {"comparisons", "(v0 <= v1) + 2 * (v0 >= v1) + 4 * (v0 != v1) + 8 * (v0 > 1) + sign(v0 - 1)"},
      {"constant", "M_PI"},
      {"variable", "v1"}};
  for (const auto& [id, text] : single) {
    add(id, text);
    all.back().dtypes = {DType::float32};
  }
  add("special", "MAX(v0, v1) + MIN(v0, 1) + RELU(v1) + isnan(v0) + isinf(v1) + isfinite(v0)");
  for (auto& input : all.back().inputs) input = {{131}, Fill::special};
  all.back().gradient = false;
  // Neighbours of the largest number overflow or not, depending on the order of rounding.
  all.back().attributes =
      Attributes{{"expression", std::string("isnan(v0) ? MIN(v0, v1) : isinf(v1) ? MAX(v0, 1) : "
                                            "RELU(v1) == v1 ? fmax(v0, v1) : isfinite(v0) - 2")}};
  return all;
}

}  // namespace

std::vector<OpDef> ops_of_expression() {
  OpDef op;
  op.name = "elementwise_binary";
  op.summary = "an expression over the elements v0 and v1 of two tensors";
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = reference;
  op.host = [](const OpCall& call) {
    const auto form = prepared(call.attributes);
    form->op->host(form->call(call));
  };
  op.backward = backward;
  op.variants = variants();
  op.problem = [](const OpCall& call) {
    return KernelProblem{"elementwise", {call.outputs[0].shape()}, call.outputs[0].dtype(), {}};
  };
  op.samples = samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto ulps = prepared(spec.attributes)->expression.ulps();
    return Tolerance{1 + ulps, 4 * ulps};
  };
  op.tolerance_reason = "what OpenCL C promises for each function, added up; values are about 1";
  op.takes_views = op.writes_views = op.may_be_in_place = true;
  return {op};
}

namespace ops {

Tensor elementwise_binary(const Tensor& a, const Tensor& b, const std::string& expression) {
  check<ArgumentError>(a && b, "[elementwise_binary] no tensor may be empty (default-made)");
  const auto form = prepared(expression);
  const auto dtype = floating_of(promoted(a.dtype(), b.dtype()));
  return call_op(*form->op, {as_dtype(a, dtype), as_dtype(b, dtype)}, form->attributes)[0];
}

}  // namespace ops
}  // namespace netcl
