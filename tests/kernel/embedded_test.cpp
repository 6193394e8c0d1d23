// The embedded kernels are the files under src/, byte for byte, and can be replaced by a directory.
#include "kernel/embedded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "netcl/error.h"
#include "support/scoped_env.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

// A directory laid out like src/ that NETCL_KERNEL_DIR points to while the object lives.
struct KernelDir {
  KernelDir() { std::filesystem::create_directories(dir / "some/kernels"); }
  void write(const std::string& path, const std::string& text) {
    test::write_text(dir / path, text);
  }

  test::TempDir dir;
  test::ScopedEnv env{"NETCL_KERNEL_DIR", dir.path().c_str()};
};

TEST(Embedded, PathsAreSortedAndEveryTextIsThatOfTheFile) {
  const auto paths = embedded_kernel_paths();
  EXPECT_FALSE(paths.empty());
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  for (const auto path : paths) {
    EXPECT_EQ(kernel_source(path), test::read_text(NETCL_SOURCE_DIR "/" + std::string(path)))
        << path;
  }
}

TEST(Embedded, UnknownPathIsAnErrorThatNamesIt) {
  try {
    kernel_source("tensor/kernels/absent.cl");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tensor/kernels/absent.cl"), std::string::npos);
  }
}

TEST(Embedded, DirectoryReplacesTheTableAndIsReadEveryTime) {
  KernelDir kernels;
  kernels.write("some/kernels/a.cl", "first \xc3\xa9 \"text\"\\n");
  EXPECT_EQ(kernel_source("some/kernels/a.cl"), "first \xc3\xa9 \"text\"\\n");
  kernels.write("some/kernels/a.cl", "second");
  EXPECT_EQ(kernel_source("some/kernels/a.cl"), "second");
}

TEST(Embedded, DirectoryWithoutTheFileIsAnError) {
  KernelDir kernels;
  EXPECT_THROW(kernel_source("some/kernels/b.cl"), Error);
  EXPECT_THROW(kernel_source("some/kernels"), Error);
  for (const auto path : embedded_kernel_paths()) EXPECT_THROW(kernel_source(path), Error) << path;
}

}  // namespace
}  // namespace netcl
