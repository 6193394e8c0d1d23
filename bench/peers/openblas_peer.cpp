// OpenBLAS as a contender of `netcl bench`.
#include <cblas.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/protocol.h"

namespace {

using namespace netcl::bench;

Work matmul(const nlohmann::json& p) {
  const int m = p.at("m"), n = p.at("n"), k = p.at("k");
  const auto size = [](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  };
  const auto a = std::make_shared<std::vector<float>>(input_values(size(m, k), 1));
  const auto b = std::make_shared<std::vector<float>>(input_values(size(k, n), 2));
  const auto y = std::make_shared<std::vector<float>>(size(m, n));
  const auto call = [=] {
    if (m == 1)
      cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b->data(), n, a->data(), 1, 0, y->data(), 1);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a->data(), k, b->data(), n,
                  0, y->data(), n);
  };
  return {call, [=] {
            call();
            return probe_of(y->data(), y->size());
          }};
}

}  // namespace

int main() {
  Answerer answerer;
  answerer.name = "OpenBLAS";
  answerer.prepare = [](const std::string& parameters, const std::string&) {
    const auto p = nlohmann::json::parse(parameters);
    if (p.at("kind") != "matmul") throw std::runtime_error("OpenBLAS multiplies matrices only");
    return matmul(p);
  };
  answer(answerer, std::cin, std::cout);
}
