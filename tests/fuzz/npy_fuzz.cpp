#include "fuzz/fuzz.h"
#include "netcl/io.h"

FUZZ_TARGET(npy) {
  using namespace netcl;
  static fuzz::MemoryFile memory;
  const auto array = io::load_npy(memory.write(input));
  fuzz::require(array.nbytes() <= input.size(), "values come from the file");
  fuzz::touch(array);
}
