// A dozen ops on the best device there is: arithmetic, broadcasting, products, images, indexing.
#include <cmath>
#include <cstdio>

#include "netcl/netcl.h"

namespace {

void show(const char* what, const netcl::Tensor& values) {
  std::printf("%-28s", what);
  for (const float value : values.to_vector<float>()) std::printf(" %7.3f", value);
  std::printf("\n");
}

}  // namespace

int main() {
  namespace ops = netcl::ops;
  using netcl::Tensor;
  const auto x = Tensor::from_host({std::vector<float>{-2, -1, 0, 1, 2, 3}, {2, 3}});
  std::printf("on %s\n", x.queue().name().c_str());

  show("x", x);
  show("2 x + 1", 2 * x + 1);
  show("relu(x)", ops::relu(x));
  show("gelu(x)", ops::gelu(x));
  show("x where x > 0, else -1", ops::where(ops::gt(x, 0.0), x, -1.0));

  // Operands broadcast: a row for both rows of x, a column for its three columns.
  const auto row = Tensor::from_host({std::vector<float>{10, 20, 30}, {1, 3}});
  const auto column = Tensor::from_host({std::vector<float>{1, 2}, {2, 1}});
  show("x + row", x + row);
  show("row * column", row * column);
  show("sum over rows", ops::sum(x, {0}));

  // Products; transposed views cost nothing.
  const auto products = ops::matmul(x, x.transpose());
  show("x x^T", products);

  // Images: a 3x3 mean filter as a convolution, the largest of 2x2 windows.
  const auto image = ops::reshape(Tensor::arange(0, 16, 1, netcl::DType::float32), {1, 1, 4, 4});
  const auto filter = Tensor::full({1, 1, 3, 3}, 1.0 / 9);
  const auto smooth = ops::conv2d(image, filter);
  show("3x3 means of 0 ... 15", smooth);
  show("2x2 maxima", ops::max_pool2d(image, {2, 2}));

  // Indexing and joining.
  const auto picked = ops::index_select(x, 1, Tensor::from_host(std::vector<std::int32_t>{2, 0}));
  show("columns 2 and 0", picked);
  show("joined with themselves", ops::concat({picked, picked}, 1));

  // In place, through a view: the last column of x.
  ops::mul_(x.narrow(1, 2, 1), 100.0);
  show("x, last column times 100", x);

  const auto means = smooth.to_vector<float>();
  return std::fabs(means[0] - 5) < 1e-5 && products.to_vector<float>()[0] == 5 ? 0 : 1;
}
