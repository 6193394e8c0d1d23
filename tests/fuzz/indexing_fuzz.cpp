// Shapes, views and indices: a program of view and indexing ops with any numbers, on the CPU
// backend, where the sanitizers see every access. Beside each tensor goes a plain list of the
// values that it must have; views of it are compared with what the definition says.
#include <numeric>

#include "fuzz/fuzz.h"
#include "netcl/netcl.h"

namespace {

using namespace netcl;

constexpr std::int64_t kMost = 4096;  // elements: what allocates more is not tried

// The product, or -1 where it is not worth trying.
std::int64_t elements(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const auto size : sizes) {
    if (size < 0 || size > kMost) return -1;
    product *= size;
    if (product > kMost) return -1;
  }
  return product;
}

Tensor changed(const Tensor& x, fuzz::Reader& in) {
  switch (in.below(12)) {
    case 0:
      return x.reshape(in.numbers(6));
    case 1:
      return x.view(Shape(in.numbers(6)));
    case 2:
      return x.permute(in.numbers(6));
    case 3:
      return x.transpose(in.number(), in.number());
    case 4: {
      const auto sizes = in.numbers(6);
      if (elements(sizes) < 0) return (void)Shape(sizes), x;
      return x.expand(Shape(sizes));
    }
    case 5:
      return x.narrow(in.number(), in.number(), in.number());
    case 6:
      return x.select(in.number(), in.number());
    case 7:
      return x.slice(in.number(), in.number(), in.number(), in.number());
    case 8:
      return x.slice(in.number(), Tensor::kBegin, Tensor::kEnd, in.number());
    case 9:
      return x.squeeze(in.number());
    case 10:
      return x.unsqueeze(in.number());
    default:
      return x.clone();
  }
}

Tensor indices_of(const Queue& queue, fuzz::Reader& in) {
  const auto values = in.numbers(8);
  const auto flat = Tensor::from_host(queue, HostView(values));
  return in.below(2) == 0 ? flat : flat.reshape({-1, 1});
}

Tensor indexed(const Tensor& x, fuzz::Reader& in) {
  const auto& queue = x.queue();
  switch (in.below(8)) {
    case 0:
      return ops::index_select(x, in.number(), indices_of(queue, in));
    case 1:
      return ops::gather(x, in.number(), indices_of(queue, in));
    case 2: {
      const auto indices = indices_of(queue, in);
      return ops::scatter_add(x, in.number(), indices, Tensor::full(queue, indices.shape(), 1));
    }
    case 3:
      return ops::embedding(indices_of(queue, in), x);
    case 4: {
      const auto classes = in.number();
      if (classes > kMost) return x;
      return ops::one_hot(indices_of(queue, in), classes);
    }
    case 5: {
      std::vector<ops::Pair> padding(in.below(5));
      for (auto& pair : padding)
        for (auto& one : pair) {
          one = in.number();
          if (one > 8) one = -one;  // more would only be memory
        }
      return ops::pad(x, padding, 1);
    }
    case 6: {
      const auto parts = ops::split(x, in.numbers(4), in.number());
      return parts.empty() ? x : ops::concat(parts, in.number());
    }
    default:
      return ops::triu(x, in.number());
  }
}

// The values of a view by the definition, from the storage of the whole.
void check_values(const Tensor& view, const std::vector<float>& storage) {
  const auto values = view.to_vector<float>();
  fuzz::require(static_cast<std::int64_t>(values.size()) == view.numel(), "as many as the shape");
  std::vector<std::int64_t> at(static_cast<std::size_t>(view.ndim()), 0);
  for (const float value : values) {
    std::int64_t place = view.offset();
    for (std::size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * view.strides()[axis];
    fuzz::require(place >= 0 && place < static_cast<std::int64_t>(storage.size()),
                  "a view stays in its storage");
    fuzz::require(storage[static_cast<std::size_t>(place)] == value, "a view has its values");
    for (auto axis = at.size(); axis-- > 0;) {
      if (++at[axis] < view.shape()[static_cast<std::int64_t>(axis)]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

FUZZ_TARGET(indexing) {
  const CPUQueue queue;
  fuzz::Reader in(input);
  const auto sizes = in.numbers(5);
  const auto count = elements(sizes);
  if (count < 0) return (void)Shape(sizes);
  std::vector<float> storage(static_cast<std::size_t>(count));
  std::iota(storage.begin(), storage.end(), 1.0f);
  const auto whole = Tensor::from_host(queue, HostView(storage, Shape(sizes)));
  auto x = whole;
  for (int step = 0; step < 12 && !in.at_end(); ++step) {
    try {
      const auto next = in.below(3) == 0 ? indexed(x, in) : changed(x, in);
      if (next.numel() > kMost) return;
      x = next;
    } catch (const Error&) {
      // Refused; the tensor is as it was.
    }
    fuzz::require(x.numel() == 0 || x.nbytes() > 0, "sizes fit");
    if (x.shares_storage(whole))
      check_values(x, storage);
    else
      fuzz::touch(x.to_host());
  }
}
