// Zip archives through libzip, for npz: members read as streams, archives written into an
// AtomicFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_stream.h"
#include "netcl/io.h"

struct zip;

namespace netcl::io_detail {

class ZipReader {
 public:
  struct Member {
    std::string name;
    std::uint64_t bytes = 0;
  };

  // FormatError (without the file's name) for damaged archives, and for members that are encrypted,
  // of other methods than stored and deflated, or larger than their share of the file can be.
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<Member>& members() const { return members_; }
  // Calls f with a function that fills exactly what it is given; afterwards the member must be at
  // its end, and its checksum right.
  using Read = std::function<void(std::span<std::byte>)>;
  void read(std::size_t index, const std::function<void(const Read&)>& f) const;

 private:
  Member describe(std::uint64_t index, std::uint64_t& left) const;
  zip* archive_ = nullptr;
  std::vector<Member> members_;
};

struct ZipMember {
  std::string name;
  std::string head;                 // the first bytes, and
  std::span<const std::byte> tail;  // those after them
};

// Fills `file`, which is not committed. FileError with the file's name.
void write_zip(AtomicFile& file, const std::vector<ZipMember>& members,
               io::Compression compression);

}  // namespace netcl::io_detail
