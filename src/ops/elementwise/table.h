// The table of element-wise ops. A row is everything there is to know about one: eager kernels, the
// CPU backend, gradients, fusion, tests and the docs are made from it.
#pragma once

#include <vector>

#include "ops/elementwise/element_code.h"

namespace netcl {

enum class ElementKind {
  floating,  // floating dtypes; integers are converted first
  numeric,   // floating dtypes, int32 and int64
  predicate  // any dtype, gives bool
};

struct ElementRow {
  const char* name;
  const char* summary;
  int inputs;
  ElementKind kind;
  ElementCode forward;
  ElementCode gradients[3] = {};  // of a, b, c; none: no gradient
  double (*reference)(double a, double b, double c, double p, double q);
  const char* scalars[2] = {nullptr, nullptr};  // attributes p and q
  double sample_scalars[2] = {0, 0};
  double low = -3, high = 3;  // where samples of the inputs lie
  double low_b = -3, high_b = 3;
  double ulps = 2;      // what OpenCL C promises for its functions
  bool vectors = true;  // false where drivers get vectors of the function wrong: docs/devices.md
  double terms = 0;     // absolute, where a sum of terms of about 1 may come near 0
};

const std::vector<ElementRow>& element_rows();

}  // namespace netcl
