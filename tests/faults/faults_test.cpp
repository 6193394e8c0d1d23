// Every OpenCL call of a session fails once, with codes that drivers return. Each fault has to end
// in an exception of netcl or in the right result, the session has to be right when it is run again
// in the same process, and nothing may stay behind. FAULT_TURNS=4 tries all codes for each call
// (make test-faults); once, the codes take turns.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "fault_layer/fault_layer.h"
#include "netcl/netcl.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::child_role;
using test::ChildProcess;

// The layer that the OpenCL loader has put in front of the driver.
struct Layer {
  decltype(&fault_layer_arm) arm = nullptr;
  decltype(&fault_layer_failed) failed = nullptr;
  decltype(&fault_layer_counts) counts = nullptr;

  static const Layer* instance() {
    static const Layer layer = open();
    return layer.counts == nullptr ? nullptr : &layer;
  }

 private:
  static Layer open() {
    Layer layer;
    const char* path = std::getenv("OPENCL_LAYERS");
    void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return layer;
    const auto find = [library](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, name));
    };
    find(layer.arm, "fault_layer_arm");
    find(layer.failed, "fault_layer_failed");
    find(layer.counts, "fault_layer_counts");
    return layer;
  }
};

#define NEED_LAYER()   \
  NETCL_NEED_OPENCL(); \
  if (Layer::instance() == nullptr) GTEST_SKIP() << "OPENCL_LAYERS names no fault layer"

using Session = std::function<std::vector<double>(const Queue&)>;

int turns() {
  const char* asked = std::getenv("FAULT_TURNS");
  return asked == nullptr ? 1 : std::atoi(asked);
}

// What is alive when nothing is pending and nothing is kept for later.
FaultLayerCounts settled(const Queue& queue) {
  queue.finish();
  // An upload takes back the staging memory of all that have ended; its own stays, each time.
  const std::vector<float> one{1};
  Tensor::from_host(queue, HostView(one, Shape{1}));
  queue.finish();
  get_persistent_pool(queue)->clear();
  get_pinned_pool(queue)->clear();
  return Layer::instance()->counts();
}

struct Tally {
  long faults = 0, thrown = 0, survived = 0;
  std::map<std::string, long> functions;
};

// One session with its nth call failed; false when it has fewer calls.
bool fail_one(const Session& session, const Queue& queue, const std::vector<double>& right,
              long nth, int code, int turn, bool sticky, Tally& tally) {
  const auto* layer = Layer::instance();
  settled(queue);  // so that allocations are calls too
  layer->arm(nth, code, turn, sticky);
  std::string error;
  std::vector<double> result;
  try {
    result = session(queue);
  } catch (const Error& caught) {
    error = caught.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "call " << nth << ": an exception that is not netcl's: " << other.what();
    error = other.what();
  }
  const char* failed = layer->failed();
  layer->arm(0, 0, 0, false);
  if (failed == nullptr) return false;
  const auto where = std::string(failed) + ", call " + std::to_string(nth) + ", turn " +
                     std::to_string(turn) + (sticky ? ", and all after it" : "") + ": " + error;
  ++tally.faults;
  ++tally.functions[failed];
  ++(error.empty() ? tally.survived : tally.thrown);
  if (error.empty()) EXPECT_EQ(result, right) << "wrong without an error: " << where;
  try {
    EXPECT_EQ(session(queue), right) << "wrong afterwards: " << where;
  } catch (const std::exception& still) {
    ADD_FAILURE() << "still failing afterwards: " << where << "\n  " << still.what();
  }
  return true;
}

void fail_every_call(const Session& session) {
  const auto queue = manager().default_device("opencl").queue;
  const auto right = session(queue);
  ASSERT_EQ(session(queue), right) << "the session itself must be reproducible";
  const auto before = settled(queue);
  Tally tally;
  for (int turn = 0; turn < turns(); ++turn)
    for (long nth = 1; !testing::Test::HasFailure(); ++nth) {
      const int which = turns() == 1 ? static_cast<int>(nth) : turn;
      if (!fail_one(session, queue, right, nth, 0, which, false, tally)) break;
      // A device that is gone: from this call on nothing works until it is back.
      constexpr int kInvalidQueue = -36;
      if (nth % 5 == 0) fail_one(session, queue, right, nth, kInvalidQueue, 0, true, tally);
    }
  const auto after = settled(queue);
  EXPECT_EQ(after.contexts, before.contexts);
  EXPECT_EQ(after.queues, before.queues);
  EXPECT_EQ(after.buffers, before.buffers);
  // Programs stay in memory for the next build of the same source.
  EXPECT_LE(after.kernels - before.kernels, after.programs - before.programs);
  EXPECT_EQ(after.events, before.events);
  EXPECT_GT(tally.thrown, 0);
  std::printf("%ld faults: %ld exceptions, %ld without effect\n", tally.faults, tally.thrown,
              tally.survived);
  for (const auto& [name, count] : tally.functions) std::printf("  %5ld %s\n", count, name.c_str());
}

std::vector<double> values_of(const Tensor& tensor) {
  return tensor.astype(DType::float64).to_vector<double>();
}

TEST(Faults, LifeOfATensor) {
  NEED_LAYER();
  fail_every_call([](const Queue& queue) {
    std::vector<float> numbers(600);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 200;
    const auto x = Tensor::from_host(queue, HostView(numbers)).reshape({20, 30});
    const auto y = Tensor::from_shape(queue, {30, 20});
    y.copy_from(x.transpose(0, 1));
    const auto part = y.narrow(0, 3, 20).astype(DType::int32).clone();
    return values_of(ops::add(part.astype(DType::float32), Tensor::full(queue, {20, 20}, 0.5)));
  });
}

TEST(Faults, LaunchOfAKernel) {
  NEED_LAYER();
  fail_every_call([](const Queue& queue) {
    const KernelSpec spec{
        .name = "scaled",
        .src =
            "__kernel void scaled(__global const float* x, __global float* y, float a,\n"
            "                     __local float* scratch, int n) {\n"
            "  const int i = get_global_id(0), l = get_local_id(0);\n"
            "  scratch[l] = i < n ? x[i] * a : 0;\n"
            "  barrier(CLK_LOCAL_MEM_FENCE);\n"
            "  if (i < n) y[i] = scratch[l];\n}\n",
        .workgroup_size = 16,
        .tune = false};
    const auto x = Tensor::full(queue, {64}, 3);
    const auto y = Tensor::from_shape(queue, {64});
    spec.build(queue).run(queue, 64, 16, x, y, 2.5f, KernelArg::local(64), 64);
    return values_of(y);
  });
}

// Every session compiles: the source is new each time.
TEST(Faults, BuildOfAKernel) {
  NEED_LAYER();
  const test::ScopedEnv binaries_too("NETCL_CACHE_BINARIES", "1");
  fail_every_call([](const Queue& queue) {
    static long count = 0;
    const KernelSpec spec{
        .name = "fresh",
        .src = "// " + std::to_string(::getpid()) + "." + std::to_string(++count) +
               "\n__kernel void fresh(__global float* x) { x[get_global_id(0)] *= 2; }\n",
        .workgroup_size = 1,
        .tune = false};
    const auto x = Tensor::full(queue, {4}, 3);
    spec.build(queue).run(queue, 4, 1, x);
    return values_of(x);
  });
}

TEST(Faults, TuningOfAKernel) {
  NEED_LAYER();
  fail_every_call([](const Queue& queue) {
    const KernelSpec spec{
        .name = "halved",
        .src = "__kernel void halved(__global float* x) { x[get_global_id(0)] *= 0.5f; }\n",
        .tune = false};
    const auto x = Tensor::full(queue, {64}, 3);
    const auto program = spec.build(queue);
    const auto result = WorkGroupTuner().tune(queue, program.kernel("halved"), 64, {1, 4, 16}, {x});
    EXPECT_FALSE(result.candidates.empty());
    return values_of(x);  // tuning works on copies
  });
}

TEST(Faults, StepOfTraining) {
  NEED_LAYER();
  fail_every_call([](const Queue& queue) {
    nn::manual_seed(1);
    const auto model = nn::make<nn::Sequential>(std::vector<nn::ModulePtr>{
        nn::make<nn::Linear>(6, 8), nn::relu(), nn::make<nn::Linear>(8, 3)});
    model->to(queue);
    optim::Adam adam(model->parameters(), {.lr = 1e-2});
    const auto x = Tensor::random(queue, {5, 6}, 1, Distribution::normal);
    const auto labels = ops::argmax(x.narrow(1, 0, 3));
    Tape tape;
    const auto loss = nn::cross_entropy((*model)(x), labels);
    tape.backward(loss);
    adam.step();
    auto values = values_of(loss);
    for (const auto& parameter : model->parameters())
      for (const double value : values_of(parameter)) values.push_back(value);
    return values;
  });
}

// Discovery, context and queue happen once in a process, so each fault has a process of its own.
// It exits with 3 when the session has fewer calls than that.
TEST(Faults, StartOfAProcess) {
  NEED_LAYER();
  const auto* layer = Layer::instance();
  const auto session = [] {
    const auto queue = manager().default_device("opencl").queue;
    return values_of(Tensor::full(queue, {3}, 7));
  };
  if (const auto role = child_role()) {
    layer->arm(std::atol(role->c_str()), 0, std::atoi(role->c_str()), false);
    try {
      EXPECT_EQ(session(), std::vector<double>(3, 7));
    } catch (const Error&) {
    }
    if (layer->failed() == nullptr) std::_Exit(3);
    layer->arm(0, 0, 0, false);
    manager().rediscover();
    EXPECT_EQ(session(), std::vector<double>(3, 7));
    return;
  }
  long nth = 1;
  for (; !HasFailure(); ++nth) {
    const int code = ChildProcess(std::to_string(nth)).wait();
    if (code == 3) break;
    EXPECT_EQ(code, 0) << "call " << nth;
  }
  EXPECT_GT(nth, 10);
  std::printf("%ld faults\n", nth - 1);
}

}  // namespace
}  // namespace netcl
