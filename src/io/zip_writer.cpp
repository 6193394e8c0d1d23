// libzip writes through a source: ours passes everything on to an AtomicFile. Errors of the file
// are kept and thrown afterwards, because exceptions must not pass through C code.
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/check.h"
#include "io/array_bytes.h"
#include "io/zip_file.h"

namespace netcl::io_detail {
namespace {

struct Output {
  AtomicFile* file;
  std::uint64_t position = 0, end = 0;
  std::exception_ptr failure;
  zip_error_t error;
};

zip_int64_t refuse(Output& output, int code, int system) {
  ::zip_error_set(&output.error, code, system);
  return -1;
}

zip_int64_t write(Output& output, const void* data, zip_uint64_t length) {
  try {
    output.file->write_at(output.position, {static_cast<const std::byte*>(data), length});
    output.position += length;
    output.end = std::max(output.end, output.position);
    return static_cast<zip_int64_t>(length);
  } catch (...) {
    output.failure = std::current_exception();
    return refuse(output, ZIP_ER_WRITE, EIO);
  }
}

zip_int64_t seek(Output& output, void* data, zip_uint64_t length) {
  const auto to =
      ::zip_source_seek_compute_offset(output.position, output.end, data, length, &output.error);
  if (to < 0) return -1;
  output.position = static_cast<std::uint64_t>(to);
  return 0;
}

// Called by libzip for everything that happens to the archive.
zip_int64_t on_source(void* user, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& output = *static_cast<Output*>(user);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return ::zip_source_make_command_bitmap(
          ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
          ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
          ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE,
          ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_ERROR:
      return ::zip_error_to_data(&output.error, data, length);
    case ZIP_SOURCE_STAT:  // there is no archive yet
      return refuse(output, ZIP_ER_READ, ENOENT);
    case ZIP_SOURCE_WRITE:
      return write(output, data, length);
    case ZIP_SOURCE_SEEK_WRITE:
      return seek(output, data, length);
    case ZIP_SOURCE_TELL_WRITE:
      return static_cast<zip_int64_t>(output.position);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_FREE:
    case ZIP_SOURCE_CLOSE:
      return 0;
    default:
      return refuse(output, ZIP_ER_OPNOTSUPP, 0);
  }
}

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;

[[noreturn]] void fail_zip(const AtomicFile& file, const char* text) {
  fail<FileError>("[file] the archive must be writable: {}: {}", file.path(), text);
}

void add(zip_t* archive, const AtomicFile& file, const ZipMember& member,
         io::Compression compression) {
  zip_buffer_fragment_t parts[2] = {};
  parts[0].data = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(member.head.data()));
  parts[0].length = member.head.size();
  parts[1].data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(member.tail.data()));
  parts[1].length = member.tail.size();
  auto* source = ::zip_source_buffer_fragment(archive, parts, member.tail.empty() ? 1 : 2, 0);
  if (source == nullptr) fail_zip(file, ::zip_strerror(archive));
  const auto index = ::zip_file_add(archive, member.name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    ::zip_source_free(source);
    fail_zip(file, ::zip_strerror(archive));
  }
  const auto place = static_cast<zip_uint64_t>(index);
  const auto method = compression == io::Compression::none ? ZIP_CM_STORE : ZIP_CM_DEFLATE;
  // The first day of the format's calendar, so that equal content gives equal files.
  constexpr zip_uint16_t kNoTime = 0, kFirstDay = (1 << 5) | 1;
  if (::zip_set_file_compression(archive, place, method, 0) != 0 ||
      ::zip_file_set_dostime(archive, place, kNoTime, kFirstDay, 0) != 0)
    fail_zip(file, ::zip_strerror(archive));
}

}  // namespace

void write_zip(AtomicFile& file, const std::vector<ZipMember>& members,
               io::Compression compression) {
  if (members.empty()) {  // libzip would remove the file instead
    std::string end(22, '\0');
    end.replace(0, 4, "PK\5\6");
    file.write(bytes_of(end));
    return;
  }
  Output output{.file = &file, .position = 0, .end = 0, .failure = nullptr, .error = {}};
  ::zip_error_init(&output.error);
  zip_error_t error;
  ::zip_error_init(&error);
  auto* source = ::zip_source_function_create(on_source, &output, &error);
  auto* opened = source == nullptr
                     ? nullptr
                     : ::zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (opened == nullptr) {
    const std::string text = ::zip_error_strerror(&error);
    ::zip_error_fini(&error);
    if (source != nullptr) ::zip_source_free(source);
    fail_zip(file, text.c_str());
  }
  Archive archive(opened, ::zip_discard);
  for (const auto& member : members) add(archive.get(), file, member, compression);
  if (::zip_close(archive.get()) != 0) {
    if (output.failure) std::rethrow_exception(output.failure);
    fail_zip(file, ::zip_strerror(archive.get()));
  }
  (void)archive.release();  // closed
}

}  // namespace netcl::io_detail
