// Which file a complaint is about.
#pragma once

#include <string>

#include "base/check.h"

namespace netcl::io_detail {

// Runs f, with the op and the file's name in front of its complaints.
template <class E, class F>
auto with_path(const std::string& path, const char* op, F&& f) {
  try {
    return f();
  } catch (const E& error) {
    fail<E>("[{}] {}: {}", op, path, error.what());
  }
}

}  // namespace netcl::io_detail
