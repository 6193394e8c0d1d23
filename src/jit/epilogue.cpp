#include "jit/epilogue.h"

#include <array>

#include "base/check.h"
#include "jit/stats.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace netcl::fusion {
namespace {

const Item& item_at(const Schedule& schedule, int i) {
  return schedule.items[static_cast<std::size_t>(i)];
}

// In the numbers of ops::Activation; 0: it is none.
std::int64_t activation_of(const OpDef& op) {
  constexpr std::array kNames = {"", "relu", "gelu", "silu", "sigmoid", "tanh"};
  for (std::size_t i = 1; i < kNames.size(); ++i)
    if (op.name == kNames[i]) return static_cast<std::int64_t>(i);
  return 0;
}

// What a product can still take in.
struct Epilogue {
  const Node* product = nullptr;
  Tensor bias, residual;
  std::int64_t activation = 0;

  bool takes_bias() const { return !bias && activation == 0; }
  bool takes_residual() const { return !residual && activation == 0; }
};

// The product as it stands, with the items that were taken in.
Epilogue epilogue_of(const Schedule& schedule, const Group& group);

// Whether `bias` holds one number per channel of the product's result, as the product takes it.
bool is_bias(const Node& product, const Tensor& bias) {
  const auto& result = product.spec.shape;
  if (bias.dtype() != product.spec.dtype) return false;
  const auto& shape = bias.shape();
  if (product.op.name == "conv2d") {
    const auto channels = result[1];
    const bool leading = shape.rank() == 4 && shape[0] == 1;
    if (shape.rank() != 3 && !leading) return false;
    const auto at = shape.rank() - 3;
    return shape[at] == channels && shape[at + 1] == 1 && shape[at + 2] == 1;
  }
  if (result.rank() < 1 || bias.numel() != result[result.rank() - 1]) return false;
  if (shape.rank() < 1 || shape.rank() > result.rank()) return false;
  return shape[shape.rank() - 1] == bias.numel();
}

// A product of (..., K) with one matrix (K, N) is what `linear` computes.
bool takes_epilogue(const Node& product) {
  if (product.op.name != "matmul") return true;
  return product.inputs[0].ndim() >= 1 && product.inputs[1].ndim() == 2;
}

bool is_residual(const Node& product, const Tensor& other) {
  return other.dtype() == product.spec.dtype && other.shape() == product.spec.shape;
}

// Takes the other operand of an addition in as bias or residual; false when it is neither.
bool take_addend(Epilogue& into, const Node& node, std::size_t side) {
  if (node.op.name != "add" || node.inputs.size() != 2) return false;
  const auto& other = node.inputs[1 - side];
  if (!other) return false;
  if (into.takes_bias() && is_bias(*into.product, other)) {
    into.bias = other;
    return true;
  }
  if (!into.takes_residual() || !is_residual(*into.product, other)) return false;
  into.residual = other;
  return true;
}

Epilogue epilogue_of(const Schedule& schedule, const Group& group) {
  Epilogue result;
  const auto& product = *item_at(schedule, group.items[0]).node;
  result.product = &product;
  const auto& inputs = product.inputs;
  if (product.op.name != "matmul") {
    if (inputs.size() > 2) result.bias = inputs[2];
    if (inputs.size() > 3) result.residual = inputs[3];
    result.activation = product.attributes.integer("activation");
  }
  for (std::size_t k = 1; k < group.items.size(); ++k) {
    const auto& item = item_at(schedule, group.items[k]);
    const auto& node = *item.node;
    if (const auto activation = activation_of(node.op))
      result.activation = activation;
    else
      take_addend(result, node, item.producers[0] == group.items[k - 1] ? 0 : 1);
  }
  return result;
}

}  // namespace

bool join_epilogue(Schedule& schedule, int i) {
  auto& item = schedule.items[static_cast<std::size_t>(i)];
  const auto& node = *item.node;
  for (std::size_t side = 0; side < item.producers.size(); ++side) {
    const int from = item.producers[side];
    if (from < 0) continue;
    const auto& before = item_at(schedule, from);
    const int g = before.group;
    auto& group = schedule.groups[static_cast<std::size_t>(g)];
    if (group.kind != Group::Kind::product || group.items.back() != from) continue;
    // Nobody but this node may want the value in between: neither users nor tapes nor others.
    if (before.stored || before.node->owners() != 1) continue;
    const auto& view = node.inputs[side];
    if (!(view.shape() == before.node->spec.shape) || !view.is_contiguous() ||
        !(node.spec.shape == view.shape()) || node.spec.dtype != before.node->spec.dtype)
      continue;
    auto epilogue = epilogue_of(schedule, group);
    if (!takes_epilogue(*epilogue.product)) continue;
    if (take_addend(epilogue, node, side)) {
      const int other = item.producers[1 - side];
      if (other >= 0) {
        if (item_at(schedule, other).group >= g) continue;
        group.depends.insert(item_at(schedule, other).group);
      }
    } else if (epilogue.activation != 0 || activation_of(node.op) == 0) {
      continue;
    }
    group.items.push_back(i);
    item.group = g;
    return true;
  }
  return false;
}

void run_product(const Schedule& schedule, const Group& group) {
  const auto epilogue = epilogue_of(schedule, group);
  const auto& product = *epilogue.product;
  auto inputs = product.inputs;
  auto attributes = product.attributes;
  const OpDef* op = &product.op;
  if (group.items.size() > 1) {
    counters().fused_nodes.fetch_add(group.items.size(), std::memory_order_relaxed);
    if (op->name == "matmul") {
      op = &find_op("linear");
      inputs[1] = inputs[1].transpose();
    }
    inputs.resize(4);
    const auto channels =
        product.spec.shape[op->name == "conv2d" ? 1 : product.spec.shape.rank() - 1];
    if (epilogue.bias) inputs[2] = epilogue.bias.reshape({channels});
    inputs[3] = epilogue.residual;
    attributes.set("activation", epilogue.activation);
  }
  const auto value = call_op(*op, std::move(inputs), attributes)[0];
  item_at(schedule, group.items.back()).node->arrive(value);
}

}  // namespace netcl::fusion
