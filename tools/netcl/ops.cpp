// netcl ops: the ops that there are, as a table or one in full.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "command.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

// "f32 f64 f16 i32 i64": the names that the self-test's case ids use.
std::string short_dtypes(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  for (const auto dtype : dtypes) {
    const std::string name(name_of(dtype));
    const auto digits = name.find_first_of("0123456789");
    names.push_back(digits == name.npos ? name : name.substr(0, 1) + name.substr(digits));
    if (dtype == DType::bfloat16) names.back() = "bf16";
  }
  return joined(names, " ");
}

// The part that tells the kernels of an op apart: "tiled" of "matmul.tiled".
std::string short_kernels(const OpInfo& op) {
  if (op.is_view) return "view";
  std::vector<std::string> names;
  for (const auto& name : op.variants) {
    const auto dot = name.find('.');
    names.push_back(dot == name.npos ? name : name.substr(dot + 1));
  }
  return joined(names, " ");
}

int print_table() {
  const auto ops = list_ops();
  std::size_t name = 2, dtypes = 6, kernels = 7;
  for (const auto& op : ops) {
    name = std::max(name, op.name.size());
    dtypes = std::max(dtypes, short_dtypes(op.dtypes).size());
    kernels = std::max(kernels, std::min<std::size_t>(short_kernels(op).size(), 36));
  }
  const auto row = [&](std::string_view a, std::string_view b, std::string_view c,
                       std::string_view d, std::string_view e) {
    fmt::print("{:<{}}  {:<{}}  {:<8}  {:<{}}  {}\n", a, name, b, dtypes, c, d, kernels, e);
  };
  row("op", "dtypes", "gradient", "kernels", "computes");
  for (const auto& op : ops)
    row(op.name, short_dtypes(op.dtypes), op.has_gradient ? "yes" : "-", short_kernels(op),
        op.summary);
  fmt::print("\n{} ops; `netcl ops NAME` shows one in full\n", ops.size());
  return 0;
}

// What a mistyped name may have meant.
std::string similar(const std::vector<OpInfo>& ops, const std::string& name) {
  std::vector<std::string> near;
  for (const auto& op : ops)
    if (op.name.find(name) != std::string::npos || name.find(op.name) != std::string::npos ||
        op.name.substr(0, 3) == name.substr(0, 3))
      near.push_back(op.name);
  return near.empty() ? "`netcl ops` lists them all"
                      : "similar: " + joined(near, ", ") + " (`netcl ops` lists them all)";
}

int print_one(const std::string& name) {
  const auto ops = list_ops();
  const auto op =
      std::find_if(ops.begin(), ops.end(), [&](const OpInfo& info) { return info.name == name; });
  if (op == ops.end()) {
    fmt::print(stderr, "netcl: error: [ops] there is no op called '{}'; {}\n", name,
               similar(ops, name));
    return kUsage;
  }
  std::vector<std::string> dtypes;
  for (const auto dtype : op->dtypes) dtypes.emplace_back(name_of(dtype));
  fmt::print("{}: {}\n\n", op->name, op->summary);
  fmt::print("  dtypes     {}\n", joined(dtypes, ", "));
  fmt::print("  gradient   {}\n", op->has_gradient ? "yes" : "none");
  fmt::print("  kernels    {}\n",
             op->is_view ? "none: the result is a view of the input" : joined(op->variants, ", "));
  fmt::print("  tolerance  {}\n",
             op->tolerance.empty() ? "the rounding of the result" : op->tolerance);
  fmt::print("  samples    {} (netcl selftest --filter '{}')\n", op->samples, op->name);
  return 0;
}

int print_ops_page() {
  fmt::print("{}", ops_markdown());
  return 0;
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  struct Request {
    std::string name;
    bool markdown = false;
  };
  auto* command = app.add_subcommand("ops", "the ops: dtypes, gradients, kernels");
  auto request = std::make_shared<Request>();
  auto* name = command->add_option("name", request->name, "show this one in full");
  command->add_flag("--markdown", request->markdown, "the table of docs/ops.md")->excludes(name);
  command->callback([request, &action] {
    action = [request] {
      if (request->markdown) return print_ops_page();
      return request->name.empty() ? print_table() : print_one(request->name);
    };
  });
}

}  // namespace netcl::cli
