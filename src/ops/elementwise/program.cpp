// Writes the OpenCL C of element programs. The same program gives the same text in every process,
// so that the program cache on disk finds it.
#include "ops/elementwise/program.h"

#include "base/check.h"

namespace netcl {
namespace {

using Access = ElementOperand::Access;

std::string vector_type(std::string_view scalar, int vec) {
  return vec > 1 ? fmt::format("{}{}", scalar, vec) : std::string(scalar);
}

// Reads an element, or `vec` of them, into the compute type.
std::string load_text(DType dtype, DType compute, const std::string& pointer,
                      const std::string& index, int vec) {
  const auto target = vector_type(opencl_type(compute), vec);
  std::string value;
  if (dtype == DType::float16)
    value = vec > 1 ? fmt::format("vload_half{}(0, {} + {})", vec, pointer, index)
                    : fmt::format("vload_half({}, {})", index, pointer);
  else if (vec > 1)
    value = fmt::format("vload{}(0, {} + {})", vec, pointer, index);
  else
    value = fmt::format("{}[{}]", pointer, index);
  const auto loaded = dtype == DType::float16 ? DType::float32 : dtype;
  return opencl_type(loaded) == opencl_type(compute) ? value
                                                     : fmt::format("convert_{}({})", target, value);
}

std::string store_text(DType dtype, DType compute, const std::string& pointer,
                       const std::string& index, const std::string& value, int vec) {
  const auto type = opencl_type(dtype);
  if (dtype == DType::float16)
    return vec > 1 ? fmt::format("vstore_half{}_rte({}, 0, {} + {});", vec, value, pointer, index)
                   : fmt::format("vstore_half_rte({}, {}, {});", value, index, pointer);
  // A true comparison is 1 for scalars and -1 for vectors: its lowest bit is what counts.
  auto stored = value;
  if (dtype == DType::boolean)
    stored = fmt::format("convert_{}(({}) & 1)", vector_type(type, vec), value);
  else if (dtype == DType::float32 && compute == DType::float64)
    stored = fmt::format("convert_{}({})", vector_type(type, vec), value);
  return vec > 1 ? fmt::format("vstore{}({}, 0, {} + {});", vec, stored, pointer, index)
                 : fmt::format("{}[{}] = {};", pointer, index, stored);
}

class Writer {
 public:
  Writer(const ElementProgram& program, int vec, int items)
      : program_(program), vec_(vec), items_(items) {}

  std::string text() {
    prologue();
    signature();
    vec_ > 1 ? vector_body() : scalar_body();
    text_ += "}\n";
    return std::move(text_);
  }

  std::string prologue_text() {
    prologue();
    return std::move(text_);
  }

  std::string values_text() {
    values(vec_);
    return std::move(text_);
  }

  ElementParameters parameters() const {
    ElementParameters all;
    const auto scalar = opencl_type(program_.compute);
    for_tensors([&](const std::string& name, const ElementOperand& operand, bool input) {
      all.pointers.push_back(fmt::format("__global {}{}* {}", input ? "const " : "",
                                         opencl_type(operand.dtype), name));
      all.values.push_back(fmt::format("long at_{}", name));
    });
    if (program_.rank > 0) {
      all.values.push_back("long8 sizes");
      for_strided([&](const std::string& name) {
        all.values.push_back(fmt::format("long8 step_{}", name));
      });
    }
    for (std::size_t i = 0; i < program_.inputs.size(); ++i)
      if (program_.inputs[i].access == Access::scalar)
        all.values.push_back(fmt::format("{} s{}", scalar, i));
    for (const auto& name : program_.scalars)
      all.values.push_back(fmt::format("{} {}", scalar, name));
    return all;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void prologue() {
    const bool doubles = program_.compute == DType::float64;
    if (doubles) line("#pragma OPENCL EXTENSION cl_khr_fp64 : enable");
    line("#define K(x) ((V)(x))");
    if (is_floating(program_.compute)) {
      line("#define absolute(x) fabs(x)");
    } else {
      line("#define absolute(x) ((x) < K(0) ? -(x) : (x))");
    }
    line("#define larger(x, z) ((((x) != (x)) | ((x) > (z))) ? (x) : (z))");
    line("#define smaller(x, z) ((((x) != (x)) | ((x) < (z))) ? (x) : (z))");
    text_ += program_.preamble;
  }

  void signature() {
    auto [parameters, values] = this->parameters();
    parameters.push_back("ulong n");
    parameters.insert(parameters.end(), values.begin(), values.end());
    line("__kernel void elementwise({}) {{", join(parameters, ", "));
  }

  template <class F>
  void for_tensors(F&& f) const {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i)
      if (program_.inputs[i].access != Access::scalar)
        f(fmt::format("in{}", i), program_.inputs[i], true);
    for (std::size_t i = 0; i < program_.outputs.size(); ++i)
      f(fmt::format("out{}", i), program_.outputs[i], false);
  }

  // Loads and statements for the element (or vector of elements) number i.
  void values(int vec) {
    line("#define V {}", vector_type(opencl_type(program_.compute), vec));
    if (program_.rank > 0) positions();
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const auto& input = program_.inputs[i];
      const auto name = fmt::format("in{}", i);
      if (input.access == Access::scalar)
        line("const V {} = K(s{});", program_.names[i], i);
      else if (input.access == Access::single)
        line("const V {} = K({});", program_.names[i],
             load_text(input.dtype, program_.compute, name, fmt::format("at_{}", name), 1));
      else
        line("const V {} = {};", program_.names[i],
             load_text(input.dtype, program_.compute, name, index_of(name, input), vec));
    }
    for (const auto& statement : program_.statements) line("{}", statement);
  }

  void element(int vec) {
    values(vec);
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const auto& output = program_.outputs[i];
      const auto name = fmt::format("out{}", i);
      // Predicates are conditions, not values of V.
      const auto value = output.dtype == DType::boolean ? program_.results[i]
                                                        : fmt::format("K({})", program_.results[i]);
      line("{}",
           store_text(output.dtype, program_.compute, name, index_of(name, output), value, vec));
    }
    line("#undef V");
  }

  static std::string index_of(const std::string& name, const ElementOperand& operand) {
    return operand.access == Access::strided ? fmt::format("i_{}", name)
                                             : fmt::format("at_{} + i", name);
  }

  // Turns i into the position in every strided tensor; the outermost axis needs no division.
  void positions() {
    const char* type = program_.wide ? "ulong" : "uint";
    line("{} rest = ({})i;", type, type);
    for_strided([&](const std::string& name) { line("long i_{0} = at_{0};", name); });
    for (std::size_t axis = 0; axis < program_.rank; ++axis) {
      const bool last = axis + 1 == program_.rank;
      line("{{");
      if (last) {
        line("const long at = (long)rest;");
      } else {
        line("const {} next = rest / ({})sizes.s{};", type, type, axis);
        line("const long at = (long)(rest - next * ({})sizes.s{});", type, axis);
        line("rest = next;");
      }
      for_strided(
          [&](const std::string& name) { line("i_{0} += at * step_{0}.s{1};", name, axis); });
      line("}}");
    }
  }

  template <class F>
  void for_strided(F&& f) const {
    for_tensors([&](const std::string& name, const ElementOperand& operand, bool) {
      if (operand.access == Access::strided) f(name);
    });
  }

  void scalar_body() {
    line("ulong i = (ulong)get_group_id(0) * get_local_size(0) * {0}UL + get_local_id(0);", items_);
    line("for (int item = 0; item < {}; ++item, i += get_local_size(0)) {{", items_);
    line("if (i >= n) return;");
    element(1);
    line("}}");
  }

  void vector_body() {
    line("ulong i = (ulong)get_global_id(0) * {}UL;", vec_);
    line("if (i + {}UL <= n) {{", vec_);
    element(vec_);
    line("return;");
    line("}}");
    line("for (; i < n; ++i) {{");
    element(1);
    line("}}");
  }

  const ElementProgram& program_;
  const int vec_, items_;
  std::string text_;
};

}  // namespace

std::string render_elements(const ElementProgram& program, int vec, int items) {
  return Writer(program, vec, items).text();
}

ElementParameters element_parameters(const ElementProgram& program) {
  return Writer(program, 1, 1).parameters();
}

std::string element_prologue(const ElementProgram& program) {
  return Writer(program, 1, 1).prologue_text();
}

std::string element_values(const ElementProgram& program, int vec) {
  return Writer(program, vec, 1).values_text();
}

BroadcastLoops element_loops(const ElementArgs& args) {
  const auto& shape = args.outputs[0].shape();
  std::vector<Strides> strides;
  for (const auto& input : args.inputs)
    strides.push_back(input ? broadcast_strides(input.shape(), input.strides(), shape)
                            : Strides(static_cast<std::size_t>(shape.rank()), 0));
  for (const auto& output : args.outputs) strides.push_back(output.strides());
  return plan_broadcast(shape, std::move(strides));
}

Access element_access(const BroadcastLoops& loops, std::size_t operand, bool is_input) {
  if (loops.is_linear(operand)) return Access::linear;
  const auto& steps = loops.strides[operand];
  const bool stays =
      is_input && std::all_of(steps.begin(), steps.end(), [](auto step) { return step == 0; });
  return stays ? Access::single : Access::strided;
}

void describe_operands(const ElementArgs& args, const BroadcastLoops& loops,
                       ElementProgram& program) {
  const auto access = [&](std::size_t k) {
    return element_access(loops, k, k < args.inputs.size());
  };
  bool strided = false;
  program.inputs.clear();
  program.outputs.clear();
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const auto& input = args.inputs[i];
    program.inputs.push_back(input ? ElementOperand{input.dtype(), access(i)}
                                   : ElementOperand{program.compute, Access::scalar});
    strided |= input && program.inputs.back().access == Access::strided;
  }
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    program.outputs.push_back({args.outputs[i].dtype(), access(args.inputs.size() + i)});
    strided |= program.outputs.back().access == Access::strided;
  }
  program.rank = strided ? std::max<std::size_t>(loops.sizes.size(), 1) : 0;
  std::int64_t numel = 1;
  for (const auto size : loops.sizes) numel *= size;
  program.wide = numel >= INT32_MAX;
  check<ShapeError>(program.rank <= kMaxElementAxes,
                    "[elementwise] views may need at most {} axes that cannot be merged: {}",
                    kMaxElementAxes, program.rank);
}

std::vector<KernelArg> element_arguments(const ElementProgram& program, const ElementArgs& args,
                                         const BroadcastLoops& loops, std::vector<Long8>& vectors) {
  std::vector<KernelArg> list;
  vectors.reserve(args.inputs.size() + args.outputs.size() + 1);
  const auto axes_of = [&](const std::vector<std::int64_t>& from) {
    auto& packed = vectors.emplace_back();
    for (std::size_t i = 0; i < from.size(); ++i) packed.values[i] = from[from.size() - 1 - i];
    return KernelArg::by_value(packed.values.data(), sizeof packed.values);
  };
  for (const auto& input : args.inputs)
    if (input) list.emplace_back(input.offset());
  for (const auto& output : args.outputs) list.emplace_back(output.offset());
  if (program.rank > 0) {
    list.push_back(axes_of(loops.sizes));
    for (std::size_t i = 0; i < args.inputs.size(); ++i)
      if (program.inputs[i].access == Access::strided) list.push_back(axes_of(loops.strides[i]));
    for (std::size_t i = 0; i < args.outputs.size(); ++i)
      if (program.outputs[i].access == Access::strided)
        list.push_back(axes_of(loops.strides[args.inputs.size() + i]));
  }
  const auto number = [&](double value) {
    if (program.compute == DType::float32)
      list.emplace_back(static_cast<float>(value));
    else if (program.compute == DType::float64)
      list.emplace_back(value);
    else
      list.emplace_back(static_cast<std::int64_t>(value));
  };
  for (const auto value : args.scalar_inputs) number(value);
  for (const auto value : args.scalars) number(value);
  return list;
}

void enqueue_elements(const Queue& queue, const KernelPtr& kernel, const ElementProgram& program,
                      const ElementArgs& args, const BroadcastLoops& loops, std::size_t per_item,
                      std::int64_t local) {
  const auto n = args.outputs[0].numel();
  std::vector<KernelArg> list;
  for (const auto& input : args.inputs)
    if (input) list.emplace_back(input.buffer());
  for (const auto& output : args.outputs) list.emplace_back(output.buffer());
  list.emplace_back(static_cast<std::uint64_t>(n));
  std::vector<Long8> vectors;
  const auto values = element_arguments(program, args, loops, vectors);
  list.insert(list.end(), values.begin(), values.end());
  const auto group = static_cast<std::int64_t>(clamped_local(kernel, local));
  const auto items = static_cast<std::int64_t>(ceil_div(n, static_cast<std::int64_t>(per_item)));
  enqueue_kernel(queue, *kernel, WorkSize(rounded_up(items, group)), WorkSize(group), list);
}

}  // namespace netcl
