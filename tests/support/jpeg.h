// JPEG files for tests, which netcl itself does not write.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// jpeglib.h needs cstddef and cstdio in front of it.
#include <jpeglib.h>

namespace netcl::test {

struct JpegKind {
  int channels = 3;  // 1, 3, or 4 for CMYK
  bool progressive = false;
  int quality = 95;
};

inline std::string jpeg(unsigned width, unsigned height, std::vector<unsigned char> pixels,
                        const JpegKind& kind = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = ::jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;  // NOLINT: libjpeg's type
  ::jpeg_mem_dest(&jpeg, &memory, &bytes);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = kind.channels;
  jpeg.in_color_space = kind.channels == 1   ? JCS_GRAYSCALE
                        : kind.channels == 3 ? JCS_RGB
                                             : JCS_CMYK;
  ::jpeg_set_defaults(&jpeg);
  ::jpeg_set_quality(&jpeg, kind.quality, TRUE);
  if (kind.progressive) ::jpeg_simple_progression(&jpeg);
  ::jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < height) {
    JSAMPROW row = pixels.data() + std::size_t{jpeg.next_scanline} * width *
                                       static_cast<std::size_t>(kind.channels);
    ::jpeg_write_scanlines(&jpeg, &row, 1);
  }
  ::jpeg_finish_compress(&jpeg);
  std::string text(reinterpret_cast<char*>(memory), bytes);
  ::jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return text;
}

}  // namespace netcl::test
