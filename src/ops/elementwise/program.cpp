// Writes the OpenCL C of element programs. The same program gives the same text in every process,
// so that the program cache on disk finds it.
#include "ops/elementwise/program.h"

#include <set>

#include "base/format.h"
#include "ops/elementwise/float_functions.h"
#include "ops/memory_hints.h"

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
    value = vec > 1 ? fmt::format("load_halves{}({} + {})", vec, pointer, index)
                    : fmt::format("vload_half({}, {})", index, pointer);
  else if (vec > 1)
    value = fmt::format("load_{}({} + {})", vector_type(opencl_type(dtype), vec), pointer, index);
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
    return vec > 1 ? fmt::format("store_halves{}({}, {} + {});", vec, value, pointer, index)
                   : fmt::format("vstore_half_rte({}, {}, {});", value, index, pointer);
  // A true comparison is 1 for scalars and -1 for vectors: its lowest bit is what counts.
  auto stored = value;
  if (dtype == DType::boolean)
    stored = fmt::format("convert_{}(({}) & 1)", vector_type(type, vec), value);
  else if (dtype == DType::float32 && compute == DType::float64)
    stored = fmt::format("convert_{}({})", vector_type(type, vec), value);
  return vec > 1
             ? fmt::format("store_{}({}, {} + {});", vector_type(type, vec), stored, pointer, index)
             : fmt::format("{}[{}] = {};", pointer, index, stored);
}

constexpr std::size_t kFetchAhead = 2048;  // bytes
constexpr std::size_t kFetched = 64;       // bytes, by one FETCH

class Writer {
 public:
  Writer(const ElementProgram& program, const ElementShape& shape)
      : program_(program), shape_(shape), vec_(shape.vec) {}

  std::string text() {
    prologue();
    if (shape_.part > 0) text_ += kMemoryHints;
    signature();
    if (shape_.part > 0)
      program_.rank > 0 ? run_body() : walk_body();
    else
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
    std::set<DType> dtypes;
    for_tensors([&](const std::string&, const ElementOperand& operand, bool) {
      dtypes.insert(operand.dtype);
    });
    if (vec_ > 1)
      for (const auto dtype : dtypes)
        text_ +=
            dtype == DType::float16 ? half_vectors(vec_) : loose_vectors(opencl_type(dtype), vec_);
    text_ += program_.preamble;
    if (own_functions()) text_ += float_functions(program_, vec_);
  }

  bool own_functions() const {
    return program_.own_functions && program_.compute == DType::float32;
  }
  std::string with_functions(const std::string& text, int vec) const {
    return own_functions() ? with_float_functions(text, vec) : text;
  }

  void signature() {
    auto [parameters, values] = this->parameters();
    parameters.push_back("ulong n");
    if (shape_.part > 0) parameters.push_back("ulong part");
    parameters.insert(parameters.end(), values.begin(), values.end());
    // coalescing(elementwise): neighbouring items read and write neighbouring elements or vectors;
    // operands that are views are read as far apart as they lie.
    // occupancy(elementwise): erf and its like in float64 hold 100 registers for four elements of
    // an item, whose polynomials do not wait for each other.
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
    if (program_.rank > 0 && shape_.part == 0) positions();
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const auto& input = program_.inputs[i];
      const auto name = fmt::format("in{}", i);
      if (input.access == Access::scalar)
        line("const V {} = K(s{});", program_.names[i], i);
      else if (input.access == Access::single)
        line("const V {} = K({});", program_.names[i],
             load_text(input.dtype, program_.compute, name, fmt::format("at_{}", name), 1));
      else
        line("const V {} = {};", program_.names[i], load(name, input, vec));
    }
    for (const auto& statement : program_.statements) line("{}", with_functions(statement, vec));
  }

  void element(int vec) {
    values(vec);
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const auto& output = program_.outputs[i];
      const auto name = fmt::format("out{}", i);
      // Predicates are conditions, not values of V.
      const auto result = with_functions(program_.results[i], vec);
      const auto value = output.dtype == DType::boolean ? result : fmt::format("K({})", result);
      if (shape_.streams && program_.rank == 0 && vec > 1 && can_stream(output.dtype))
        line("STREAM({}, (__global {}*)({} + {}));", value,
             vector_type(opencl_type(output.dtype), vec), name, index_of(name, output));
      else
        line("{}",
             store_text(output.dtype, program_.compute, name, index_of(name, output), value, vec));
    }
    line("#undef V");
  }

  // Results that are stored as they are computed.
  bool can_stream(DType dtype) const { return dtype == program_.compute; }

  std::string load(const std::string& name, const ElementOperand& operand, int vec) const {
    const bool in_run = shape_.part > 0 && operand.access == Access::strided;
    const auto element = [&](const std::string& index, int count) {
      return load_text(operand.dtype, program_.compute, name, index, count);
    };
    if (!in_run || vec == 1 || operand.inner == ElementOperand::Inner::one)
      return element(index_of(name, operand), vec);
    if (operand.inner == ElementOperand::Inner::zero)
      return fmt::format("K({})", element(fmt::format("i_{}", name), 1));
    std::vector<std::string> lanes;
    for (int l = 0; l < vec; ++l)
      lanes.push_back(element(fmt::format("i_{0} + (k + {1}) * step_{0}.s0", name, l), 1));
    return fmt::format("(V)({})", join(lanes, ", "));
  }

  std::string index_of(const std::string& name, const ElementOperand& operand) const {
    if (operand.access != Access::strided) return fmt::format("at_{} + i", name);
    if (shape_.part == 0) return fmt::format("i_{}", name);
    return operand.inner == ElementOperand::Inner::one
               ? fmt::format("i_{} + k", name)
               : fmt::format("i_{0} + k * step_{0}.s0", name);
  }

  // Turns i into the position in every strided tensor; the outermost axis needs no division.
  void positions() {
    const char* type = program_.wide ? "ulong" : "uint";
    line("{} rest = ({})i;", type, type);
    if (shape_.part > 0) line("long run = 0;");
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
      if (axis == 0 && shape_.part > 0)
        line("run = min({} - at, (long)(end - i));", last ? "(long)n" : "sizes.s0");
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
    line("ulong i = (ulong)get_group_id(0) * get_local_size(0) * {0}UL + get_local_id(0);",
         shape_.items);
    line("for (int item = 0; item < {}; ++item, i += get_local_size(0)) {{", shape_.items);
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

  // One after the other through a part of the elements, all of them linear.
  void walk_body() {
    line("ulong i = (ulong)get_global_id(0) * part;");
    line("const ulong end = min(n, i + part);");
    if (shape_.streams) {
      // Vectors that go past the caches must lie at multiples of their size.
      std::vector<std::string> places;
      for (std::size_t k = 0; k < program_.outputs.size(); ++k) {
        const auto dtype = program_.outputs[k].dtype;
        if (can_stream(dtype))
          places.push_back(fmt::format("((ulong)(out{0} + at_out{0} + i) & {1}UL)", k,
                                       size_of(dtype) * static_cast<std::size_t>(vec_) - 1));
      }
      line("for (; i < end && {} != 0; ++i) {{", places[0]);
      element(1);
      line("}}");
      line("if (({}) == 0)", join(places, " | "));
    }
    line("for (; i + {0}UL <= end; i += {0}UL) {{", vec_);
    if (shape_.fetches) fetch();
    element(vec_);
    line("}}");
    line("for (; i < end; ++i) {{");
    element(1);
    line("}}");
  }

  void fetch() {
    for (std::size_t k = 0; k < program_.inputs.size(); ++k) {
      if (program_.inputs[k].access != Access::linear) continue;
      const auto size = size_of(program_.inputs[k].dtype);
      const auto bytes = size * static_cast<std::size_t>(vec_);
      for (std::size_t at = 0; at < bytes; at += kFetched)
        line("FETCH(in{0} + at_in{0} + i + {1});", k, (kFetchAhead + at) / size);
    }
  }

  // Along the runs of the innermost axis that lie in a part: one division per run and axis.
  void run_body() {
    line("ulong i = (ulong)get_global_id(0) * part;");
    line("const ulong end = min(n, i + part);");
    line("while (i < end) {{");
    positions();
    line("const ulong start = i;");
    line("long k = 0;");
    line("for (; k + {0} <= run; k += {0}) {{", vec_);
    line("const ulong i = start + (ulong)k;");
    element(vec_);
    line("}}");
    line("for (; k < run; ++k) {{");
    line("const ulong i = start + (ulong)k;");
    element(1);
    line("}}");
    line("i += (ulong)run;");
    line("}}");
  }

  const ElementProgram& program_;
  const ElementShape shape_;
  const int vec_;
  std::string text_;
};

}  // namespace

std::string render_elements(const ElementProgram& program, const ElementShape& shape) {
  return Writer(program, shape).text();
}

ElementParameters element_parameters(const ElementProgram& program) {
  return Writer(program, {}).parameters();
}

std::string element_prologue(const ElementProgram& program, int vec) {
  return Writer(program, {.vec = vec}).prologue_text();
}

std::string element_values(const ElementProgram& program, int vec) {
  return Writer(program, {.vec = vec}).values_text();
}

}  // namespace netcl
