// What can be known of an OpenCL program without compiling it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace netcl::record {

struct KernelText {
  std::string name;
  std::size_t parameters = 0;
  std::array<std::size_t, 3> required{};  // reqd_work_group_size; zeros without
};

// The kernels of a source after its preprocessing.
std::vector<KernelText> find_kernels(std::string_view preprocessed);

bool write_file(const std::string& path, std::string_view text);

struct ProgramText {
  std::string source, options;
  std::string hash;                 // of both
  std::vector<KernelText> kernels;  // in the order of the source

  // Fills hash and kernels, and writes <folder>/<hash>.cl, .options and .kernels. False with a line
  // on stderr where that does not work.
  bool keep(const std::string& folder);
};

}  // namespace netcl::record
