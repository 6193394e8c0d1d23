// Tensors computed from weights alone (folded, transformed, transposed), kept with the weights
// until these change.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netcl/tensor.h"

namespace netcl {

using Tensors = std::vector<Tensor>;

struct WeightForm {
  std::string name;                   // what is made of the sources: one name, one formula
  std::vector<std::int64_t> numbers;  // what else decides the result
  // Makes it. Keeps no tensors: what it needs are the sources it is given.
  std::function<Tensors(const Tensors& sources)> make;
};

// The results for the sources as they are now, or nothing where it does not pay or cannot be known
// to stay right: sources seen for the first time since they changed (a training changes them at
// every step), sources that may change uncounted, the CPU backend, no room. The caller then makes
// them, or does without.
//
// Results are kept with the first source's memory and go with it. While a step is recorded
// (docs/capture.md) they are made outside of the recording, and each replay looks whether the
// sources have changed; what the step itself changes is left to its commands.
std::optional<Tensors> kept_form(const WeightForm& what, const Tensors& sources);

// The same for one result, made on the spot where it is not kept.
Tensor form_of(const WeightForm& what, const Tensors& sources);

// Bytes of all kept results of the process.
std::uint64_t kept_form_bytes();

}  // namespace netcl
