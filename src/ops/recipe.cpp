#include "ops/recipe.h"

#include <array>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "base/env.h"
#include "base/log.h"
#include "cl/recording.h"
#include "cl/state.h"
#include "kernel/launch_listener.h"
#include "kernel/selector_state.h"
#include "memory/private_pools.h"
#include "ops/registry.h"
#include "profiling/recorder.h"
#include "tensor/access.h"
#include "tune/first_use.h"
#include "tune/results.h"

namespace netcl {
namespace {

// Whose memory an argument is.
struct Place {
  enum Of : std::uint8_t { input, output, temporary } of;
  unsigned index;
};

struct MemoryArgument {
  unsigned argument;
  Place place;
};

// The values among its arguments are set on its kernel object for good.
struct Step {
  Ref<_cl_kernel> kernel;
  const char* name;  // interned
  unsigned dimensions;
  std::array<std::size_t, 3> global, local;
  bool has_local;
  std::vector<MemoryArgument> memory;
};

}  // namespace

class CallRecipe {
 public:
  bool is_complete = false;  // false: seen once, or what it did is more than a recipe can say
  bool is_declined = false;
  std::vector<TensorSpec> outputs;
  std::vector<Step> steps;
  std::vector<std::size_t> temporaries;  // bytes
  mutable std::mutex mutex;              // setting arguments and enqueueing is one step

  void repeat(const OpCall& call) const {
    std::vector<BufferHandle> taken;
    taken.reserve(temporaries.size());
    for (const auto bytes : temporaries)
      taken.push_back(detail::persistent_pool(call.queue).allocate(bytes));
    const auto memory_of = [&](const Place& place) {
      if (place.of == Place::temporary) return taken[place.index].buffer().get();
      const auto& tensors = place.of == Place::input ? call.inputs : call.outputs;
      return TensorAccess::storage(tensors[place.index])->buffer().get();
    };
    finish_queues_before_exit_handlers();
    const std::lock_guard lock(mutex);
    for (const auto& step : steps) {
      for (const auto& [argument, place] : step.memory) {
        auto* memory = memory_of(place);
        cl::set_argument(step.kernel.get(), argument, sizeof memory, &memory);
      }
      call.queue.state().recent.add(step.name);
      cl::enqueue(call.queue.get(), step.kernel.get(), step.dimensions, step.global.data(),
                  step.has_local ? step.local.data() : nullptr);
    }
  }
};

namespace {

constexpr std::size_t kRecipesPerShard = 256;
thread_local std::size_t t_repeated = 0;

struct Recipes {
  detail::WordMemo<CallRecipe, kRecipesPerShard> memo;
};

Recipes& recipes_of(const Queue& queue) {
  return queue.state().attachments.ref<Recipes>([] { return new Recipes(); });
}

// Follows one call. Whatever is not a launch on memory that the recipe can name makes it useless.
class RecipeRecorder final : public cl::CommandRecorder, public LaunchListener {
 public:
  explicit RecipeRecorder(const OpCall& call)
      : call_(call), before_(std::exchange(t_recorder, this)) {
    // Edited files must be seen.
    if (!env::text("NETCL_KERNEL_DIR").empty()) refuse();
  }
  ~RecipeRecorder() override { t_recorder = before_; }
  RecipeRecorder(const RecipeRecorder&) = delete;
  RecipeRecorder& operator=(const RecipeRecorder&) = delete;

  static RecipeRecorder* current() { return t_recorder; }
  void refuse() { refused_ = true; }

  void launch(cl::LaunchRecord record) override {
    if (!(record.queue == call_.queue)) return refuse();
    steps_.push_back({std::move(record.kernel),
                      record.name,
                      record.dimensions,
                      record.global,
                      record.local,
                      record.has_local,
                      {}});
  }

  void launched(const detail::KernelState&, const WorkSize&, const WorkSize&,
                std::span<const KernelArg> args) override {
    if (refused_) return;
    for (unsigned i = 0; i < args.size(); ++i) {
      if (args[i].kind() != KernelArg::Kind::memory) continue;
      const auto place = place_of(*args[i].buffer());
      // Parts of buffers are objects of their own, and versions would have to be counted.
      if (!place || args[i].offset() != 0 || args[i].version() != nullptr) return refuse();
      steps_.back().memory.push_back({i, *place});
    }
  }

  void allocated(const Buffer& buffer, std::size_t bytes) override {
    for (auto& [known, size] : temporaries_)
      if (known == buffer.get()) {  // given back and taken again
        size = std::max(size, bytes);
        return;
      }
    temporaries_.emplace_back(buffer.get(), bytes);
  }

  void copy(_cl_command_queue*, const Buffer&, std::size_t, const Buffer&, std::size_t,
            std::size_t) override {
    refuse();
  }
  void fill(_cl_command_queue*, const Buffer&, std::size_t, std::size_t, const void*,
            std::size_t) override {
    refuse();
  }
  const void* keep(const void* bytes, std::size_t size) override {
    const auto* from = static_cast<const std::byte*>(bytes);
    return kept_.emplace_back(from, from + size).data();
  }
  void write(_cl_command_queue*, const Buffer&, std::size_t, std::size_t, const void*) override {
    refuse();
  }
  void order(const Queue&, const Queue&) override { refuse(); }
  bool writes_again() const override { return false; }  // each call takes memory of its own
  void wrote(std::weak_ptr<std::atomic<std::uint64_t>>) override { refuse(); }
  bool has_written(const std::atomic<std::uint64_t>*) const override { return false; }
  void prepare(std::function<void()>) override { refuse(); }
  void check(std::function<void()>) override { refuse(); }
  void host_read(const char*) override { refuse(); }
  void decline(const char*) override { refuse(); }

  std::shared_ptr<const CallRecipe> finish() {
    if (!kept_.empty()) call_.queue.finish();  // the device may still read it
    auto recipe = std::make_shared<CallRecipe>();
    recipe->is_declined = refused_;
    recipe->is_complete = !refused_;
    if (refused_) return recipe;
    for (const auto& output : call_.outputs)
      recipe->outputs.push_back({output.shape(), output.dtype()});
    for (const auto& [buffer, bytes] : temporaries_) recipe->temporaries.push_back(bytes);
    recipe->steps = std::move(steps_);
    return recipe;
  }

 private:
  static thread_local RecipeRecorder* t_recorder;

  // Tensors that share memory share it in every call of the same key.
  std::optional<Place> place_of(const Buffer& buffer) const {
    const auto find = [&](const std::vector<Tensor>& tensors, Place::Of of) {
      for (unsigned i = 0; i < tensors.size(); ++i)
        // Not Tensor::buffer(): it gives memory away, and nothing would be kept of weights any
        // more.
        if (tensors[i] && TensorAccess::buffer(tensors[i]).get() == buffer.get())
          return std::optional<Place>({of, i});
      return std::optional<Place>();
    };
    if (auto place = find(call_.inputs, Place::input)) return place;
    if (auto place = find(call_.outputs, Place::output)) return place;
    for (unsigned i = 0; i < temporaries_.size(); ++i)
      if (temporaries_[i].first == buffer.get()) return Place{Place::temporary, i};
    return {};
  }

  const OpCall& call_;
  RecipeRecorder* before_;
  bool refused_ = false;
  std::vector<Step> steps_;
  std::vector<std::pair<_cl_mem*, std::size_t>> temporaries_;
  std::vector<std::vector<std::byte>> kept_;
};

thread_local RecipeRecorder* RecipeRecorder::t_recorder = nullptr;

// Somebody follows this thread's launches, or is about to measure them.
bool is_watched() {
  return cl::is_recording() || t_launch_listener != nullptr || profiling::enabled() ||
         log::enabled(4) || tune::is_measuring();
}

struct DeclaredOps {
  std::shared_mutex mutex;
  std::unordered_set<const OpDef*> all;
};

DeclaredOps& declared_ops() {
  static auto* instance = new DeclaredOps();
  return *instance;
}

// An op on somebody's stack may be another one at the next call.
bool is_permanent(const OpDef& op) {
  if (find_op_or_null(op.name) == &op) return true;
  auto& declared = declared_ops();
  const std::shared_lock lock(declared.mutex);
  return declared.all.contains(&op);
}

void add(detail::MemoKey& key, const Tensor& tensor) {
  key.add(static_cast<std::uint64_t>(tensor.dtype()) << 32 |
          static_cast<std::uint64_t>(tensor.ndim()));
  for (const auto size : tensor.shape()) key.add(size);
  for (const auto stride : tensor.strides()) key.add(stride);
  key.add(tensor.offset());
}

// Which of the tensors before it has the same memory.
void add_sharing(detail::MemoKey& key, const Tensor& tensor, std::span<const Tensor> before) {
  for (std::uint64_t i = 0; i < before.size(); ++i)
    if (before[i] && tensor.shares_storage(before[i])) return key.add(i);
  key.add(~std::uint64_t{0});
}

void add(detail::MemoKey& key, const AttributeValue& value) {
  key.add(std::uint64_t{value.index()});
  if (const auto* flag = std::get_if<bool>(&value)) key.add(std::uint64_t{*flag});
  if (const auto* integer = std::get_if<std::int64_t>(&value)) key.add(*integer);
  if (const auto* number = std::get_if<double>(&value))
    key.add(std::bit_cast<std::uint64_t>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) key.add(std::string_view(*text));
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    key.add(std::uint64_t{list->size()});
    for (const auto one : *list) key.add(one);
  }
}

// Rules and struck-out kernels, results of tuning, variants of users, NETCL_* variables.
void add_generations(detail::MemoKey& key) {
  key.add(detail::g_rules_generation.load(std::memory_order_acquire));
  key.add(tune::results_generation());
  key.add(user_variants_generation());
  key.add(env::fingerprint());
}

constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

}  // namespace

RecipeLookup::RecipeLookup(const OpDef& op, const Queue& queue, std::span<const Tensor> inputs,
                           std::span<const Tensor> outputs, const Attributes& attributes) {
  if (queue.is_cpu() || is_watched() || !is_permanent(op)) return;
  key_.add(std::uint64_t{reinterpret_cast<std::uintptr_t>(&op)});
  add_generations(key_);
  key_.add(std::uint64_t{inputs.size()} << 32 | outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      key_.add(kAbsent);
      continue;
    }
    if (!op.takes_views && !inputs[i].is_contiguous()) return;
    add(key_, inputs[i]);
    add_sharing(key_, inputs[i], inputs.first(i));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    add(key_, outputs[i]);
    add_sharing(key_, outputs[i], inputs);
    add_sharing(key_, outputs[i], outputs.first(i));
  }
  for (const auto& [name, value] : attributes.entries()) {
    key_.add(name);
    add(key_, value);
  }
  auto found = recipes_of(queue).memo.find(key_);
  is_second_ = found != nullptr;
  is_open_ = !is_second_ || !found->is_declined;
  if (is_second_ && found->is_complete) recipe_ = std::move(found);
}

const std::vector<TensorSpec>& RecipeLookup::outputs() const { return recipe_->outputs; }

void RecipeLookup::repeat(const OpCall& call) const {
  ++t_repeated;
  recipe_->repeat(call);
}

void RecipeLookup::run(const OpCall& call, Compute compute) {
  if (is_open_ && is_second_) return record(call, compute);
  compute(call);
  if (is_open_) recipes_of(call.queue).memo.insert(key_, std::make_shared<const CallRecipe>());
}

void RecipeLookup::record(const OpCall& call, Compute compute) {
  RecipeRecorder recorder(call);
  {
    const cl::RecordingScope recording(&recorder);
    const ListeningScope listening(&recorder);
    compute(call);
  }
  recipes_of(call.queue).memo.replace(key_, recorder.finish());
}

void remember_calls_of(const OpDef& op) {
  auto& declared = declared_ops();
  const std::unique_lock lock(declared.mutex);
  declared.all.insert(&op);
}

void keep_no_recipe() {
  if (auto* recorder = RecipeRecorder::current()) recorder->refuse();
}

std::size_t known_recipes(const Queue& queue) { return recipes_of(queue).memo.size(); }

std::size_t repeated_calls() { return t_repeated; }

}  // namespace netcl
