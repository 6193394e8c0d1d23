// Subscripts. Numbers, slices, None and ... give views; arrays of indices and masks give copies,
// by the positions that NumPy itself computes for them.
#include "common.h"

namespace netcl::python {
namespace {

bool is_number(nb::handle item) {
  return !PyBool_Check(item.ptr()) && PyIndex_Check(item.ptr()) && !nb::hasattr(item, "__len__");
}

// Arrays with a rank, lists, tensors and booleans choose elements in a way no view can.
bool is_basic(nb::handle item) {
  return item.is_none() || item.is(nb::ellipsis()) || PySlice_Check(item.ptr()) || is_number(item);
}

nb::object to_key(nb::handle key) {
  // NumPy does not know tensors as indices.
  if (nb::isinstance<Tensor>(key)) return to_numpy(nb::cast<const Tensor&>(key));
  if (!PyTuple_Check(key.ptr())) return nb::borrow(key);
  nb::list items;
  for (nb::handle item : nb::borrow<nb::tuple>(key)) items.append(to_key(item));
  return nb::tuple(items);
}

[[noreturn]] void fail_index(const std::string& text) { throw nb::index_error(text.c_str()); }

Tensor take_slice(const Tensor& x, std::int64_t axis, nb::handle item) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(item.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  const auto length = PySlice_AdjustIndices(x.shape()[axis], &start, &stop, step);
  if (length == 0) return x.narrow(axis, 0, 0);
  const auto last = start + (length - 1) * step;
  if (step > 0) return x.slice(axis, start, last + 1, step);
  return x.slice(axis, start, last == 0 ? Tensor::kEnd : last - 1, step);
}

Tensor take_number(const Tensor& x, std::int64_t axis, nb::handle item) {
  const auto index = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
  if (index == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  const auto size = x.shape()[axis];
  if (index < -size || index >= size)
    fail_index("index " + std::to_string(index) + " is out of bounds for axis " +
               std::to_string(axis) + " with size " + std::to_string(size));
  return x.select(axis, index);
}

Tensor view_of(const Tensor& x, const nb::tuple& items) {
  std::int64_t used = 0, dots = 0;
  for (nb::handle item : items) {
    if (item.is(nb::ellipsis()))
      ++dots;
    else if (!item.is_none())
      ++used;
  }
  if (dots > 1) fail_index("an index can only have a single ellipsis ('...')");
  if (used > x.ndim())
    fail_index("too many indices for a tensor of shape " + x.shape().to_string() + ": " +
               std::to_string(used));
  Tensor result = x;
  std::int64_t axis = 0;
  for (nb::handle item : items) {
    if (item.is_none()) {
      result = result.unsqueeze(axis++);
    } else if (item.is(nb::ellipsis())) {
      axis += x.ndim() - used;
    } else if (PySlice_Check(item.ptr())) {
      result = take_slice(result, axis++, item);
    } else {
      result = take_number(result, axis, item);
    }
  }
  return result;
}

// Positions in the flat tensor of every element of x[key].
Tensor gather_positions(const Tensor& x, const nb::object& key) {
  nb::object numpy = nb::module_::import_("numpy");
  nb::object places = numpy.attr("arange")(x.numel()).attr("reshape")(x.shape())[key];
  places = numpy.attr("asarray")(places);
  const auto data = to_host_data(places);
  const auto shape = data.view.shape;
  Unlocked now;
  const auto indices = Tensor::from_host(x.queue(), data.view).reshape({-1});
  return ops::index_select(x.reshape({-1}), 0, indices).reshape(shape.sizes());
}

bool is_view(const nb::tuple& items) {
  for (nb::handle item : items)
    if (!is_basic(item)) return false;
  return true;
}

nb::tuple key_items(const nb::object& key) {
  return PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
}

Tensor get_item(const Tensor& x, nb::handle given) {
  const auto key = to_key(given);
  const auto items = key_items(key);
  made(x);
  return is_view(items) ? view_of(x, items) : gather_positions(x, key);
}

void set_item(const Tensor& x, nb::handle given, nb::handle value) {
  const auto key = to_key(given);
  const auto items = key_items(key);
  if (!is_view(items)) {
    nb::object array = to_numpy(x);
    array[key] = nb::isinstance<Tensor>(value) ? to_numpy(nb::cast<const Tensor&>(value))
                                               : nb::borrow(value);
    const auto data = to_host_data(array);
    Unlocked now;
    x.write(data.view);
    return;
  }
  const auto target = view_of(x, items);
  OperandArg arg;
  if (!convert(value, arg))
    throw DtypeError("[setitem] the value must be a number, a tensor or an array");
  auto source = arg.is_number ? number_tensor(arg, x.queue(), x.dtype())
                : arg.is_tensor
                    ? nb::cast<Tensor>(value)
                    : tensor_from(value, x.queue(), DTypeArg{std::string(name_of(x.dtype()))});
  Unlocked now;
  // As in NumPy, axes of size 1 in front may be too many.
  while (source.ndim() > target.ndim() && source.shape()[0] == 1) source = source.squeeze(0);
  target.copy_from(source.to(x.queue()).expand(target.shape()));
}

}  // namespace

void add_indexing(nb::class_<Tensor>& t) {
  t.def("__getitem__", &get_item, "key"_a.none())
      .def("__setitem__", &set_item, "key"_a.none(), "value"_a.none())
      .def("__len__",
           [](const Tensor& x) {
             if (made(x).ndim() == 0) throw nb::type_error("len() of a 0-d tensor");
             return x.shape()[0];
           })
      .def("__iter__",
           [](const Tensor& x) {
             if (made(x).ndim() == 0) throw nb::type_error("iteration over a 0-d tensor");
             nb::list rows;
             for (std::int64_t i = 0; i < x.shape()[0]; ++i) rows.append(x.select(0, i));
             return nb::iter(rows);
           })
      .def("__contains__", [](const Tensor& x, nb::handle value) {
        return nb::cast<bool>(to_numpy(x).attr("__contains__")(value));
      });
}

}  // namespace netcl::python
