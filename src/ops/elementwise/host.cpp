#include "ops/elementwise/host.h"

#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int64_t kBlock = 512;      // elements; five operands of doubles fit the L1 cache
constexpr std::int64_t kGrain = 1 << 15;  // elements below which threads do not pay

template <class V, class T>
void load_block(const T* from, std::int64_t step, std::int64_t count, V* to) {
  if constexpr (std::is_same_v<V, T>)
    if (step == 1) {
      std::copy_n(from, count, to);
      return;
    }
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert_element<V>(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert_element<V>(from[i * step]);
}

template <class V, class T>
void store_block(const V* from, T* to, std::int64_t step, std::int64_t count) {
  if constexpr (std::is_same_v<V, T>)
    if (step == 1) {
      std::copy_n(from, count, to);
      return;
    }
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert_element<T>(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = convert_element<T>(from[i]);
}

template <class V>
class HostElements {
 public:
  HostElements(const ElementCode& code, const std::vector<ElementName>& names,
               const ElementArgs& args)
      : function_(code.block<V>()), names_(names), args_(args), loops_(element_loops(args)) {
    check(function_ != nullptr, "[elementwise] '{}' is not for integers", code.text);
  }

  void run() const {
    parallel_for(args_.outputs[0].numel(), kGrain, [this](std::int64_t begin, std::int64_t end) {
      for_each_run(loops_, begin, end, [this](const auto& offsets, const auto& steps, auto count) {
        run_along(offsets, steps, count);
      });
    });
  }

 private:
  // One run along the innermost axis, in blocks.
  void run_along(const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& steps,
                 std::int64_t count) const {
    alignas(64) V values[kElementNames][kBlock] = {};
    alignas(64) V result[kBlock];
    const V* in[kElementNames];
    for (int i = 0; i < kElementNames; ++i) in[i] = values[i];
    fill_scalars(values);
    for (std::int64_t done = 0; done < count; done += kBlock) {
      const auto block = std::min(kBlock, count - done);
      for (std::size_t i = 0; i < args_.inputs.size(); ++i) {
        if (!args_.inputs[i]) continue;
        visit_dtype(args_.inputs[i].dtype(), [&]<class T>(T) {
          const auto* from = static_cast<const T*>(args_.inputs[i].host_data());
          load_block(from + offsets[i] + done * steps[i], steps[i], block, values[names_[i]]);
        });
      }
      function_(block, in, scalar(0), scalar(1), result);
      const auto k = args_.inputs.size();
      visit_dtype(args_.outputs[0].dtype(), [&]<class T>(T) {
        auto* to = static_cast<T*>(args_.outputs[0].host_data());
        store_block(result, to + offsets[k] + done * steps[k], steps[k], block);
      });
    }
  }

  void fill_scalars(V (*values)[kBlock]) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < args_.inputs.size(); ++i)
      if (!args_.inputs[i])
        std::fill_n(values[names_[i]], kBlock, static_cast<V>(args_.scalar_inputs[next++]));
  }

  V scalar(std::size_t i) const {
    return i < args_.scalars.size() ? convert_element<V>(args_.scalars[i]) : V{0};
  }

  const BlockFunction<V> function_;
  const std::vector<ElementName>& names_;
  const ElementArgs& args_;
  const BroadcastLoops loops_;
};

}  // namespace

void host_elements(const ElementCode& code, DType compute, const std::vector<ElementName>& names,
                   const ElementArgs& args) {
  switch (compute) {
    case DType::float64:
      return HostElements<double>(code, names, args).run();
    case DType::int32:
      return HostElements<std::int32_t>(code, names, args).run();
    case DType::int64:
      return HostElements<std::int64_t>(code, names, args).run();
    default:
      return HostElements<float>(code, names, args).run();
  }
}

}  // namespace netcl
