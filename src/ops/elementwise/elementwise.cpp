// The OpDefs of the table's rows.
#include "ops/elementwise/elementwise.h"

#include <cctype>
#include <cmath>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/elementwise/host.h"
#include "ops/elementwise/samples.h"
#include "ops/registry.h"

namespace netcl {
namespace {

constexpr const char* kScalarInputs[] = {"scalar0", "scalar1", "scalar2"};

// Which kernel: scalar elements or vectors of neighbours, and how many per work-item.
struct ElementShape {
  int vec = 1, items = 1;
  std::int64_t local = 64;
};

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
    for (const auto& operand : list)
      operands = operands * 64 + static_cast<std::int64_t>(operand.dtype) * 4 +
                 static_cast<std::int64_t>(operand.access) + 1;
  std::int64_t names = 0;
  for (const auto name : job.names) names = names * 8 + name + 1;
  return {job.code.text,
          "elementwise",
          {static_cast<std::int64_t>(program.compute), operands, names,
           static_cast<std::int64_t>(program.rank), program.wide ? 1 : 0, shape.vec, shape.items}};
}

constexpr std::size_t kMaxAxes = 8;  // of the kernels' loops

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
  if (loops.sizes.size() > kMaxAxes) return enqueue_slices(queue, job, shape);
  const auto program = program_of(job, loops);
  const auto kernel = generated_kernel(queue, key_of(job, program, shape), [&] {
    return render_elements(program, shape.vec, shape.items);
  });
  const auto per_item = static_cast<std::size_t>(shape.vec > 1 ? shape.vec : shape.items);
  enqueue_elements(queue, kernel, program, job.args, loops, per_item, shape.local);
}

// ---- the forward op

ElementJob forward_job(const ElementRow& row, const OpCall& call) {
  ElementJob job{row.forward, DType::float32, {}, {}};
  for (int i = 0; i < row.inputs; ++i) {
    const auto index = static_cast<std::size_t>(i);
    job.names.push_back(static_cast<ElementName>(i));
    job.args.inputs.push_back(call.inputs[index]);
    if (!call.has(index))
      job.args.scalar_inputs.push_back(call.attributes.number(kScalarInputs[i]));
  }
  job.args.outputs = call.outputs;
  for (const auto* scalar : row.scalars)
    if (scalar != nullptr) job.args.scalars.push_back(call.attributes.number(scalar));
  // The condition of `where` may be of another dtype than the values.
  DType computed = call.outputs[0].dtype();
  if (row.kind == ElementKind::predicate)
    for (const auto& input : call.inputs)
      if (input) computed = input.dtype();
  job.compute = compute_dtype(computed);
  return job;
}

std::string needs_linear(const ElementRow& row, const OpCall& call) {
  if (!row.vectors) return "some drivers compute vectors of this function wrongly";
  const auto job = forward_job(row, call);
  const auto loops = element_loops(job.args);
  ElementProgram program;
  if (loops.sizes.size() <= kMaxAxes) describe_operands(job.args, loops, program);
  return loops.sizes.size() <= kMaxAxes && program.rank == 0
             ? ""
             : "an operand is broadcast or a strided view";
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

VariantSpace vector_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                          const KernelConfig& config) {
  const std::int64_t vec = profile.is_cpu ? 16 : config.vector_width;
  return {{{"WG", {16, 64, 256, 1024}}, {"VEC", {2, 4, 8, 16}}},
          {{"WG", config.local_size_1d}, {"VEC", vec}},
          [&profile](const Parameters& p) { return group_too_large(profile, p); },
          {static_cast<std::size_t>(call.outputs[0].numel())}};
}

std::vector<OpVariant> make_variants(const ElementRow& row) {
  OpVariant vectorized{"elementwise.vectorized", "ELEMENTWISE_VECTORIZED"};
  vectorized.declines = [&row](const OpCall& call, const ExtendedDeviceProfile&) {
    return needs_linear(row, call);
  };
  vectorized.run = [&row](const OpCall& call, const VariantRun& with) {
    enqueue_job(call.queue, forward_job(row, call), {static_cast<int>(with["VEC"]), 1, with["WG"]});
  };
  vectorized.space = vector_space;
  OpVariant scalar{"elementwise.scalar", "ELEMENTWISE_SCALAR"};
  scalar.run = [&row](const OpCall& call, const VariantRun& with) {
    enqueue_job(call.queue, forward_job(row, call),
                {1, static_cast<int>(with["ITEMS"]), with["WG"]});
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
                       : call.attributes.number(kScalarInputs[k]);
          out.values[at++] = row.reference(v[0], v[1], v[2], p, q);
        }
      });
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool ElementCode::names(ElementName name) const {
  const std::string_view all = text, word = kElementNameText[name];
  for (auto at = all.find(word); at != all.npos; at = all.find(word, at + 1)) {
    const bool starts = at == 0 || !is_word(all[at - 1]);
    const auto end = at + word.size();
    if (starts && (end == all.size() || !is_word(all[end]))) return true;
  }
  return false;
}

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

Tensor element_gradient(const ElementRow& row, std::size_t input, const OpGradient& gradient) {
  const auto& code = row.gradients[input];
  if (!code || !gradient.wants(input) || !gradient.dy()) return {};
  const auto& dy = gradient.dy();
  ElementJob job{code, compute_dtype(dy.dtype()), {}, {}};
  for (int i = 0; i < kElementNames; ++i) {
    const auto name = static_cast<ElementName>(i);
    if (!code.names(name)) continue;
    job.names.push_back(name);
    const auto index = static_cast<std::size_t>(i);
    if (name == kDy || name == kY) {
      job.args.inputs.push_back(name == kDy ? dy : gradient.outputs[0]);
    } else {
      job.args.inputs.push_back(gradient.inputs[index]);
      if (!gradient.inputs[index])
        job.args.scalar_inputs.push_back(gradient.attributes.number(kScalarInputs[index]));
    }
  }
  for (const auto* scalar : row.scalars)
    if (scalar != nullptr) job.args.scalars.push_back(gradient.attributes.number(scalar));
  const auto& shape = gradient.outputs[0].shape();
  job.args.outputs = {Tensor::empty(dy.queue(), shape, dy.dtype())};
  if (shape.numel() > 0) {
    if (dy.queue().is_cpu())
      host_elements(code, job.compute, job.names, job.args);
    else
      enqueue_job(dy.queue(), job, {1, 4, 64});
  }
  return reduce_to_shape(job.args.outputs[0], gradient.inputs[input].shape());
}

OpDef make_element_op(const ElementRow& row) {
  OpDef op;
  op.name = row.name;
  op.summary = row.summary;
  op.dtypes = row.forward.i32 != nullptr ? kFloatsAndInts : kFloats;
  op.infer = [&row](const OpSpec& spec) { return infer(row, spec); };
  op.reference = [&row](RefCall& call) { reference(row, call); };
  op.host = [&row](const OpCall& call) {
    const auto job = forward_job(row, call);
    host_elements(job.code, job.compute, job.names, job.args);
  };
  if (row.gradients[0] || row.gradients[1])
    op.backward = [&row](const OpGradient& gradient) {
      std::vector<Tensor> result;
      for (std::size_t i = 0; i < gradient.inputs.size(); ++i)
        result.push_back(element_gradient(row, i, gradient));
      return result;
    };
  op.variants = make_variants(row);
  op.problem = [](const OpCall& call) {
    KernelProblem problem{"elementwise", {call.outputs[0].shape()}, call.outputs[0].dtype(), {}};
    return problem;
  };
  op.samples = [&row] { return element_samples(row); };
  // All rows share what is found: the kernel is the same but for its expression.
  if (std::string_view(row.name) == "add") op.tuning = [&row] { return element_tuning(row); };
  op.tolerance = [&row](const OpSpec&) { return Tolerance{row.ulps, row.terms}; };
  op.tolerance_reason = "rounding of the result, and what OpenCL C promises for its functions";
  op.takes_views = op.writes_views = op.may_be_in_place = true;
  return op;
}

std::vector<OpDef> ops_of_elementwise() {
  std::vector<OpDef> ops;
  for (const auto& row : element_rows()) ops.push_back(make_element_op(row));
  return ops;
}

// ---- calls

bool ElementValue::is_integral() const {
  return tensor ? !is_floating(tensor.dtype()) : number == std::floor(number);
}

namespace {

const ElementRow& row_of(std::string_view name) {
  for (const auto& row : element_rows())
    if (name == row.name) return row;
  fail<ArgumentError>("[ops] there is no element-wise op called '{}'", name);
}

// The dtype that all operands are converted to. Numbers follow the tensors, but a fraction does
// not become an integer.
DType common_dtype(const ElementRow& row, std::span<const ElementValue> operands) {
  std::optional<DType> dtype;
  bool fraction = false;
  for (const auto& operand : operands) {
    if (operand.tensor)
      dtype = dtype ? promoted(*dtype, operand.tensor.dtype()) : operand.tensor.dtype();
    else
      fraction |= !operand.is_integral();
  }
  check<ArgumentError>(dtype.has_value(), "[{}] at least one operand must be a tensor", row.name);
  if (*dtype == DType::bfloat16) return *dtype;  // refused by the op, with its reason
  if (fraction || row.kind == ElementKind::floating || row.forward.i32 == nullptr)
    return floating_of(*dtype);
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
  const std::size_t first = row.inputs == 3 ? 1 : 0;  // the condition of `where` stays as it is
  const auto dtype = common_dtype(row, operands.subspan(first));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& operand = operands[i];
    if (operand.tensor)
      call.inputs.push_back(i < first ? operand.tensor : operand.tensor.astype(dtype));
    else {
      call.inputs.emplace_back();
      call.attributes.set(kScalarInputs[i], operand.number);
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
