// Models, evaluation against hand-made cases, predictions, the report.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/program_cache.h"
#include "netcl/train.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/host_arrays.h"
#include "support/temp_dir.h"

namespace netcl::train {
namespace {

using test::array_of;
using test::message_of;
using test::TempDir;

// Images of one row with three pixels; the logits are the pixels / 255 (mean 0, deviation 1).
Classifier pixels_as_logits() {
  auto linear = nn::make<nn::Linear>(3, 3);
  linear->weight.write(array_of<float>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  linear->bias.write(array_of<float>({3}, {0, 0, 0}));
  auto net = nn::make<nn::Sequential>();
  net->append(nn::make<nn::Flatten>());
  net->append(linear);
  return Classifier(net, {"a", "b", "c"}, Shape{1, 1, 3}, {{0.0f}, {1.0f}});
}

std::shared_ptr<data::ArrayDataset> four_samples() {
  const auto images =
      array_of<std::uint8_t>({4, 1, 1, 3}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0});
  return std::make_shared<data::ArrayDataset>(images, array_of<std::uint8_t>({4}, {0, 1, 2, 1}),
                                              std::vector<std::string>{"a", "b", "c"});
}

TEST(Evaluate, CountsByHand) {
  test::on_every_device([](const Queue& queue) {
    const ActiveDevice active(DeviceHandle{"", "", queue.is_cpu() ? "cpu" : "cl", "", {}, queue});
    const auto result = evaluate(pixels_as_logits(), four_samples(), 3);
    EXPECT_EQ(result.samples, 4);
    EXPECT_DOUBLE_EQ(result.accuracy, 0.75);
    EXPECT_EQ(result.confusion, (std::vector<std::int64_t>{1, 0, 0, 1, 1, 0, 0, 0, 1}));
    EXPECT_EQ(result.count(1, 0), 1);  // a true "b" taken for "a"
    // Right: log(e + 2) - 1; wrong: log(e + 2).
    const double right = std::log(std::exp(1.0) + 2) - 1;
    EXPECT_NEAR(result.loss, (3 * right + right + 1) / 4, 1e-6);
  });
}

TEST(Evaluate, RefusesOtherClasses) {
  const auto classifier = pixels_as_logits();
  const auto images = test::patterned({2, 1, 1, 3}, DType::uint8);
  const auto with = [&](std::vector<std::string> names) {
    return std::make_shared<data::ArrayDataset>(images, array_of<std::uint8_t>({2}, {0, 1}), names);
  };
  EXPECT_NO_THROW(evaluate(classifier, with({"a", "b"})));
  EXPECT_THROW(evaluate(classifier, with({"a", "x"})), ArgumentError);
  EXPECT_THROW(evaluate(classifier, with({"a", "b", "c", "d"})), ArgumentError);
  EXPECT_THROW(evaluate(classifier, nullptr), ArgumentError);
  const auto wide = std::make_shared<data::ArrayDataset>(
      test::patterned({2, 1, 1, 4}, DType::uint8), array_of<std::uint8_t>({2}, {0, 1}),
      std::vector<std::string>{"a", "b"});
  EXPECT_THROW(evaluate(classifier, wide), ShapeError);
}

TEST(Predict, GivesProbabilities) {
  const auto classifier = pixels_as_logits();
  std::vector<HostArray> images(300, array_of<std::uint8_t>({1, 1, 3}, {0, 255, 0}));
  images[299] = array_of<std::uint8_t>({1, 1, 3}, {0, 0, 255});
  const auto answers = predict(classifier, images);
  ASSERT_EQ(answers.size(), 300u);
  const double e = std::exp(1.0);
  EXPECT_NEAR(answers[0][1], e / (e + 2), 1e-6);
  EXPECT_NEAR(answers[299][2], e / (e + 2), 1e-6);
  EXPECT_NEAR(answers[299][1], 1 / (e + 2), 1e-6);
  EXPECT_TRUE(predict(classifier, {}).empty());
  EXPECT_THROW(predict(classifier, {array_of<std::uint8_t>({1, 3, 1}, {0, 0, 1})}), ShapeError);
  EXPECT_THROW(predict(classifier, {array_of<float>({1, 1, 3}, {0, 0, 1})}), DtypeError);
}

TEST(Predict, ReadsImagesOfTheRightSize) {
  const auto classifier = pixels_as_logits();
  const TempDir dir;
  io::save_png(dir / "good.png", array_of<std::uint8_t>({1, 3}, {0, 9, 255}));
  io::save_png(dir / "wide.png", test::patterned({2, 6}, DType::uint8));
  EXPECT_TRUE(test::same_bits(classifier.read_image(dir / "good.png"),
                              array_of<std::uint8_t>({1, 1, 3}, {0, 9, 255})));
  const auto message = message_of<ShapeError>([&] { classifier.read_image(dir / "wide.png"); });
  EXPECT_NE(message.find("1 x 3"), std::string::npos) << message;
  EXPECT_NE(message.find("2 x 6"), std::string::npos) << message;
  EXPECT_EQ(classifier.read_image(dir / "wide.png", true).shape(), (Shape{1, 1, 3}));
  EXPECT_THROW(classifier.read_image(dir / "none.png"), FileError);
}

TEST(Normalisation, IsMeasuredPerChannel) {
  const auto images = array_of<std::uint8_t>({2, 2, 1, 2}, {0, 255, 51, 51, 0, 255, 51, 51});
  const data::ArrayDataset dataset(images, array_of<std::uint8_t>({2}, {0, 1}));
  const auto result = measure_normalisation(dataset);
  EXPECT_FLOAT_EQ(result.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(result.deviation[0], 0.5f);
  EXPECT_FLOAT_EQ(result.mean[1], 0.2f);
  EXPECT_FLOAT_EQ(result.deviation[1], 1.0f);  // constant
}

// A first start compiles only what trains.
TEST(MakeModel, IsProbedAndInitialisedWithoutKernels) {
  NETCL_NEED_OPENCL();
  const ActiveDevice active("opencl");
  const auto asked = [] {
    const auto stats = program_cache_stats();
    return stats.compiled + stats.disk_hits + stats.memory_hits;
  };
  for (const auto* name : {"mlp", "cnn"}) {
    const auto before = asked();
    const auto model = make_model(name, 1, 28, 28, 10);
    EXPECT_EQ(asked(), before) << name;
    // The probe left nothing behind: the model computes.
    const auto x = Tensor::full({2, 1, 28, 28}, 0.5);
    EXPECT_TRUE(std::isfinite(ops::sum((*model)(x)).item())) << name;
  }
}

TEST(MakeModel, HasTheLayersOfItsName) {
  EXPECT_EQ(make_model("mlp", 1, 28, 28, 10)->parameter_count(), 784 * 256 + 256 + 2560 + 10);
  EXPECT_EQ(make_model("cnn", 1, 28, 28, 10)->parameter_count(), 160 + 4640 + 15680 + 10);
  EXPECT_EQ(make_model("cnn", 3, 30, 33, 5)->parameter_count(), 448 + 4640 + 32 * 7 * 8 * 5 + 5);
  const auto small = make_model("resnet18", 3, 32, 32, 10);
  EXPECT_EQ(small->children().front().second->describe().find("stride=[2"), std::string::npos);
  EXPECT_THROW(make_model("cnn", 1, 3, 28, 10), ArgumentError);
  EXPECT_THROW(make_model("vgg", 1, 28, 28, 10), ArgumentError);
  EXPECT_THROW(make_model("none.json", 1, 28, 28, 10), FileError);
  const TempDir dir;
  test::write_text(dir / "m.json", R"({"type": "Sequential", "layers": [{"type": "Flatten"},
    {"type": "Linear", "in": 12, "out": 5}]})");
  EXPECT_EQ(make_model(dir / "m.json", 3, 2, 2, 5)->parameter_count(), 65);
  EXPECT_THROW(make_model(dir / "m.json", 3, 2, 2, 6), ArgumentError);
  EXPECT_THROW(make_model(dir / "m.json", 3, 2, 3, 5), ArgumentError);
}

TEST(Report, IsOnePageWithEverything) {
  const auto classifier = pixels_as_logits();
  Report report;
  report.title = "a <title> & more";
  report.settings = {{"device", "some device"}};
  report.curve = {{20, 1.5, 0.5}, {40, std::nan(""), 0.75}, {60, 0.5, 0.8}};
  report.history = {{1, 0.9, 0.8, true, 0.7, 0.85, 1.5}};
  report.evaluation = evaluate(classifier, four_samples());
  report.samples = sample_predictions(classifier, *four_samples(), 4);
  report.kernels = {{"matmul_tiled", "d", 12, 0, 0, 0, 0}};
  ASSERT_EQ(report.samples.size(), 3u);  // the first two, and the wrong one of the rest
  EXPECT_EQ(report.samples[2].truth, 1u);
  EXPECT_EQ(report.samples[2].answer, 0u);
  const auto page = report_html(report);
  for (const auto* part :
       {"a &lt;title&gt; &amp; more", "<svg", "data:image/png;base64,iVBOR", "75.00 %",
        "matmul_tiled", "counted only", "some device", "viewport", "prefers-color-scheme:dark"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  for (const auto* part : {"http", "<script", "<link", "nan"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace netcl::train
