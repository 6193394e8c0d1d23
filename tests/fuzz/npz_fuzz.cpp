#include "fuzz/fuzz.h"
#include "netcl/io.h"

FUZZ_TARGET(npz) {
  using namespace netcl;
  static fuzz::MemoryFile memory;
  for (const auto& [name, array] : io::load_npz(memory.write(input))) fuzz::touch(array);
}
