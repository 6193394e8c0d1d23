// Files in pieces: reads at any place, writes that are complete or absent.
#include "base/file_stream.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "netcl/error.h"
#include "support/errors.h"
#include "support/file_limit.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using test::read_text;
using test::TempDir;
using test::write_text;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(InputFile, ReadsAtAnyPlaceAndNotBeyondTheEnd) {
  const TempDir dir;
  write_text(dir / "f", "0123456789");
  const InputFile file(dir / "f");
  EXPECT_EQ(file.size(), 10u);
  std::string text(4, ' ');
  file.read(6, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "6789");
  file.read(100, {});  // nothing is always there
  const auto message =
      test::message_of<FormatError>([&] { file.read(7, std::as_writable_bytes(std::span(text))); });
  EXPECT_NE(message.find("1 bytes at 10"), std::string::npos) << message;
  EXPECT_THROW(InputFile(dir / "absent"), FileError);
  EXPECT_THROW(InputFile(dir.path().string()), FileError);
}

TEST(AtomicFile, AppearsWhenItIsCommitted) {
  const TempDir dir;
  write_text(dir / "f", "old");
  {
    AtomicFile file(dir / "f");
    file.write(bytes_of("abc"));
    file.write_at(5, bytes_of("z"));
    file.write(bytes_of("!"));
    file.write_at(1, bytes_of("B"));
    EXPECT_EQ(read_text(dir / "f"), "old");
    file.commit();
    EXPECT_EQ(read_text(dir / "f"), std::string("aBc\0\0z!", 7));
  }
  EXPECT_EQ(test::count_files(dir.path()), 1u);
  { AtomicFile(dir / "f").write(bytes_of("given up")); }
  EXPECT_EQ(read_text(dir / "f"), std::string("aBc\0\0z!", 7));
  EXPECT_EQ(test::count_files(dir.path()), 1u);
}

TEST(AtomicFile, SaysWhyItCannotBeWritten) {
  const TempDir dir;
  EXPECT_THROW(AtomicFile(dir / "none/f"), FileError);
  std::filesystem::create_directories(dir / "folder/full");
  AtomicFile over_a_folder(dir / "folder");
  EXPECT_THROW(over_a_folder.commit(), FileError);
  AtomicFile file(dir / "f");
  const test::FileSizeLimit full(10);
  const auto message =
      test::message_of<FileError>([&] { file.write(bytes_of(std::string(20, 'x'))); });
  EXPECT_NE(message.find(dir / "f"), std::string::npos) << message;
}

}  // namespace
}  // namespace netcl
