#include <cmath>

#include "base/check.h"
#include "netcl/autograd.h"
#include "netcl/device.h"
#include "netcl/nn.h"

namespace netcl::nn::init {
namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const char* op, const Tensor& tensor) {
  check<ShapeError>(tensor.ndim() >= 2, "[{}] the weight must have at least two axes: {}", op,
                    tensor.shape().to_string());
  const auto field =
      static_cast<double>(tensor.numel()) /
      static_cast<double>(std::max<std::int64_t>(tensor.size(0) * tensor.size(1), 1));
  return {static_cast<double>(tensor.size(1)) * field, static_cast<double>(tensor.size(0)) * field};
}

// Random numbers are the same bits everywhere, and so are products and sums of floats: few weights
// are made on the host, which compiles nothing for them.
constexpr std::int64_t kMostOnHost = 1 << 20;

void fill(const Tensor& tensor, Distribution distribution, double scale, double shift) {
  const no_grad off;
  const bool on_host = tensor.dtype() == DType::float32 && tensor.numel() <= kMostOnHost;
  const auto queue = on_host ? manager().default_device("cpu").queue : tensor.queue();
  const auto values =
      Tensor::random(queue, tensor.shape(), next_seed(), distribution, tensor.dtype());
  tensor.copy_from((values * scale + shift).to(tensor.queue()));
}

}  // namespace

void constant(const Tensor& tensor, double value) {
  const no_grad off;
  ops::fill_(tensor, value);
}
void zeros(const Tensor& tensor) { constant(tensor, 0); }
void ones(const Tensor& tensor) { constant(tensor, 1); }

void uniform(const Tensor& tensor, double low, double high) {
  check<ArgumentError>(low <= high, "[init] low must not be above high: {} and {}", low, high);
  fill(tensor, Distribution::uniform, high - low, low);
}

void normal(const Tensor& tensor, double mean, double deviation) {
  check<ArgumentError>(deviation >= 0, "[init] the deviation must not be negative: {}", deviation);
  fill(tensor, Distribution::normal, deviation, mean);
}

void kaiming_uniform(const Tensor& tensor, double slope) {
  const auto bound = std::sqrt(6 / ((1 + slope * slope) * fans_of("kaiming_uniform", tensor).in));
  uniform(tensor, -bound, bound);
}

void kaiming_normal(const Tensor& tensor, double slope) {
  normal(tensor, 0, std::sqrt(2 / ((1 + slope * slope) * fans_of("kaiming_normal", tensor).in)));
}

void xavier_uniform(const Tensor& tensor, double gain) {
  const auto fans = fans_of("xavier_uniform", tensor);
  const auto bound = gain * std::sqrt(6 / (fans.in + fans.out));
  uniform(tensor, -bound, bound);
}

void xavier_normal(const Tensor& tensor, double gain) {
  const auto fans = fans_of("xavier_normal", tensor);
  normal(tensor, 0, gain * std::sqrt(2 / (fans.in + fans.out)));
}

}  // namespace netcl::nn::init
