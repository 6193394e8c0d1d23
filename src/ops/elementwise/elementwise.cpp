// The OpDefs of the table's rows.
#include "ops/elementwise/elementwise.h"

#include <cmath>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/elementwise/host.h"
#include "ops/elementwise/row_function.h"
#include "ops/elementwise/samples.h"
#include "ops/expression/expression_op.h"
#include "ops/recipe.h"
#include "ops/registry.h"

namespace netcl {
namespace {

// The launch of one expression.
struct ElementJob {
  const ElementCode& code;
  DType compute;
  std::vector<ElementName> names;
  ElementArgs args;
};

ElementProgram program_of(const ElementJob& job, const BroadcastLoops& loops) {
  ElementProgram program;
  program.compute = job.compute;
  describe_operands(job.args, loops, program);
  for (const auto name : job.names) program.names.emplace_back(kElementNameText[name]);
  program.results = {job.code.text};
  constexpr const char* kScalars[] = {"p", "q"};
  for (std::size_t i = 0; i < job.args.scalars.size(); ++i) program.scalars.push_back(kScalars[i]);
  return program;
}

KernelKey key_of(const ElementJob& job, const ElementProgram& program, const ElementShape& shape) {
  std::int64_t operands = 0;
  for (const auto& list : {program.inputs, program.outputs})
    for (const auto& operand : list) operands = operands * 256 + operand_bits(operand);
  std::int64_t names = 0;
  for (const auto name : job.names) names = names * 8 + name + 1;
  return {job.code.text,
          "elementwise",
          {static_cast<std::int64_t>(program.compute), operands, names,
           static_cast<std::int64_t>(program.rank), program.wide ? 1 : 0, shape.bits()}};
}

void enqueue_job(const Queue& queue, const ElementJob& job, const ElementShape& shape);

// Views with more axes than the kernels' loops have: one launch per place of the first axis.
void enqueue_slices(const Queue& queue, const ElementJob& job, const ElementShape& shape) {
  const auto& sizes = job.args.outputs[0].shape();
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    ElementJob part{job.code, job.compute, job.names, job.args};
    for (auto& input : part.args.inputs)
      if (input) input = input.expand(sizes).select(0, i);
    for (auto& output : part.args.outputs) output = output.select(0, i);
    enqueue_job(queue, part, shape);
  }
}

void enqueue_job(const Queue& queue, const ElementJob& job, const ElementShape& shape) {
  const auto loops = element_loops(job.args);
  if (loops.sizes.size() > kMaxElementAxes) return enqueue_slices(queue, job, shape);
  auto program = program_of(job, loops);
  program.own_functions = device_profile(queue).is_cpu;
  const auto kernel = generated_kernel(queue, key_of(job, program, shape),
                                       [&] { return render_elements(program, shape); });
  enqueue_elements(queue, kernel, program, job.args, loops, shape);
}

// ---- jobs of calls

// Expression `code` of a row over the inputs of a call, which it calls `names`.
ElementJob job_of(const ElementRow& row, const ElementCode& code,
                  const std::vector<ElementName>& names, const OpCall& call) {
  ElementJob job{code, DType::float32, names, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    job.args.inputs.push_back(call.inputs[i]);
    if (!call.has(i)) job.args.scalar_inputs.push_back(call.attributes.number(scalar_input(i)));
  }
  job.args.outputs = call.outputs;
  for (const auto* scalar : row.scalars)
    if (scalar != nullptr) job.args.scalars.push_back(call.attributes.number(scalar));
  // The condition of `where` may be of another dtype than the values.
  DType computed = call.outputs[0].dtype();
  if (computed == DType::boolean)
    for (const auto& input : call.inputs)
      if (input) computed = input.dtype();
  job.compute = compute_dtype(computed);
  return job;
}

// An expression of a row as an op: which one, and what it calls its inputs.
struct RowPart {
  const ElementRow& row;
  const ElementCode& code;
  std::vector<ElementName> names;

  ElementJob job(const OpCall& call) const { return job_of(row, code, names, call); }
};

std::string needs_vectors(const RowPart& part, const OpCall& call,
                          const ExtendedDeviceProfile& profile) {
  if (!part.row.vectors) return "some drivers compute vectors of this function wrongly";
  const auto job = part.job(call);
  const auto loops = element_loops(job.args);
  ElementProgram program;
  if (loops.sizes.size() > kMaxElementAxes) return "the views have too many axes";
  describe_operands(job.args, loops, program);
  return takes_vectors(program, loops, profile) ? "" : "an operand is broadcast or a strided view";
}

std::string group_too_large(const ExtendedDeviceProfile& profile, const Parameters& parameters) {
  const auto limit = profile.max_work_group_size;
  return static_cast<std::size_t>(parameters.at("WG")) <= limit
             ? std::string()
             : fmt::format("the device takes at most {} items per group", limit);
}

VariantSpace scalar_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                          const KernelConfig& config) {
  // On a CPU a work-group is a loop, and starting one costs more than many elements.
  return {{{"WG", {16, 64, 256, 1024}}, {"ITEMS", {1, 4, 16}}},
          {{"WG", config.local_size_1d}, {"ITEMS", profile.is_cpu ? 4 : 1}},
          [&profile](const Parameters& p) { return group_too_large(profile, p); },
          {static_cast<std::size_t>(call.outputs[0].numel())}};
}

// On a CPU an item walks through PART neighbours: starting one costs more than many elements.
VariantSpace vector_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                          const KernelConfig& config) {
  const auto n = call.outputs[0].numel();
  if (profile.is_cpu)
    return {{{"VEC", {4, 8, 16}}, {"PART", {2048, 4096, 8192, 16384, 32768, 65536}}},
            {{"VEC", 16}, {"PART", walking_part(n, profile)}},
            [](const Parameters&) { return std::string(); },
            {static_cast<std::size_t>(n)}};
  return {{{"WG", {16, 64, 256, 1024}}, {"VEC", {2, 4, 8, 16}}},
          {{"WG", config.local_size_1d}, {"VEC", config.vector_width}},
          [&profile](const Parameters& p) { return group_too_large(profile, p); },
          {static_cast<std::size_t>(n)}};
}

void run_vectors(const RowPart& part, const OpCall& call, const VariantRun& with) {
  const auto job = part.job(call);
  const auto vec = static_cast<int>(with["VEC"]);
  const auto& profile = device_profile(call.queue);
  if (!profile.is_cpu) return enqueue_job(call.queue, job, {.vec = vec, .local = with["WG"]});
  auto shape = walking_shape(job.args, job.compute, vec, profile);
  shape.part = with["PART"];
  enqueue_job(call.queue, job, shape);
}

std::vector<OpVariant> make_variants(const RowPart& part) {
  OpVariant vectorized{"elementwise.vectorized", "ELEMENTWISE_VECTORIZED"};
  vectorized.declines = [part](const OpCall& call, const ExtendedDeviceProfile& profile) {
    return needs_vectors(part, call, profile);
  };
  vectorized.run = [part](const OpCall& call, const VariantRun& with) {
    run_vectors(part, call, with);
  };
  vectorized.space = vector_space;
  OpVariant scalar{"elementwise.scalar", "ELEMENTWISE_SCALAR"};
  scalar.run = [part](const OpCall& call, const VariantRun& with) {
    enqueue_job(call.queue, part.job(call),
                {.items = static_cast<int>(with["ITEMS"]), .local = with["WG"]});
  };
  scalar.space = scalar_space;
  return {vectorized, scalar};
}

// The dtypes that must agree: of all inputs, but not the condition of `where`.
void check_dtypes(const ElementRow& row, const OpSpec& spec) {
  const std::size_t first = row.inputs == 3 ? 1 : 0;
  const TensorSpec* known = nullptr;
  for (std::size_t i = first; i < spec.inputs.size(); ++i) {
    if (!spec.has(i)) continue;
    if (known == nullptr) known = &spec.inputs[i];
    check<DtypeError>(spec.dtype(i) == known->dtype,
                      "[{}] the operands must have one dtype: {} and {} (use astype)", row.name,
                      name_of(known->dtype), name_of(spec.dtype(i)));
  }
  check<ArgumentError>(known != nullptr, "[{}] at least one operand must be a tensor", row.name);
  if (row.kind == ElementKind::predicate) return;
  const bool floats_only = row.kind == ElementKind::floating;
  const auto dtype = known->dtype;
  const bool is_int = dtype == DType::int32 || dtype == DType::int64;
  check<DtypeError>(dtype != DType::bfloat16,
                    "[{}] bfloat16 is for storage: convert with astype first", row.name);
  check<DtypeError>(is_floating(dtype) || (is_int && !floats_only), "[{}] the dtype must be {}: {}",
                    row.name, floats_only ? "a floating one" : "a floating one, int32 or int64",
                    name_of(dtype));
}

std::vector<TensorSpec> infer(const ElementRow& row, const OpSpec& spec) {
  check_dtypes(row, spec);
  std::optional<Shape> shape;
  DType dtype = DType::float32;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.has(i)) continue;
    shape = shape ? broadcast_shapes(row.name, *shape, spec.shape(i)) : spec.shape(i);
    dtype = spec.dtype(i);
  }
  return {{*shape, row.kind == ElementKind::predicate ? DType::boolean : dtype}};
}

void reference(const ElementRow& row, RefCall& call) {
  auto& out = call.outputs[0];
  std::vector<Strides> strides;
  for (const auto& input : call.inputs)
    strides.push_back(broadcast_strides(input.shape, contiguous_strides(input.shape), out.shape));
  const auto loops = plan_broadcast(out.shape, strides);
  const auto number = [&](const char* name) {
    return name == nullptr ? 0.0 : call.attributes.number(name);
  };
  const double p = number(row.scalars[0]), q = number(row.scalars[1]);
  std::size_t at = 0;
  for_each_run(
      loops, 0, out.shape.numel(), [&](const auto& offsets, const auto& steps, auto count) {
        for (std::int64_t i = 0; i < count; ++i) {
          double v[3] = {};
          for (std::size_t k = 0; k < call.inputs.size(); ++k)
            v[k] = call.has(k)
                       ? call.inputs[k].values[static_cast<std::size_t>(offsets[k] + i * steps[k])]
                       : call.attributes.number(scalar_input(k));
          out.values[at++] = row.reference(v[0], v[1], v[2], p, q);
        }
      });
}

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a) && size_of(a) == size_of(b)) return DType::float32;  // float16 and bfloat16
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (size_of(a) == size_of(b)) return DType::int32;  // int8 and uint8
  return size_of(a) > size_of(b) ? a : b;
}

DType floating_of(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return dtype == DType::int64 ? DType::float64 : DType::float32;
}

Tensor as_dtype(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply("cast", {x}, {{"dtype", std::string(name_of(dtype))}});
}

Tensor reduce_to_shape(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const auto extra = gradient.ndim() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < gradient.ndim(); ++i)
    if (i < extra || (shape[i - extra] == 1 && gradient.shape()[i] != 1)) axes.push_back(i);
  if (axes.empty()) return gradient.reshape(shape.sizes());
  const auto sum = apply("sum", {gradient}, {{"axes", axes}, {"keepdim", true}});
  return sum.reshape(shape.sizes());
}

namespace {

// What the forward op and the gradients of a row have in common.
OpDef make_part(const RowPart& part) {
  OpDef op;
  op.host = [part](const OpCall& call) {
    const auto job = part.job(call);
    host_elements(job.code, job.compute, job.names, job.args);
  };
  op.variants = make_variants(part);
  op.problem = [](const OpCall& call) {
    KernelProblem problem{"elementwise", {call.outputs[0].shape()}, call.outputs[0].dtype(), {}};
    return problem;
  };
  op.element = row_function(part.row, part.code, part.names);
  op.takes_views = op.writes_views = op.may_be_in_place = true;
  return op;
}

// ---- gradients: ops of their own that no list shows. They have gradients too, derived from their
// expressions, which gives gradients of any order.

Expression expression_of(const ElementRow& row, const ElementCode& code,
                         const std::vector<ElementName>& names) {
  Expression::Names known{{}, {"p", "q"}};
  for (const auto name : names) known.variables.emplace_back(kElementNameText[name]);
  std::vector<std::string> attributes;
  for (const auto* scalar : row.scalars) attributes.emplace_back(scalar == nullptr ? "" : scalar);
  return Expression::parse(row.name, code.text, known).with_used_parameters(attributes);
}

GradientOp make_gradient(const ElementRow& row, const ElementCode& code, std::size_t input) {
  std::vector<ElementName> names;
  for (int i = 0; i < kElementNames; ++i)
    if (i == kDy || code.names(static_cast<ElementName>(i)))
      names.push_back(static_cast<ElementName>(i));
  auto op = make_part({row, code, names});
  op.name = fmt::format("{}_gradient{}", row.name, input);
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    return {{spec.inputs.back().shape, spec.inputs.back().dtype}};
  };
  set_gradients(op,
                std::make_shared<ExpressionGradients>(op.name, expression_of(row, code, names)));
  return {std::move(names), std::move(op)};
}

SavedTensors saved_by(const ElementRow& row, const std::vector<bool>& wanted) {
  SavedTensors saved{0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!row.gradients[i] || i >= wanted.size() || !wanted[i]) continue;
    for (const auto name : {kA, kB, kC})
      if (row.gradients[i].names(name)) saved.inputs |= 1u << name;
    if (row.gradients[i].names(kY)) saved.outputs = 1;
  }
  return saved;
}

}  // namespace

const GradientOp& gradient_op(const ElementRow& row, std::size_t input) {
  static const auto* const all = [] {
    auto* ops = new std::map<std::pair<const ElementRow*, std::size_t>, GradientOp>();
    for (const auto& one : element_rows())
      for (std::size_t i = 0; i < 3; ++i)
        if (one.gradients[i])
          ops->emplace(std::pair{&one, i}, make_gradient(one, one.gradients[i], i));
    for (const auto& [place, gradient] : *ops) remember_calls_of(gradient.op);
    return ops;
  }();
  return all->at({&row, input});
}

Tensor element_gradient(const ElementRow& row, std::size_t input, const OpGradient& gradient) {
  if (!row.gradients[input] || !gradient.wants(input) || !gradient.dy()) return {};
  const auto& [names, op] = gradient_op(row, input);
  std::vector<Tensor> inputs;
  Attributes attributes;
  for (const auto name : names) {
    if (name == kDy || name == kY) {
      inputs.push_back(name == kDy ? gradient.dy() : gradient.outputs[0]);
      continue;
    }
    if (!gradient.inputs[name])
      attributes.set(scalar_input(inputs.size()), gradient.attributes.number(scalar_input(name)));
    inputs.push_back(gradient.inputs[name]);
  }
  for (const auto* scalar : row.scalars)
    if (scalar != nullptr) attributes.set(scalar, gradient.attributes.number(scalar));
  return reduce_to_shape(call_op(op, std::move(inputs), attributes)[0],
                         gradient.inputs[input].shape());
}

OpDef make_element_op(const ElementRow& row) {
  std::vector<ElementName> names{kA, kB, kC};
  names.resize(static_cast<std::size_t>(row.inputs));
  auto op = make_part({row, row.forward, names});
  op.name = row.name;
  op.summary = row.summary;
  op.dtypes = row.forward.i32 != nullptr ? kFloatsAndInts : kFloats;
  op.infer = [&row](const OpSpec& spec) { return infer(row, spec); };
  op.reference = [&row](RefCall& call) { reference(row, call); };
  if (row.gradients[0] || row.gradients[1]) {
    op.backward = [&row](const OpGradient& gradient) {
      std::vector<Tensor> result;
      for (std::size_t i = 0; i < gradient.inputs.size(); ++i)
        result.push_back(element_gradient(row, i, gradient));
      return result;
    };
    op.saves = [&row](const std::vector<bool>& wanted, const Attributes&) {
      return saved_by(row, wanted);
    };
  }
  op.samples = [&row] { return element_samples(row); };
  // All rows share what is found: the kernel is the same but for its expression.
  if (std::string_view(row.name) == "add") op.tuning = [&row] { return element_tuning(row); };
  op.tolerance = [&row](const OpSpec&) { return Tolerance{row.ulps, row.terms}; };
  op.tolerance_reason = "rounding of the result, and what OpenCL C promises for its functions";
  return op;
}

std::vector<OpDef> ops_of_elementwise() {
  std::vector<OpDef> ops;
  for (const auto& row : element_rows()) ops.push_back(make_element_op(row));
  return ops;
}

// ---- calls

bool ElementValue::is_integral() const {
  return tensor != nullptr ? !is_floating(tensor->dtype()) : number == std::floor(number);
}

namespace {

const ElementRow& row_of(std::string_view name) {
  static const auto* const rows = [] {
    auto* all = new std::unordered_map<std::string_view, const ElementRow*>();
    for (const auto& row : element_rows()) all->emplace(row.name, &row);
    return all;
  }();
  if (const auto found = rows->find(name); found != rows->end()) return *found->second;
  fail<ArgumentError>("[ops] there is no element-wise op called '{}'", name);
}

// The dtype that all operands are converted to. Numbers follow the tensors, but a fraction does
// not become an integer, and one that is too large for int32 does not lose its upper bits.
DType common_dtype(const ElementRow& row, std::span<const ElementValue> operands) {
  std::optional<DType> dtype;
  bool fraction = false, large = false;
  for (const auto& operand : operands) {
    if (operand.tensor != nullptr) {
      dtype = dtype ? promoted(*dtype, operand.tensor->dtype()) : operand.tensor->dtype();
    } else {
      fraction |= !operand.is_integral();
      large |= operand.number < INT32_MIN || operand.number > INT32_MAX;
    }
  }
  check<ArgumentError>(dtype.has_value(), "[{}] at least one operand must be a tensor", row.name);
  if (*dtype == DType::bfloat16) return *dtype;  // refused by the op, with its reason
  if (fraction || row.kind == ElementKind::floating || row.forward.i32 == nullptr)
    return floating_of(*dtype);
  if (large && !is_floating(*dtype)) return DType::int64;
  // The small integers and bool are computed as int32; predicates read them as they are.
  return row.kind == ElementKind::predicate || is_floating(*dtype) ? *dtype : compute_dtype(*dtype);
}

struct PreparedCall {
  std::vector<Tensor> inputs;
  Attributes attributes;
};

PreparedCall prepare(const ElementRow& row, std::span<const ElementValue> operands,
                     const Attributes& attributes) {
  check<ArgumentError>(static_cast<int>(operands.size()) == row.inputs,
                       "[{}] it takes {} operands: {} were given", row.name, row.inputs,
                       operands.size());
  PreparedCall call{{}, attributes};
  call.inputs.reserve(operands.size());
  const std::size_t first = row.inputs == 3 ? 1 : 0;  // the condition of `where` stays as it is
  const auto dtype = common_dtype(row, operands.subspan(first));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& operand = operands[i];
    if (operand.tensor != nullptr)
      call.inputs.push_back(i < first ? *operand.tensor : as_dtype(*operand.tensor, dtype));
    else {
      call.inputs.emplace_back();
      call.attributes.set(scalar_input(i), operand.number);
    }
  }
  return call;
}

}  // namespace

Tensor call_element(const char* op, std::initializer_list<ElementValue> operands,
                    const Attributes& attributes) {
  auto call = prepare(row_of(op), {operands.begin(), operands.size()}, attributes);
  return apply(op, std::move(call.inputs), call.attributes);
}

void call_element_into(const char* op, const Tensor& target,
                       std::initializer_list<ElementValue> others, const Attributes& attributes) {
  std::vector<ElementValue> operands{target};
  operands.insert(operands.end(), others);
  const auto& row = row_of(op);
  auto call = prepare(row, operands, attributes);
  check<DtypeError>(call.inputs[0].dtype() == target.dtype(),
                    "[{}_] the result must have the tensor's dtype {}: it is {}", op,
                    name_of(target.dtype()), name_of(call.inputs[0].dtype()));
  call_op_into(find_op(op), std::move(call.inputs), call.attributes, {target});
}

}  // namespace netcl
