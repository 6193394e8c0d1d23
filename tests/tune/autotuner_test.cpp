// Autotuner: the documents' sessions, what survives an interruption, and files.
#include "base/check.h"
#include "netcl/runtime.h"
#include "tune/progress.h"
#include "tune/tune_fixture.h"

namespace netcl {
namespace {

using test::scale_by_two;
using tune::tuning_runs;

class AutotunerTest : public test::TuneTest {
 protected:
  Kernel scale() const { return scale_by_two().build(queue).kernel(); }

  // Three problems of one kernel.
  Autotuner three() const {
    Autotuner tuner(queue);
    for (const std::int64_t size : {128, 256, 512}) tuner.add("scale", scale(), size);
    return tuner;
  }
};

TEST_F(AutotunerTest, DocumentedSession) {
  KernelSpec spec = test::matmul("matmul_small");
  spec.src += test::matmul("matmul_medium").src;
  const auto program = spec.build(queue);
  Autotuner autotuner(queue.device());
  autotuner.add("matmul_small", program.kernel("matmul_small"), {16, 16});
  autotuner.add("matmul_medium", program.kernel("matmul_medium"), {8, 16});
  EXPECT_EQ(autotuner.lookup("matmul_small", {16, 16}), WorkSize(64)) << "nothing is known yet";
  EXPECT_EQ(autotuner.tune_all(queue), 2U);
  EXPECT_EQ(autotuner.results().size(), 2U);
  EXPECT_EQ(autotuner.tune_all(queue), 0U) << "tuned again";

  const auto local = autotuner.lookup("matmul_small", {16, 16});
  EXPECT_EQ(local.rank(), 2U);
  const auto a = Tensor::full(queue, {16, 16}, 2.0), b = Tensor::full(queue, {16, 16}, 1.0);
  const auto c = Tensor::from_shape(queue, {16, 16});
  const auto matmul_small = program.kernel("matmul_small");
  matmul_small(queue, {16, 16}, local, a, b, c, 16, 16, 16);
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(256, 32.0F));

  // Launches without a local size use the result; a one-dimensional size is padded.
  const auto before = tuning_runs();
  matmul_small(queue, {16, 16}, nullptr, a, b, c, 16, 16, 16);
  matmul_small(queue, {16, 16}, 16, a, b, c, 16, 16, 16);
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(256, 32.0F));
  EXPECT_EQ(tuning_runs(), before);
}

TEST_F(AutotunerTest, OneDimensionalResultsHaveOneDimension) {
  Autotuner tuner(queue);
  const auto x = ramp(1024);
  tuner.add("mine", scale(), 1024, {x});
  tuner.tune_all(queue);
  EXPECT_EQ(tuner.lookup("mine", 1024).rank(), 1U);
  ASSERT_TRUE(tuner.result("mine", 1024));
  EXPECT_GE(tuner.result("mine", 1024)->candidates.size(), 5U);
  EXPECT_EQ(x.to_vector<float>(), test::doubled(1024, 0)) << "tuning changed an argument";
  EXPECT_EQ(tuner.lookup("other", 1024), WorkSize(64));
  EXPECT_FALSE(tuner.result("mine", 2048));
}

TEST_F(AutotunerTest, ProgressIsReported) {
  auto tuner = three();
  std::vector<std::size_t> done;
  TuneOptions options;
  options.on_progress = [&](const TuneProgress& progress) {
    done.push_back(progress.done);
    EXPECT_EQ(progress.total, 3U);
    EXPECT_EQ(progress.name, "scale");
  };
  EXPECT_EQ(tuner.tune_all(queue, options), 3U);
  EXPECT_EQ(done, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(tune::ProgressBar::line(3, 12, "matmul", 4.25),
            "[#####---------------]  3/12    4.2 s  matmul");
}

TEST_F(AutotunerTest, BudgetLeavesTheRestForTheNextCall) {
  auto tuner = three();
  TuneOptions options;
  options.budget_seconds = 1e-9;
  for (std::size_t known = 1; known <= 3; ++known) {
    EXPECT_EQ(tuner.tune_all(queue, options), 1U);
    EXPECT_EQ(tuner.results().size(), known);
  }
  EXPECT_EQ(tuner.tune_all(queue, options), 0U);
}

TEST_F(AutotunerTest, InterruptionKeepsWhatIsDoneAndResumes) {
  auto tuner = three();
  TuneOptions options;
  options.on_progress = [](const TuneProgress&) {
    set_interrupt_hook([] { throw Interrupted("[test] Ctrl+C"); });
  };
  EXPECT_THROW(tuner.tune_all(queue, options), Interrupted);
  set_interrupt_hook(nullptr);
  EXPECT_EQ(tuner.results().size(), 1U);
  EXPECT_EQ(default_tuning_store().size(), 1U);
  TuningStore file(default_tuning_store().path());
  EXPECT_EQ(file.size(), 1U) << "what was done before the interruption is not on disk";
  EXPECT_EQ(tuner.tune_all(queue), 2U);
  EXPECT_EQ(tuner.results().size(), 3U);
}

TEST_F(AutotunerTest, ResultsAreUsedByLaunchesAlsoAfterEarlierOnes) {
  const auto kernel = scale();
  const auto x = ramp(1024);
  kernel(queue, 1024, nullptr, x);  // remembers what the launch found
  const auto key = tune::key_of(*kernel.state(), 1024, std::vector<KernelArg>{x});
  Autotuner tuner(queue);
  tuner.add("scale", kernel, 1024);
  tuner.tune_all(queue);
  const auto record = default_tuning_store().lookup(key);
  ASSERT_TRUE(record);
  EXPECT_EQ(WorkSize(record->local_size), tuner.result("scale", 1024)->best_local_size);
  const auto before = tuning_runs();
  kernel(queue, 1024, nullptr, x);
  EXPECT_EQ(tuning_runs(), before);
}

TEST_F(AutotunerTest, SaveAndLoad) {
  const test::TempDir directory;
  auto tuner = three();
  tuner.tune_all(queue);
  tuner.save(directory / "autotune_results.json");

  default_tuning_store().clear();
  tune::raise_results_generation();
  Autotuner restored(queue.device());
  restored.load(directory / "autotune_results.json");
  for (const std::int64_t size : {128, 256, 512})
    EXPECT_EQ(restored.lookup("scale", size), tuner.lookup("scale", size));
  const auto before = tuning_runs();
  restored.add("scale", scale(), 256);
  EXPECT_EQ(restored.tune_all(queue), 0U) << "loaded results are results";
  const auto x = ramp(256);
  scale()(queue, 256, nullptr, x);
  EXPECT_EQ(tuning_runs(), before) << "a launch did not use what was loaded";
  EXPECT_EQ(x.to_vector<float>(), test::doubled(256));
}

TEST_F(AutotunerTest, ResultsOfAnotherDeviceAreKeptButNotApplied) {
  const test::TempDir directory;
  TuningStore foreign;
  TuningRecord record;
  record.local_size = {8};
  foreign.record({"Another Device", "1.0", "scale", "hash", {128}, "float32"}, record);
  foreign.save(directory / "foreign.json");
  auto tuner = three();
  tuner.load(directory / "foreign.json");
  EXPECT_TRUE(tuner.results().empty());
  EXPECT_EQ(tuner.lookup("scale", 128), WorkSize(64));
  EXPECT_EQ(default_tuning_store().size(), 0U);
  EXPECT_EQ(tuner.tune_all(queue), 3U);
  tuner.save(directory / "all.json");
  TuningStore all;
  all.load(directory / "all.json");
  EXPECT_TRUE(all.lookup({"Another Device", "1.0", "scale", "hash", {128}, "float32"}));
}

TEST_F(AutotunerTest, MalformedFilesChangeNothing) {
  const test::TempDir directory;
  auto tuner = three();
  tuner.tune_all(queue);
  const auto before = tuner.results();
  for (const char* text : {"", "{", "[]", "{\"format\": \"netcl-tuning\", \"version\": 99}"}) {
    test::write_text(directory / "bad.json", text);
    EXPECT_THROW(tuner.load(directory / "bad.json"), FormatError) << text;
    EXPECT_EQ(tuner.results(), before);
  }
  EXPECT_THROW(tuner.load(directory / "missing.json"), FileError);
}

TEST_F(AutotunerTest, ClearMeasuresAgain) {
  auto tuner = three();
  tuner.tune_all(queue);
  tuner.clear();
  EXPECT_TRUE(tuner.results().empty());
  EXPECT_EQ(tuner.lookup("scale", 128), WorkSize(64));
  EXPECT_EQ(tuner.tune_all(queue), 3U);
}

TEST_F(AutotunerTest, DtypesTellKernelsOfOneNameApart) {
  if (!device_profile(queue).has_fp64) GTEST_SKIP() << "the device has no double";
  KernelSpec spec{.name = "negate", .src = R"(__kernel void negate(__global T* x) {
                              x[get_global_id(0)] = -x[get_global_id(0)];
                            })"};
  Autotuner tuner(queue);
  for (const char* flag : {"-DT=float", "-DT=double"}) {
    spec.extra_flags = {flag};
    // The driver tells the parameter's type as it is written, so real arguments name it.
    const auto x = Tensor::full(queue, {256}, 1.0,
                                std::string(flag) == "-DT=float" ? DType::float32 : DType::float64);
    tuner.add("negate", spec.build(queue).kernel(), 256, {x});
    EXPECT_EQ(tuner.tune_all(queue), 1U) << flag;
  }
  EXPECT_TRUE(tuner.result("negate", 256, "float32"));
  EXPECT_TRUE(tuner.result("negate", 256, "float64"));
  EXPECT_FALSE(tuner.result("negate", 256, "float16"));
  EXPECT_EQ(default_tuning_store().size(), 2U);
}

TEST_F(AutotunerTest, OneKernelThatCannotBeTunedDoesNotStopTheOthers) {
  auto tuner = three();
  const KernelSpec bad{.name = "by_struct", .src = R"(struct pair { int a; int b; };
                                 __kernel void by_struct(struct pair p, __global int* y) {
                                   y[get_global_id(0)] = p.a;
                                 })"};
  tuner.add("bad", bad.build(queue).kernel(), 64);
  tuner.add("scale", scale(), 1024);
  EXPECT_THROW(tuner.tune_all(queue), ArgumentError);
  EXPECT_EQ(tuner.results().size(), 4U);
}

TEST_F(AutotunerTest, WrongUseIsAnError) {
  Autotuner tuner(queue);
  EXPECT_THROW(tuner.add("none", Kernel(), 64), ArgumentError);
  EXPECT_THROW(tuner.add("empty", scale(), WorkSize()), ShapeError);
  EXPECT_THROW(tuner.add("zero", scale(), 0), ShapeError);
  EXPECT_THROW(tuner.add("many", scale(), 64, {1, 2, 3}), ArgumentError);
  EXPECT_THROW(tuner.tune_all(CPUQueue()), DeviceError);
}

}  // namespace
}  // namespace netcl
