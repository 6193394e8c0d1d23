#include "fuzz/fuzz.h"
#include "netcl/netcl.h"
#include "netcl/nn.h"
#include "train/checkpoint.h"

FUZZ_TARGET(model) {
  using namespace netcl;
  const ActiveDevice device("cpu");
  const std::string text(fuzz::text_of(input));
  // A model may be as large as its text says; as in a checkpoint, no larger than its values.
  train::check_model_size(text, 0);
  const auto model = nn::from_json(text);
  const auto written = nn::to_json(*model);
  fuzz::require(nn::to_json(*nn::from_json(written)) == written,
                "what was read is written and read again");
}
