#include "ops/norm/norm.h"

namespace netcl {

std::vector<OpDef> ops_of_norm() {
  auto ops = row_norm_ops();
  for (auto& op : batch_norm_ops()) ops.push_back(std::move(op));
  return ops;
}

}  // namespace netcl
