// The numbers that a case runs on: the same for an id on every machine.
#pragma once

#include "ops/op.h"

namespace netcl::selftest_detail {

// The inputs of a sample, already rounded to their dtypes. `seed` makes them the case's own.
std::vector<RefArray> make_inputs(const OpSample& sample, DType dtype, std::uint64_t seed);
// What the op computes in double precision, not yet rounded to the outputs' dtypes.
std::vector<RefArray> run_reference(const OpDef& op, const std::vector<RefArray>& inputs,
                                    const Attributes& attributes);
OpSpec spec_of(const OpDef& op, const std::vector<RefArray>& inputs, const Attributes& attributes);

double rounded(double value, DType dtype);
HostArray to_host_array(const RefArray& array);

}  // namespace netcl::selftest_detail
