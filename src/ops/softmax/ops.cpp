#include "ops/softmax/family.h"

namespace netcl {

std::vector<OpDef> ops_of_softmax() {
  std::vector<OpDef> ops;
  for (const auto& part :
       {softmax_ops(), cross_entropy_ops(), labelled_mean_ops(), topk_ops(), cumsum_ops()})
    ops.insert(ops.end(), part.begin(), part.end());
  return ops;
}

}  // namespace netcl
