// oneDNN as a contender of `netcl bench`: in the layouts that it likes best ("blocked": the inputs
// are reordered beforehand and the time of that does not count) and in the plain one.
#include <iostream>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <unordered_map>

#include "bench/protocol.h"

namespace {

using namespace netcl::bench;
using dnnl::memory, nlohmann::json;
using tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// A plain tensor with the values that every contender has.
memory input(const Library& lib, const memory::dims& dims, tag layout, std::uint32_t seed,
             double scale = 1) {
  memory result({dims, kFloat, layout}, lib.engine);
  const auto values = input_values(result.get_desc().get_size() / sizeof(float), seed, scale);
  std::copy(values.begin(), values.end(), static_cast<float*>(result.get_data_handle()));
  return result;
}

memory as(const Library& lib, const memory& plain, const memory::desc& wanted) {
  if (plain.get_desc() == wanted) return plain;
  memory result(wanted, lib.engine);
  dnnl::reorder(plain, result).execute(lib.stream, const_cast<memory&>(plain), result);
  auto stream = lib.stream;
  stream.wait();
  return result;
}

Work work(const Library& lib, const dnnl::primitive& primitive,
          const std::unordered_map<int, memory>& arguments, const memory& result,
          const memory::desc& plain) {
  const auto call = [=] { primitive.execute(lib.stream, arguments); };
  const std::function<void()> finish = [stream = lib.stream]() mutable { stream.wait(); };
  return {call,
          [=] {
            call();
            finish();
            const auto values = as(lib, result, plain);
            return probe_of(static_cast<const float*>(values.get_data_handle()),
                            plain.get_size() / sizeof(float));
          },
          finish};
}

Work matmul(const Library& lib, const json& p) {
  const memory::dim m = p.at("m"), n = p.at("n"), k = p.at("k");
  const auto a = input(lib, {m, k}, tag::ab, 1), b = input(lib, {k, n}, tag::ab, 2);
  memory y({{m, n}, kFloat, tag::ab}, lib.engine);
  const dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(a.get_desc(), b.get_desc(), y.get_desc()), lib.engine);
  return work(lib, dnnl::matmul(description),
              {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}}, y, y.get_desc());
}

struct Convolution {
  memory::dims x, w, y, stride, padding;
  tag image, filter;  // of the plain tensors
  tag wanted, wanted_filter;

  Convolution(const json& p, bool blocked) {
    const memory::dim n = p.at("n"), c = p.at("c"), size = p.at("size"), k = p.at("k"),
                      f = p.at("filter"), s = p.at("stride"), pad = p.at("padding"),
                      groups = p.at("groups");
    const auto out = (size + 2 * pad - f) / s + 1;
    x = {n, c, size, size};
    w = groups > 1 ? memory::dims{groups, k / groups, c / groups, f, f} : memory::dims{k, c, f, f};
    y = {n, k, out, out};
    stride = {s, s};
    padding = {pad, pad};
    image = tag::nchw;
    filter = groups > 1 ? tag::goihw : tag::oihw;
    wanted = blocked ? tag::any : image;
    wanted_filter = tag::any;
  }
  dnnl::convolution_forward::primitive_desc forward(const Library& lib) const {
    return {{dnnl::prop_kind::forward_training,
             dnnl::algorithm::convolution_auto,
             {x, kFloat, wanted},
             {w, kFloat, wanted_filter},
             {y, kFloat, wanted},
             stride,
             padding,
             padding},
            lib.engine};
  }
};

Work convolution(const Library& lib, const json& p, bool blocked) {
  const Convolution v(p, blocked);
  const auto description = v.forward(lib);
  const auto x = as(lib, input(lib, v.x, v.image, 1), description.src_desc());
  const auto w = as(lib, input(lib, v.w, v.filter, 2), description.weights_desc());
  const memory y(description.dst_desc(), lib.engine);
  return work(lib, dnnl::convolution_forward(description),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}}, y,
              {v.y, kFloat, v.image});
}

Work convolution_data(const Library& lib, const json& p, bool blocked) {
  const Convolution v(p, blocked);
  const dnnl::convolution_backward_data::primitive_desc description(
      {dnnl::algorithm::convolution_direct,
       {v.x, kFloat, v.wanted},
       {v.w, kFloat, v.wanted_filter},
       {v.y, kFloat, v.wanted},
       v.stride,
       v.padding,
       v.padding},
      lib.engine, v.forward(lib));
  const auto w = as(lib, input(lib, v.w, v.filter, 2), description.weights_desc());
  const auto dy = as(lib, input(lib, v.y, v.image, 3), description.diff_dst_desc());
  const memory dx(description.diff_src_desc(), lib.engine);
  return work(lib, dnnl::convolution_backward_data(description),
              {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}}, dx,
              {v.x, kFloat, v.image});
}

Work convolution_weights(const Library& lib, const json& p, bool blocked) {
  const Convolution v(p, blocked);
  const dnnl::convolution_backward_weights::primitive_desc description(
      {dnnl::algorithm::convolution_direct,
       {v.x, kFloat, v.wanted},
       {v.w, kFloat, v.wanted_filter},
       {v.y, kFloat, v.wanted},
       v.stride,
       v.padding,
       v.padding},
      lib.engine, v.forward(lib));
  const auto x = as(lib, input(lib, v.x, v.image, 1), description.src_desc());
  const auto dy = as(lib, input(lib, v.y, v.image, 3), description.diff_dst_desc());
  const memory dw(description.diff_weights_desc(), lib.engine);
  return work(lib, dnnl::convolution_backward_weights(description),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}}, dw,
              {v.w, kFloat, v.filter});
}

Work softmax(const Library& lib, const json& p) {
  const auto x = input(lib, {p.at("rows"), p.at("columns")}, tag::ab, 1, 8);
  const memory y(x.get_desc(), lib.engine);
  const dnnl::softmax_forward::primitive_desc description(
      {dnnl::prop_kind::forward_inference, x.get_desc(), 1}, lib.engine);
  return work(lib, dnnl::softmax_forward(description), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}, y,
              y.get_desc());
}

Work add(const Library& lib, const json& p) {
  const memory::dims dims = {p.at("n").get<memory::dim>()};
  const auto a = input(lib, dims, tag::a, 1), b = input(lib, dims, tag::a, 2);
  const memory y(a.get_desc(), lib.engine);
  const dnnl::binary::primitive_desc description(
      {dnnl::algorithm::binary_add, a.get_desc(), b.get_desc(), y.get_desc()}, lib.engine);
  return work(lib, dnnl::binary(description),
              {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, y}}, y, y.get_desc());
}

Work prepare(const Library& lib, const json& p, const std::string& contender) {
  const auto kind = p.at("kind").get<std::string>();
  const bool blocked = contender == "blocked";
  if (kind == "conv2d") return convolution(lib, p, blocked);
  if (kind == "conv2d_data") return convolution_data(lib, p, blocked);
  if (kind == "conv2d_weights") return convolution_weights(lib, p, blocked);
  if (blocked) throw std::runtime_error("only convolutions have blocked layouts");
  if (kind == "matmul") return matmul(lib, p);
  if (kind == "softmax") return softmax(lib, p);
  if (kind == "add") return add(lib, p);
  throw std::runtime_error("oneDNN is not asked for " + kind);
}

}  // namespace

int main() {
  const Library lib;
  const auto* version = dnnl_version();
  Answerer answerer;
  answerer.name = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor);
  answerer.contenders = {"plain", "blocked"};
  answerer.prepare = [&](const std::string& parameters, const std::string& contender) {
    return prepare(lib, json::parse(parameters), contender);
  };
  answer(answerer, std::cin, std::cout);
}
