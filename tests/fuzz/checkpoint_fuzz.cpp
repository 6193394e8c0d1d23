// Checkpoints: the whole file, or (behind a first byte that is odd) the text in its metadata, with
// a file around it that has the tensors of a small model.
#include "fuzz/fuzz.h"
#include "io/safetensors_header.h"
#include "netcl/netcl.h"
#include "train/checkpoint.h"

namespace {

using namespace netcl;

// The file of `text`, as save_checkpoint would write it for Linear(4, 2) behind Flatten; of zeros.
std::string file_of(std::string_view text) {
  io_detail::SafetensorsHeader header;
  std::size_t total = 0;
  const auto add = [&](const std::string& name, const Shape& shape, DType dtype = DType::float32) {
    const auto bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
    header.entries[name] = {dtype, shape, 0, bytes};
    total += bytes;
  };
  for (const auto* slot : {"optim.exp_avg.", "optim.exp_avg_sq."}) {
    add(std::string(slot) + "0", {2, 4});
    add(std::string(slot) + "1", {2});
  }
  add("model.1.weight", {2, 4});
  add("model.1.bias", {2});
  add(train::kWindowLoss, {});
  add(train::kWindowRight, {}, DType::int64);
  header.metadata["netcl.checkpoint"] = text;
  return io_detail::make_safetensors_header(header) + std::string(total, '\0');
}

}  // namespace

FUZZ_TARGET(checkpoint) {
  static fuzz::MemoryFile memory;
  const ActiveDevice device("cpu");
  fuzz::Reader reader(input);
  std::string made;
  if (reader.byte() % 2 == 1) made = file_of(fuzz::text_of(reader.rest()));
  const auto bytes =
      made.empty() ? reader.rest()
                   : fuzz::Bytes(reinterpret_cast<const std::uint8_t*>(made.data()), made.size());
  const train::CheckpointFile file(memory.write(bytes));
  const auto parameters = file.make_classifier().model()->parameters();
  if (!parameters.empty()) (void)file.optimizer_state(parameters);
  (void)file.window(train::kWindowLoss, DType::float32);
  (void)file.window(train::kWindowRight, DType::int64);
}
