#include "selftest/cases.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/recipe.h"
#include "ops/weight_forms.h"
#include "selftest/compare.h"
#include "selftest/data.h"
#include "selftest/gradient.h"

namespace netcl::selftest_detail {
namespace {

constexpr std::int64_t kLargestViews = 20'000;  // elements; larger samples run dense only

const char* short_name(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return "f16";
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "f32";
    case DType::float64:
      return "f64";
    case DType::int8:
      return "i8";
    case DType::uint8:
      return "u8";
    case DType::int32:
      return "i32";
    case DType::int64:
      return "i64";
    default:
      return "bool";
  }
}

// "matmul.tiled" is "tiled" in the ids of matmul.
std::string short_variant(const char* name) {
  const std::string_view all = name;
  return std::string(all.substr(all.find('.') + 1));
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// The data belong to op, sample and dtype: every variant computes on the same numbers.
std::uint64_t seed_of(const Case& one) {
  return hash_of(one.op->name + "/" + one.sample->id + "/" + short_name(one.dtype));
}

// Whether a run of every n-th case has the d-th of several dtypes: the first, and one of the
// others.
bool has_turn(const OpDef& op, std::size_t d, std::size_t dtypes) {
  return d == 0 || d == 1 + hash_of(op.name) % (dtypes - 1);
}

std::vector<std::string> ways_of(const OpDef& op, const Queue& queue) {
  if (op.view) return {"view"};
  if (queue.is_cpu()) return {"host"};
  std::vector<std::string> ways;
  for (const auto& variant : op.variants) ways.push_back(short_variant(variant.name));
  if (op.variants.size() > 1) ways.push_back("auto");
  return ways;
}

const OpVariant* variant_of(const Case& one) {
  for (const auto& variant : one.op->variants)
    if (short_variant(variant.name) == one.variant) return &variant;
  return nullptr;
}

Tolerance tolerance_of(const OpDef& op, const OpSpec& spec) {
  return op.tolerance ? op.tolerance(spec) : Tolerance{};
}

bool runs_as_views(const OpSample& sample) {
  return std::all_of(sample.inputs.begin(), sample.inputs.end(),
                     [](const SampleInput& input) { return input.shape.numel() <= kLargestViews; });
}

// The tensors of a case and what has to come out.
struct Stage {
  std::vector<RefArray> inputs, expected;
  std::vector<GuardedTensor> guarded_inputs, guarded_outputs;
  std::vector<Tensor> tensors, outputs;
};

void make_tensors(const Case& one, const Queue& queue, Stage& stage) {
  for (const auto& input : stage.inputs) {
    stage.guarded_inputs.push_back(input.present ? make_input(queue, input, one.layout)
                                                 : GuardedTensor{});
    stage.tensors.push_back(stage.guarded_inputs.back().tensor);
  }
  for (const auto& output : stage.expected) {
    stage.guarded_outputs.push_back(make_output(queue, output.shape, output.dtype, one.layout));
    stage.outputs.push_back(stage.guarded_outputs.back().tensor);
  }
}

Stage make_stage(const Case& one, const Queue& queue) {
  Stage stage;
  stage.inputs = make_inputs(*one.sample, one.dtype, seed_of(one));
  stage.expected = run_reference(*one.op, stage.inputs, one.sample->attributes);
  make_tensors(one, queue, stage);
  return stage;
}

// Other memory with the same values.
Stage again_elsewhere(const Case& one, const Queue& queue, const Stage& stage) {
  Stage other{stage.inputs, stage.expected, {}, {}, {}, {}};
  make_tensors(one, queue, other);
  return other;
}

void compute(const Case& one, Stage& stage) {
  const auto* variant = variant_of(one);
  if (one.op->view)  // as it is: writing it into another tensor would convert it
    stage.outputs = call_op(*one.op, stage.tensors, one.sample->attributes);
  else if (variant == nullptr || one.op->variants.size() == 1)  // forced calls are not remembered
    call_op_into(*one.op, stage.tensors, one.sample->attributes, stage.outputs);
  else {
    const ForcedVariant forced(*one.op, variant->name);
    call_op_into(*one.op, stage.tensors, one.sample->attributes, stage.outputs);
  }
}

std::string check_kind(const Tensor& actual, const RefArray& expected) {
  if (!(actual.shape() == expected.shape))
    return fmt::format("the shape is {} instead of {}", actual.shape().to_string(),
                       expected.shape.to_string());
  if (actual.dtype() != expected.dtype)
    return fmt::format("the dtype is {} instead of {}", name_of(actual.dtype()),
                       name_of(expected.dtype));
  return {};
}

std::string check_stage(const Case& one, const Stage& stage) {
  const auto tolerance =
      tolerance_of(*one.op, spec_of(*one.op, stage.inputs, one.sample->attributes));
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
    const auto other_kind = check_kind(stage.outputs[i], stage.expected[i]);
    if (!other_kind.empty()) return fmt::format("output {}: {}", i, other_kind);
    const auto wrong = compare(stage.outputs[i].to_host(), stage.expected[i], tolerance);
    if (!wrong.empty()) return fmt::format("output {}: {}", i, wrong);
    const auto damage = stage.guarded_outputs[i].damage(true);
    if (!damage.empty()) return fmt::format("output {}: {}", i, damage);
  }
  for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
    if (!stage.tensors[i]) continue;
    const auto damage = stage.guarded_inputs[i].damage(false);
    if (!damage.empty()) return fmt::format("input {}: {}", i, damage);
  }
  return {};
}

// Why a forced variant is not for this case; it is asked with the tensors that it would get.
std::string declined(const Case& one, const Stage& stage, const Queue& queue) {
  const auto* variant = variant_of(one);
  if (variant == nullptr || !variant->declines) return {};
  OpCall call{*one.op, queue, stage.tensors, one.sample->attributes, stage.outputs};
  if (!one.op->takes_views)
    for (auto& input : call.inputs)
      if (input) input = input.contiguous();
  return variant->declines(call, device_profile(queue));
}

bool is_empty(const Stage& stage) {
  return std::all_of(stage.outputs.begin(), stage.outputs.end(),
                     [](const Tensor& output) { return output.numel() == 0; });
}

// ---- repeats

std::vector<HostArray> results_of(const Stage& stage) {
  std::vector<HostArray> results;
  for (const auto& output : stage.outputs) results.push_back(output.to_host());
  return results;
}

std::string compare_bits(const std::vector<HostArray>& results,
                         const std::vector<HostArray>& first) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto size = size_of(first[i].dtype());
    const auto *a = static_cast<const std::byte*>(results[i].data()),
               *b = static_cast<const std::byte*>(first[i].data());
    for (std::int64_t k = 0; k < first[i].numel(); ++k, a += size, b += size)
      if (std::memcmp(a, b, size) != 0)
        return fmt::format("output {}: element {} is {}, in the first call {}", i, k,
                           results[i].at(k), first[i].at(k));
  }
  return {};
}

// The call once more: right, nothing else written, and the bits of the first one.
std::string repeat(const Case& one, const std::vector<HostArray>& first, Stage& stage) {
  for (const auto& output : stage.guarded_outputs) output.memory.write(output.before);
  compute(one, stage);
  const auto wrong = check_stage(one, stage);
  return wrong.empty() ? compare_bits(results_of(stage), first) : wrong;
}

constexpr const char* kTimes[] = {"second", "third", "fourth"};

// Calls are remembered from the second on, forms of weights made at it.
Outcome run_repeats(const Case& one, const Queue& queue, Stage& stage) {
  const auto first = results_of(stage);
  const auto repeated = repeated_calls();
  const auto kept = kept_form_bytes();
  auto elsewhere = again_elsewhere(one, queue, stage);
  Outcome outcome;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto wrong = repeat(one, first, i < 2 ? stage : elsewhere);
    if (!wrong.empty())
      return {Outcome::Kind::failed, fmt::format("in the {} call: {}", kTimes[i], wrong)};
    outcome.is_kept |= kept_form_bytes() > kept;
  }
  outcome.is_repeated = repeated_calls() > repeated;
  return outcome;
}

Outcome run_forward(const Case& one, const Queue& queue, bool repeats) {
  auto stage = make_stage(one, queue);
  const bool empty = is_empty(stage);
  if (!empty) {
    const auto reason = declined(one, stage, queue);
    if (!reason.empty()) return {Outcome::Kind::declined, reason};
  }
  compute(one, stage);
  const auto wrong = check_stage(one, stage);
  if (repeats && wrong.empty() && !empty && !one.op->view) return run_repeats(one, queue, stage);
  return {wrong.empty() ? Outcome::Kind::passed : Outcome::Kind::failed, wrong, empty};
}

}  // namespace

std::string Case::id() const {
  return fmt::format("{}/{}/{}/{}{}", op->name, variant, short_name(dtype), sample->id,
                     layout == Layout::views ? "@views" : "");
}

std::vector<Case> cases_of(const OpDef& op, const std::vector<OpSample>& samples,
                           const Queue& queue, const SelftestOptions& options) {
  std::vector<Case> cases;
  const auto ways = ways_of(op, queue);
  const auto stride = std::max<std::size_t>(options.stride, 1);
  for (std::size_t w = 0; w < ways.size(); ++w)
    for (std::size_t s = 0; s < samples.size(); ++s) {
      const auto& sample = samples[s];
      const auto& dtypes = sample.dtypes.empty() ? op.dtypes : sample.dtypes;
      for (std::size_t d = 0; d < dtypes.size(); ++d) {
        if (stride > 1 && ((w + s + d) % stride != 0 || !has_turn(op, d, dtypes.size()))) continue;
        const bool chosen = ways[w] == "auto" || ways.size() == 1;
        const bool other = dtypes[d] != op.dtypes[0];
        if (options.quick && !chosen && other) continue;
        cases.push_back({&op, &sample, ways[w], dtypes[d], Layout::dense});
        // What the selector takes was tried on views when it was forced.
        const bool again = ways[w] == "auto" || (options.quick && other);
        if (runs_as_views(sample) && !again)
          cases.push_back({&op, &sample, ways[w], dtypes[d], Layout::views});
      }
    }
  if (op.backward && options.gradients && hash_of(op.name) % stride == 0)
    for (const auto& sample : samples)
      if (sample.gradient)
        cases.push_back({&op, &sample, "gradient", DType::float64, Layout::dense});
  return cases;
}

Outcome run_case(const Case& one, const Queue& queue, const SelftestOptions& options) {
  try {
    if (one.variant != "gradient") return run_forward(one, queue, options.repeats);
    const auto wrong = check_gradient(*one.op, *one.sample, seed_of(one), queue);
    return wrong.empty() ? Outcome{} : Outcome{Outcome::Kind::failed, wrong};
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return {Outcome::Kind::failed, fmt::format("exception: {}", error.what())};
  }
}

}  // namespace netcl::selftest_detail
