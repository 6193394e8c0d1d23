// Compiling in two processes. PoCL compiles one kernel at a time in a process, but takes what
// another one has compiled from its cache. A program that starts without compiled kernels can let a
// second process do the same work without computing anything, and compile from the end what it
// compiles itself from the beginning. `netcl train` does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace netcl {

// What NETCL_COMPILE_AHEAD says this process is.
enum class CompileRole {
  alone,   // 0
  first,   // 1: it may start another one
  second,  // worker: it was started to compile
};
CompileRole compile_role();

// `call` runs once, on the thread that builds, when a driver that keeps compiled programs itself
// had none for a program of this process; it returns whether a second process compiles now.
// Replaces the one before; null: none.
void on_first_compilation(std::function<bool()> call);

// While it lives, kernels are built, but launches of all threads are kept instead of made: what
// they would have computed is missing. For processes whose results nobody wants. One at a time.
class WithheldLaunches {
 public:
  WithheldLaunches();
  ~WithheldLaunches();
  WithheldLaunches(const WithheldLaunches&) = delete;
  WithheldLaunches& operator=(const WithheldLaunches&) = delete;

  // Makes one launch for each kernel and local size, the last ones first, and waits for each: the
  // driver compiles it for that. Launches that fail are left out. Returns how many were made.
  std::size_t launch();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace netcl
