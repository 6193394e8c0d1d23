// The text of reduced chains. A work-item owns a part of a row (or of one column, or of a vector of
// neighbouring columns) and sums in blocks, so that errors grow with the root of the size; the
// second kernel puts the parts of one result together.
#include "base/format.h"
#include "jit/reduce_group.h"

namespace netcl::fusion {
namespace {

const char* push_of(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::max:
      return "larger(s, v)";
    case ReductionKind::min:
      return "smaller(s, v)";
    default:
      return "((s) + (v))";
  }
}

const char* identity_of(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::max:
      return "(-INFINITY)";
    case ReductionKind::min:
      return "INFINITY";
    default:
      return "0";
  }
}

class ReductionWriter {
 public:
  ReductionWriter(const ReducedChain& chain, ElementProgram described, const ReductionShape& shape)
      : chain_(chain), program_(std::move(described)), shape_(shape) {
    write_statements(chain.program, program_);
    acc_ = opencl_type(chain.program.compute);
  }

  std::string text() {
    text_ += element_prologue(program_, shape_.vec);
    line("#define PUSH(s, v) {}", push_of(chain_.kind));
    line("#define IDENTITY {}", identity_of(chain_.kind));
    line("#define FINISH(s) {}", chain_.kind == ReductionKind::mean
                                     ? fmt::format("((s) / ({})reduced)", acc_)
                                     : std::string("(s)"));
    line("#define STORE(id, x) {}",
         chain_.dtype == DType::float16 ? "vstore_half_rte(x, id, y)" : "y[id] = (x)");
    first_kernel();
    second_kernel();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  std::string vector_type() const {
    return shape_.vec > 1 ? fmt::format("{}{}", acc_, shape_.vec) : std::string(acc_);
  }

  void first_kernel() {
    auto [parameters, values] = element_parameters(program_);
    parameters.push_back(fmt::format("__global {}* states", acc_));
    parameters.push_back(fmt::format("__global {}* y", opencl_type(chain_.dtype)));
    for (const auto* size : {"outer", "reduced", "inner", "parts"})
      parameters.push_back(fmt::format("long {}", size));
    parameters.insert(parameters.end(), values.begin(), values.end());
    // occupancy(fused_reduce): a chain has a value for each of its ops, two registers in float64.
    // coalescing(fused_reduce): along rows each item walks its own part; across columns
    // neighbouring items own neighbouring columns or vectors of them.
    line("__kernel void fused_reduce({}) {{", join(parameters, ", "));
    shape_.rows ? rows_body() : columns_body();
    line("}}");
  }

  // Pushes the units from u to end into `total`, in blocks of 128. A unit is the element (or the
  // vector of elements) at `index`.
  void blocks(const std::string& type, int vec, std::string_view index) {
    line("while (u < end) {{");
    line("{0} block = ({0})(IDENTITY);", type);
    line("for (int k = 0; k < 128 && u < end; ++k, u += step) {{");
    line("const ulong i = {};", index);
    text_ += element_values(program_, vec);
    line("const {} value = {};", type, name_of_value(chain_.program.last));
    line("#undef V");
    line("block = PUSH(block, value);");
    line("}}");
    line("total = PUSH(total, block);");
    line("}}");
  }

  void split(std::string_view count) {
    line("const long part = id % parts, count = {};", count);
    if (shape_.chunked) {
      line("const long chunk = (count + parts - 1) / parts, step = 1;");
      line("long u = min(count, part * chunk);");
      line("const long end = min(count, u + chunk);");
    } else {
      line("const long step = parts, end = count;");
      line("long u = part;");
    }
  }

  void rows_body() {
    const auto vec = shape_.vec;
    line("const long id = get_global_id(0);");
    line("if (id >= outer * parts) return;");
    line("const ulong row = (ulong)(id / parts) * (ulong)reduced;");
    split(fmt::format("reduced / {}", vec));
    line("{0} total = ({0})(IDENTITY);", vector_type());
    blocks(vector_type(), vec, fmt::format("row + (ulong)u * {}UL", vec));
    if (vec > 1) {
      line("{} lanes[{}];", acc_, vec);
      line("vstore{}(total, 0, lanes);", vec);
      line("{} all = lanes[0];", acc_);
      line("for (int l = 1; l < {}; ++l) all = PUSH(all, lanes[l]);", vec);
      // What does not fill a vector belongs to the last part.
      line("if (part == parts - 1) {{");
      line("const long step = 1, end = reduced;");
      line("long u = count * {};", vec);
      line("{0} total = ({0})(IDENTITY);", acc_);
      blocks(std::string(acc_), 1, "row + (ulong)u");
      line("all = PUSH(all, total);");
      line("}}");
    } else {
      line("const {} all = total;", acc_);
    }
    line("if (parts == 1) STORE(id, FINISH(all)); else states[id] = all;");
  }

  // Item (o, part, strip of columns).
  void columns_body() {
    const auto vec = shape_.vec;
    line("const long strips = (inner + {0} - 1) / {0}, all = get_global_id(0);", vec);
    line("if (all >= outer * parts * strips) return;");
    line("const long strip = all % strips, id = all / strips;");
    line("const long o = id / parts, column = strip * {};", vec);
    line("const ulong base = (ulong)o * (ulong)reduced * (ulong)inner + (ulong)column;");
    split("reduced");
    line("const long to = (o * parts + part) * inner + column, result = o * inner + column;");
    if (vec > 1) {
      line("if (column + {} <= inner) {{", vec);
      line("{0} total = ({0})(IDENTITY);", vector_type());
      blocks(vector_type(), vec, "base + (ulong)u * (ulong)inner");
      line("{} lanes[{}];", acc_, vec);
      line("vstore{}(total, 0, lanes);", vec);
      line("for (int l = 0; l < {}; ++l) {{", vec);
      line("if (parts == 1) STORE(result + l, FINISH(lanes[l])); else states[to + l] = lanes[l];");
      line("}}");
      line("return;");
      line("}}");
    }
    line("const long from = u;");
    line("for (long l = 0; l < {} && column + l < inner; ++l) {{", vec);
    line("u = from;");
    line("{0} total = ({0})(IDENTITY);", acc_);
    blocks(std::string(acc_), 1, "base + (ulong)u * (ulong)inner + (ulong)l");
    line("if (parts == 1) STORE(result + l, FINISH(total)); else states[to + l] = total;");
    line("}}");
  }

  void second_kernel() {
    // coalescing(fused_parts): neighbouring items read neighbouring states where results lie side
    // by side, else the few states of a row.
    line(
        "__kernel void fused_parts(__global const {}* states, __global {}* y, long outer, "
        "long reduced, long inner, long parts) {{",
        acc_, opencl_type(chain_.dtype));
    line("const long id = get_global_id(0);");
    line("if (id >= outer * inner) return;");
    line("states += id / inner * parts * inner + id % inner;");
    line("{0} total = ({0})(IDENTITY);", acc_);
    line("for (long part = 0; part < parts; ++part) total = PUSH(total, states[part * inner]);");
    line("STORE(id, FINISH(total));");
    line("}}");
  }

  const ReducedChain& chain_;
  ElementProgram program_;
  const ReductionShape shape_;
  std::string_view acc_;
  std::string text_;
};

}  // namespace

std::string reduction_source(const ReducedChain& chain, ElementProgram described,
                             const ReductionShape& shape) {
  return ReductionWriter(chain, std::move(described), shape).text();
}

}  // namespace netcl::fusion
