// The exceptions of netcl. Every message has the form "[where] rule broken: actual values".
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace netcl {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// A bad argument that is neither a shape nor a dtype problem (ValueError in Python).
class ArgumentError : public Error {
 public:
  using Error::Error;
};

class ShapeError : public ArgumentError {
 public:
  using ArgumentError::ArgumentError;
};

class DtypeError : public Error {
 public:
  using Error::Error;
};

// A failed OpenCL call, or a device that is not there (then `code` is 0 and `call` says who
// looked).
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(message) {}
  DeviceError(const std::string& message, std::string call, int code, std::string name)
      : Error(message), call_(std::move(call)), code_(code), name_(std::move(name)) {}

  const std::string& call() const { return call_; }
  int code() const { return code_; }
  const std::string& name() const { return name_; }  // "CL_OUT_OF_RESOURCES"

 private:
  std::string call_;
  int code_ = 0;
  std::string name_;
};

// The OpenCL compiler refused a program.
class BuildError : public Error {
 public:
  BuildError(const std::string& message, std::string log, std::string device, std::string options)
      : Error(message),
        log_(std::move(log)),
        device_(std::move(device)),
        options_(std::move(options)) {}

  const std::string& log() const { return log_; }
  const std::string& device() const { return device_; }
  const std::string& options() const { return options_; }

 private:
  std::string log_, device_, options_;
};

// An allocation failed after the caches were trimmed and it was tried once more.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::size_t requested, std::size_t in_use,
              std::size_t cached)
      : Error(message), requested_(requested), in_use_(in_use), cached_(cached) {}

  std::size_t requested() const { return requested_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t cached() const { return cached_; }  // before trimming

 private:
  std::size_t requested_, in_use_, cached_;
};

// This process is the fork of one that used OpenCL; no driver survives that.
class ForkError : public Error {
 public:
  using Error::Error;
};

// A file is damaged, of the wrong kind, or hostile.
class FormatError : public Error {
 public:
  using Error::Error;
};

// The file system refused (full disk, permissions, a vanished directory).
class FileError : public Error {
 public:
  using Error::Error;
};

// A wait ran into its time limit. The work itself goes on.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

// Ctrl+C arrived while netcl was waiting (KeyboardInterrupt in Python).
class Interrupted : public Error {
 public:
  using Error::Error;
};

}  // namespace netcl
