// Malformed and hostile tuning files: FormatError or a clean load, and never a change before an
// error.
#include "tune/tuning_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "netcl/error.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::TempDir;
using test::write_text;

const char* const kEntry =
    R"({"device": "d", "driver": "1", "kernel": "k", "source_hash": "h", "global_size": [64, 2],
        "dtypes": "float32", "local_size": [8], "parameters": {"WG": 8}, "runtime_us": 1.5,
        "default_us": 0, "candidates": [{"local_size": [4], "parameters": {"WG": 4},
        "runtime_us": null, "note": "n"}]})";

std::string file_with(const std::string& entries, const std::string& version = "1") {
  return R"({"format": "netcl-tuning", "version": )" + version + R"(, "entries": [)" + entries +
         "]}";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A store with one entry, and whether it is still exactly that after a load that failed.
class Loader {
 public:
  Loader() {
    TuningRecord record;
    record.local_size = {2};
    store_.record({"d", "1", "old", "h", {1}, "float32"}, record);
    before_ = store_.entries();
  }
  // True when it loaded; false when it was a FormatError that changed nothing.
  bool load(const std::string& text) {
    write_text(dir_ / "f.json", text);
    try {
      store_.load(dir_ / "f.json");
    } catch (const FormatError& error) {
      EXPECT_EQ(store_.entries(), before_) << "changed by a failed load: " << error.what();
      EXPECT_NE(std::string(error.what()).find("f.json"), std::string::npos) << error.what();
      return false;
    }
    before_ = store_.entries();
    return true;
  }

 private:
  TempDir dir_;
  TuningStore store_;
  std::vector<std::pair<TuningKey, TuningRecord>> before_;
};

TEST(TuningFile, AcceptsItsOwnKind) {
  Loader loader;
  EXPECT_TRUE(loader.load(file_with("")));
  EXPECT_TRUE(loader.load(file_with(kEntry)));
  EXPECT_TRUE(loader.load(file_with(replaced(kEntry, R"("device")", R"("later": [1], "device")"))));
}

TEST(TuningFile, RefusesWhatIsNoTuningFile) {
  Loader loader;
  for (const auto& text :
       {std::string(), std::string("{"), std::string("null"), std::string("[]"), std::string("{}"),
        std::string("7"), file_with("") + "x", file_with("7"), file_with("[]"), file_with("{}"),
        file_with("", "2"), file_with("", "0"), file_with("", "\"1\""), file_with("", "1.0"),
        file_with("", "18446744073709551617"),
        replaced(file_with(""), "netcl-tuning", "netcl-something"), std::string("\xff\xfe\x00", 3),
        std::string("{\"format\": \"\xff\"}")})
    EXPECT_FALSE(loader.load(text)) << text;
}

TEST(TuningFile, RefusesEveryMissingOrMistypedField) {
  const auto good = nlohmann::json::parse(kEntry);
  Loader loader;
  for (const auto& [name, value] : good.items()) {
    auto missing = good;
    missing.erase(name);
    EXPECT_FALSE(loader.load(file_with(missing.dump()))) << name;
    for (const char* wrong : {"true", "{\"a\": [1]}", "[[1]]", "[\"1\"]", "[-1]"}) {
      auto mistyped = good;
      mistyped[name] = nlohmann::json::parse(wrong);
      EXPECT_FALSE(loader.load(file_with(mistyped.dump()))) << name << ": " << wrong;
    }
  }
}

TEST(TuningFile, RefusesHostileValues) {
  Loader loader;
  const auto refused = [&](const std::string& from, const std::string& to) {
    EXPECT_FALSE(loader.load(file_with(replaced(kEntry, from, to)))) << to.substr(0, 60);
  };
  for (const char* size : {"[-8]", "[0]", "[1.5]", "[8e0]", "[9223372036854775808]", "[\"8\"]",
                           "[18446744073709551616]", "[1e400]", "[null]", "[1,1,1,1]"})
    refused("\"local_size\": [8]", std::string("\"local_size\": ") + size);
  refused("[64, 2]", "[-64, 2]");
  refused("[64, 2]", "[64, 18446744073709551616]");
  refused("[64, 2]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
  for (const char* time : {"NaN", "nan", "Infinity", "-1", "1e999", "\"1\"", "null", "-1e-9"})
    refused("\"runtime_us\": 1.5", std::string("\"runtime_us\": ") + time);
  refused("{\"WG\": 8}", "{\"WG\": 9223372036854775808}");
  refused("{\"WG\": 8}", "{\"WG\": -9223372036854775809}");
  refused("{\"WG\": 8}", "{\"WG\": 1.5}");
  refused("{\"WG\": 8}", "{\"WG=1 -I/\": 8}");
  refused("{\"WG\": 8}", "{\"8WG\": 8}");
  refused("{\"WG\": 8}", "{\"WG\\u0000\": 8}");
  refused("{\"WG\": 8}", "{\"WG\": 8, \"WG\": 9}");
  refused("\"d\"", "\"" + std::string(5000, 'd') + "\"");
  refused("\"d\"", "\"\\ud800\"");
  refused("\"driver\"", "\"device\": \"e\", \"driver\"");
  EXPECT_FALSE(loader.load(file_with(std::string(kEntry) + "," + kEntry)));  // the same key twice
}

TEST(TuningFile, RefusesDeepAndHugeFiles) {
  Loader loader;
  for (const int depth : {10, 1000, 3'000'000}) {
    const auto n = static_cast<std::size_t>(depth);
    EXPECT_FALSE(loader.load(file_with(std::string(n, '[') + std::string(n, ']'))));
    EXPECT_FALSE(loader.load(std::string(n, '[')));
    // In a field that nobody reads, so that nothing but the depth is wrong.
    const auto ignored = "\"later\": " + std::string(n, '[') + std::string(n, ']') + ", \"device\"";
    EXPECT_FALSE(loader.load(file_with(replaced(kEntry, "\"device\"", ignored)))) << depth;
    std::string objects;
    for (int i = 0; i < std::min(depth, 100'000); ++i) objects += "{\"a\":";
    EXPECT_FALSE(loader.load(objects));
  }
  EXPECT_FALSE(loader.load(file_with("") + std::string(kMaxTuningFileBytes, ' ')));
}

// A file that netcl could have written, changed at random places in random ways.
std::string mutated(const std::string& good, std::mt19937& random) {
  static const char* const kTokens[] = {"null", "-1", "1e999",  "{",    "[",   "]",
                                        "}",    ",",  "\"",     "true", "\\u", "0",
                                        "::",   "\\", "1e-999", "-0",   "[]",  "{}"};
  auto text = good;
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const auto at = random() % text.size();
    const auto length = std::min<std::size_t>(random() % 30, text.size() - at);
    switch (random() % 7) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), random() % 200));
        break;
      case 4:
        text.insert(at, kTokens[random() % std::size(kTokens)]);
        break;
      case 5:
        if (const auto digit = text.find_first_of("0123456789", at); digit != std::string::npos)
          text[digit] = static_cast<char>('0' + random() % 10);
        break;
      default:
        text.replace(at, length, kTokens[random() % std::size(kTokens)]);
        break;
    }
  }
  return text;
}

TEST(TuningFile, MutatedFilesGiveFormatErrorOrLoad) {
  TuningTable table;
  for (std::size_t i = 0; i < 5; ++i) {
    TuningRecord record{.local_size = {8, i + 1},
                        .parameters = {{"TILE_M", 16}, {"VEC", 4}},
                        .runtime_us = 3.25,
                        .default_us = 7,
                        .candidates = {{{8}, {{"VEC", 2}}, 4.5, ""}, {{16}, {}, 9, "slow"}}};
    table[{"Device", "driver", "kernel", "hash", {64, i}, "float32"}] =
        std::make_shared<const TuningRecord>(record);
  }
  const auto good = tuning_text(table);
  std::mt19937 random(1);
  Loader loader;
  ASSERT_TRUE(loader.load(good));
  int loaded = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) ++(loader.load(mutated(good, random)) ? loaded : refused);
  // Both happen, else the mutations are too mild or too wild to say anything.
  EXPECT_GT(loaded, 20);
  EXPECT_GT(refused, 300);
}

TEST(TuningFile, WhatIsWrittenIsReadBack) {
  const auto again = [](const TuningTable& table) {
    const auto text = tuning_text(table);
    return parse_tuning_file(std::as_bytes(std::span(text)), "f");
  };
  TuningTable table;
  EXPECT_TRUE(again(table).empty());
  table[{"d", "1", "k", "h", {}, "float32"}] = std::make_shared<const TuningRecord>();
  ASSERT_EQ(again(table).size(), 1u);
  EXPECT_EQ(again(table).begin()->first, table.begin()->first);
  EXPECT_EQ(*again(table).begin()->second, TuningRecord());
}

}  // namespace
}  // namespace netcl
