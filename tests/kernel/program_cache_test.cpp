// The program cache across processes: what is compiled when, and that damage only costs time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "device/driver_limits.h"
#include "netcl/netcl.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::child_role;
using test::ChildProcess;
using test::ScopedEnv;

// Runs two kernels and checks their results; returns how many programs were compiled.
std::uint64_t work() {
  const auto queue = manager().default_device("opencl").queue;
  const auto before = program_cache_stats().compiled;
  const auto x = Tensor::arange(queue, 0, 100, 1, DType::float32);
  KernelSpec{.name = "add_number",
             .src =
                 "__kernel void add_number(__global float* x, float v) "
                 "{ x[get_global_id(0)] += v; }",
             .tune = false}
      .build(queue)
      .run(queue, 100, nullptr, x, 0.5);
  EXPECT_EQ(x.astype(DType::float64).to_vector<double>()[99], 99.5);
  // The parameters are known also when the program came from a file.
  EXPECT_EQ(find_kernel_spec("add_number")->build(queue).kernel().parameters().at(1).name, "v");
  return program_cache_stats().compiled - before;
}

// The child's role is the number of compiler calls it must see, or "any".
void play(const std::string& role) {
  const auto compiled = work();
  if (role != "any") EXPECT_EQ(std::to_string(compiled), role);
}

std::vector<std::filesystem::path> entries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".bin") files.push_back(entry.path());
  return files;
}

TEST(ProgramCache, AWarmStartCompilesNothing) {
  if (const auto role = child_role()) return play(*role);
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const ScopedEnv scope("NETCL_CACHE_DIR", (dir / "cache").c_str()),
      all("NETCL_CACHE_BINARIES", "1");
  EXPECT_EQ(ChildProcess("2").wait(), 0) << "cold: the user's kernel and the cast";
  EXPECT_EQ(entries(dir.path()).size(), 2u);
  EXPECT_EQ(ChildProcess("0").wait(), 0) << "warm: no compiler call";
  const auto mode = std::filesystem::status(dir / "cache/programs").permissions();
  EXPECT_EQ(mode & std::filesystem::perms(077), std::filesystem::perms::none);
}

// PoCL would compile everything twice for the sake of a binary, and keeps programs itself.
TEST(ProgramCache, LeavesBinariesToDriversThatKeepThem) {
  if (const auto role = child_role()) return play(*role);
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const ScopedEnv scope("NETCL_CACHE_DIR", (dir / "cache").c_str());
  const auto& profile = device_profile(manager().default_device("opencl").queue);
  const auto kept = detail::keeps_programs_itself(profile) ? 0u : 2u;
  EXPECT_EQ(ChildProcess("2").wait(), 0);
  EXPECT_EQ(entries(dir.path()).size(), kept);
  EXPECT_EQ(ChildProcess(kept == 0 ? "2" : "0").wait(), 0);
  const ScopedEnv none("NETCL_CACHE_BINARIES", "0");
  EXPECT_EQ(ChildProcess("any").wait(), 0);
  EXPECT_EQ(entries(dir.path()).size(), kept);
}

TEST(ProgramCache, DamageOnlyCostsTime) {
  if (const auto role = child_role()) return play(*role);
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const ScopedEnv scope("NETCL_CACHE_DIR", (dir / "cache").c_str()),
      all("NETCL_CACHE_BINARIES", "1");
  ASSERT_EQ(ChildProcess("2").wait(), 0);
  const auto files = entries(dir.path());
  ASSERT_EQ(files.size(), 2u);
  const auto good = test::read_text(files[0]), other = test::read_text(files[1]);
  const auto rebuilt_after = [&](const std::string& content, const char* what) {
    test::write_text(files[0], content);
    EXPECT_EQ(ChildProcess("1").wait(), 0) << what;
    EXPECT_EQ(test::read_text(files[0]).size(), good.size()) << what << ": healed";
  };
  for (const double place : {0.0, 0.01, 0.5, 0.99}) {
    auto flipped = good;
    flipped[static_cast<std::size_t>(place * static_cast<double>(good.size()))] ^= 0x10;
    rebuilt_after(flipped, "a flipped bit");
  }
  rebuilt_after(good.substr(0, good.size() / 2), "cut in half");
  rebuilt_after("", "emptied");
  // Two good entries under each other's name.
  test::write_text(files[0], other);
  test::write_text(files[1], good);
  EXPECT_EQ(ChildProcess("2").wait(), 0) << "swapped";
}

TEST(ProgramCache, AnUnusableDirectoryIsOnlyAWarning) {
  if (const auto role = child_role()) return play(*role);
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  test::write_text(dir / "file", "in the way");
  {
    const ScopedEnv scope("NETCL_CACHE_DIR", (dir / "file").c_str());
    EXPECT_EQ(ChildProcess("2").wait(), 0);
  }
  {
    const ScopedEnv scope("NETCL_CACHE_DIR", "/proc/netcl");
    EXPECT_EQ(ChildProcess("2").wait(), 0);
  }
  const ScopedEnv cache("NETCL_CACHE_DIR", (dir / "cache").c_str()), off("NETCL_CACHE_MB", "0");
  EXPECT_EQ(ChildProcess("2").wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(dir / "cache/programs"));
}

TEST(ProgramCache, ManyProcessesShareIt) {
  if (const auto role = child_role()) return play(*role);
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  const ScopedEnv scope("NETCL_CACHE_DIR", (dir / "cache").c_str()),
      all("NETCL_CACHE_BINARIES", "1");
  {
    std::vector<std::unique_ptr<ChildProcess>> children;
    for (int i = 0; i < 4; ++i) children.push_back(std::make_unique<ChildProcess>("any"));
    for (auto& child : children) EXPECT_EQ(child->wait(), 0);
  }
  EXPECT_EQ(entries(dir.path()).size(), 2u);
  EXPECT_EQ(ChildProcess("0").wait(), 0);
}

}  // namespace
}  // namespace netcl
