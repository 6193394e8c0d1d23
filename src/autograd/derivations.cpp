#include "autograd/derivations.h"

#include "autograd/record.h"
#include "ops/elementwise/elementwise.h"

namespace netcl::detail {
namespace {

using Sizes = std::vector<std::int64_t>;

// Which elements of an axis a slice took.
struct Slice {
  std::int64_t axis, first, step, count;

  Tensor of(const Tensor& x) const {
    const auto last = first + step * (count - 1);
    if (count == 0) return x.slice(axis, 0, 0);
    if (step > 0) return x.slice(axis, first, last + 1, step);
    return x.slice(axis, first, last == 0 ? Tensor::kEnd : last - 1, step);
  }
};

// Zeros with `dy` at the places of the slice.
Tensor slice_gradient(const Tensor& dy, const Shape& shape, const Slice& slice) {
  return apply_op(
      "slice_gradient",
      [&](const std::vector<Tensor>& inputs) {
        auto whole = Tensor::from_shape(dy.queue(), shape, dy.dtype());
        if (slice.count > 0) slice.of(whole).copy_from(inputs[0]);
        return std::vector<Tensor>{whole};
      },
      [slice](const ApplyContext& context) {
        return std::vector<Tensor>{slice.of(context.grads[0])};
      },
      {dy})[0];
}

Tensor permute_back(const Tensor& dy, const Sizes& axes) {
  Sizes inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(axes.size()) : axes[i];
    inverse[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(i);
  }
  return dy.permute(inverse);
}

RecordBackward backward_of(Derivation how, const Sizes& args, const Tensor& from,
                           const Tensor& to) {
  switch (how) {
    case Derivation::reshape:
      return [shape = from.shape()](const OpGradient& g) {
        return std::vector<Tensor>{g.dy().reshape(shape.sizes())};
      };
    case Derivation::permute:
      return
          [args](const OpGradient& g) { return std::vector<Tensor>{permute_back(g.dy(), args)}; };
    case Derivation::expand:
      return [shape = from.shape()](const OpGradient& g) {
        return std::vector<Tensor>{reduce_to_shape(g.dy(), shape)};
      };
    case Derivation::slice: {
      const auto axis = args[0];
      const Slice slice{axis, args[1], args[2], to.shape()[axis]};
      return [slice, shape = from.shape()](const OpGradient& g) {
        return std::vector<Tensor>{slice_gradient(g.dy(), shape, slice)};
      };
    }
    case Derivation::copy:
      return [dtype = from.dtype(), queue = from.queue()](const OpGradient& g) {
        return std::vector<Tensor>{g.dy().to(queue).astype(dtype)};
      };
  }
  return nullptr;
}

constexpr const char* kNames[] = {"reshape", "permute", "expand", "slice", "copy"};

}  // namespace

void record_derivation(const Tensor& from, Tensor& to, Derivation how,
                       std::span<const std::int64_t> args) {
  if (!is_floating(to.dtype())) return;
  std::vector<Tensor> outputs{to};
  const Sizes copied(args.begin(), args.end());
  record({kNames[static_cast<int>(how)],
          {from},
          outputs,
          {},
          backward_of(how, copied, from, to),
          SavedTensors{0, 0}});
  to = outputs[0];
}

}  // namespace netcl::detail
