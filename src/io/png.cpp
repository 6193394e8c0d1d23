// PNG through libpng. Every call into it that can fail happens in a member function that calls
// setjmp and has only plain locals.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "base/check.h"
#include "io/array_bytes.h"
#include "io/deflate_limit.h"
#include "io/image_codec.h"
#include "io/quote.h"

namespace netcl::io_detail {
namespace {

struct Trouble {
  char text[200] = "";
  void keep(const char* message) { std::strncpy(text, message, sizeof text - 1); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  static_cast<Trouble*>(::png_get_error_ptr(png))->keep(message);
  ::png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

class PngDecoder {
 public:
  explicit PngDecoder(std::span<const std::byte> bytes) : bytes_(bytes), all_bytes_(bytes.size()) {
    png_ = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, &trouble_, on_error, on_warning);
    if (png_ != nullptr) info_ = ::png_create_info_struct(png_);
    if (info_ == nullptr) {
      ::png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngDecoder() { ::png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Nothing of the image's size has been allocated after this.
  ImageSize read_header() {
    if (!try_header()) refuse();
    return {static_cast<std::int64_t>(width_), static_cast<std::int64_t>(height_), channels_};
  }

  // The pixels come out of one deflated stream, which has a best ratio.
  void check_plausible() const {
    check<FormatError>(stored_row_bytes_ <= most_inflated(all_bytes_) / height_,
                       "{} x {} pixels cannot be in {} bytes of PNG", width_, height_, all_bytes_);
  }

  void read_pixels(HostArray& image) {
    if (!try_transforms()) refuse();
    const auto row = static_cast<std::size_t>(width_) * static_cast<std::size_t>(channels_);
    check<FormatError>(row_bytes_ == row, "a row must have {} bytes: {}", row, row_bytes_);
    auto* to = static_cast<png_bytep>(image.data());
    for (png_uint_32 y = 0; y < height_; ++y) rows_.push_back(to + y * row);
    if (!try_pixels()) refuse();
  }

 private:
  [[noreturn]] void refuse() {
    fail<FormatError>("the PNG must be sound: {}", quote(trouble_.text));
  }

  bool try_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    ::png_set_read_fn(png_, this, on_read);
    ::png_set_chunk_malloc_max(png_, 1 << 24);
    ::png_set_chunk_cache_max(png_, 1000);
    ::png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // the caller has limits of its own
    ::png_read_info(png_, info_);
    width_ = ::png_get_image_width(png_, info_);
    height_ = ::png_get_image_height(png_, info_);
    stored_row_bytes_ = ::png_get_rowbytes(png_, info_);
    channels_ = (::png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    return true;
  }

  // Palettes, 1 to 4 and 16 bits become 8 bits; alpha goes, values are kept as they are.
  bool try_transforms() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    ::png_set_expand(png_);
    ::png_set_scale_16(png_);
    ::png_set_strip_alpha(png_);
    ::png_set_interlace_handling(png_);
    ::png_read_update_info(png_, info_);
    row_bytes_ = ::png_get_rowbytes(png_, info_);
    return true;
  }

  bool try_pixels() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    ::png_read_image(png_, rows_.data());
    ::png_read_end(png_, nullptr);  // also the checksums of what follows the pixels
    return true;
  }

  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto& left = static_cast<PngDecoder*>(::png_get_io_ptr(png))->bytes_;
    if (count > left.size()) ::png_error(png, "the file ends too early");
    std::memcpy(to, left.data(), count);
    left = left.subspan(count);
  }

  std::span<const std::byte> bytes_;
  std::size_t all_bytes_;
  Trouble trouble_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 width_ = 0, height_ = 0;
  int channels_ = 0;
  std::size_t stored_row_bytes_ = 0, row_bytes_ = 0;
  std::vector<png_bytep> rows_;
};

class PngEncoder {
 public:
  explicit PngEncoder(const HostArray& image) : image_(image) {
    png_ = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, &trouble_, on_error, on_warning);
    if (png_ != nullptr) info_ = ::png_create_info_struct(png_);
    if (info_ == nullptr) {
      ::png_destroy_write_struct(&png_, nullptr);
      throw std::bad_alloc();
    }
    const auto row = image.nbytes() / static_cast<std::size_t>(image.shape()[0]);
    auto* from = const_cast<png_bytep>(static_cast<png_const_bytep>(image.data()));
    for (std::int64_t y = 0; y < image.shape()[0]; ++y)
      rows_.push_back(from + static_cast<std::size_t>(y) * row);
  }
  ~PngEncoder() { ::png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  std::vector<std::byte> run() {
    check<Error>(try_write(), "[save_png] libpng must be able to write: {}", trouble_.text);
    return std::move(out_);
  }

 private:
  bool try_write() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    ::png_set_write_fn(png_, this, on_write, nullptr);
    const bool color = image_.shape().rank() == 3 && image_.shape()[2] == 3;
    ::png_set_IHDR(png_, info_, static_cast<png_uint_32>(image_.shape()[1]),
                   static_cast<png_uint_32>(image_.shape()[0]), 8,
                   color ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                   PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    ::png_write_info(png_, info_);
    ::png_write_image(png_, rows_.data());
    ::png_write_end(png_, info_);
    return true;
  }

  bool append(const std::byte* from, std::size_t count) noexcept {
    try {
      out_.insert(out_.end(), from, from + count);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  static void on_write(png_structp png, png_bytep from, std::size_t count) {
    auto* encoder = static_cast<PngEncoder*>(::png_get_io_ptr(png));
    if (!encoder->append(reinterpret_cast<const std::byte*>(from), count))
      ::png_error(png, "no memory");
  }

  const HostArray& image_;
  Trouble trouble_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
  std::vector<std::byte> out_;
};

}  // namespace

HostArray decode_png(std::span<const std::byte> bytes, const SizeCheck& check_size) {
  PngDecoder decoder(bytes);
  const auto size = decoder.read_header();
  check_size(size);
  decoder.check_plausible();
  HostArray image(Shape{size.height, size.width, size.channels}, DType::uint8);
  decoder.read_pixels(image);
  return image;
}

std::vector<std::byte> encode_png(const HostArray& image) { return PngEncoder(image).run(); }

}  // namespace netcl::io_detail
