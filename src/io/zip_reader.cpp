// libzip checks the structure and the checksums; what it leaves to its caller are the sizes.
#include <unistd.h>
#include <zip.h>

#include "base/check.h"
#include "io/deflate_limit.h"
#include "io/quote.h"
#include "io/zip_file.h"

namespace netcl::io_detail {

ZipReader::ZipReader(const std::string& path) {
  InputFile file(path);
  std::uint64_t left = file.size();
  Descriptor fd(file.release());
  int code = 0;
  archive_ = ::zip_fdopen(fd.get(), ZIP_CHECKCONS, &code);
  if (archive_ == nullptr) {
    zip_error_t error;
    ::zip_error_init_with_code(&error, code);
    const std::string text = ::zip_error_strerror(&error);
    ::zip_error_fini(&error);
    fail<FormatError>("it must be a sound zip archive: {}", text);
  }
  fd.release();  // libzip's now
  try {
    const auto count = ::zip_get_num_entries(archive_, 0);
    for (zip_int64_t i = 0; i < count; ++i)
      members_.push_back(describe(static_cast<std::uint64_t>(i), left));
  } catch (...) {
    ::zip_discard(archive_);
    throw;
  }
}

ZipReader::~ZipReader() { ::zip_discard(archive_); }

ZipReader::Member ZipReader::describe(std::uint64_t index, std::uint64_t& left) const {
  zip_stat_t status;
  ::zip_stat_init(&status);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                   ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  const bool ok = ::zip_stat_index(archive_, index, 0, &status) == 0 &&
                  (status.valid & kNeeded) == kNeeded && status.name != nullptr;
  check<FormatError>(ok, "member {} must have a name and sizes", index);
  const std::string name = status.name;
  check<FormatError>(status.encryption_method == ZIP_EM_NONE, "member {} must not be encrypted",
                     quote(name));
  const bool stored = status.comp_method == ZIP_CM_STORE;
  check<FormatError>(stored || status.comp_method == ZIP_CM_DEFLATE,
                     "member {} must be stored or deflated: method {}", quote(name),
                     status.comp_method);
  // Members may share bytes of the file only in archives made to explode.
  check<FormatError>(status.comp_size <= left,
                     "member {} must fit the {} bytes that other members leave of the file: {}",
                     quote(name), left, status.comp_size);
  left -= status.comp_size;
  check<FormatError>(
      stored ? status.size == status.comp_size : status.size <= most_inflated(status.comp_size),
      "member {} cannot have {} bytes in {} compressed ones", quote(name), status.size,
      status.comp_size);
  return {name, status.size};
}

void ZipReader::read(std::size_t index, const std::function<void(const Read&)>& f) const {
  const auto& member = members_.at(index);
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> stream(
      ::zip_fopen_index(archive_, index, 0), ::zip_fclose);
  check<FormatError>(stream != nullptr, "member {} must be readable: {}", quote(member.name),
                     ::zip_strerror(archive_));
  const auto some = [&](std::span<std::byte> to) {
    const auto got = ::zip_fread(stream.get(), to.data(), to.size());
    check<FormatError>(got >= 0, "member {} is damaged: {}", quote(member.name),
                       ::zip_file_strerror(stream.get()));
    return static_cast<std::size_t>(got);
  };
  f([&](std::span<std::byte> to) {
    while (!to.empty()) {
      const auto got = some(to);
      check<FormatError>(got > 0, "member {} must have {} bytes more: it ends", quote(member.name),
                         to.size());
      to = to.subspan(got);
    }
  });
  std::byte beyond;
  check<FormatError>(some({&beyond, 1}) == 0,
                     "member {} must end where its content ends: it goes on", quote(member.name));
}

}  // namespace netcl::io_detail
