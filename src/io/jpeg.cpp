// JPEG through libjpeg. As with PNG, what can fail happens in functions with setjmp and plain
// locals.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

// jpeglib.h needs some of the above in front of it, and jerror.h needs jpeglib.h.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "base/check.h"
#include "io/image_codec.h"
#include "io/quote.h"

namespace netcl::io_detail {
namespace {

constexpr int kMaxScans = 500;  // a progressive file with more is made to keep us busy

struct Trouble {
  jpeg_error_mgr manager;  // first: libjpeg knows only this part
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr common) {
  auto* trouble = reinterpret_cast<Trouble*>(common->err);
  (*common->err->format_message)(common, trouble->text);
  std::longjmp(trouble->jump, 1);
}

// libjpeg fills what is missing or unreadable with gray and only warns: for us the file is damaged.
// Superfluous bytes, which cameras do write, are let pass.
void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;
  const int code = common->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
      code == JWRN_MUST_RESYNC)
    on_error(common);
}

void on_progress(j_common_ptr common) {
  if (common->is_decompressor == 0) return;
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMaxScans) return;
  auto* trouble = reinterpret_cast<Trouble*>(common->err);
  std::strcpy(trouble->text, "more than 500 scans");
  std::longjmp(trouble->jump, 1);
}

class JpegDecoder {
 public:
  JpegDecoder() {
    jpeg_.err = ::jpeg_std_error(&trouble_.manager);
    trouble_.manager.error_exit = on_error;
    trouble_.manager.emit_message = on_message;
    progress_.progress_monitor = on_progress;
  }
  ~JpegDecoder() { ::jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageSize read_header(std::span<const std::byte> bytes) {
    if (!try_header(bytes.data(), bytes.size())) refuse();
    return {jpeg_.image_width, jpeg_.image_height, jpeg_.out_color_space == JCS_GRAYSCALE ? 1 : 3};
  }

  // Each block of 8 x 8 pixels needs a Huffman code, of one bit at least.
  void check_plausible(std::size_t bytes) const {
    const auto pixels = std::uint64_t{jpeg_.image_width} * jpeg_.image_height;
    check<FormatError>(jpeg_.arith_code != 0 || pixels / 512 <= bytes,
                       "{} x {} pixels cannot be in {} bytes of JPEG", jpeg_.image_width,
                       jpeg_.image_height, bytes);
  }

  void read_pixels(HostArray& image) {
    if (jpeg_.out_color_space == JCS_CMYK)
      line_.resize(static_cast<std::size_t>(jpeg_.image_width) * 4);
    if (!try_pixels(static_cast<JSAMPLE*>(image.data()))) refuse();
  }

 private:
  [[noreturn]] void refuse() {
    fail<FormatError>("the JPEG must be sound: {}", quote(trouble_.text));
  }

  bool try_header(const std::byte* bytes, std::size_t count) {
    if (setjmp(trouble_.jump) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    ::jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes), count);
    ::jpeg_read_header(&jpeg_, TRUE);
    switch (jpeg_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        jpeg_.out_color_space = JCS_GRAYSCALE;
        break;
      case JCS_CMYK:
      case JCS_YCCK:
        jpeg_.out_color_space = JCS_CMYK;
        break;
      default:
        jpeg_.out_color_space = JCS_RGB;
    }
    return true;
  }

  bool try_pixels(JSAMPLE* to) {
    if (setjmp(trouble_.jump) != 0) return false;
    ::jpeg_start_decompress(&jpeg_);
    const std::size_t channels = jpeg_.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPLE* row = to + jpeg_.output_scanline * channels * jpeg_.output_width;
      JSAMPLE* target = line_.empty() ? row : line_.data();
      ::jpeg_read_scanlines(&jpeg_, &target, 1);
      if (!line_.empty()) convert_line(row);
    }
    ::jpeg_finish_decompress(&jpeg_);
    return true;
  }

  // libjpeg leaves CMYK to others. Adobe's programs, which write nearly all of it, store it
  // inverted.
  void convert_line(JSAMPLE* to) const {
    const unsigned flip = jpeg_.saw_Adobe_marker != 0 ? 0 : 255;
    for (std::size_t i = 0; i < line_.size(); i += 4)
      for (std::size_t c = 0; c < 3; ++c)
        *to++ = static_cast<JSAMPLE>(((line_[i + c] ^ flip) * (line_[i + 3] ^ flip) + 127) / 255);
  }

  Trouble trouble_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  std::vector<JSAMPLE> line_;
};

}  // namespace

HostArray decode_jpeg(std::span<const std::byte> bytes, const SizeCheck& check_size) {
  JpegDecoder decoder;
  const auto size = decoder.read_header(bytes);
  check_size(size);
  decoder.check_plausible(bytes.size());
  HostArray image(Shape{size.height, size.width, size.channels}, DType::uint8);
  decoder.read_pixels(image);
  return image;
}

}  // namespace netcl::io_detail
