// Arguments and results: sizes, dtypes, queues and the objects of pyopencl.
#include <cmath>
#include <cstring>

#include "common.h"
#include "netcl/diagnostics.h"

namespace netcl::python {
namespace {

// A whole number, also NumPy's; never a float.
bool to_integer(nb::handle from, std::int64_t& to) noexcept {
  if (PyFloat_Check(from.ptr()) || !PyIndex_Check(from.ptr())) return false;
  PyObject* number = PyNumber_Index(from.ptr());
  if (number == nullptr) {
    PyErr_Clear();
    return false;
  }
  to = PyLong_AsLongLong(number);
  Py_DECREF(number);
  if (to == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    to = INT64_MAX;  // which whoever asked has no use for, and says so
  }
  return true;
}

bool append(nb::handle from, std::vector<std::int64_t>& to, int depth) noexcept {
  std::int64_t value = 0;
  if (to_integer(from, value)) {
    to.push_back(value);
    return true;
  }
  if (depth == 0 || PyUnicode_Check(from.ptr()) || PyBytes_Check(from.ptr())) return false;
  PyObject* items = PySequence_Fast(from.ptr(), "");
  if (items == nullptr) {
    PyErr_Clear();
    return false;
  }
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(items); ++i)
    good = append(PySequence_Fast_GET_ITEM(items, i), to, depth - 1);
  Py_DECREF(items);
  return good;
}

std::string attribute_text(nb::handle object, const char* name) noexcept {
  try {
    return nb::cast<std::string>(object.attr(name));
  } catch (...) {
    PyErr_Clear();
    return {};
  }
}

}  // namespace

WorkSizeArg::operator WorkSize() const {
  if (sizes.size() > 3)
    throw ArgumentError("[work size] there must be one to three dimensions: " +
                        std::to_string(sizes.size()));
  std::vector<std::size_t> unsigned_sizes;
  for (const auto size : sizes) {
    if (size < 0)
      throw ArgumentError("[work size] sizes must not be negative: " + std::to_string(size));
    unsigned_sizes.push_back(static_cast<std::size_t>(size));
  }
  return WorkSize(unsigned_sizes);
}

bool convert(nb::handle from, ShapeArg& to) noexcept { return append(from, to.sizes, 1); }
bool convert(nb::handle from, WorkSizeArg& to) noexcept {
  return from.is_none() || append(from, to.sizes, 2);
}
bool convert(nb::handle from, AxesArg& to) noexcept {
  return from.is_none() || append(from, to.axes, 1);
}
bool convert(nb::handle from, PairArg& to) noexcept {
  std::vector<std::int64_t> values;
  if (!append(from, values, 1) || values.empty() || values.size() > 2) return false;
  to.pair = {values.front(), values.back()};
  return true;
}

bool convert(nb::handle from, DTypeArg& to) noexcept {
  if (PyUnicode_Check(from.ptr())) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(from.ptr(), &length);
    if (text != nullptr) to.name.assign(text, static_cast<std::size_t>(length));
    PyErr_Clear();
    return text != nullptr;
  }
  if (from.is_none()) return false;
  if (PyType_Check(from.ptr())) {
    to.name = attribute_text(from, "__name__");
    if (from.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) to.name = "int64";
    if (from.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) to.name = "float32";
    if (to.name == "bool_") to.name = "bool";
  } else {
    to.name = attribute_text(from, "name");  // numpy.dtype
  }
  return !to.name.empty();
}

std::uintptr_t pyopencl_pointer(nb::handle object, const char* name) noexcept {
  for (PyTypeObject* type = Py_TYPE(object.ptr()); type != nullptr; type = type->tp_base) {
    nb::handle handle(reinterpret_cast<PyObject*>(type));
    const auto module = attribute_text(handle, "__module__");
    if (module.rfind("pyopencl", 0) != 0) continue;
    if (attribute_text(handle, "__name__") != name) continue;
    try {
      return nb::cast<std::uintptr_t>(object.attr("int_ptr"));
    } catch (...) {
      PyErr_Clear();
    }
  }
  return 0;
}

bool convert(nb::handle from, QueueArg& to) noexcept {
  DeviceHandle handle;
  if (nb::try_cast(from, to.queue)) return true;
  if (nb::try_cast(from, handle)) {
    to.queue = handle.queue;
    return true;
  }
  if (PyUnicode_Check(from.ptr())) return nb::try_cast(from, to.selector) && !to.selector.empty();
  to.foreign = pyopencl_pointer(from, "CommandQueue");
  return to.foreign != 0;
}

bool convert(nb::handle from, ContextArg& to) noexcept {
  QueueArg queue;
  if (from.is_none() || nb::try_cast(from, to.context)) return true;
  if (convert(from, queue)) {
    to.queue = queue;
    return true;
  }
  to.foreign = pyopencl_pointer(from, "Context");
  return to.foreign != 0;
}

bool convert(nb::handle from, DeviceArg& to) noexcept {
  QueueArg queue;
  if (nb::try_cast(from, to.device)) return true;
  if (convert(from, queue)) {
    to.queue = queue;
    return true;
  }
  to.foreign = pyopencl_pointer(from, "Device");
  return to.foreign != 0;
}

Queue QueueArg::get() const {
  if (!selector.empty()) {
    Unlocked now;
    return manager().default_device(selector).queue;
  }
  return foreign == 0 ? queue : Queue::wrap(reinterpret_cast<_cl_command_queue*>(foreign));
}

Context ContextArg::get() const {
  const auto found = queue          ? queue->get().context()
                     : foreign == 0 ? context
                                    : Context::wrap(reinterpret_cast<_cl_context*>(foreign));
  if (!found)
    throw DeviceError("[context] it must be of an OpenCL device: the CPU backend has none; " +
                      device_advice());
  return found;
}

Device DeviceArg::get() const {
  if (queue) return queue->get().device();
  return foreign == 0 ? device : Device(reinterpret_cast<_cl_device_id*>(foreign));
}

Queue queue_or_active(const std::optional<QueueArg>& queue) {
  return queue ? queue->get() : get_active_device().queue;
}

PyObject* shape_to_python(const Shape& shape) noexcept {
  try {
    nb::object items = nb::steal(PyTuple_New(shape.rank()));
    for (std::int64_t i = 0; i < shape.rank(); ++i)
      PyTuple_SetItem(items.ptr(), i, PyLong_FromLongLong(shape[i]));
    return nb::module_::import_("netcl._types").attr("Shape")(items).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

PyObject* dtype_to_python(DType dtype) noexcept {
  try {
    const auto name = name_of(dtype);
    nb::object table = nb::module_::import_("netcl._types").attr("DTYPES");
    return nb::object(table[nb::str(name.data(), name.size())]).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (...) {
    return nullptr;
  }
}

nb::object work_size_to_python(const WorkSize& size) {
  if (size.empty()) return nb::none();
  if (size.rank() == 1) return nb::int_(size[0]);
  return nb::tuple(nb::cast(size.to_vector()));
}

nb::object context_to_python(const Context& context) {
  return context ? nb::cast(context) : nb::none();
}

nb::object tensor_or_none(const Tensor& tensor) { return tensor ? nb::cast(tensor) : nb::none(); }

std::vector<Tensor> tensors_of(nb::handle iterable) {
  std::vector<Tensor> result;
  for (nb::handle item : nb::borrow<nb::iterable>(iterable))
    result.push_back(nb::cast<Tensor>(item));
  return result;
}

Callback::Callback(nb::object function)
    : function_(new nb::object(std::move(function)), [](nb::object* held) {
        // After the interpreter's end nothing may touch the object; the process is about to go.
        if (nb::detail::cleanup_guard guard{}) delete held;
      }) {}

bool convert(nb::handle from, OperandArg& to) noexcept {
  to.object = from;
  if (nb::isinstance<Tensor>(from)) {
    to.is_tensor = true;
    return true;
  }
  if (PyUnicode_Check(from.ptr()) || from.is_none()) return false;
  const bool is_python_number = PyFloat_Check(from.ptr()) || PyLong_Check(from.ptr());
  if (is_python_number ||
      (PyNumber_Check(from.ptr()) && !PyObject_HasAttrString(from.ptr(), "__len__") &&
       !PyComplex_Check(from.ptr()))) {
    to.number = PyFloat_AsDouble(from.ptr());
    to.is_number = to.number != -1.0 || PyErr_Occurred() == nullptr;
    PyErr_Clear();
    if (to.is_number || is_python_number) return to.is_number;
  }
  return PyObject_CheckBuffer(from.ptr()) || PySequence_Check(from.ptr()) ||
         PyObject_HasAttrString(from.ptr(), "__array__");
}

namespace {

constexpr double kExact = 9007199254740992;  // 2^53: a double has all whole numbers below

bool is_whole_number(const OperandArg& arg) {
  return arg.is_number && !PyFloat_Check(arg.object.ptr()) && PyIndex_Check(arg.object.ptr());
}

// Of the number itself, of which a double has 53 bits only.
std::int64_t whole_value(const OperandArg& arg) {
  nb::object number = nb::steal(PyNumber_Index(arg.object.ptr()));
  const auto value = number ? PyLong_AsLongLong(number.ptr()) : -1;
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();  // OverflowError
  return value;
}

}  // namespace

Tensor number_tensor(const OperandArg& arg, const Queue& queue, DType dtype) {
  if (dtype == DType::int64 && is_whole_number(arg) && std::abs(arg.number) >= kExact) {
    const std::int64_t value = whole_value(arg);
    Unlocked now;
    return Tensor::from_host(queue, HostView(&value, Shape(), DType::int64, Strides()));
  }
  Unlocked now;
  return Tensor::full(queue, Shape(), arg.number, dtype);
}

ops::Operand operand_beside(const Tensor& tensor, const OperandArg& arg) {
  if (arg.is_number && !is_floating(tensor.dtype())) {
    if (!is_whole_number(arg)) {
      const bool wide = tensor.dtype() == DType::int64;
      return number_tensor(arg, tensor.queue(), wide ? DType::float64 : DType::float32);
    }
    if (std::abs(arg.number) >= kExact) return number_tensor(arg, tensor.queue(), DType::int64);
  }
  const bool is_list = !arg.is_tensor && !arg.is_number && !nb::hasattr(arg.object, "dtype");
  if (is_list && tensor.dtype() == DType::float64)
    return tensor_from(arg.object, tensor.queue(), DTypeArg{"float64"});
  return operand(arg, tensor.queue());
}

ops::Operand operand(const OperandArg& arg, const Queue& queue) {
  if (arg.is_tensor) return nb::cast<const Tensor&>(arg.object);
  if (arg.is_number) return arg.number;
  return tensor_from(arg.object, queue);
}

std::pair<ops::Operand, ops::Operand> operands(const OperandArg& a, const OperandArg& b) {
  if (a.is_tensor) {
    const auto& left = nb::cast<const Tensor&>(a.object);
    return {left, operand_beside(left, b)};
  }
  if (b.is_tensor) {
    const auto& right = nb::cast<const Tensor&>(b.object);
    return {operand_beside(right, a), right};
  }
  const auto queue = get_active_device().queue;
  return {operand(a, queue), operand(b, queue)};
}

}  // namespace netcl::python
