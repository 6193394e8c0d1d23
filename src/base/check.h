// Throwing with a formatted message: check<ShapeError>(ok, "[op] rule: {}", value).
#pragma once

#include <string_view>

#include "base/format.h"
#include "netcl/error.h"

namespace netcl {

template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

template <class E = Error, class... Args>
void check(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    fail<E>(format, std::forward<Args>(args)...);
}

}  // namespace netcl
