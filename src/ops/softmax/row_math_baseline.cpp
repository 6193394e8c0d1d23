#include "ops/softmax/row_math_loops.h"

namespace netcl::row_math {
extern const Functions<float> kBaselineFloats = kFunctions<float>;
extern const Functions<double> kBaselineDoubles = kFunctions<double>;
}  // namespace netcl::row_math
