// Calls everything that launches kernels, on a device that the pretend layer claims to be, and
// writes what was launched:
//   kernel_record <file> [--tunables]
// in an environment of OPENCL_LAYERS=libnetcl_pretend_layer.so, PRETEND_DEVICE=a100 (a label of
// tests/support/recorded_devices.cpp) and PRETEND_PROGRAMS=<directory>.
// Every op in every variant that takes the sample, in every dtype, on contiguous tensors and on
// views, with default parameters; fused graphs; the optimisers' steps. With --tunables also every
// combination of parameters that `netcl tune` would try. scripts/gpu_audit.py compiles the outcome.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernel_record/pretend_layer.h"
#include "netcl/netcl.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "optim/multi_tensor.h"
#include "selftest/cases.h"
#include "selftest/data.h"

namespace netcl {
namespace {

using selftest_detail::Layout;

struct Layer {
  decltype(&pretend_layer_tag) tag = nullptr;
  decltype(&pretend_layer_write) write = nullptr;

  static Layer open() {
    Layer layer;
    const char* path = std::getenv("OPENCL_LAYERS");
    void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return layer;
    layer.tag = reinterpret_cast<decltype(layer.tag)>(::dlsym(library, "pretend_layer_tag"));
    layer.write = reinterpret_cast<decltype(layer.write)>(::dlsym(library, "pretend_layer_write"));
    return layer;
  }
};

std::vector<Parameters> combinations(const TunableProblem& problem) {
  std::vector<Parameters> result = {{}};
  for (const auto& tunable : problem.tunables) {
    std::vector<Parameters> longer;
    for (const auto& partial : result)
      for (const auto value : tunable.values) {
        longer.push_back(partial);
        longer.back()[tunable.name] = value;
      }
    result = std::move(longer);
  }
  return result;
}

class Recorder {
 public:
  Recorder(Layer layer, Queue queue) : layer_(layer), queue_(std::move(queue)) {}

  // Nothing that an op refuses is an error here: the self-test looks after that.
  int trouble() const { return trouble_; }

  void ops() {
    for (const auto* op : all_ops()) {
      if (op->view) continue;
      for (const auto& sample : op->samples()) every_dtype(*op, sample, true);
      if (!op->tuning) continue;
      for (const auto& sample : op->tuning()) every_dtype(*op, sample, false);
    }
  }

  // Chains, reductions, products with an epilogue, and their gradients, each as one group.
  void fused() {
    for (const auto dtype : kFloats) {
      if (dtype == DType::float64 && !device_profile(queue_).has_fp64) continue;
      tag("default", "fused", "jit", dtype);
      const auto make = [&](Shape shape) { return Tensor::from_shape(queue_, shape, dtype); };
      const auto a = make({64, 96}), b = make({64, 96}), c = make({64, 96}), row = make({96});
      auto p = make({64, 96}), q = make({64, 96});
      p.set_requires_grad();
      q.set_requires_grad();
      const auto chain = [](const Tensor& x, const Tensor& y, const Tensor& z) {
        return ops::relu((x * y + z) * 1.5 - x) + 0.25;
      };
      attempt("chain", [&] { jit([&] { return chain(a, b, c); })(); });
      attempt("broadcast",
              [&] { jit([&] { return ops::gelu(a * row + ops::sigmoid(b)) * row; })(); });
      attempt("functions", [&] {
        jit([&] { return ops::log(ops::exp(a) + 1.0) * ops::tanh(b) / (c * c + 1.0); })();
      });
      attempt("mean", [&] { jit([&] { return ops::mean(chain(a, b, c)); })(); });
      attempt("rows", [&] { jit([&] { return ops::sum(chain(a, b, c), {1}); })(); });
      attempt("columns", [&] { jit([&] { return ops::max(chain(a, b, c), {0}); })(); });
      attempt("backward", [&] {
        jit([&] {
          Tape tape;
          return tape.gradient(ops::mean(chain(p, q, c)), {p, q})[0];
        })();
      });
      attempt("linear", [&] {
        jit([&] {
          return ops::relu(ops::linear(a, make({128, 96}), make({128})) + make({64, 128}));
        })();
      });
      attempt("conv2d", [&] {
        jit([&] {
          return ops::silu(ops::conv2d(make({2, 16, 20, 20}), make({16, 16, 3, 3}), make({16})));
        })();
      });
    }
  }

  void optimizers() {
    using optim::UpdateRule;
    for (const auto dtype : kFloats) {
      if (dtype == DType::float64 && !device_profile(queue_).has_fp64) continue;
      const auto state = optim::accumulator_dtype(dtype);
      for (const auto rule :
           {UpdateRule::sgd, UpdateRule::adam, UpdateRule::rms_prop, UpdateRule::average}) {
        tag("default", "optimizer", fmt::format("rule {}", static_cast<int>(rule)), dtype);
        const auto make = [&](DType of) { return Tensor::from_shape(queue_, {1000}, of); };
        attempt("update", [&] {
          optim::update_tensors(rule, {}, {{make(dtype), make(dtype), make(state), make(state)}});
        });
      }
    }
  }

  // Copies, casts and random numbers have no OpDef.
  void tensors(bool tunables) {
    register_builtin_tunables();
    for (const char* op : {"copy", "cast", "random"})
      for (const auto& problem : tunable_problems(op, queue_)) {
        tag("default", op, problem.label, DType::float32);
        attempt(op, [&] { problem.prepare(problem.defaults)(); });
        if (tunables) every_combination(op, problem.label, DType::float32, problem);
      }
    const DType all[] = {DType::float32,  DType::float64, DType::float16,
                         DType::bfloat16, DType::int8,    DType::uint8,
                         DType::int32,    DType::int64,   DType::boolean};
    for (const auto from : all)
      for (const auto to : all) {
        tag("default", "cast", fmt::format("to {}", name_of(to)), from);
        attempt("cast", [&] {
          const auto x = Tensor::from_shape(queue_, {32, 48}, from);
          (void)x.astype(to).contiguous();
          (void)x.transpose().astype(to).contiguous();
          (void)x.transpose().contiguous();
        });
      }
    for (const auto dtype : kFloats)
      for (const auto distribution : {Distribution::uniform, Distribution::normal}) {
        tag("default", "random", "", dtype);
        attempt("random", [&] { (void)Tensor::random(queue_, {1000}, 1, distribution, dtype); });
      }
  }

  void set_tunables(bool tunables) { tunables_ = tunables; }

 private:
  void tag(const char* level, std::string_view op, std::string_view variant, DType dtype) const {
    layer_.tag(fmt::format("{}\t{}\t{}\t{}", level, op, variant, name_of(dtype)).c_str());
  }

  template <class Call>
  void attempt(std::string_view what, Call call) {
    try {
      call();
      queue_.finish();
    } catch (const BuildError& error) {  // the layer could not read the source
      ++trouble_;
      std::fprintf(stderr, "kernel_record: %s: %.300s\n", std::string(what).c_str(), error.what());
    } catch (const Error& error) {
      std::fprintf(stderr, "kernel_record: %s: %.300s\n", std::string(what).c_str(), error.what());
    }
  }

  void every_dtype(const OpDef& op, const OpSample& sample, bool values) {
    for (const auto dtype : sample.dtypes.empty() ? op.dtypes : sample.dtypes) {
      if (dtype == DType::float64 && !device_profile(queue_).has_fp64) continue;  // on the host
      attempt(op.name + " " + sample.id, [&] {
        every_variant(call_of(op, sample, dtype, values, Layout::dense), dtype);
        if (values && op.takes_views)
          every_variant(call_of(op, sample, dtype, values, Layout::views), dtype);
        if (!values && tunables_)
          tune_variants(call_of(op, sample, dtype, false, Layout::dense), dtype);
      });
    }
  }

  // Samples of the self-test have values, because ops look at indices; those for tuning have not.
  OpCall call_of(const OpDef& op, const OpSample& sample, DType dtype, bool values, Layout layout) {
    OpCall call{op, queue_, {}, sample.attributes, {}};
    OpSpec spec{op, {}, sample.attributes};
    const auto arrays =
        values ? selftest_detail::make_inputs(sample, dtype, 1) : std::vector<RefArray>();
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const auto& input = sample.inputs[i];
      const auto type = input.dtype.value_or(dtype);
      spec.inputs.push_back({input.shape, type, input.present});
      if (!input.present)
        call.inputs.emplace_back();
      else if (!values)
        call.inputs.push_back(Tensor::from_shape(queue_, input.shape, type));
      else
        call.inputs.push_back(selftest_detail::make_input(queue_, arrays[i], layout).tensor);
    }
    for (const auto& output : op.infer(spec))
      call.outputs.push_back(Tensor::empty(queue_, output.shape, output.dtype));
    return call;
  }

  static bool is_empty(const OpCall& call) {
    for (const auto& output : call.outputs)
      if (output.numel() > 0) return false;
    return true;
  }

  void every_variant(const OpCall& call, DType dtype) {
    if (is_empty(call)) return;
    const auto& profile = device_profile(queue_);
    const auto* chosen = choose_variant(call).variant;
    for (const auto& variant : call.op.variants) {
      if (variant.declines && !variant.declines(call, profile).empty()) continue;
      tag(&variant == chosen ? "default" : "forced", call.op.name, variant.name, dtype);
      attempt(call.op.name, [&] {
        const ForcedVariant forced(call.op, variant.name);
        call_op_into(call.op, call.inputs, call.attributes, call.outputs);
      });
    }
  }

  void tune_variants(const OpCall& call, DType dtype) {
    const auto& profile = device_profile(queue_);
    for (const auto& variant : call.op.variants) {
      if (!variant.space || (variant.declines && !variant.declines(call, profile).empty()))
        continue;
      const ForcedVariant forced(call.op, variant.name);
      const auto config = choose_variant(call).config;
      every_combination(call.op.name, variant.name, dtype, tunable_problem(call, variant, config));
    }
  }

  void every_combination(std::string_view op, std::string_view variant, DType dtype,
                         const TunableProblem& problem) {
    tag("tunable", op, variant, dtype);
    for (const auto& parameters : combinations(problem))
      if (!problem.declines || problem.declines(parameters).empty())
        attempt(op, [&] { problem.prepare(parameters)(); });
  }

  Layer layer_;
  Queue queue_;
  bool tunables_ = false;
  int trouble_ = 0;
};

int run(const std::string& path, bool tunables) {
  const auto layer = Layer::open();
  if (layer.tag == nullptr || layer.write == nullptr) {
    std::fprintf(stderr, "kernel_record: OPENCL_LAYERS must name the pretend layer\n");
    return 2;
  }
  layer.tag("");
  const auto device = manager().default_device("opencl");
  std::printf("%s\n", device.device_name.c_str());
  Recorder recorder(layer, device.queue);
  recorder.set_tunables(tunables);
  recorder.ops();
  recorder.fused();
  recorder.optimizers();
  recorder.tensors(tunables);
  if (layer.write(path.c_str()) == 0) return 1;
  return recorder.trouble() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace netcl

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: kernel_record FILE [--tunables]\n");
    return 2;
  }
  return netcl::run(argv[1], argc > 2 && std::strcmp(argv[2], "--tunables") == 0);
}
