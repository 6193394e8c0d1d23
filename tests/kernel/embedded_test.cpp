// The embedded kernels are the files under src/, byte for byte, and can be replaced by a directory.
#include "kernel/embedded.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "netcl/error.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A directory laid out like src/ that NETCL_KERNEL_DIR points to while the object lives.
class KernelDir {
 public:
  KernelDir() : dir_(fs::temp_directory_path() / ("netcl-kernels-" + std::to_string(::getpid()))) {
    fs::create_directories(dir_ / "some/kernels");
    ::setenv("NETCL_KERNEL_DIR", dir_.c_str(), 1);
  }
  ~KernelDir() {
    ::unsetenv("NETCL_KERNEL_DIR");
    fs::remove_all(dir_);
  }
  void write(const std::string& path, const std::string& text) {
    std::ofstream(dir_ / path, std::ios::binary) << text;
  }

 private:
  fs::path dir_;
};

TEST(Embedded, PathsAreSortedAndEveryTextIsThatOfTheFile) {
  const auto paths = embedded_kernel_paths();
  EXPECT_FALSE(paths.empty());
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  for (const auto path : paths) {
    EXPECT_EQ(kernel_source(path), file_text(fs::path(NETCL_SOURCE_DIR) / path)) << path;
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
  KernelDir dir;
  dir.write("some/kernels/a.cl", "first \xc3\xa9 \"text\"\\n");
  EXPECT_EQ(kernel_source("some/kernels/a.cl"), "first \xc3\xa9 \"text\"\\n");
  dir.write("some/kernels/a.cl", "second");
  EXPECT_EQ(kernel_source("some/kernels/a.cl"), "second");
}

TEST(Embedded, DirectoryWithoutTheFileIsAnError) {
  KernelDir dir;
  EXPECT_THROW(kernel_source("some/kernels/b.cl"), Error);
  EXPECT_THROW(kernel_source("some/kernels"), Error);
  for (const auto path : embedded_kernel_paths()) EXPECT_THROW(kernel_source(path), Error) << path;
}

}  // namespace
}  // namespace netcl
