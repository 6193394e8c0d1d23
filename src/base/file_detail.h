// What the files behind file.h and file_stream.h share: errors with the path in them, and opening.
#pragma once

#include <string>
#include <utility>

#include "base/file.h"

namespace netcl::file_detail {

std::string reason(int code);
[[noreturn]] void fail_errno(const char* rule, const std::string& path);  // FileError from errno

// "a/b/" -> {"a", "b"}; "b" -> {".", "b"}; "/b" -> {"/", "b"}.
std::pair<std::string, std::string> split_path(std::string path);

// An empty descriptor when the file is not there; FileError for all that is no readable file.
// Non-blocking so that a FIFO in the place of a file does not hang us.
Descriptor open_regular(int directory, const std::string& name, const std::string& path);

bool is_temporary_name(std::string_view name);

// A file that is removed again unless it was renamed to its final name.
class Temporary {
 public:
  Temporary(int directory, unsigned mode, const std::string& target);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int fd() const { return fd_.get(); }
  // The content and the new name reach the disk too where `durable` asks for it.
  void rename_to(const std::string& name, const std::string& path, Durable durable);

 private:
  int directory_;
  std::string name_;
  Descriptor fd_;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path);

}  // namespace netcl::file_detail
