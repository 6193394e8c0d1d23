// CLBlast as a contender of `netcl bench`, on the device that netcl takes, with the parameters that
// it ships.
#include <clblast_c.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/protocol.h"
#include "netcl/device.h"
#include "netcl/tensor.h"

namespace {

using namespace netcl;
using namespace netcl::bench;

Tensor matrix(const Queue& queue, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  const auto values = input_values(static_cast<std::size_t>(rows * columns), seed);
  return Tensor::from_host(queue, HostView(values, Shape{rows, columns}));
}

Work matmul(const Queue& queue, const nlohmann::json& p) {
  const std::size_t m = p.at("m"), n = p.at("n"), k = p.at("k");
  const auto a = matrix(queue, p.at("m"), p.at("k"), 1), b = matrix(queue, p.at("k"), p.at("n"), 2);
  const auto y = Tensor::from_shape(queue, {p.at("m"), p.at("n")});
  const auto call = [=] {
    auto* raw = reinterpret_cast<cl_command_queue>(queue.get());
    const auto memory = [](const Tensor& t) { return reinterpret_cast<cl_mem>(t.buffer().get()); };
    const auto offset = [](const Tensor& t) { return static_cast<std::size_t>(t.offset()); };
    const auto code = CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, m,
                                   n, k, 1, memory(a), offset(a), k, memory(b), offset(b), n, 0,
                                   memory(y), offset(y), n, &raw, nullptr);
    if (code != CLBlastSuccess)
      throw std::runtime_error("CLBlastSgemm failed with " + std::to_string(code));
  };
  return {call,
          [=] {
            call();
            const auto values = y.to_vector<float>();
            return probe_of(values.data(), values.size());
          },
          [queue] { queue.finish(); }};
}

}  // namespace

int main() {
  const auto device = manager().default_device("opencl");
  Answerer answerer;
  answerer.name = "CLBlast";
  answerer.device = device.device_name;
  answerer.prepare = [&](const std::string& parameters, const std::string&) {
    const auto p = nlohmann::json::parse(parameters);
    if (p.at("kind") != "matmul") throw std::runtime_error("CLBlast multiplies matrices only");
    return matmul(device.queue, p);
  };
  answer(answerer, std::cin, std::cout);
}
