// Checkpoints are not trusted: damaged ones load or are a FormatError.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "netcl/train.h"
#include "support/errors.h"
#include "toy_data.h"

namespace netcl::train {
namespace {

using nlohmann::json;
using test::message_of;
using test::TempDir;
using test::ToyData;

constexpr const char* kKey = "netcl.checkpoint";

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : data_(40, 20) {
    Options options;
    options.data = data_.path();
    options.device = "cpu";
    options.batch = 10;
    options.epochs = 3;
    Trainer trainer(options);
    trainer.run({}, 6);
    trainer.save(good_);
  }

  // Loads as `netcl eval` and as `netcl train --resume` do. True: it was read.
  static bool reads(const std::string& path) {
    try {
      (void)Classifier::load(path);
      Options options;
      options.device = "cpu";
      options.resume = path;
      Trainer trainer(options);
      return true;
    } catch (const FormatError&) {
    } catch (const ArgumentError&) {  // sound, but of other data than there is
    } catch (const FileError&) {      // sound, with the name of a folder that is not there
    }
    return false;
  }

  // The file with its JSON and its tensors changed.
  template <class F>
  std::string changed(F&& change) {
    const io::SafetensorsFile file(good_);
    io::ArrayMap arrays;
    for (const auto& name : file.names()) arrays.emplace(name, file.read(name));
    auto metadata = file.metadata();
    auto value = json::parse(metadata.at(kKey));
    change(value, arrays);
    metadata[kKey] = value.dump();
    io::save_safetensors(dir_ / "changed", arrays, metadata);
    return dir_ / "changed";
  }

  ToyData data_;
  TempDir dir_;
  std::string good_ = dir_ / "good";
};

TEST_F(CheckpointTest, MutationsAreReadOrRefused) {
  ASSERT_TRUE(reads(good_));
  const auto text = test::read_text(good_);
  std::mt19937 random(3);
  int refused = 0;
  constexpr int kCount = 300;
  const auto header = 8 + static_cast<std::size_t>(static_cast<unsigned char>(text[0])) +
                      256 * static_cast<std::size_t>(static_cast<unsigned char>(text[1]));
  for (int i = 0; i < kCount; ++i) {
    auto damaged = text;
    for (auto n = random() % 3 + 1; n > 0; --n) {
      const auto at = random() % std::min(header, damaged.size());
      switch (random() % 5) {
        case 0:
          damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
          break;
        case 1:
          damaged[at] = "0123456789{}[],:\"-.e"[random() % 20];
          break;
        case 2:
          damaged.erase(at, random() % 20);
          break;
        case 3:
          damaged.insert(at, random() % 20, static_cast<char>(random() % 256));
          break;
        default:
          if (random() % 8 == 0) damaged.resize(random() % damaged.size() + 1);
      }
    }
    test::write_text(dir_ / "damaged", damaged);
    refused += reads(dir_ / "damaged") ? 0 : 1;
  }
  EXPECT_GT(refused, kCount / 3);
}

// Every value of the JSON taken away, and replaced by each of some others.
TEST_F(CheckpointTest, EveryValueIsChecked) {
  const json others[] = {nullptr, -1, 1e300, "text", json::array(), json::object(), 16777216, true};
  std::vector<json::json_pointer> places;
  changed([&](json& value, auto&) {
    const auto flat = value.flatten();
    for (const auto& [place, leaf] : flat.items()) {
      if (place.starts_with("/curve") || place.starts_with("/classes")) continue;
      places.emplace_back(place);
      (void)leaf;
    }
  });
  ASSERT_GT(places.size(), 40u);
  int refused = 0, all = 0;
  for (const auto& place : places) {
    const auto path = changed([&](json& value, auto&) {
      auto& parent = value[place.parent_pointer()];
      if (parent.is_object()) parent.erase(place.back());
    });
    refused += reads(path) ? 0 : 1;
    ++all;
    for (const auto& other : others) {
      const auto path2 = changed([&](json& value, auto&) { value[place] = other; });
      refused += reads(path2) ? 0 : 1;
      ++all;
    }
  }
  EXPECT_GT(refused, all * 2 / 3) << all;
}

TEST_F(CheckpointTest, MissingAndWrongTensorsAreNamed) {
  const auto message = [&](auto&& change) {
    const auto path = changed(change);
    return message_of<FormatError>([&] {
      Options options;
      options.device = "cpu";
      options.resume = path;
      Trainer trainer(options);
    });
  };
  const auto names = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("changed"), std::string::npos) << text;
  };
  names(message([](json&, auto& arrays) { arrays.erase("model.0.weight"); }), "0.weight");
  names(message([](json&, auto& arrays) {
          arrays["model.0.weight"] = HostArray(Shape{16, 1, 3, 4}, DType::float32);
        }),
        "0.weight");
  names(message([](json&, auto& arrays) { arrays.erase("optim.exp_avg.1"); }), "exp_avg.1");
  names(message([](json&, auto& arrays) {
          arrays["optim.exp_avg.1"] = HostArray(Shape{3}, DType::float32);
        }),
        "exp_avg.1");
  names(message([](json&, auto& arrays) { arrays.erase("train.window_loss"); }), "window_loss");
  names(message([](json& value, auto&) { value["model"]["layers"][0]["out"] = 16777216; }),
        "parameters");
  names(message([](json& value, auto&) { value["history"] = json::array(); }), "history");
}

TEST_F(CheckpointTest, DeepNestingIsRefused) {
  const io::SafetensorsFile file(good_);
  auto metadata = file.metadata();
  for (const auto* name : {"model", "epochs", "history"}) {
    auto text = json::parse(metadata.at(kKey));
    text.erase(name);
    constexpr std::size_t kDeep = 1'000'000;
    auto changed_text = text.dump();
    changed_text.pop_back();
    changed_text +=
        ",\"" + std::string(name) + "\":" + std::string(kDeep, '[') + std::string(kDeep, ']') + "}";
    io::save_safetensors(dir_ / "deep", io::ArrayMap{}, {{kKey, changed_text}});
    const auto message = message_of<FormatError>([&] { Classifier::load(dir_ / "deep"); });
    EXPECT_NE(message.find("nested"), message.npos) << message.substr(0, 200);
  }
}

TEST_F(CheckpointTest, OtherSafetensorsAreNoCheckpoints) {
  io::save_safetensors(dir_ / "other", io::ArrayMap{{"x", HostArray(Shape{1}, DType::int8)}});
  EXPECT_NE(
      message_of<FormatError>([&] { Classifier::load(dir_ / "other"); }).find("no checkpoint"),
      std::string::npos);
  EXPECT_THROW(Classifier::load(dir_ / "none"), FileError);
  EXPECT_EQ(checkpoint_data(good_), data_.path());
}

}  // namespace
}  // namespace netcl::train
