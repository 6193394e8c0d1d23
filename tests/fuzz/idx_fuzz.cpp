// IDX, plain and in gzip, and CIFAR's records, which have no header to tell them by.
#include "fuzz/fuzz.h"
#include "netcl/io.h"

FUZZ_TARGET(idx) {
  using namespace netcl;
  static fuzz::MemoryFile memory;
  const auto& path = memory.write(input);
  if (input.size() % 3073 == 0) fuzz::touch(io::load_cifar10_file(path).images);
  if (input.size() % 3074 == 0) fuzz::touch(io::load_cifar100_file(path).labels);
  fuzz::touch(io::load_idx(path));
}
