// Values in host memory: NumPy's arrays, everything that NumPy can make one of, and back.
#include <nanobind/ndarray.h>

#include "common.h"

namespace netcl::python {
namespace {

nb::object numpy() { return nb::module_::import_("numpy"); }

std::optional<DType> dtype_of_name(const std::string& name) {
  for (const DType dtype : kAllDTypes)
    if (name_of(dtype) == name) return dtype;
  return {};
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(size_of(dtype) * 8);
  using Code = nb::dlpack::dtype_code;
  Code code = Code::Float;
  if (dtype == DType::int8 || dtype == DType::int32 || dtype == DType::int64) code = Code::Int;
  if (dtype == DType::uint8) code = Code::UInt;
  if (dtype == DType::boolean) code = Code::Bool;
  if (dtype == DType::bfloat16) code = Code::UInt;  // its bits: NumPy has no such dtype
  return {static_cast<std::uint8_t>(code), bits, 1};
}

// What NumPy has and netcl has not, in a dtype that holds every value (uint64: up to int64's).
nb::object in_wider_dtype(const nb::object& array, DType wanted) {
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool is_uint64 = kind == "u" && nb::cast<int>(array.attr("itemsize")) == 8;
  if (kind == "f" || ((is_uint64 || kind == "O") && is_floating(wanted)))
    return array.attr("astype")("float64");
  if (is_uint64) return numpy().attr("minimum")(array, nb::int_(INT64_MAX)).attr("astype")("int64");
  return array.attr("astype")("int64");
}

void require_numbers(const nb::object& array, const std::string& name) {
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind == "c" || kind == "S" || kind == "U" || kind == "M" || kind == "m" || kind == "V")
    throw DtypeError("[from_host] the values must be real numbers: " + name);
}

// An array of one of netcl's dtypes, in the machine's byte order. Numbers of Python (not arrays)
// become float32, int64 or bool; with a dtype that is asked for no digit is lost before it is time.
nb::object as_array(nb::handle values, const std::optional<DTypeArg>& dtype) {
  const bool is_array = nb::hasattr(values, "dtype");
  nb::object array = numpy().attr("asarray")(values);
  auto name = nb::cast<std::string>(array.attr("dtype").attr("name"));
  if (!is_array && !dtype && name == "float64") {
    array = array.attr("astype")("float32");
    name = "float32";
  }
  if (!dtype_of_name(name)) {
    require_numbers(array, name);
    if (!dtype)
      throw DtypeError("[from_host] the dtype must be one of netcl's (give dtype= to convert): " +
                       name);
    array = in_wider_dtype(array, *dtype);
  }
  if (!nb::cast<bool>(array.attr("dtype").attr("isnative")))
    array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
  return array;
}

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

HostData described(nb::object array, const nb::object& memory, DType dtype) {
  AnyArray view;
  if (!nb::try_cast(memory, view)) {
    // Strides that are no whole number of elements, for example.
    array = numpy().attr("ascontiguousarray")(memory);
    view = nb::cast<AnyArray>(array);
  }
  std::vector<std::int64_t> sizes;
  Strides strides;
  for (std::size_t i = 0; i < view.ndim(); ++i) {
    sizes.push_back(static_cast<std::int64_t>(view.shape(i)));
    strides.push_back(view.stride(i));
  }
  return {nb::make_tuple(array, memory, nb::cast(view)),
          HostView(view.data(), Shape(sizes), dtype, strides)};
}

nb::object make_array(void* data, const Shape& shape, const Strides& strides, DType dtype,
                      const nb::object& owner, bool writable) {
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  nb::object array;
  if (writable)
    array = nb::cast(nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner, strides.data(),
                                            dlpack_type(dtype)));
  else
    array = nb::cast(nb::ndarray<nb::numpy, nb::ro>(data, sizes.size(), sizes.data(), owner,
                                                    strides.data(), dlpack_type(dtype)));
  return array;
}

}  // namespace

DType numpy_dtype_of(DType dtype) { return dtype == DType::bfloat16 ? DType::float32 : dtype; }

HostData to_host_data(nb::handle values, const std::optional<DTypeArg>& dtype) {
  nb::object array = as_array(values, dtype);
  const auto type = *dtype_of_name(nb::cast<std::string>(array.attr("dtype").attr("name")));
  // NumPy cannot hand out bfloat16 of ml_dtypes, but its bits.
  nb::object memory = array;
  if (type == DType::bfloat16) memory = array.attr("view")("uint16");
  if (nb::cast<std::int64_t>(array.attr("size")) == 0) {
    ShapeArg shape;
    convert(array.attr("shape"), shape);
    return {array, HostView(nullptr, shape, type, contiguous_strides(shape))};
  }
  return described(std::move(array), memory, type);
}

HostArray to_host_array(nb::handle values) {
  const auto data = to_host_data(values);
  const CPUQueue queue;
  Unlocked now;
  return Tensor::from_host(queue, data.view).to_host();
}

nb::object to_numpy(const HostArray& array) {
  if (array.dtype() == DType::bfloat16) {
    const CPUQueue queue;
    return to_numpy(Tensor::from_host(queue, array).astype(DType::float32).to_host());
  }
  auto* copy = new HostArray(array);  // shares the memory
  nb::capsule owner(copy, [](void* held) noexcept { delete static_cast<HostArray*>(held); });
  return make_array(copy->data(), array.shape(), contiguous_strides(array.shape()), array.dtype(),
                    owner, true);
}

nb::object to_numpy(const Tensor& tensor) {
  HostArray array;
  {
    Unlocked now;
    array = tensor.astype(numpy_dtype_of(tensor.dtype())).to_host();
  }
  return to_numpy(array);
}

nb::object numpy_view(const Tensor& tensor, bool writable) {
  void* data = nullptr;
  {
    Unlocked now;
    data = tensor.host_data();
  }
  return make_array(data, tensor.shape(), tensor.strides(), tensor.dtype(), nb::cast(tensor),
                    writable);
}

Tensor tensor_from(nb::handle values, const Queue& queue, const std::optional<DTypeArg>& dtype,
                   TransferOptions options) {
  if (nb::isinstance<Tensor>(values)) {
    const auto& tensor = nb::cast<const Tensor&>(values);
    Unlocked now;
    const auto moved = tensor.to(queue);
    if (dtype) return moved.astype(*dtype);
    return moved.shares_storage(tensor) ? moved.clone() : moved;
  }
  const auto data = to_host_data(values, dtype);
  Unlocked now;
  if (!dtype || data.view.dtype == *dtype) return Tensor::from_host(queue, data.view, options);
  // Before it is moved: not every device has doubles.
  return Tensor::from_host(CPUQueue(), data.view).astype(*dtype).to(queue);
}

}  // namespace netcl::python
