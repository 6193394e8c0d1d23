// Element-wise kernels from expressions.
#include "base/check.h"
#include "kernel/source_scan.h"
#include "netcl/kernel.h"

namespace netcl {
namespace {

// Half is read and written through vload_half and vstore_half, which are core: the arithmetic is
// float on every device, with or without cl_khr_fp16.
struct ElementText {
  const char* type;   // of the pointers
  const char* value;  // of v0, v1, ...
  const char* load;   // of input {0}
  const char* store;  // of `result`
};

ElementText text_for(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {"half", "float", "vload_half(gid, in{0})", "vstore_half(result, gid, out)"};
    case DType::float64:
      return {"double", "double", "in{0}[gid]", "out[gid] = result"};
    default:
      return {"float", "float", "in{0}[gid]", "out[gid] = result"};
  }
}

}  // namespace

PrimitiveBuilder::PrimitiveBuilder(std::string_view dtype, std::size_t max_workgroup_size)
    : dtype_(parse_dtype(dtype)), max_workgroup_size_(max_workgroup_size) {
  check<DtypeError>(
      dtype_ == DType::float32 || dtype_ == DType::float16 || dtype_ == DType::float64,
      "[PrimitiveBuilder] the dtype must be float, half or double: {}", dtype);
}

KernelSpec PrimitiveBuilder::elementwise_spec(const std::string& name, int arity,
                                              const std::string& expression) const {
  check<ArgumentError>(is_identifier(name),
                       "[elementwise_spec] the name must be a C identifier: '{}'", name);
  check<ArgumentError>(arity >= 0 && arity <= 32,
                       "[elementwise_spec] the arity must be 0 to 32: {}", arity);
  check<ArgumentError>(expression.find_first_not_of(" \t\n") != std::string::npos,
                       "[elementwise_spec] the expression must not be empty");
  const auto text = text_for(dtype_);
  KernelSpec spec;
  spec.name = name;
  spec.max_workgroup_size = max_workgroup_size_;
  spec.guards_range = true;
  std::string body = "  const ulong gid = get_global_id(0);\n  if (gid >= n) return;\n";
  for (int i = 0; i < arity; ++i) {
    spec.params.push_back(fmt::format("__global const {}* in{}", text.type, i));
    body += fmt::format("  const {} v{} = {};\n", text.value, i,
                        fmt::format(fmt::runtime(text.load), i));
  }
  spec.params.push_back(fmt::format("__global {}* out", text.type));
  spec.params.push_back("ulong n");
  body += fmt::format("  const {} result = {};\n  {};", text.value, expression, text.store);
  spec.body = std::move(body);
  return spec;
}

ElementwiseKernel build_elementwise_kernel(const Context& context, const std::string& name,
                                           int arity, const std::string& expression,
                                           std::string_view dtype,
                                           const std::vector<std::string>& options,
                                           std::size_t max_workgroup_size) {
  ElementwiseKernel result{
      PrimitiveBuilder(dtype, max_workgroup_size).elementwise_spec(name, arity, expression),
      Kernel()};
  result.spec.extra_flags = options;
  if (context) result.kernel = result.spec.build(context).kernel();
  return result;
}

}  // namespace netcl
