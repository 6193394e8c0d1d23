// Tensors for other packages: NumPy, the buffer protocol, DLPack, pickle.
#include <nanobind/ndarray.h>

#include "common.h"
#include "netcl/autograd.h"
#include "netcl/host_memory.h"

namespace netcl::python {
namespace {

const char* buffer_format(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return "e";
    case DType::float32:
      return "f";
    case DType::float64:
      return "d";
    case DType::int8:
      return "b";
    case DType::uint8:
      return "B";
    case DType::int32:
      return "i";
    case DType::int64:
      return "q";
    case DType::boolean:
      return "?";
    case DType::bfloat16:
      break;
  }
  return nullptr;
}

struct BufferInfo {
  Tensor tensor;  // keeps the memory
  std::vector<Py_ssize_t> shape, strides;
};

// Whoever does not ask for strides, or for an order, does not look at them.
bool has_wanted_order(const Tensor& x, int flags) {
  const auto wants = [&](int bits) { return (flags & bits) == bits; };
  if (x.is_contiguous() && !wants(PyBUF_F_CONTIGUOUS)) return true;
  const std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
  const bool is_fortran = is_contiguous(Shape({sizes.rbegin(), sizes.rend()}),
                                        Strides(x.strides().rbegin(), x.strides().rend()));
  if (wants(PyBUF_ANY_CONTIGUOUS)) return is_fortran;
  if (wants(PyBUF_C_CONTIGUOUS)) return x.is_contiguous();
  if (wants(PyBUF_F_CONTIGUOUS)) return is_fortran;
  return wants(PyBUF_STRIDES);
}

nb::object to_array(const Tensor& x, nb::handle dtype, nb::handle copy) {
  const bool shares = x.queue().is_cpu() && x.dtype() != DType::bfloat16;
  const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  const bool must_share = !copy.is_none() && !must_copy;
  if (must_share && !shares)
    throw nb::value_error("[__array__] the values are not in host memory: a copy is needed");
  nb::object array = shares && !must_copy ? numpy_view(x, false) : to_numpy(x);
  if (dtype.is_none()) return array;
  return array.attr("astype")(dtype, "copy"_a = false);
}

nb::object to_dlpack(const Tensor& x, const nb::kwargs& options) {
  if (!x.queue().is_cpu())
    throw nb::buffer_error("DLPack shares host memory: use .to(\"cpu\") or .to_host() first");
  if (x.dtype() == DType::bfloat16)
    throw nb::buffer_error("bfloat16 is not shared through DLPack: use .astype(\"float32\") first");
  const bool must_copy = options.contains("copy") && !options["copy"].is_none() &&
                         nb::cast<bool>(nb::object(options["copy"]));
  const Tensor shared = must_copy ? x.clone() : x;
  return numpy_view(shared, true).attr("__dlpack__")(**options);
}

Tensor from_dlpack(nb::object source) {
  using Any = nb::ndarray<nb::device::cpu>;
  nb::object array = source;
  Any view;
  if (nb::isinstance<Tensor>(source)) return nb::cast<Tensor>(source);
  if (!nb::try_cast(array, view) || view.size() == 0) return tensor_from(source, CPUQueue());
  for (const DType dtype : kAllDTypes) {
    if (buffer_format(dtype) == nullptr) continue;
    const bool is_float = is_floating(dtype), is_bool = dtype == DType::boolean,
               is_unsigned = dtype == DType::uint8;
    const auto code = static_cast<nb::dlpack::dtype_code>(view.dtype().code);
    const auto wanted = is_float      ? nb::dlpack::dtype_code::Float
                        : is_bool     ? nb::dlpack::dtype_code::Bool
                        : is_unsigned ? nb::dlpack::dtype_code::UInt
                                      : nb::dlpack::dtype_code::Int;
    if (code != wanted || view.dtype().bits != size_of(dtype) * 8 || view.dtype().lanes != 1)
      continue;
    std::vector<std::int64_t> sizes;
    Strides strides;
    for (std::size_t i = 0; i < view.ndim(); ++i) {
      sizes.push_back(static_cast<std::int64_t>(view.shape(i)));
      strides.push_back(view.stride(i));
    }
    const Shape shape(sizes);
    if (!is_contiguous(shape, strides)) return tensor_from(source, CPUQueue());
    auto owner = std::make_shared<Callback>(nb::make_tuple(array, nb::cast(view)));
    return adopt_host(CPUQueue(), view.data(), shape, dtype, owner);
  }
  throw DtypeError("[from_dlpack] the dtype must be one of netcl's");
}

// What unpickling calls: on the device of that name if there is one, else on the active one.
Tensor rebuild(nb::object values, const std::string& dtype, const std::string& device,
               bool requires_grad) {
  std::optional<DeviceHandle> found;
  try {
    Unlocked now;
    if (!device.empty()) found = manager().find_device(device);
  } catch (const ForkError&) {
    // multiprocessing's pools wait for ever for a task that cannot be unpickled. Whatever the task
    // does with this tensor is the error instead (made(), and translate() in errors.cpp).
    set_unpickled_in_fork();
    return Tensor();
  }
  const auto queue = found ? found->queue : get_active_device().queue;
  auto tensor = tensor_from(values, queue, DTypeArg{dtype});
  if (requires_grad) tensor.set_requires_grad();
  return tensor;
}

nb::tuple reduce(const Tensor& x) {
  const auto device = x.queue().is_cpu() ? std::string("cpu") : x.queue().name();
  return nb::make_tuple(
      nb::module_::import_("netcl._types").attr("rebuild_tensor"),
      nb::make_tuple(to_numpy(x.detach()), x.dtype(), device, static_cast<bool>(Node::of(x))));
}

int fill_buffer(PyObject* object, Py_buffer* view, int flags) {
  const auto& x = nb::cast<const Tensor&>(nb::handle(object));
  const char* format = buffer_format(x.dtype());
  if (!x.queue().is_cpu() || format == nullptr) {
    PyErr_SetString(PyExc_BufferError,
                    "the values are not in host memory: use .to(\"cpu\") or .to_host()");
    return -1;
  }
  if (!has_wanted_order(x, flags)) {
    PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous: use .contiguous()");
    return -1;
  }
  auto info = std::make_unique<BufferInfo>();
  info->tensor = x;
  const auto item = static_cast<Py_ssize_t>(size_of(x.dtype()));
  info->shape.assign(x.shape().begin(), x.shape().end());
  for (const auto stride : x.strides()) info->strides.push_back(stride * item);
  view->buf = x.host_data();
  view->len = static_cast<Py_ssize_t>(x.nbytes());
  view->itemsize = item;
  view->readonly = (flags & PyBUF_WRITABLE) == 0;
  view->ndim = static_cast<int>(x.ndim());
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) ? info->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? info->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = info.release();
  view->obj = object;
  Py_INCREF(object);
  return 0;
}

}  // namespace

int get_tensor_buffer(PyObject* object, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    return fill_buffer(object, view, flags);
  } catch (const std::exception& error) {  // called by Python itself
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_tensor_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<BufferInfo*>(view->internal);
  view->internal = nullptr;
}

void add_interop(nb::class_<Tensor>& t) {
  nb::module_ m =
      nb::borrow<nb::module_>(nb::module_::import_("sys").attr("modules")["netcl._netcl"]);
  t.def("__array__", &to_array, "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__", &to_dlpack)
      .def("__dlpack_device__",
           [](const Tensor& x) { return nb::make_tuple(x.queue().is_cpu() ? 1 : 4, 0); })
      .def("__reduce__", &reduce)
      .def_static(
          "from_dlpack", &from_dlpack, "array"_a,
          "A tensor of the CPU backend over another package's memory, which it keeps alive.\n"
          "Memory that is not contiguous is copied.");
  // Not `np.array + tensor` element by element: NumPy leaves it to Tensor.
  // netcl/_numpy.py puts its own in this place.
  t.attr("__array_ufunc__") = nb::none();
  m.def("_rebuild_tensor", &rebuild);
}

}  // namespace netcl::python
