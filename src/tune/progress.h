// A bar on standard error for people who wait; nothing when that is a file or a pipe.
#pragma once

#include <cstddef>
#include <string>

namespace netcl::tune {

class ProgressBar {
 public:
  ProgressBar(std::size_t total, bool wanted);
  ~ProgressBar();  // ends the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::size_t done, const std::string& name, double seconds);

  // "[#####---------------]  3/12   4.2 s  matmul_small"
  static std::string line(std::size_t done, std::size_t total, const std::string& name,
                          double seconds);

 private:
  std::size_t total_;
  bool enabled_;
  bool open_ = false;
};

}  // namespace netcl::tune
