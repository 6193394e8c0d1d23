#include "fuzz/fuzz.h"
#include "netcl/io.h"

FUZZ_TARGET(safetensors) {
  using namespace netcl;
  static fuzz::MemoryFile memory;
  const io::SafetensorsFile file(memory.write(input));
  std::uint64_t bytes = 0;
  for (const auto& name : file.names()) {
    const auto array = file.read(name);
    fuzz::require(array.nbytes() == file.entry(name).bytes, "an entry says its size");
    fuzz::touch(array);
    bytes += array.nbytes();
  }
  fuzz::require(bytes <= input.size(), "values come from the file");
}
