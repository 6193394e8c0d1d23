// The way of a call: validate, allocate, choose, run. Which variant is a question for the
// KernelSelector, with which parameters one for the TuningStore; nothing else decides.
#include "ops/dispatch.h"

#include <atomic>

#include "base/check.h"
#include "base/process.h"
#include "ops/parameters.h"
#include "ops/recipe.h"
#include "ops/registry.h"
#include "tensor/access.h"

namespace netcl {
namespace {

thread_local const OpDef* t_forced_op = nullptr;
thread_local const OpVariant* t_forced = nullptr;
thread_local int t_depth = 0;  // inside a variant or a host function
std::atomic<OpObserver> g_observer{nullptr};
std::atomic<OpenDeferring> g_open_deferring{nullptr};

thread_local OpDeferrer* t_deferrer = nullptr;

std::vector<TensorSpec> infer(const OpCall& call) {
  OpSpec spec{call.op, {}, call.attributes};
  spec.inputs.reserve(call.inputs.size());
  for (const auto& input : call.inputs)
    spec.inputs.push_back({input.shape(), input.dtype(), static_cast<bool>(input)});
  return call.op.infer(spec);
}

// The queue of the call: that of the first input; the others must agree.
Queue common_queue(const OpDef& op, const std::vector<Tensor>& inputs) {
  process::require(op.name.c_str());
  const Tensor* first = nullptr;
  for (const auto& input : inputs) {
    if (!input) continue;
    if (first == nullptr) first = &input;
    if (!(input.queue() == first->queue()))
      fail<DeviceError>("[{}] all tensors must be on one device and queue: {} and {} (use to())",
                        op.name, first->queue().name(), input.queue().name());
  }
  check<ArgumentError>(first != nullptr, "[{}] the tensor must not be empty (default-made)",
                       op.name);
  return first->queue();
}

std::vector<Tensor> allocate(const std::vector<TensorSpec>& specs, const Queue& queue) {
  std::vector<Tensor> outputs;
  outputs.reserve(specs.size());
  for (const auto& spec : specs) outputs.push_back(Tensor::empty(queue, spec.shape, spec.dtype));
  return outputs;
}

bool needs_fp64(const OpCall& call) {
  const auto is_double = [](const Tensor& t) { return t && t.dtype() == DType::float64; };
  return std::any_of(call.inputs.begin(), call.inputs.end(), is_double) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), is_double);
}

// Doubles on a device without them: right results matter more than where they are computed.
void run_on_host(const OpCall& call) {
  const auto cpu = manager().default_device("cpu").queue;
  OpCall there{call.op, cpu, {}, call.attributes, {}};
  for (const auto& input : call.inputs) there.inputs.push_back(input ? input.to(cpu) : input);
  for (const auto& output : call.outputs)
    there.outputs.push_back(Tensor::empty(cpu, output.shape(), output.dtype()));
  call.op.host(there);
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    call.outputs[i].copy_from(there.outputs[i].to(call.queue));
}

const OpVariant* find_variant(const OpDef& op, std::string_view name) {
  for (const auto& variant : op.variants)
    if (name == variant.name || (!name.empty() && name == variant.kernel)) return &variant;
  return find_user_variant(op.name, name);
}

std::string reason_against(const OpVariant& variant, const OpCall& call,
                           const ExtendedDeviceProfile& profile) {
  return variant.declines ? variant.declines(call, profile) : std::string();
}

// Ordered, for calls that no rule decides or whose decision cannot compute the call.
const OpVariant& first_able(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto out = get_kernel_selector().struck_out(profile);
  for (const auto& variant : call.op.variants)
    if (!out.contains(variant.kernel) && reason_against(variant, call, profile).empty())
      return variant;
  fail<DeviceError>("[{}] no variant can compute this call on {}", call.op.name, profile.name);
}

VariantChoice choose_forced(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto why_not = reason_against(*t_forced, call, profile);
  check<ArgumentError>(why_not.empty(), "[{}] the forced variant {} declines: {}", call.op.name,
                       t_forced->name, why_not);
  const auto problem = call.op.problem ? call.op.problem(call) : KernelProblem{};
  return {t_forced, config_of(t_forced->kernel, problem, profile), "forced"};
}

// Variants for several kinds of devices may answer to one name: the first that can, or null.
const OpVariant* able_variant(const OpCall& call, std::string_view kernel,
                              const ExtendedDeviceProfile& profile) {
  for (const auto& variant : call.op.variants)
    if (kernel == variant.kernel && reason_against(variant, call, profile).empty()) return &variant;
  const auto* other = find_variant(call.op, kernel);  // of a user, or by its own name
  return other != nullptr && reason_against(*other, call, profile).empty() ? other : nullptr;
}

VariantChoice choose_by_rules(const OpCall& call, const ExtendedDeviceProfile& profile) {
  auto problem = call.op.problem(call);
  problem.attributes.emplace("name", call.op.name);  // several ops may share their rules
  const auto decision = get_kernel_selector().decide(problem, profile);
  if (decision->by_user && !is_user_variant(decision->kernel) &&
      find_variant(call.op, decision->kernel) == nullptr)
    fail<ArgumentError>(
        "[{}] a rule of the selector names the kernel {}, which this op does not have: {}",
        call.op.name, decision->kernel, join(variant_names(call.op), ", "));
  if (const auto* variant = able_variant(call, decision->kernel, profile))
    return {variant, decision->config, decision->reason};
  const auto& able = first_able(call, profile);
  return {&able, config_of(able.kernel, problem, profile), "the first that can"};
}

// Others are code of users, who may do whatever they like in it.
bool is_of(const OpDef& op, const OpVariant& variant) {
  return std::any_of(op.variants.begin(), op.variants.end(),
                     [&](const OpVariant& own) { return &own == &variant; });
}

// A kernel that the device's compiler refuses is out of the choice from then on.
void run_chosen(const OpCall& call) {
  const auto& profile = device_profile(call.queue);
  for (;;) {
    const auto choice = choose_variant(call);
    if (!is_of(call.op, *choice.variant)) keep_no_recipe();
    try {
      const auto parameters = parameters_of(call, *choice.variant, choice.config);
      choice.variant->run(call, {choice.config, *parameters});
      return;
    } catch (const BuildError& error) {
      if (t_forced_op == &call.op || *choice.variant->kernel == '\0') throw;
      get_kernel_selector().strike_out(profile, choice.variant->kernel, error.what());
    }
  }
}

// Before the call rather than on the threads of a host function, or in the middle of a launch. What
// it launches is not part of the call.
void settle(const std::vector<Tensor>& tensors) {
  for (const auto& tensor : tensors)
    if (tensor) TensorAccess::storage(tensor)->settle();
}

void run(const OpCall& call) {
  const InsideOps inside;
  const bool nothing = std::all_of(call.outputs.begin(), call.outputs.end(),
                                   [](const Tensor& output) { return output.numel() == 0; });
  if (nothing) return;
  if (call.queue.is_cpu()) return call.op.host(call);
  if (needs_fp64(call) && !device_profile(call.queue).has_fp64) return run_on_host(call);
  run_chosen(call);
}

bool is_dense(const OpDef& op, const std::vector<Tensor>& tensors) {
  return op.takes_views || std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
           return !tensor || tensor.is_contiguous();
         });
}

std::vector<Tensor> dense(const OpDef& op, std::vector<Tensor> tensors) {
  if (is_dense(op, tensors)) return tensors;
  const NotFollowed below;
  for (auto& tensor : tensors)
    if (tensor) tensor = tensor.contiguous();
  return tensors;
}

RecipeLookup look_up(const OpCall& call) {
  if (t_forced_op != nullptr) return {};
  return {call.op, call.queue, call.inputs, call.outputs, call.attributes};
}

// Makes the outputs and computes them.
void compute(OpCall& call) {
  settle(call.inputs);
  auto known = look_up(call);
  if (known.is_known()) {
    call.outputs = allocate(known.outputs(), call.queue);
    return known.repeat(call);
  }
  call.outputs = allocate(infer(call), call.queue);
  if (is_dense(call.op, call.inputs)) return known.run(call, run);
  auto given = call.inputs;  // what the observer sees
  call.inputs = dense(call.op, std::move(call.inputs));
  run(call);
  call.inputs = std::move(given);
}

void compute_into(const OpCall& call) {
  settle(call.inputs);
  settle(call.outputs);
  auto known = look_up(call);
  if (known.is_known())
    known.repeat(call);
  else
    known.run(call, run);
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.offset() == b.offset() && a.shape() == b.shape() && a.strides() == b.strides() &&
         a.dtype() == b.dtype();
}

// Whether the op can write straight into a tensor of the caller.
bool can_write(const OpDef& op, const std::vector<Tensor>& inputs, const Tensor& output) {
  if (!op.writes_views && !output.is_contiguous()) return false;
  for (const auto& input : inputs)
    if (input && input.shares_storage(output) &&
        !(op.may_be_in_place && is_same_view(input, output)))
      return false;
  return true;
}

void check_output(const OpDef& op, const Queue& queue, const Tensor& output,
                  const TensorSpec& spec) {
  check<ArgumentError>(static_cast<bool>(output), "[{}] the output must not be empty", op.name);
  check<DeviceError>(output.queue() == queue, "[{}] the output must be on the inputs' device: {}",
                     op.name, output.queue().name());
  if (!(output.shape() == spec.shape))
    fail<ShapeError>("[{}] the output must have the shape {}: {}", op.name, spec.shape.to_string(),
                     output.shape().to_string());
  check<DtypeError>(output.dtype() == spec.dtype, "[{}] the output must be {}: {}", op.name,
                    name_of(spec.dtype), name_of(output.dtype()));
}

void observe(OpCall& call) {
  if (t_depth > 0) return;
  if (const auto observer = g_observer.load(std::memory_order_relaxed)) observer(call);
}

Tensor view_of(const OpCall& call) {
  const InsideOps inside;
  return call.op.view(call.inputs[0], call.attributes);
}

}  // namespace

std::vector<Tensor> call_op(const OpDef& op, std::vector<Tensor> inputs,
                            const Attributes& attributes) {
  auto queue = common_queue(op, inputs);
  OpCall call{op, std::move(queue), std::move(inputs), attributes, {}};
  if (op.view) {
    infer(call);
    call.outputs = {view_of(call)};
  } else if (t_deferrer == nullptr || !t_deferrer->defer(call, infer(call))) {
    compute(call);
  }
  observe(call);
  return std::move(call.outputs);
}

void call_op_into(const OpDef& op, std::vector<Tensor> inputs, const Attributes& attributes,
                  const std::vector<Tensor>& outputs) {
  const auto queue = common_queue(op, inputs);
  OpCall call{op, queue, std::move(inputs), attributes, outputs};
  const auto specs = infer(call);
  check<ArgumentError>(outputs.size() == specs.size(), "[{}] it has {} outputs: {} were given",
                       op.name, specs.size(), outputs.size());
  call.inputs = dense(op, std::move(call.inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_output(op, queue, outputs[i], specs[i]);
    before_write(op.name.c_str(), outputs[i], call.inputs);
    if (op.view || !can_write(op, call.inputs, outputs[i]))
      call.outputs[i] = Tensor::empty(queue, specs[i].shape, specs[i].dtype);
  }
  if (op.view)
    call.outputs = {view_of(call)};
  else
    compute_into(call);
  const InsideOps inside;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!call.outputs[i].shares_storage(outputs[i]) || op.view)
      outputs[i].copy_from(call.outputs[i]);
}

Tensor apply(std::string_view op, std::vector<Tensor> inputs, const Attributes& attributes) {
  return std::move(call_op(find_op(op), std::move(inputs), attributes)[0]);
}

Tensor apply(std::string_view op, std::initializer_list<TensorRef> inputs,
             const Attributes& attributes) {
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (const auto& input : inputs) tensors.push_back(*input.tensor);
  return apply(op, std::move(tensors), attributes);
}

ForcedVariant::ForcedVariant(const OpDef& op, std::string_view variant)
    : previous_op_(t_forced_op), previous_(t_forced) {
  const auto* found = find_variant(op, variant);
  check<ArgumentError>(found != nullptr, "[{}] there is no variant {}: {}", op.name, variant,
                       join(variant_names(op), ", "));
  t_forced_op = &op;
  t_forced = found;
}

ForcedVariant::~ForcedVariant() {
  t_forced_op = previous_op_;
  t_forced = previous_;
}

VariantChoice choose_variant(const OpCall& call) {
  const auto& profile = device_profile(call.queue);
  if (t_forced_op == &call.op) return choose_forced(call, profile);
  if (call.op.problem) return choose_by_rules(call, profile);
  const auto& able = first_able(call, profile);
  return {&able, config_of(able.kernel, {}, profile), "the first that can"};
}

InsideOps::InsideOps() : deferrer_(std::exchange(t_deferrer, nullptr)) { ++t_depth; }

InsideOps::~InsideOps() {
  --t_depth;
  t_deferrer = deferrer_;
}

void set_op_observer(OpObserver observer) { g_observer = observer; }

OpDeferrer* set_op_deferrer(OpDeferrer* deferrer) { return std::exchange(t_deferrer, deferrer); }
OpDeferrer* op_deferrer() { return t_deferrer; }

void set_open_deferring(OpenDeferring open) { g_open_deferring = open; }

std::unique_ptr<DeferringScope> open_deferring() {
  const auto open = g_open_deferring.load();
  return open == nullptr ? nullptr : open();
}

}  // namespace netcl
