#include "netcl/op_info.h"

#include "base/format.h"
#include "cl/state.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace netcl {
namespace {

std::string dtype_list(const std::vector<DType>& dtypes) {
  std::vector<std::string_view> names;
  for (const auto dtype : dtypes) names.push_back(name_of(dtype));
  return join(names, " ");
}

std::string variant_list(const OpInfo& op) {
  if (op.is_view) return "view";
  std::vector<std::string> names;
  for (const auto& name : op.variants) names.push_back("`" + name + "`");
  return join(names, " ");
}

}  // namespace

std::vector<OpInfo> list_ops() {
  std::vector<OpInfo> infos;
  for (const auto* op : all_ops()) {
    OpInfo info{op->name,
                op->summary,
                op->dtypes,
                variant_names(*op),
                op->backward != nullptr,
                op->view != nullptr,
                op->samples().size(),
                op->tolerance_reason};
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string ops_markdown() {
  std::string text =
      "| op | computes | dtypes | gradient | kernels | samples |\n|---|---|---|---|---|---|\n";
  for (const auto& op : list_ops())
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", op.name, op.summary, dtype_list(op.dtypes),
                    op.has_gradient ? "yes" : "", variant_list(op), op.samples);
  return text;
}

void register_op_kernel(const std::string& op, const std::string& name, OpKernelFunction run) {
  OpVariant variant{intern(name), intern(name)};
  variant.run = [run = std::move(run)](const OpCall& call, const VariantRun&) {
    run(call.queue, call.inputs, call.outputs);
  };
  register_variant(op, std::move(variant));
}

}  // namespace netcl
