// What all binding files share: how values of Python become values of netcl and back.
// Bindings see the public headers only, and hold the GIL except inside an Unlocked scope.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "netcl/error.h"
#include "netcl/ops.h"
#include "netcl/tensor.h"

namespace nb = nanobind;
using namespace nanobind::literals;  // NOLINT: "x"_a in every binding

namespace netcl::python {

// Other Python threads run while it lives. It also tells the watcher of Ctrl+C that the main thread
// is inside netcl (interrupt.cpp).
class Unlocked {
 public:
  Unlocked() noexcept;
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
  bool outermost_;
};
using Path = std::filesystem::path;
using unlocked = nb::call_guard<Unlocked>;

// ---- arguments. Conversions cannot throw, so these keep what they were given; the value is made,
// and judged, when the function asks for it.
struct ShapeArg {
  std::vector<std::int64_t> sizes;
  operator Shape() const { return Shape(sizes); }  // NOLINT
};

struct DTypeArg {
  std::string name;
  operator DType() const { return parse_dtype(name); }  // NOLINT
};

// None, a number, or up to three of them; a tuple in a tuple counts as its content.
struct WorkSizeArg {
  std::vector<std::int64_t> sizes;
  operator WorkSize() const;  // NOLINT
};

// One axis, several, or None for all of them.
struct AxesArg {
  ops::Axes axes;
};

// A number for both directions, or (height, width).
struct PairArg {
  ops::Pair pair{1, 1};
};

// netcl's objects, or pyopencl's, whose `int_ptr` is the OpenCL object.
struct QueueArg {
  Queue queue;                 // also of a DeviceHandle
  std::uintptr_t foreign = 0;  // a cl_command_queue
  std::string selector;        // "gpu"
  Queue get() const;
};
struct ContextArg {
  Context context;  // empty for None, which is what the CPU backend has
  std::uintptr_t foreign = 0;
  std::optional<QueueArg> queue;  // its context is meant
  Context get() const;
};
struct DeviceArg {
  Device device;
  std::uintptr_t foreign = 0;
  std::optional<QueueArg> queue;  // its device is meant
  Device get() const;
};

bool convert(nb::handle from, ShapeArg& to) noexcept;
bool convert(nb::handle from, DTypeArg& to) noexcept;
bool convert(nb::handle from, WorkSizeArg& to) noexcept;
bool convert(nb::handle from, AxesArg& to) noexcept;
bool convert(nb::handle from, PairArg& to) noexcept;
bool convert(nb::handle from, QueueArg& to) noexcept;
bool convert(nb::handle from, ContextArg& to) noexcept;
bool convert(nb::handle from, DeviceArg& to) noexcept;

// The queue meant by an argument, or the active device's for None.
Queue queue_or_active(const std::optional<QueueArg>& queue);

// The `int_ptr` of an object of pyopencl's class `name`, else 0.
std::uintptr_t pyopencl_pointer(nb::handle object, const char* name) noexcept;

// ---- results
PyObject* shape_to_python(const Shape& shape) noexcept;  // netcl.Shape, a tuple
PyObject* dtype_to_python(DType dtype) noexcept;         // netcl.DType, a str
nb::object work_size_to_python(const WorkSize& size);    // None, int or tuple
nb::object queue_to_python(const Queue& queue);          // CPUQueue for the CPU backend
nb::object context_to_python(const Context& context);    // None when there is none
nb::object tensor_or_none(const Tensor& tensor);

// ---- values in host memory
struct HostData {
  nb::object owner;  // the array whose memory it is
  HostView view{nullptr, Shape{0}, DType::float32};
};
// Anything that NumPy can make an array of. Numbers of Python become float32, int64 or bool.
HostData to_host_data(nb::handle values, const std::optional<DTypeArg>& dtype = {});
HostArray to_host_array(nb::handle values);                  // a copy
nb::object to_numpy(const HostArray& array);                 // shares the memory
nb::object to_numpy(const Tensor& tensor);                   // a copy
nb::object numpy_view(const Tensor& tensor, bool writable);  // of the CPU backend's memory
Tensor tensor_from(nb::handle values, const Queue& queue, const std::optional<DTypeArg>& dtype = {},
                   TransferOptions options = {});
DType numpy_dtype_of(DType dtype);  // bfloat16 is float32 in NumPy

// ---- a function of Python that any thread may call, copy and drop
class Callback {
 public:
  explicit Callback(nb::object function);
  nb::object function() const { return *function_; }

 private:
  std::shared_ptr<nb::object> function_;
};

// A Tensor, a number, or values that become a tensor on the device of the other operand.
struct OperandArg {
  nb::handle object;
  bool is_tensor = false, is_number = false;
  double number = 0;
};
bool convert(nb::handle from, OperandArg& to) noexcept;
// Beside a tensor: 2.0 makes whole numbers floating, as in NumPy, and no digit of a large whole
// number is lost.
ops::Operand operand_beside(const Tensor& tensor, const OperandArg& arg);
ops::Operand operand(const OperandArg& arg, const Queue& queue);
std::pair<ops::Operand, ops::Operand> operands(const OperandArg& a, const OperandArg& b);
// A number as a tensor without axes, exact also where it has no double.
Tensor number_tensor(const OperandArg& arg, const Queue& queue, DType dtype);

std::vector<Tensor> tensors_of(nb::handle iterable);

// A tensor that was unpickled in the fork of a process that used OpenCL is empty.
void set_unpickled_in_fork();
inline const Tensor& made(const Tensor& tensor) {
  if (!tensor) throw ArgumentError("[Tensor] the tensor is empty");
  return tensor;
}

void restore_interrupt(const Interrupted& error);  // sets what Ctrl+C raised

// ---- the files
void bind_errors(nb::module_& m);
void bind_interrupt(nb::module_& m);
void bind_device(nb::module_& m);
void bind_capabilities(nb::module_& m);
void bind_memory(nb::module_& m);
void bind_kernel(nb::module_& m);
void bind_selector(nb::module_& m);
void bind_tuner(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_more_ops(nb::module_& m);
void bind_autograd(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_optim(nb::module_& m);
void bind_data(nb::module_& m);
void bind_io(nb::module_& m);
void bind_train(nb::module_& m);
void bind_profiling(nb::module_& m);

// Parts of the Tensor class in files of their own.
void add_operators(nb::class_<Tensor>& tensor);
void add_indexing(nb::class_<Tensor>& tensor);
void add_interop(nb::class_<Tensor>& tensor);
void add_op_methods(nb::class_<Tensor>& tensor);
int get_tensor_buffer(PyObject* object, Py_buffer* view, int flags);
void release_tensor_buffer(PyObject* object, Py_buffer* view);

}  // namespace netcl::python

namespace nanobind::detail {

template <>
struct type_caster<netcl::Shape> {
  NB_TYPE_CASTER(netcl::Shape, const_name("netcl.Shape"))
  bool from_python(handle, uint32_t, cleanup_list*) noexcept { return false; }  // use ShapeArg
  static handle from_cpp(const netcl::Shape& shape, rv_policy, cleanup_list*) noexcept {
    return netcl::python::shape_to_python(shape);
  }
};

template <>
struct type_caster<netcl::DType> {
  NB_TYPE_CASTER(netcl::DType, const_name("netcl.DType"))
  bool from_python(handle, uint32_t, cleanup_list*) noexcept { return false; }  // use DTypeArg
  static handle from_cpp(netcl::DType dtype, rv_policy, cleanup_list*) noexcept {
    return netcl::python::dtype_to_python(dtype);
  }
};

// Arguments only.
#define NETCL_PYTHON_ARGUMENT(type, text)                                                   \
  template <>                                                                               \
  struct type_caster<netcl::python::type> {                                                 \
    NB_TYPE_CASTER(netcl::python::type, const_name(text))                                   \
    bool from_python(handle source, uint32_t, cleanup_list*) noexcept {                     \
      return netcl::python::convert(source, value);                                         \
    }                                                                                       \
    static handle from_cpp(const netcl::python::type&, rv_policy, cleanup_list*) noexcept { \
      return handle();                                                                      \
    }                                                                                       \
  }

NETCL_PYTHON_ARGUMENT(ShapeArg, "collections.abc.Sequence[int] | int");
NETCL_PYTHON_ARGUMENT(DTypeArg, "typing.Any");
NETCL_PYTHON_ARGUMENT(WorkSizeArg, "collections.abc.Sequence[int] | int | None");
NETCL_PYTHON_ARGUMENT(AxesArg, "collections.abc.Sequence[int] | int | None");
NETCL_PYTHON_ARGUMENT(PairArg, "collections.abc.Sequence[int] | int");
NETCL_PYTHON_ARGUMENT(QueueArg, "typing.Any");
NETCL_PYTHON_ARGUMENT(ContextArg, "typing.Any");
NETCL_PYTHON_ARGUMENT(DeviceArg, "typing.Any");
NETCL_PYTHON_ARGUMENT(OperandArg, "typing.Any");

#undef NETCL_PYTHON_ARGUMENT

}  // namespace nanobind::detail
