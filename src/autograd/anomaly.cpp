// detect_anomaly. Values are read back and looked at on the host, where the place of the first bad
// element is known.
#include "autograd/anomaly.h"

#include <cmath>
#include <optional>

#include "autograd/caller.h"
#include "base/check.h"
#include "ops/coordinates.h"
#include "tensor/following.h"

namespace netcl {
namespace {

thread_local bool t_detects = false;

struct BadElement {
  std::int64_t index;
  double value;
};

std::optional<BadElement> first_bad(const Tensor& tensor) {
  if (!tensor || !is_floating(tensor.dtype())) return std::nullopt;
  const NotFollowed reading;
  const auto values = tensor.to_host();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    if (!std::isfinite(values.at(i))) return BadElement{i, values.at(i)};
  return std::nullopt;
}

bool any_bad(const std::vector<Tensor>& tensors) {
  for (const auto& tensor : tensors)
    if (first_bad(tensor)) return true;
  return false;
}

std::string place_of(const Tensor& tensor, const BadElement& bad) {
  return fmt::format("{} at ({}) of shape {}", bad.value,
                     join(coordinates_of(tensor.shape(), bad.index), ", "),
                     tensor.shape().to_string());
}

std::string called_from(const detail::Record& record) {
  return record.where.empty() ? std::string() : fmt::format("\ncalled from {}", record.where);
}

}  // namespace

bool is_anomaly_detected() { return t_detects; }
void set_detect_anomaly(bool on) { t_detects = on; }

namespace detail {

void examine_results(Record& record, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs) {
  record.where = describe_caller();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto bad = first_bad(outputs[i]);
    if (!bad || any_bad(inputs)) continue;
    fail<AnomalyError>(
        "[detect_anomaly] {} (call #{}) made the first value that is not finite: {}{}", record.name,
        record.id, place_of(outputs[i], *bad), called_from(record));
  }
}

void examine_gradients(const Record& record, const std::vector<Tensor>& arrived,
                       const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto bad = first_bad(results[i]);
    if (!bad || any_bad(arrived)) continue;
    fail<AnomalyError>(
        "[detect_anomaly] the backward of {} (call #{}) made the first gradient that is not "
        "finite, "
        "of input {}: {}{}",
        record.name, record.id, i, place_of(results[i], *bad), called_from(record));
  }
}

}  // namespace detail
}  // namespace netcl
