// Saving never loses the previous file: not when the process is killed at any moment, not when the
// disk is full.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>
#include <thread>

#include "base/file_stream.h"
#include "netcl/io.h"
#include "support/child_process.h"
#include "support/errors.h"
#include "support/file_limit.h"
#include "support/host_arrays.h"
#include "support/temp_dir.h"

namespace netcl::io {
namespace {

using test::child_role;
using test::ChildProcess;
using test::message_of;
using test::patterned;
using test::read_text;
using test::same_bits;
using test::TempDir;

ArrayMap version(unsigned number) {
  return {{"a", patterned({200'000}, DType::float32, number)},
          {"b", patterned({1000}, DType::int64, number)}};
}

// The version that a complete file is of, or -1.
int version_of(const ArrayMap& arrays) {
  for (unsigned number = 0; number < 4; ++number) {
    const auto wanted = version(number);
    if (arrays.size() == wanted.size() && same_bits(arrays.at("a"), wanted.at("a")) &&
        same_bits(arrays.at("b"), wanted.at("b")))
      return static_cast<int>(number);
  }
  return -1;
}

ArrayMap load(const std::string& path) {
  const SafetensorsFile file(path);
  ArrayMap arrays;
  for (const auto& name : file.names()) arrays[name] = file.read(name);
  return arrays;
}

TEST(Saving, SurvivesBeingKilledAtAnyMoment) {
  if (const auto directory = child_role()) {
    for (unsigned i = 1; i < 1000; ++i) {  // bounded: the parent may be killed too
      save_safetensors(*directory + "/f.safetensors", version(i % 4));
      save_npz(*directory + "/f.npz", version(i % 4), Compression::none);
      test::write_text(*directory + "/started", "x");
    }
    return;
  }
  const TempDir dir;
  save_safetensors(dir / "f.safetensors", version(0));
  save_npz(dir / "f.npz", version(0));
  std::mt19937 random(7);
  int changed = 0;
  for (int round = 0; round < 50; ++round) {
    std::filesystem::remove(dir / "started");
    {
      ChildProcess child(dir.path().string());
      while (!std::filesystem::exists(dir / "started"))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      child.kill();
    }
    const int tensors = version_of(load(dir / "f.safetensors"));
    const int archive = version_of(load_npz(dir / "f.npz"));
    ASSERT_GE(tensors, 0) << "round " << round;
    ASSERT_GE(archive, 0) << "round " << round;
    changed += tensors != 0 || archive != 0 ? 1 : 0;
  }
  EXPECT_GT(changed, 10);
  // What the killed ones left beside the files is known, and goes when its time has come.
  remove_stale_temporaries(dir.path().string(), std::chrono::seconds(-10));
  std::filesystem::remove(dir / "started");
  EXPECT_EQ(test::count_files(dir.path()), 2u);
}

TEST(Saving, AFullDiskKeepsThePreviousFile) {
  const TempDir dir;
  const auto image = patterned({300, 300, 3}, DType::uint8);
  const std::pair<const char*, std::function<void(const std::string&)>> savers[] = {
      {"safetensors", [](const auto& path) { save_safetensors(path, version(1)); }},
      {"npy", [](const auto& path) { save_npy(path, version(1).at("a")); }},
      {"npz", [](const auto& path) { save_npz(path, version(1)); }},
      {"npz deflated", [](const auto& path) { save_npz(path, version(1), Compression::deflate); }},
      {"png", [&](const auto& path) { save_png(path, image); }},
  };
  for (const auto& [name, save] : savers) {
    save(dir / "f");
    const auto before = read_text(dir / "f");
    // Nothing, a part of the header, a part of the values, all but the last byte.
    for (const auto limit :
         {std::size_t{0}, std::size_t{20}, before.size() / 2, before.size() - 1}) {
      const test::FileSizeLimit full(limit);
      const auto message = message_of<FileError>([&, &save = save] { save(dir / "f"); });
      EXPECT_NE(message.find(dir / "f"), std::string::npos) << name << ": " << message;
      EXPECT_NE(message.find("File too large"), std::string::npos) << name << ": " << message;
    }
    EXPECT_EQ(read_text(dir / "f"), before) << name;
    EXPECT_EQ(test::count_files(dir.path()), 1u) << name;
  }
}

TEST(Saving, FilesAreForWhomTheUmaskAllows) {
  const TempDir dir;
  const auto before = ::umask(0027);
  save_npy(dir / "f", patterned({1}, DType::int8));
  ::umask(before);
  const auto mode = std::filesystem::status(dir / "f").permissions();
  EXPECT_EQ(static_cast<unsigned>(mode), 0640u);
}

}  // namespace
}  // namespace netcl::io
