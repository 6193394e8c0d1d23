// What a test wants to know of an error: its message.
#pragma once

#include <exception>
#include <string>

namespace netcl::test {

// The message of the E that `f` throws; another error or none shows as such.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

}  // namespace netcl::test
