// PNG and JPEG, told apart by their first bytes.
#include "fuzz/fuzz.h"
#include "netcl/io.h"

FUZZ_TARGET(image) {
  using namespace netcl;
  static fuzz::MemoryFile memory;
  // Small ones: a picture of a few bytes may say that it is large, which is slow but allowed.
  const io::ImageLimits limits{.side = 512, .pixels = 65536};
  const auto image = io::load_image(memory.write(input), io::Channels::as_stored, limits);
  fuzz::require(image.shape().rank() == 3, "an image has height, width and channels");
  fuzz::touch(image);
}
