// What Tensor and Node say about gradients.
#include "autograd/engine.h"
#include "base/check.h"
#include "tensor/access.h"

namespace netcl {

Tensor& Tensor::set_requires_grad(bool on) {
  require("set_requires_grad");
  if (!on) {
    if (grad_state_ != nullptr && grad_state_->record == nullptr) {  // for all copies
      grad_state_->follows = false;
      grad_state_->set_grad({});
    }
    grad_state_ = nullptr;
    return *this;
  }
  check<DtypeError>(is_floating(dtype_),
                    "[set_requires_grad] only floating tensors have gradients: {}",
                    name_of(dtype_));
  if (grad_state_ == nullptr) grad_state_ = std::make_shared<detail::GradState>();
  grad_state_->follows = true;
  return *this;
}

Tensor Tensor::grad() const { return grad_state_ == nullptr ? Tensor() : grad_state_->grad(); }

void Tensor::set_grad(const Tensor& gradient) const {
  require("set_grad");
  check<ArgumentError>(grad_state_ != nullptr,
                       "[set_grad] the tensor must require a gradient: shape {}",
                       shape_.to_string());
  if (gradient && !(gradient.shape() == shape_))
    fail<ShapeError>("[set_grad] the gradient must have the tensor's shape {}: {}",
                     shape_.to_string(), gradient.shape().to_string());
  check<DtypeError>(!gradient || gradient.dtype() == dtype_,
                    "[set_grad] the gradient must have the tensor's dtype {}: {}", name_of(dtype_),
                    name_of(gradient.dtype()));
  check<DeviceError>(!gradient || gradient.queue() == queue_,
                     "[set_grad] the gradient must be on the tensor's queue {}", queue_.name());
  grad_state_->set_grad(gradient);
}

Tensor Tensor::detach() const {
  auto result = *this;
  result.grad_state_ = nullptr;
  return result;
}

void retain_grad(const Tensor& value) {
  const auto state = detail::followed_state(value);
  check<ArgumentError>(state != nullptr, "[retain_grad] no tape follows this tensor: shape {}",
                       value.shape().to_string());
  state->retains = true;
}

// ---- Node

Node Node::of(const Tensor& tensor) {
  const auto& state = TensorAccess::grad_state(tensor);
  return state != nullptr && state->follows ? Node(state) : Node();
}

bool Node::is_leaf() const { return state_ == nullptr || state_->record == nullptr; }

const std::string& Node::op_name() const {
  static const std::string none;
  return is_leaf() ? none : state_->record->name;
}

std::uint64_t Node::id() const { return is_leaf() ? 0 : state_->record->id; }

const std::string& Node::where() const {
  static const std::string none;
  return is_leaf() ? none : state_->record->where;
}

std::vector<Node> Node::parents() const {
  std::vector<Node> result;
  if (is_leaf()) return result;
  for (const auto& parent : state_->record->parents)
    if (parent != nullptr) result.push_back(Node(parent));
  return result;
}

Tensor Node::grad() const { return state_ == nullptr ? Tensor() : state_->grad(); }

}  // namespace netcl
