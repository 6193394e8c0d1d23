#include "ops/expression/expression_op.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/program.h"
#include "ops/expression/element.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlock = 256;  // elements
constexpr std::int64_t kGrain = 1 << 14;
constexpr std::size_t kMostStrided = 8;  // inputs; the arguments of a launch are limited
constexpr std::size_t kMostAxes = 8;     // of the kernels' loops
constexpr std::size_t kMostFused = 16;   // inputs or parameters of an op that fusion takes in

// What an op knows of itself.
struct Body {
  std::string name;
  std::shared_ptr<const ElementFunction> element;
  std::vector<std::string> inputs, scalars;  // names in kernels
  std::array<std::int64_t, 4> hash;          // of everything that kernels are made from
};

std::array<std::int64_t, 4> hash_of(const Expression& expression) {
  const auto preamble = expression.library() ? expression.library()->preamble : std::string();
  const auto digest =
      Sha256().update(expression.structure()).update("\n").update(preamble).digest();
  std::array<std::int64_t, 4> words;
  std::memcpy(words.data(), digest.data(), sizeof words);
  return words;
}

std::shared_ptr<const Body> make_body(const ExpressionOp& description) {
  auto body = std::make_shared<Body>();
  body->name = description.name;
  body->element = expression_element(description.name, description.expression);
  for (std::size_t i = 0; i < description.expression.variables().size(); ++i)
    body->inputs.push_back(fmt::format("x{}", i));
  for (std::size_t i = 0; i < description.expression.parameters().size(); ++i)
    body->scalars.push_back(fmt::format("p{}", i));
  body->hash = hash_of(description.expression);
  return body;
}

// ---- shapes and dtypes

std::vector<TensorSpec> infer(const Body& body, const OpSpec& spec) {
  check<ArgumentError>(spec.inputs.size() == body.inputs.size(), "[{}] it takes {} operands: {}",
                       body.name, body.inputs.size(), spec.inputs.size());
  std::optional<TensorSpec> result;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.has(i)) continue;
    const auto dtype = spec.dtype(i);
    if (!result) result = TensorSpec{spec.shape(i), dtype};
    result->shape = broadcast_shapes(body.name, result->shape, spec.shape(i));
    // The condition of a gradient may be of another kind than the values.
    if (!is_floating(dtype)) continue;
    if (!is_floating(result->dtype)) result->dtype = dtype;
    check<DtypeError>(dtype != DType::bfloat16,
                      "[{}] bfloat16 is for storage: convert with astype first", body.name);
    check<DtypeError>(dtype == result->dtype,
                      "[{}] the operands must have one dtype: {} and {} (use astype)", body.name,
                      name_of(result->dtype), name_of(dtype));
  }
  check<ArgumentError>(result.has_value(), "[{}] at least one operand must be a tensor", body.name);
  check<DtypeError>(is_floating(result->dtype),
                    "[{}] the dtype must be float16, float32 or float64: {}", body.name,
                    name_of(result->dtype));
  return {*result};
}

ElementArgs args_of(const Body& body, const OpCall& call) {
  ElementArgs args{call.inputs, {}, call.outputs, {}};
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.has(i)) args.scalar_inputs.push_back(call.attributes.number(scalar_input(i)));
  for (const auto& name : body.element->scalars)
    args.scalars.push_back(call.attributes.number(name));
  return args;
}

// ---- CPU backend

template <class V>
class HostLoops {
 public:
  HostLoops(const ElementFunction& element, const ElementArgs& args)
      : element_(element), args_(args), loops_(element_loops(args)) {
    for (const auto value : args.scalars) scalars_.push_back(static_cast<V>(value));
  }

  void run() const {
    parallel_for(args_.outputs[0].numel(), kGrain, [this](std::int64_t begin, std::int64_t end) {
      const auto count = args_.inputs.size();
      std::vector<V> values((count + 1) * kBlock);
      std::vector<const V*> inputs;
      std::size_t number = 0;
      for (std::size_t i = 0; i < count; ++i) {
        inputs.push_back(values.data() + i * kBlock);
        if (!args_.inputs[i])
          std::fill_n(values.data() + i * kBlock, kBlock,
                      static_cast<V>(args_.scalar_inputs[number++]));
      }
      for_each_run(loops_, begin, end, [&](const auto& at, const auto& steps, std::int64_t n) {
        for (std::int64_t done = 0; done < n; done += kBlock)
          block(values, inputs, at, steps, done, std::min(kBlock, n - done));
      });
    });
  }

 private:
  void block(std::vector<V>& values, const std::vector<const V*>& inputs,
             const std::vector<std::int64_t>& at, const std::vector<std::int64_t>& steps,
             std::int64_t done, std::int64_t n) const {
    const auto count = inputs.size();
    for (std::size_t k = 0; k < count; ++k) {
      if (!args_.inputs[k]) continue;
      visit_dtype(args_.inputs[k].dtype(), [&]<class T>(T) {
        const auto* from =
            static_cast<const T*>(args_.inputs[k].host_data()) + at[k] + done * steps[k];
        V* to = values.data() + k * kBlock;
        for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<V>(from[i * steps[k]]);
      });
    }
    V* result = values.data() + count * kBlock;
    element_.run(n, inputs.data(), scalars_.data(), result);
    visit_dtype(args_.outputs[0].dtype(), [&]<class T>(T) {
      auto* to = static_cast<T*>(args_.outputs[0].host_data()) + at[count] + done * steps[count];
      for (std::int64_t i = 0; i < n; ++i) to[i * steps[count]] = convert_element<T>(result[i]);
    });
  }

  const ElementFunction& element_;
  const ElementArgs& args_;
  const BroadcastLoops loops_;
  std::vector<V> scalars_;
};

void host(const Body& body, const OpCall& call) {
  const auto args = args_of(body, call);
  if (call.outputs[0].dtype() == DType::float64)
    HostLoops<double>(*body.element, args).run();
  else
    HostLoops<float>(*body.element, args).run();
}

// ---- OpenCL

// The dtypes and accesses of all operands, seven to a word.
std::array<std::int64_t, 5> operand_words(const ElementProgram& program) {
  std::array<std::int64_t, 5> words{};
  std::size_t next = 0;
  for (const auto* list : {&program.inputs, &program.outputs})
    for (const auto& operand : *list) (words.at(next++ / 7) *= 256) += operand_bits(operand);
  return words;
}

KernelKey key_of(const Body& body, const ElementProgram& program, const ElementShape& launch) {
  const auto bits = operand_words(program);
  return {"expression",
          "elementwise",
          {body.hash[0], body.hash[1], body.hash[2], body.hash[3], bits[0], bits[1], bits[2],
           bits[3], bits[4], static_cast<std::int64_t>(program.compute),
           static_cast<std::int64_t>(program.rank), program.wide, launch.bits()}};
}

// Operands as the kernels' loops can take them: not too many that are strided.
void limit_strided(ElementArgs& args) {
  std::size_t strided = 0;
  const auto& shape = args.outputs[0].shape();
  for (auto& input : args.inputs)
    if (input && !(input.shape() == shape && input.is_contiguous()) && ++strided > kMostStrided)
      input = input.expand(shape).contiguous();
}

void enqueue(const Queue& queue, const Body& body, ElementArgs args, const ElementShape& launch);

// Views with more axes than the kernels' loops have: one launch per place of the first axis.
void enqueue_slices(const Queue& queue, const Body& body, const ElementArgs& args,
                    const ElementShape& launch) {
  const auto& sizes = args.outputs[0].shape();
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    auto part = args;
    for (auto& input : part.inputs)
      if (input) input = input.expand(sizes).select(0, i);
    for (auto& output : part.outputs) output = output.select(0, i);
    enqueue(queue, body, std::move(part), launch);
  }
}

void enqueue(const Queue& queue, const Body& body, ElementArgs args, const ElementShape& launch) {
  limit_strided(args);
  const auto loops = element_loops(args);
  if (loops.sizes.size() > kMostAxes) return enqueue_slices(queue, body, args, launch);
  ElementProgram program;
  program.compute = compute_dtype(args.outputs[0].dtype());
  describe_operands(args, loops, program);
  program.own_functions = device_profile(queue).is_cpu;
  program.names = body.inputs;
  program.scalars = body.scalars;
  const auto kernel = generated_kernel(queue, key_of(body, program, launch), [&] {
    program.preamble = body.element->preamble;
    body.element->write(program.compute, body.inputs, body.scalars, "y", program.statements);
    program.results = {"y"};
    return render_elements(program, launch);
  });
  enqueue_elements(queue, kernel, program, args, loops, launch);
}

std::string needs_vectors(const Body& body, const OpCall& call,
                          const ExtendedDeviceProfile& profile) {
  if (!body.element->vectors) return "the expression has functions that take no vectors";
  auto args = args_of(body, call);
  limit_strided(args);
  const auto loops = element_loops(args);
  ElementProgram program;
  if (loops.sizes.size() > kMostAxes) return "the views have too many axes";
  describe_operands(args, loops, program);
  return takes_vectors(program, loops, profile) ? "" : "an operand is broadcast or a strided view";
}

std::vector<OpVariant> variants(const std::shared_ptr<const Body>& body) {
  OpVariant vectorized{"elementwise.vectorized", "ELEMENTWISE_VECTORIZED"};
  vectorized.declines = [body](const OpCall& call, const ExtendedDeviceProfile& profile) {
    return needs_vectors(*body, call, profile);
  };
  vectorized.run = [body](const OpCall& call, const VariantRun& with) {
    const auto& profile = device_profile(call.queue);
    const auto args = args_of(*body, call);
    enqueue(call.queue, *body, args,
            profile.is_cpu
                ? walking_shape(args, compute_dtype(args.outputs[0].dtype()), 16, profile)
                : ElementShape{.vec = 4, .local = with.config.local_size_1d});
  };
  OpVariant scalar{"elementwise.scalar", "ELEMENTWISE_SCALAR"};
  scalar.run = [body](const OpCall& call, const VariantRun& with) {
    const bool cpu = device_profile(call.queue).is_cpu;
    enqueue(call.queue, *body, args_of(*body, call),
            {.items = cpu ? 4 : 1, .local = with.config.local_size_1d});
  };
  return {vectorized, scalar};
}

}  // namespace

std::string_view scalar_input(std::size_t input) {
  static const auto* const names = [] {
    auto* made = new std::vector<std::string>();
    for (std::size_t i = 0; i < kMostExpressionInputs + 2; ++i)
      made->push_back(fmt::format("scalar{}", i));
    return made;
  }();
  return names->at(input);
}

std::span<const std::string> number_names() {
  static const auto* const names = [] {
    auto* made = new std::vector<std::string>();
    for (int i = 0; i < 32; ++i) made->push_back(fmt::format("number{}", i));
    return made;
  }();
  return *names;
}

Attributes number_attributes(std::span<const double> values) {
  Attributes attributes;
  for (std::size_t i = 0; i < values.size(); ++i) attributes.set(number_names()[i], values[i]);
  return attributes;
}

const OpDef& ExpressionForms::get(const std::string& structure,
                                  const std::function<OpDef()>& make) {
  const std::lock_guard lock(mutex_);
  auto& op = ops_[structure];
  if (!op) op = std::make_unique<const OpDef>(make());
  return *op;
}

OpDef make_expression_op(const ExpressionOp& description) {
  const auto body = make_body(description);
  OpDef op;
  op.name = description.name;
  op.summary = "an expression over the elements of its inputs";
  op.dtypes = kFloats;
  op.infer = [body](const OpSpec& spec) { return infer(*body, spec); };
  op.host = [body](const OpCall& call) { host(*body, call); };
  op.variants = variants(body);
  op.problem = [](const OpCall& call) {
    return KernelProblem{"elementwise", {call.outputs[0].shape()}, call.outputs[0].dtype(), {}};
  };
  if (description.expression.library() != nullptr) {
    // What a compiler says against the user's text is the user's to hear, and no reason to strike
    // out a kernel of netcl.
    op.variants = {op.variants.back()};
    op.variants[0].kernel = "";
    op.problem = nullptr;
  }
  const bool small = body->inputs.size() <= kMostFused && body->scalars.size() <= kMostFused;
  if (description.fusible && small) op.element = body->element;
  if (description.gradients) set_gradients(op, description.gradients);
  op.takes_views = op.writes_views = op.may_be_in_place = true;
  return op;
}

}  // namespace netcl
