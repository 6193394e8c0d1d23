// The way of a call: which variant runs, with which parameters, into which memory.
#include "ops/dispatch.h"

#include <gtest/gtest.h>

#include <numeric>

#include "netcl/op_info.h"
#include "netcl/ops.h"
#include "ops/parameters.h"
#include "ops/registry.h"
#include "ops/toy_op.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::message_of;

using test::ScopedEnv;

Queue opencl_queue() { return test::opencl_devices().at(0).queue; }

Tensor counting(const Queue& queue, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::from_host(queue, HostView(values, shape));
}

std::vector<float> doubled(const Tensor& x) {
  auto values = x.to_vector<float>();
  for (auto& value : values) value *= 2;
  return values;
}

// ---- the choice of the variant

TEST(Dispatch, AKernelThatDoesNotCompileIsStruckOut) {
  NETCL_NEED_OPENCL();
  const auto queue = opencl_queue();
  int tried = 0;
  auto op = test::toy_op();
  auto broken = test::toy_variant("twice.broken", "TWICE_BROKEN", "y[i] = this is no OpenCL C;");
  broken.run = [run = broken.run, &tried](const OpCall& call, const VariantRun& with) {
    ++tried;
    run(call, with);
  };
  op.variants = {broken, test::toy_variant("twice.good", "TWICE_GOOD", "y[i] = 2.0f * x[i];")};
  const auto x = counting(queue, {37});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call_op(op, {x})[0].to_vector<float>(), doubled(x));
  const auto warning = testing::internal::GetCapturedStderr();
  const auto first = warning.find("TWICE_BROKEN is not used on");
  EXPECT_NE(first, std::string::npos) << warning;
  EXPECT_EQ(warning.find("TWICE_BROKEN is not used on", first + 1), std::string::npos) << warning;
  EXPECT_EQ(tried, 1);

  // The last one that is left cannot be struck out in silence.
  op.variants = {test::toy_variant("twice.only", "", "y[i] = nonsense;")};
  EXPECT_THROW(call_op(op, {x}), BuildError);
  // A forced one is an error, whatever else there is.
  op.variants = {test::toy_variant("twice.bad", "TWICE_BAD", "y[i] = nonsense;"),
                 test::toy_variant("twice.good", "TWICE_GOOD", "y[i] = 2.0f * x[i];")};
  const ForcedVariant forced(op, "twice.bad");
  EXPECT_THROW(call_op(op, {x}), BuildError);
}

TEST(Dispatch, WhenEveryVariantIsOutItSaysSo) {
  NETCL_NEED_OPENCL();
  auto op = test::toy_op();
  op.variants[0].declines = [](const OpCall&, const ExtendedDeviceProfile&) { return "never"; };
  const auto x = counting(opencl_queue(), {5});
  const auto message = message_of<DeviceError>([&] { call_op(op, {x}); });
  EXPECT_NE(message.find("[twice] no variant can compute this call"), std::string::npos) << message;
}

// Rules stay for the life of the process, so these ask for shapes that no other test has.
auto has_shape(Shape shape) {
  return KernelSelector::Condition(
      [shape](const std::vector<Shape>& shapes, const ExtendedDeviceProfile&) {
        return shapes.size() == 1 && shapes[0] == shape;
      });
}

TEST(Dispatch, AUsersRuleRunsTheUsersKernel) {
  NETCL_NEED_OPENCL();
  const auto queue = opencl_queue();
  int runs = 0;
  register_op_kernel("relu", "MY_RELU",
                     [&runs](const Queue& q, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& outputs) {
                       ++runs;
                       EXPECT_TRUE(q == inputs[0].queue());
                       outputs[0].copy_from(Tensor::full(q, inputs[0].shape(), 42));
                     });
  const auto x = counting(queue, {3, 1049});
  EXPECT_EQ(ops::relu(x).to_vector<float>(), x.to_vector<float>());  // no rule names it yet
  get_kernel_selector().register_rule("elementwise", has_shape({3, 1049}), "MY_RELU");
  EXPECT_EQ(ops::relu(x).to_vector<float>(), std::vector<float>(3 * 1049, 42));
  EXPECT_EQ(runs, 1);
  const auto other = counting(queue, {3, 1051});
  EXPECT_EQ(ops::relu(other).to_vector<float>(), other.to_vector<float>());
  EXPECT_EQ(runs, 1);
  // The newest of a name counts.
  register_op_kernel(
      "relu", "MY_RELU",
      [](const Queue& q, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
        outputs[0].copy_from(Tensor::full(q, inputs[0].shape(), 43));
      });
  EXPECT_EQ(ops::relu(x).to_vector<float>(), std::vector<float>(3 * 1049, 43));
}

TEST(Dispatch, ARuleThatNamesAnUnknownKernelIsAnError) {
  NETCL_NEED_OPENCL();
  get_kernel_selector().register_rule("elementwise", has_shape({3, 1061}), "NO_SUCH_KERNEL");
  const auto x = counting(opencl_queue(), {3, 1061});
  const auto message = message_of<ArgumentError>([&] { ops::relu(x); });
  EXPECT_NE(message.find("[relu] a rule of the selector names the kernel NO_SUCH_KERNEL"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("elementwise.scalar"), std::string::npos) << message;
}

TEST(Dispatch, RegisteringForAnUnknownOpIsAnError) {
  const auto message = message_of<ArgumentError>([] {
    register_op_kernel("no_such_op", "MINE", [](const auto&, const auto&, const auto&) {});
  });
  EXPECT_NE(message.find("there is no op called 'no_such_op'"), std::string::npos) << message;
}

TEST(Dispatch, AForcedVariantThatDeclinesSaysWhy) {
  NETCL_NEED_OPENCL();
  const auto queue = opencl_queue();
  const auto a = counting(queue, {4, 1}), b = counting(queue, {1, 5});
  {
    const ForcedVariant forced(find_op("add"), "elementwise.vectorized");
    const auto message = message_of<ArgumentError>([&] { ops::add(a, b); });
    EXPECT_NE(message.find("[add] the forced variant elementwise.vectorized declines: an operand "
                           "is broadcast or a strided view"),
              std::string::npos)
        << message;
    EXPECT_EQ(ops::sub(a, b).shape(), Shape({4, 5}));  // other ops are not affected
  }
  EXPECT_EQ(ops::add(a, b).shape(), Shape({4, 5}));
  EXPECT_THROW(ForcedVariant(find_op("add"), "add.nonsense"), ArgumentError);
}

// ---- devices

TEST(Dispatch, TensorsOnDifferentQueues) {
  NETCL_NEED_OPENCL();
  const auto queue = opencl_queue();
  const auto cpu = manager().default_device("cpu").queue;
  const auto second = Queue::create(queue.context(), queue.device());
  const auto a = counting(queue, {4});
  for (const auto& other : {cpu, second}) {
    const auto b = counting(other, {4});
    const auto message = message_of<DeviceError>([&] { ops::add(a, b); });
    EXPECT_NE(message.find("[add] all tensors must be on one device and queue: "),
              std::string::npos)
        << message;
    EXPECT_THROW(ops::add(b, a), DeviceError);
    EXPECT_THROW(ops::add_(a, b), DeviceError);
    EXPECT_THROW(call_op_into(find_op("relu"), {a}, {}, {counting(other, {4})}), DeviceError);
    EXPECT_EQ(ops::add(a, b.to(queue)).to_vector<float>(), doubled(a));
  }
}

// ---- outputs of the caller

std::vector<float> iota_plus(std::size_t n, float first, float step) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

TEST(Dispatch, OutputsMayBeViews) {
  test::on_every_device([](const Queue& queue) {
    const auto x = counting(queue, {6});
    const auto memory = Tensor::full(queue, {13}, -1);
    call_op_into(find_op("square"), {x}, {}, {memory.slice(0, 12, 1, -2)});  // backwards, with gaps
    EXPECT_EQ(memory.to_vector<float>(),
              (std::vector<float>{-1, -1, 36, -1, 25, -1, 16, -1, 9, -1, 4, -1, 1}));
  });
}

TEST(Dispatch, OutputsMayOverlapInputs) {
  test::on_every_device([](const Queue& queue) {
    // Shifted by one in both directions: what is written must not be read again.
    for (const std::int64_t shift : {1, -1}) {
      const auto memory = counting(queue, {5001});
      const auto x = memory.narrow(0, shift > 0 ? 0 : 1, 5000);
      const auto y = memory.narrow(0, shift > 0 ? 1 : 0, 5000);
      call_op_into(find_op("neg"), {x}, {}, {y});
      EXPECT_EQ(y.to_vector<float>(), iota_plus(5000, shift > 0 ? -1 : -2, -1));
    }
    // The same elements in another order.
    const auto square = counting(queue, {3, 3});
    call_op_into(find_op("neg"), {square}, {}, {square.transpose()});
    EXPECT_EQ(square.to_vector<float>(), (std::vector<float>{-1, -4, -7, -2, -5, -8, -3, -6, -9}));
    // One of two inputs is the output; the other is a reversed view of it.
    const auto x = counting(queue, {1000});
    call_op_into(find_op("add"), {x, x.slice(0, Tensor::kBegin, Tensor::kEnd, -1)}, {}, {x});
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(1000, 1001));
  });
}

TEST(Dispatch, OpsThatNeedDenseMemoryMayWriteIntoViewsAndInputs) {
  test::on_every_device([](const Queue& queue) {
    const auto op = test::toy_op();
    const auto memory = counting(queue, {8});
    call_op_into(op, {memory.slice(0, 0, 8, 2)}, {}, {memory.slice(0, 1, 8, 2)});
    EXPECT_EQ(memory.to_vector<float>(), (std::vector<float>{1, 2, 3, 6, 5, 10, 7, 14}));
    call_op_into(op, {memory}, {}, {memory});
    EXPECT_EQ(memory.to_vector<float>(), (std::vector<float>{2, 4, 6, 12, 10, 20, 14, 28}));
  });
}

TEST(Dispatch, OutputsAreChecked) {
  test::on_every_device([](const Queue& queue) {
    const auto x = counting(queue, {4});
    const auto& relu = find_op("relu");
    EXPECT_THROW(call_op_into(relu, {x}, {}, {Tensor::empty(queue, {5})}), ShapeError);
    EXPECT_THROW(call_op_into(relu, {x}, {}, {Tensor::empty(queue, {4}, DType::float64)}),
                 DtypeError);
    EXPECT_THROW(call_op_into(relu, {x}, {}, {Tensor()}), ArgumentError);
    EXPECT_THROW(call_op_into(relu, {x}, {}, {}), ArgumentError);
    EXPECT_EQ(x.to_vector<float>(), iota_plus(4, 1, 1));
  });
}

TEST(Dispatch, InPlaceOnAView) {
  test::on_every_device([](const Queue& queue) {
    const auto x = counting(queue, {3, 4});
    ops::add_(x.select(1, 2), 100.0);
    ops::mul_(x.slice(0, 0, 3, 2).transpose(), Tensor::full(queue, {2}, -1));
    EXPECT_EQ(x.to_vector<float>(),
              (std::vector<float>{-1, -2, -103, -4, 5, 6, 107, 8, -9, -10, -111, -12}));
  });
}

// ---- tuned parameters. The default store belongs to a process, so these are played in children.

constexpr std::int64_t kTuned = 50'021;

// What `relu` would run with on a tensor of kTuned elements.
Parameters relu_parameters(const Queue& queue) {
  const auto x = counting(queue, {kTuned});
  const Attributes none;
  const OpCall call{find_op("relu"), queue, {x}, none, {Tensor::empty(queue, {kTuned})}};
  const auto choice = choose_variant(call);
  return *parameters_of(call, *choice.variant, choice.config);
}

TEST(Dispatch, AutotuneTunesOnceAndTheNextProcessKnows) {
  NETCL_NEED_OPENCL();
  const auto queue = opencl_queue();
  const auto x = counting(queue, {kTuned});
  if (const auto role = test::child_role()) {
    ASSERT_EQ(ops::relu(x).to_vector<float>(), x.to_vector<float>());
    if (*role == "tune") {
      ASSERT_EQ(default_tuning_store().size(), 1u);
      const auto [key, record] = default_tuning_store().entries()[0];
      ASSERT_EQ(relu_parameters(queue), record.parameters);
      ops::relu(x);
      ASSERT_EQ(default_tuning_store().size(), 1u);
      ASSERT_EQ(default_tuning_store().lookup(key), record);  // not measured again
    } else {
      const auto parameters = relu_parameters(queue);
      const auto wanted = (*role)[0] == '=' ? std::stoll(role->substr(1)) : 0;
      if (wanted > 0)
        ASSERT_EQ(parameters.at("VEC"), wanted);
      else  // the defaults, whatever the file says
        ASSERT_NE(parameters.at("VEC"), 77);
    }
    return;
  }
  const test::TempDir dir;
  const auto path = dir / "tuning.json";
  const ScopedEnv file("NETCL_TUNING_FILE", path.c_str());
  {
    const ScopedEnv on("NETCL_AUTOTUNE", "1");
    EXPECT_EQ(test::ChildProcess("tune").wait(), 0);
  }
  TuningStore store(path);
  ASSERT_EQ(store.size(), 1u);
  auto [key, record] = store.entries()[0];
  EXPECT_NE(key.kernel.find("elementwise."), std::string::npos);
  EXPECT_GT(record.runtime_us, 0);
  const ScopedEnv off("NETCL_AUTOTUNE", "0");
  for (const std::int64_t width : {4, 8}) {  // one of them is not what tuning found
    record.parameters["VEC"] = width;
    store.record(key, record);
    store.save();
    EXPECT_EQ(test::ChildProcess("=" + std::to_string(width)).wait(), 0);
  }
  record.parameters["VEC"] = 77;  // never offered
  store.record(key, record);
  store.save();
  EXPECT_EQ(test::ChildProcess("nonsense").wait(), 0);
  test::write_text(path, "{ this is not JSON");
  EXPECT_EQ(test::ChildProcess("nonsense").wait(), 0);
}

}  // namespace
}  // namespace netcl
