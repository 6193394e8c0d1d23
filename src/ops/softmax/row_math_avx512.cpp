#include "ops/softmax/row_math_loops.h"

namespace netcl::row_math {
extern const Functions<float> kAvx512Floats = kFunctions<float>;
extern const Functions<double> kAvx512Doubles = kFunctions<double>;
}  // namespace netcl::row_math
