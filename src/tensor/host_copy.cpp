// One inner loop per pair of dtypes; the outer axes are walked recursively.
#include "tensor/host_copy.h"

#include <cstring>

#include "tensor/convert.h"

namespace netcl {
namespace {

template <class To, class From>
void copy_run(const LoopAxis& axis, To* to, const From* from) {
  if (axis.to == 1 && axis.from == 1) {
    if constexpr (std::is_same_v<To, From>)
      std::memcpy(to, from, static_cast<std::size_t>(axis.size) * sizeof(To));
    else
      for (std::int64_t i = 0; i < axis.size; ++i) to[i] = convert_element<To>(from[i]);
    return;
  }
  for (std::int64_t i = 0; i < axis.size; ++i)
    to[i * axis.to] = convert_element<To>(from[i * axis.from]);
}

template <class To, class From>
void copy_axes(const LoopAxis* axis, std::size_t count, To* to, const From* from) {
  if (count == 0) {
    *to = convert_element<To>(*from);
  } else if (count == 1) {
    copy_run(*axis, to, from);
  } else {
    for (std::int64_t i = 0; i < axis->size; ++i)
      copy_axes(axis + 1, count - 1, to + i * axis->to, from + i * axis->from);
  }
}

}  // namespace

void host_copy(const std::vector<LoopAxis>& axes, void* to, DType to_type, const void* from,
               DType from_type) {
  visit_dtype(to_type, [&]<class To>(To) {
    visit_dtype(from_type, [&]<class From>(From) {
      copy_axes(axes.data(), axes.size(), static_cast<To*>(to), static_cast<const From*>(from));
    });
  });
}

}  // namespace netcl
