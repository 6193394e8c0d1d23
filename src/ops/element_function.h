// What an element-wise op computes of one element, in the two forms that fusion needs: statements
// of an element program (ops/elementwise/program.h) and loops over blocks on the host. Inputs are
// those of the op, in order; one that was left out of a call is a number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netcl/dtype.h"

namespace netcl {

class ElementFunction {
 public:
  virtual ~ElementFunction() = default;

  // Appends statements that define `const V <result>` from the names of the inputs' values and of
  // the scalars. V is the compute type or a vector of it; names that they define themselves begin
  // with `result`.
  virtual void write(DType compute, std::span<const std::string> inputs,
                     std::span<const std::string> scalars, const std::string& result,
                     std::vector<std::string>& statements) const = 0;
  // `n` elements; `out` is none of the inputs.
  virtual void run(std::int64_t n, const float* const* inputs, const float* scalars,
                   float* out) const = 0;
  virtual void run(std::int64_t n, const double* const* inputs, const double* scalars,
                   double* out) const = 0;

  std::vector<std::string> scalars;  // attributes of the call that are passed as numbers
  bool is_condition = false;         // the result is 0 or 1, of dtype bool
  bool vectors = true;               // false: V must not be a vector
  double ulps = 2;                   // how far the result may be off
  std::string preamble;              // functions and macros that the statements use
};

}  // namespace netcl
