// A note of what was seen of the sources, per form, and the results from the second look on.
// Notes hang on the first source's storage. Fields are guarded by one short lock; making is
// serialised by another, so that results and the versions they belong to never part.
#include "ops/weight_forms.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "cl/recording.h"
#include "memory/bucket_pool.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/recipe.h"
#include "tensor/access.h"

namespace netcl {
namespace {

using Versions = std::vector<std::uint64_t>;
constexpr std::size_t kMostNotes = 64;  // per storage: views of it are sources of their own
constexpr std::uint64_t kShare = 4;     // of the device's memory that may be kept: one in so many

// A tensor without a hold on its memory.
struct SourceView {
  std::weak_ptr<detail::Storage> storage;
  Queue queue;
  Shape shape;
  Strides strides;
  std::int64_t offset;
  DType dtype;

  explicit SourceView(const Tensor& t)
      : storage(TensorAccess::storage(t)),
        queue(t.queue()),
        shape(t.shape()),
        strides(t.strides()),
        offset(t.offset()),
        dtype(t.dtype()) {}

  bool is(const Tensor& t) const {
    const auto& other = TensorAccess::storage(t);
    return !storage.owner_before(other) && !other.owner_before(storage) && queue == t.queue() &&
           shape == t.shape() && strides == t.strides() && offset == t.offset() &&
           dtype == t.dtype();
  }
};

struct Note {
  Note();
  ~Note();
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

  std::string name;
  std::vector<std::int64_t> numbers;
  std::vector<SourceView> sources;
  Versions seen;                // at the latest look
  Versions made_of;             // what the results were made of
  Tensors results;              // empty: not kept
  std::weak_ptr<void> replays;  // alive while a recording reads the results

  bool is_of(const WeightForm& what, const Tensors& given) const {
    return name == what.name && numbers == what.numbers && sources.size() == given.size() &&
           std::equal(sources.begin(), sources.end(), given.begin(),
                      [](const SourceView& view, const Tensor& t) { return view.is(t); });
  }
};

// Never destroyed: notes may outlive every static object.
struct Registry {
  std::mutex fields;
  std::recursive_mutex making;  // a form may be made of another one
  std::set<Note*> notes;
  std::uint64_t bytes = 0;
};
Registry& registry() {
  static auto* const all = new Registry();
  return *all;
}

std::uint64_t bytes_of(const Tensors& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& one : tensors) bytes += one.nbytes();
  return bytes;
}

// With the lock on the fields held; the caller lets go of the results without it.
Tensors taken(Note& note) {
  registry().bytes -= bytes_of(note.results);
  note.made_of.clear();
  return std::exchange(note.results, {});
}

Note::Note() {
  const std::lock_guard lock(registry().fields);
  registry().notes.insert(this);
}

Note::~Note() {
  const std::lock_guard lock(registry().fields);
  registry().bytes -= bytes_of(results);
  registry().notes.erase(this);
}

// Memory is short: everything that no recording needs goes.
void let_go_of_all() {
  std::vector<Tensors> dropped;
  const std::lock_guard lock(registry().fields);
  for (auto* note : registry().notes)
    if (note->replays.expired()) dropped.push_back(taken(*note));
}

Versions versions_of(const Tensors& sources) {
  Versions versions;
  for (const auto& source : sources)
    versions.push_back(TensorAccess::storage(source)->version.load(std::memory_order_relaxed));
  return versions;
}

bool may_be_kept(const Tensors& sources) {
  return std::none_of(sources.begin(), sources.end(), [](const Tensor& source) {
    if (!source || source.queue().is_cpu()) return true;
    const auto& storage = TensorAccess::storage(source);
    return storage->is_deferred.load() || storage->may_change_unseen.load() ||
           (cl::t_recorder != nullptr && cl::t_recorder->has_written(&storage->version));
  });
}

}  // namespace

namespace detail {

// What a storage holds.
class WeightForms {
 public:
  std::vector<std::shared_ptr<Note>> notes;  // latest last
  bool is_result = false;                    // the storage is itself a kept result
};

}  // namespace detail

namespace {

// With the lock on the fields held.
detail::WeightForms& forms_of(const Tensor& source) {
  auto& slot = TensorAccess::storage(source)->forms;
  if (!slot) slot = std::make_shared<detail::WeightForms>();
  return *slot;
}

std::shared_ptr<Note> find_note(const WeightForm& what, const Tensors& sources) {
  const std::lock_guard lock(registry().fields);
  for (const auto& note : forms_of(sources[0]).notes)
    if (note->is_of(what, sources)) return note;
  return nullptr;
}

std::shared_ptr<Note> add_note(const WeightForm& what, const Tensors& sources) {
  auto note = std::make_shared<Note>();
  note->name = what.name;
  note->numbers = what.numbers;
  for (const auto& source : sources) note->sources.emplace_back(source);
  std::shared_ptr<Note> oldest;  // goes after the lock
  const std::lock_guard lock(registry().fields);
  auto& notes = forms_of(sources[0]).notes;
  if (notes.size() >= kMostNotes) {
    oldest = std::move(notes.front());
    notes.erase(notes.begin());
  }
  notes.push_back(note);
  return note;
}

bool are_results(const Tensors& sources) {
  return std::all_of(sources.begin(), sources.end(),
                     [](const Tensor& source) { return forms_of(source).is_result; });
}

bool has_room(const Queue& queue, std::uint64_t bytes) {
  const auto most = device_profile(queue).global_mem_size / kShare;
  const std::lock_guard lock(registry().fields);
  return registry().bytes + bytes <= most;
}

// Makes the results unseen by tapes, scopes and recordings: into `known`, if there are any, since a
// recording may point to their memory.
std::optional<Tensors> make(Note& note, const WeightForm& what, const Tensors& sources,
                            const Tensors& known) {
  const std::lock_guard making(registry().making);
  const cl::RecordingScope unrecorded(nullptr);
  const InsideOps inside;
  const auto versions = versions_of(sources);
  const auto made = what.make(sources);
  const bool fits = !known.empty() || has_room(sources[0].queue(), bytes_of(made));
  for (std::size_t i = 0; i < known.size(); ++i) known[i].copy_from(made[i]);
  Tensors dropped;
  const std::lock_guard lock(registry().fields);
  if (!fits) {
    note.seen.clear();  // the next look is a first one: it costs nothing
    return std::nullopt;
  }
  dropped = taken(note);
  note.results = known.empty() ? made : known;
  note.made_of = versions;
  registry().bytes += bytes_of(note.results);
  for (const auto& one : note.results) forms_of(one).is_result = true;
  return note.results;
}

// Before a replay, whose commands read `results`: the sources are alive with it.
void refresh(Note& note, const WeightForm& what, const Tensors& sources, const Tensors& results) {
  {
    const std::lock_guard lock(registry().fields);
    if (!note.results.empty() && note.results[0].shares_storage(results[0]) &&
        note.made_of == versions_of(sources))
      return;
  }
  make(note, what, sources, results);
}

void follow(const std::shared_ptr<Note>& note, const WeightForm& what, const Tensors& sources,
            const Tensors& results) {
  std::shared_ptr<void> hold;
  {
    const std::lock_guard lock(registry().fields);
    hold = note->replays.lock();
    if (!hold) note->replays = hold = std::make_shared<int>(0);
  }
  cl::t_recorder->prepare(
      [note, what, sources, results, hold] { refresh(*note, what, sources, results); });
}

// What is there: for these sources, or for what they were (`is_stale`). A first look leaves a note.
struct Look {
  Tensors results;
  bool is_stale = true, is_first = false;
};
Look look_at(Note& note, const Tensors& sources) {
  Tensors dropped;
  const std::lock_guard lock(registry().fields);
  const auto versions = versions_of(sources);
  if (!note.results.empty() && note.made_of == versions) return {note.results, false};
  const bool is_first = note.seen != versions && !are_results(sources);
  // A recording leaves no notes: what it sees first may be of its own making.
  if (!cl::is_recording()) {
    note.seen = versions;
    if (is_first && note.replays.expired()) dropped = taken(note);
  }
  return {note.results, true, is_first};
}

}  // namespace

std::optional<Tensors> kept_form(const WeightForm& what, const Tensors& sources) {
  [[maybe_unused]] static const bool installed = (detail::set_trimmer(let_go_of_all), true);
  if (!may_be_kept(sources)) return std::nullopt;
  keep_no_recipe();  // the form is memory of neither the call nor its temporaries
  auto note = find_note(what, sources);
  if (!note) note = add_note(what, sources);
  const auto look = look_at(*note, sources);
  if (look.is_first) return std::nullopt;
  auto results =
      look.is_stale ? make(*note, what, sources, look.results) : std::optional(look.results);
  if (results && cl::is_recording()) follow(note, what, sources, *results);
  return results;
}

Tensor form_of(const WeightForm& what, const Tensors& sources) {
  if (const auto kept = kept_form(what, sources)) return kept->front();
  return what.make(sources).front();
}

std::uint64_t kept_form_bytes() {
  const std::lock_guard lock(registry().fields);
  return registry().bytes;
}

}  // namespace netcl
