// The public functions of joining and indexing.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"

namespace netcl::ops {
namespace {

// The op system knows optional inputs; these ops have none.
void require_all(const char* op, const std::vector<Tensor>& tensors) {
  check<ArgumentError>(!tensors.empty(), "[{}] there must be at least one tensor", op);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    check<ArgumentError>(static_cast<bool>(tensors[i]),
                         "[{}] no tensor may be empty (default-made): number {} is", op, i);
}

Tensor call(const char* op, const std::vector<Tensor>& tensors, const Attributes& attributes) {
  require_all(op, tensors);
  return apply(op, tensors, attributes);
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return call("concat", tensors, {{"axis", axis}});
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return call("stack", tensors, {{"axis", axis}});
}

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  return call("index_select", {x, indices}, {{"axis", axis}});
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  return call("gather", {x, indices}, {{"axis", axis}});
}

Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& indices,
                   const Tensor& source) {
  return call("scatter_add", {x, indices, source}, {{"axis", axis}});
}

Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& indices, const Tensor& source) {
  return call("index_add", {x, indices, source}, {{"axis", axis}});
}

Tensor embedding(const Tensor& indices, const Tensor& table) {
  return call("embedding", {indices, table}, {});
}

Tensor one_hot(const Tensor& indices, std::int64_t classes, DType dtype) {
  return call("one_hot", {indices}, {{"classes", classes}, {"dtype", std::string(name_of(dtype))}});
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return call("tril", {x}, {{"diagonal", diagonal}});
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return call("triu", {x}, {{"diagonal", diagonal}});
}

}  // namespace netcl::ops
