// Groups stand in the order in which they are computed, and a node joins a group that stands no
// earlier than everything it reads. So there are never two groups that wait for each other.
#include "jit/schedule.h"

#include <algorithm>

#include "jit/epilogue.h"
#include "ops/element_function.h"
#include "tensor/access.h"

namespace netcl::fusion {
namespace {

constexpr std::size_t kSiblingSearch = 32;  // groups that are looked at

class Scheduler {
 public:
  explicit Scheduler(const std::vector<NodePtr>& targets) {
    collect(targets);
    link();
    for (const auto& target : targets) item_of(target).stored = true;
    find_sinks();
    for (int i = 0; i < count(); ++i) place(i);
    mark_stored();
  }

  Schedule take() { return std::move(schedule_); }

 private:
  Item& item(int i) { return schedule_.items[static_cast<std::size_t>(i)]; }
  Item& item_of(const NodePtr& node) { return item(index_.at(node.get())); }
  Group& group(int i) { return schedule_.groups[static_cast<std::size_t>(i)]; }
  int count() const { return static_cast<int>(schedule_.items.size()); }

  // The pending nodes that the targets need, in the order of their calls.
  void collect(const std::vector<NodePtr>& targets) {
    std::vector<NodePtr> open(targets.begin(), targets.end());
    std::vector<NodePtr> found;
    std::set<const Node*> seen;
    while (!open.empty()) {
      auto node = std::move(open.back());
      open.pop_back();
      if (!node->is_pending() || !seen.insert(node.get()).second) continue;
      node->check_versions();
      for (const auto& input : node->inputs)
        if (auto producer = pending_node(input)) open.push_back(std::move(producer));
      found.push_back(std::move(node));
    }
    std::sort(found.begin(), found.end(),
              [](const NodePtr& a, const NodePtr& b) { return a->serial < b->serial; });
    for (auto& node : found) {
      index_[node.get()] = count();
      schedule_.items.push_back({std::move(node), {}, {}, {}});
    }
  }

  void link() {
    for (int i = 0; i < count(); ++i) {
      auto& one = item(i);
      for (const auto& input : one.node->inputs) {
        const auto producer = pending_node(input);
        const int from = producer == nullptr ? -1 : index_.at(producer.get());
        one.producers.push_back(from);
        one.links.push_back(from < 0 ? Link::none : link_of(*producer, *one.node, input).link);
        if (from >= 0) item(from).consumers.push_back(i);
      }
      one.stored = one.node->is_visible();
    }
  }

  // A chain that only a reduction uses is kept apart from others, and reduced where it is computed.
  void find_sinks() {
    for (int i = count(); i-- > 0;) {
      auto& one = item(i);
      if (one.stored || !is_elementwise(*one.node) || one.consumers.empty()) continue;
      int sink = sink_through(i, one.consumers[0]);
      for (const int consumer : one.consumers)
        if (sink_through(i, consumer) != sink) sink = -1;
      // Two operands of one reduction are not there: a second consumer is another node.
      one.sink = sink;
    }
  }

  int sink_through(int producer, int consumer) {
    const auto& one = item(consumer);
    for (std::size_t k = 0; k < one.producers.size(); ++k)
      if (one.producers[k] == producer && one.links[k] == Link::none) return -1;
    return one.node->kind == NodeKind::reduction ? consumer : one.sink;
  }

  // ---- placing

  void place(int i) {
    const auto kind = item(i).node->kind;
    if (kind == NodeKind::product) return open_group(i, Group::Kind::product);
    if (kind == NodeKind::reduction) return place_reduction(i);
    if (join_epilogue(schedule_, i)) return;
    if (join_producers(i) || join_siblings(i)) return;
    open_group(i, Group::Kind::elements);
  }

  // The earliest place that comes after everything the item reads.
  int earliest(int i) {
    int at = 0;
    const auto& one = item(i);
    for (std::size_t k = 0; k < one.producers.size(); ++k)
      if (one.producers[k] >= 0)
        at = std::max(at, item(one.producers[k]).group + (one.links[k] == Link::none ? 1 : 0));
    return at;
  }

  bool join_producers(int i) {
    const int at = earliest(i);
    const auto& one = item(i);
    std::set<int, std::greater<>> producers;
    for (std::size_t k = 0; k < one.producers.size(); ++k)
      if (one.links[k] != Link::none) producers.insert(item(one.producers[k]).group);
    int joined = -1;
    for (const int g : producers) {
      if (joined >= 0) {
        merge(g, joined);
      } else if (g >= at && why_not(i, group(g)) == nullptr) {
        add(i, g);
        joined = g;
      }
    }
    return joined >= 0;
  }

  bool join_siblings(int i) {
    const auto& node = *item(i).node;
    const int last = static_cast<int>(schedule_.groups.size()) - 1;
    const int first = std::max(earliest(i), last - static_cast<int>(kSiblingSearch));
    for (int g = last; g >= first; --g) {
      const auto shares = [&](const Tensor& input) {
        return input && group(g).read.contains(TensorAccess::storage(input).get());
      };
      if (!std::any_of(node.inputs.begin(), node.inputs.end(), shares)) continue;
      if (why_not(i, group(g)) != nullptr) continue;
      add(i, g);
      return true;
    }
    return false;
  }

  const char* why_not(int i, const Group& to) {
    const auto& one = item(i);
    const auto& node = *one.node;
    if (to.kind != Group::Kind::elements || to.items.empty()) return "not a group of elements";
    if (one.sink != to.sink) return "a chain that is reduced is computed apart";
    if (!(node.queue == item(to.items[0]).node->queue)) return "another queue";
    if (!common_compute(to.compute, compute_of(node))) return "another type of arithmetic";
    if (node.spec.shape.numel() != to.numel) return "another number of elements";
    const bool one_loop = !to.is_reshaped && loop_of(node.spec.shape) == to.loop;
    if (!one_loop && !(is_flat_item(one) && to.is_flat)) return "another shape";
    if (to.items.size() >= kMaxStatements) return "the longest kernel that is written";
    if (to.parameter_bytes + new_bytes(one, to) > kMaxParameterBytes)
      return "all the parameters that a kernel may have";
    return nullptr;
  }

  static bool is_flat_item(const Item& one) {
    return std::all_of(one.node->inputs.begin(), one.node->inputs.end(), [&](const Tensor& input) {
      return !input || is_flat(input, one.node->spec.shape);
    });
  }

  // What the item adds to the parameters of a kernel, at most: a pointer and an offset per tensor,
  // eight strides where it has them, numbers, and its own result.
  std::size_t new_bytes(const Item& one, const Group& to) const {
    std::size_t bytes = one.stored ? 16 : 0;
    const auto& node = *one.node;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.inputs[k])
        bytes += 8;
      else if (one.links[k] == Link::none && !to.read.contains(storage_of(node.inputs[k])))
        bytes += is_flat(node.inputs[k], node.spec.shape) ? 16 : 80;
    }
    if (node.kind == NodeKind::element) bytes += 8 * node.op.element->scalars.size();
    return bytes;
  }

  static const void* storage_of(const Tensor& tensor) {
    return TensorAccess::storage(tensor).get();
  }

  void open_group(int i, Group::Kind kind) {
    Group fresh;
    fresh.kind = kind;
    fresh.sink = item(i).sink;
    fresh.loop = loop_of(item(i).node->spec.shape);
    fresh.numel = item(i).node->spec.shape.numel();
    fresh.parameter_bytes = 8 + 64;  // the number of elements, the sizes of a strided loop
    schedule_.groups.push_back(std::move(fresh));
    add(i, static_cast<int>(schedule_.groups.size()) - 1);
  }

  void add(int i, int g) {
    auto& one = item(i);
    auto& to = group(g);
    const auto& node = *one.node;
    to.parameter_bytes += new_bytes(one, to);
    one.group = g;
    to.items.push_back(i);
    if (is_elementwise(node)) {
      to.compute = *common_compute(to.compute, compute_of(node));
      to.is_flat = to.is_flat && is_flat_item(one);
      to.is_reshaped = to.is_reshaped || loop_of(node.spec.shape) != to.loop;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.inputs[k]) continue;
      const int from = one.producers[k];
      if (from < 0 || item(from).group != g) to.read.insert(storage_of(node.inputs[k]));
      if (from >= 0 && item(from).group != g) to.depends.insert(item(from).group);
    }
  }

  // Moves the items of an earlier group to a later one, where nothing in between needs them.
  void merge(int from, int to) {
    auto &a = group(from), &b = group(to);
    if (a.kind != Group::Kind::elements || a.items.empty() || a.sink != b.sink) return;
    const auto compute = common_compute(a.compute, b.compute);
    const bool one_loop = !a.is_reshaped && !b.is_reshaped && a.loop == b.loop;
    if (!compute || a.numel != b.numel || !(one_loop || (a.is_flat && b.is_flat))) return;
    if (a.items.size() + b.items.size() > kMaxStatements) return;
    if (a.parameter_bytes + b.parameter_bytes > kMaxParameterBytes) return;
    for (int g = from + 1; g < to; ++g)
      if (group(g).depends.contains(from)) return;
    for (const int i : a.items) item(i).group = to;
    b.items.insert(b.items.end(), a.items.begin(), a.items.end());
    std::sort(b.items.begin(), b.items.end());
    b.compute = *compute;
    b.is_flat = a.is_flat && b.is_flat;
    b.is_reshaped = a.is_reshaped || b.is_reshaped || a.loop != b.loop;
    b.read.insert(a.read.begin(), a.read.end());
    b.depends.insert(a.depends.begin(), a.depends.end());
    b.depends.erase(from);
    b.parameter_bytes += a.parameter_bytes;
    for (std::size_t g = static_cast<std::size_t>(to) + 1; g < schedule_.groups.size(); ++g)
      if (schedule_.groups[g].depends.erase(from) > 0) schedule_.groups[g].depends.insert(to);
    a = Group{};
  }

  // Behind the chain that only it uses, or of memory.
  void place_reduction(int i) {
    auto& one = item(i);
    const int from = one.producers[0];
    const bool fused = from >= 0 && item(from).sink == i && one.links[0] != Link::none;
    if (!fused) return open_group(i, Group::Kind::single);
    auto& chain = group(item(from).group);
    chain.kind = Group::Kind::reduction;
    chain.items.push_back(i);
    one.group = item(from).group;
  }

  // ---- what has to be in memory

  void mark_stored() {
    for (auto& one : schedule_.items)
      for (std::size_t k = 0; k < one.producers.size(); ++k) {
        const int from = one.producers[k];
        if (from < 0) continue;
        const bool apart = item(from).group != one.group;
        if (apart || (one.links[k] == Link::none && group(one.group).kind != Group::Kind::product))
          item(from).stored = true;
        if (apart) note_reason(item(from), one, one.node->inputs[k]);
      }
    for (auto& one : schedule_.groups)
      if (one.reasons.empty() && !one.items.empty()) one.reasons.push_back("the result is wanted");
  }

  void note_reason(const Item& producer, const Item& consumer, const Tensor& input) {
    auto& reasons = group(producer.group).reasons;
    const auto choice = link_of(*producer.node, *consumer.node, input);
    const char* why = choice.link == Link::none ? choice.reason : nullptr;
    if (consumer.node->kind == NodeKind::product) why = "a product reads it";
    if (consumer.node->kind == NodeKind::reduction) why = "others than a reduction need it too";
    if (why == nullptr) why = why_not_together(producer, consumer);
    if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.emplace_back(why);
  }

  const char* why_not_together(const Item& producer, const Item& consumer) {
    const auto& to = group(producer.group);
    const char* why = why_not(index_.at(consumer.node.get()), to);
    return why != nullptr ? why : "what comes between has to be computed first";
  }

  Schedule schedule_;
  std::unordered_map<const Node*, int> index_;
};

}  // namespace

Schedule make_schedule(const std::vector<NodePtr>& targets) { return Scheduler(targets).take(); }

}  // namespace netcl::fusion
