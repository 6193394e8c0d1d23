#include "fuzz/fuzz.h"
#include "tune/tuning_file.h"

FUZZ_TARGET(tuning) {
  using namespace netcl;
  const auto table = parse_tuning_file(std::as_bytes(input), "file");
  const auto text = tuning_text(table);
  const auto again = parse_tuning_file(std::as_bytes(std::span(text.data(), text.size())), "again");
  fuzz::require(tuning_text(again) == text, "what was read is written and read again");
}
