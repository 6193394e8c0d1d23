#include "ops/parameters.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "base/env.h"
#include "base/format.h"
#include "base/hash.h"
#include "cl/state.h"
#include "kernel/builtin.h"
#include "kernel/selector_rules.h"
#include "tune/first_use.h"
#include "tune/results.h"

namespace netcl {
namespace {

struct ParameterMemo {
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::unordered_map<std::string, std::shared_ptr<const Parameters>> known;
};

std::string dtypes_of(const OpCall& call) {
  std::string text;
  for (const auto& input : call.inputs)
    if (input) text.append(text.empty() ? "" : ",").append(name_of(input.dtype()));
  return text;
}

// Sizes of one class share a result: powers of two.
std::vector<std::size_t> size_classes(const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> classes;
  for (const auto size : sizes) classes.push_back(std::bit_ceil(std::max<std::size_t>(size, 1)));
  return classes;
}

std::string memo_key(const OpCall& call, const OpVariant& variant, const VariantSpace& space) {
  std::string key =
      fmt::format("{}|{}|{}", call.queue.device().int_ptr(), variant.name, dtypes_of(call));
  for (const auto size : size_classes(space.sizes)) key += fmt::format("|{}", size);
  return key;
}

// On copies of the outputs: an output may be an input too.
TunableProblem scratch_problem(const OpCall& call, const OpVariant& variant,
                               const KernelConfig& config) {
  OpCall scratch = call;
  for (auto& output : scratch.outputs)
    output = Tensor::from_shape(call.queue, output.shape(), output.dtype());
  return tunable_problem(scratch, variant, config);
}

// Hashing a source takes longer than a launch: once per file.
std::string source_hash(const char* path) {
  if (*path == '\0') return "generated";
  static auto* known = new std::unordered_map<const char*, std::string>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& hash = (*known)[path];
  if (hash.empty()) hash = sha256_hex(assemble_source(path));
  return hash;
}

TuningKey key_for(const OpCall& call, const OpVariant& variant, const VariantSpace& space) {
  const auto& profile = device_profile(call.queue);
  return {profile.name,
          profile.driver_version,
          variant.name,
          source_hash(variant.path),
          size_classes(space.sizes),
          dtypes_of(call)};
}

using ParametersPtr = std::shared_ptr<const Parameters>;

// What tuning found, or null.
ParametersPtr find_parameters(const OpCall& call, const OpVariant& variant,
                              const KernelConfig& config, const VariantSpace& space) {
  const auto record = default_tuning_store().find(key_for(call, variant, space));
  if (record != nullptr && tune::is_usable(space.tunables, space.declines, *record))
    return std::make_shared<const Parameters>(record->parameters);
  if (!tune::is_measuring() && env::flag("NETCL_AUTOTUNE"))
    return std::make_shared<const Parameters>(
        tune::measure_now(call.queue, [&] { return scratch_problem(call, variant, config); }));
  return nullptr;
}

// Defaults may depend on more than the class of the size, so they are not remembered.
ParametersPtr or_defaults(const ParametersPtr& found, const VariantSpace& space) {
  return found ? found : std::make_shared<const Parameters>(space.defaults);
}

}  // namespace

KernelConfig config_of(std::string_view kernel, const KernelProblem& problem,
                       const ExtendedDeviceProfile& profile) {
  const detail::RuleInput input{problem, profile, detail::SelectorSettings::from_environment()};
  return detail::make_named_config(kernel, input);
}

std::shared_ptr<const Parameters> parameters_of(const OpCall& call, const OpVariant& variant,
                                                const KernelConfig& config) {
  static const auto* const none = new std::shared_ptr<const Parameters>(new Parameters());
  if (!variant.space) return *none;
  const auto space = variant.space(call, device_profile(call.queue), config);
  const auto memo = call.queue.context().state().attachments.get<ParameterMemo>(
      [] { return new ParameterMemo(); });
  const auto key = memo_key(call, variant, space);
  const auto generation = tune::results_generation();
  {
    const std::lock_guard lock(memo->mutex);
    if (memo->generation != generation) memo->known.clear();
    memo->generation = generation;
    const auto found = memo->known.find(key);
    if (found != memo->known.end()) return or_defaults(found->second, space);
  }
  const auto found = find_parameters(call, variant, config, space);
  const std::lock_guard lock(memo->mutex);
  if (memo->generation == generation && !tune::is_measuring()) memo->known.emplace(key, found);
  return or_defaults(found, space);
}

TunableProblem tunable_problem(const OpCall& call, const OpVariant& variant,
                               const KernelConfig& config) {
  auto space = variant.space(call, device_profile(call.queue), config);
  TunableProblem problem;
  problem.op = variant.name;
  problem.label = fmt::format("{}, {}", dtypes_of(call), join(space.sizes, " x "));
  problem.key = key_for(call, variant, space);
  problem.tunables = space.tunables;
  problem.defaults = space.defaults;
  problem.declines =
      space.declines ? space.declines : [](const Parameters&) { return std::string(); };
  const auto attributes = std::make_shared<const Attributes>(call.attributes);
  const auto kept = std::make_shared<const OpCall>(
      OpCall{call.op, call.queue, call.inputs, *attributes, call.outputs});
  problem.prepare = [attributes, kept, &variant, config](const Parameters& parameters) {
    return [attributes, kept, &variant, config, parameters] {
      variant.run(*kept, {config, parameters});
    };
  };
  problem.output = [kept] {
    const auto array = kept->outputs[0].to_host();
    const auto* bytes = static_cast<const std::byte*>(array.data());
    return std::vector<std::byte>(bytes, bytes + array.nbytes());
  };
  problem.output_dtype = call.outputs[0].dtype();
  return problem;
}

}  // namespace netcl
