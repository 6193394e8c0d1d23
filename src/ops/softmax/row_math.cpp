// Which loops the processor can run. Files for newer instruction sets are compiled with flags of
// their own (cmake/netcl_library.cmake).
#include "ops/softmax/row_math.h"

namespace netcl::row_math {

extern const Functions<float> kBaselineFloats, kAvx2Floats, kAvx512Floats;
extern const Functions<double> kBaselineDoubles, kAvx2Doubles, kAvx512Doubles;

namespace {

template <class V>
const Functions<V>& best_of(const Functions<V>& baseline, [[maybe_unused]] const Functions<V>& avx2,
                            [[maybe_unused]] const Functions<V>& avx512) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) return avx2;
#endif
  return baseline;
}

}  // namespace

template <>
const Functions<float>& functions() {
  static const auto& best = best_of(kBaselineFloats, kAvx2Floats, kAvx512Floats);
  return best;
}

template <>
const Functions<double>& functions() {
  static const auto& best = best_of(kBaselineDoubles, kAvx2Doubles, kAvx512Doubles);
  return best;
}

}  // namespace netcl::row_math
