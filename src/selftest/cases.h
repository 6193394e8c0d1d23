// One case of the self-test and how it is run.
#pragma once

#include "netcl/selftest.h"
#include "ops/op.h"
#include "selftest/guarded.h"

namespace netcl::selftest_detail {

struct Case {
  const OpDef* op;
  const OpSample* sample;
  std::string variant;  // "host", "auto", "gradient", or a variant's short name
  DType dtype;
  Layout layout;

  std::string id() const;  // "matmul/tiled/f32/17x19x23", "...@views"
};

// The cases of one op on a device, in order.
std::vector<Case> cases_of(const OpDef& op, const std::vector<OpSample>& samples,
                           const Queue& queue, const SelftestOptions& options);

struct Outcome {
  enum class Kind { passed, failed, declined } kind = Kind::passed;
  std::string message;
  bool is_empty = false;                      // there was nothing to compute
  bool is_repeated = false, is_kept = false;  // what the repeats met
};
Outcome run_case(const Case& one, const Queue& queue, const SelftestOptions& options);

// All cases of some ops; what selftest() does for every op there is.
SelftestReport run_ops(const std::vector<const OpDef*>& ops, const Queue& queue,
                       const SelftestOptions& options);

}  // namespace netcl::selftest_detail
