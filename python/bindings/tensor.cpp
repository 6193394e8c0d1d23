// Tensor: making tensors, what they are, copies, views.
#include <algorithm>

#include "common.h"
#include "netcl/autograd.h"
#include "netcl/nn.h"

namespace netcl::python {
namespace {

using OptionalQueue = std::optional<QueueArg>;
using OptionalDType = std::optional<DTypeArg>;

// The documents have both forms: f(queue, values) and f(values).
struct QueueAndValue {
  Queue queue;
  nb::object value;
};
QueueAndValue queue_and_value(nb::object first, nb::object second, const OptionalQueue& device) {
  if (second.is_valid() && !second.is_none()) {
    if (first.is_none()) return {queue_or_active(device), second};
    QueueArg queue;
    if (!convert(first, queue))
      throw DtypeError("[Tensor] the first of two arguments must be a queue: " +
                       nb::cast<std::string>(first.type().attr("__name__")));
    return {queue.get(), second};
  }
  return {queue_or_active(device), first};
}

Shape shape_of(nb::handle value) {
  ShapeArg shape;
  if (!convert(value, shape))
    throw DtypeError("[Tensor] the shape must be a number or a tuple of whole numbers: " +
                     nb::cast<std::string>(nb::str(value)));
  return shape;
}

DType dtype_or(const OptionalDType& dtype, DType otherwise) {
  return dtype ? DType(*dtype) : otherwise;
}

Tensor from_host(nb::object first, nb::object second, const OptionalDType& dtype,
                 const OptionalQueue& device, std::optional<bool> async_copy,
                 std::optional<bool> use_pinned) {
  const auto [queue, value] = queue_and_value(first, second, device);
  TransferOptions options;
  if (async_copy) options.async_copy = *async_copy;
  if (use_pinned) options.use_pinned = *use_pinned;
  return tensor_from(value, queue, dtype, options);
}

template <class Make>
Tensor shaped(nb::object first, nb::object second, const OptionalQueue& device, Make&& make) {
  const auto [queue, value] = queue_and_value(first, second, device);
  const auto shape = shape_of(value);
  const auto& on = queue;
  Unlocked now;
  return make(on, shape);
}

// Unmarked through a copy, so that this one can be marked again together with all others.
void set_followed(Tensor& x, bool on) {
  const auto node = Node::of(x);
  if (on || (node && !node.is_leaf()))
    x.set_requires_grad(on);
  else
    Tensor(x).set_requires_grad(false);
}

void set_all(const Tensor& x, const OperandArg& value) {
  const auto number = number_tensor(value, x.queue(), x.dtype());
  Unlocked now;
  x.copy_from(number.expand(x.shape()));
}

void add_factories(nb::class_<Tensor>& t) {
  t.def(
      "__init__",
      [](Tensor* self, nb::object values, const OptionalDType& dtype, const OptionalQueue& device,
         bool requires_grad) {
        new (self) Tensor(tensor_from(values, queue_or_active(device), dtype));
        if (requires_grad) self->set_requires_grad();
      },
      "values"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false,
      "A copy of numbers, lists, arrays or another tensor on a device: a selector such as \"gpu\", "
      "a queue or\n"
      "a handle; without one on the active device.");
  t.def_static("from_host", &from_host, "queue_or_values"_a.none(), "values"_a = nb::none(),
               "dtype"_a = nb::none(), nb::kw_only(), "device"_a = nb::none(),
               "async_copy"_a = nb::none(), "use_pinned"_a = nb::none(),
               "A copy of an array on a device: from_host(values) or from_host(queue, values).\n"
               "The dtype is the array's unless one is given.\n\n"
               ">>> nc.Tensor.from_host([[1.0, 2.0]]).shape\n(1, 2)\n");
  t.def_static(
      "from_shape",
      [](nb::object first, nb::object second, const OptionalDType& dtype,
         const OptionalQueue& device) {
        return shaped(first, second, device, [&](const Queue& queue, const Shape& shape) {
          return Tensor::from_shape(queue, shape, dtype_or(dtype, DType::float32));
        });
      },
      "queue_or_shape"_a.none(), "shape"_a = nb::none(), "dtype"_a = nb::none(), nb::kw_only(),
      "device"_a = nb::none(), "Zeros.");
  const auto filled = [&t](const char* name, double value, const char* doc) {
    t.def_static(
        name,
        [value](nb::object shape, const OptionalDType& dtype, const OptionalQueue& device) {
          return shaped(shape, nb::none(), device, [&](const Queue& queue, const Shape& sizes) {
            return Tensor::full(queue, sizes, value, dtype_or(dtype, DType::float32));
          });
        },
        "shape"_a, "dtype"_a = nb::none(), nb::kw_only(), "device"_a = nb::none(), doc);
  };
  filled("zeros", 0, "Zeros.\n\n>>> nc.Tensor.zeros((2, 3)).shape\n(2, 3)\n");
  filled("ones", 1, "Ones.");
  t.def_static(
      "full",
      [](nb::object shape, const OperandArg& value, const OptionalDType& dtype,
         const OptionalQueue& device) {
        if (!value.is_number) throw DtypeError("[full] the value must be a number");
        const auto [queue, sizes] = queue_and_value(shape, nb::none(), device);
        const auto type = dtype_or(dtype, DType::float32);
        const auto wanted = shape_of(sizes);
        const auto result = [&, &on = queue] {
          Unlocked now;
          return Tensor::full(on, wanted, value.number, type);
        }();
        if (type == DType::int64) set_all(result, value);  // a double has 53 bits only
        return result;
      },
      "shape"_a, "value"_a, "dtype"_a = nb::none(), nb::kw_only(), "device"_a = nb::none(),
      "The same value everywhere.");
  t.def_static(
      "empty",
      [](nb::object first, nb::object second, const OptionalDType& dtype,
         const OptionalQueue& device) {
        return shaped(first, second, device, [&](const Queue& queue, const Shape& shape) {
          return Tensor::empty(queue, shape, dtype_or(dtype, DType::float32));
        });
      },
      "queue_or_shape"_a.none(), "shape"_a = nb::none(), "dtype"_a = nb::none(), nb::kw_only(),
      "device"_a = nb::none(), "Uninitialised.");
  t.def_static(
      "arange",
      [](double start, std::optional<double> stop, double step, const OptionalDType& dtype,
         const OptionalQueue& device) {
        const auto queue = queue_or_active(device);
        const auto type = dtype_or(dtype, DType::int64);
        Unlocked now;
        return stop ? Tensor::arange(queue, start, *stop, step, type)
                    : Tensor::arange(queue, 0, start, step, type);
      },
      "start"_a, "stop"_a = nb::none(), "step"_a = 1.0, "dtype"_a = nb::none(), nb::kw_only(),
      "device"_a = nb::none(),
      "start, start + step, ... below stop; with one argument from 0 to it. int64 unless told "
      "otherwise.\n\n"
      ">>> nc.Tensor.arange(3).tolist()\n[0, 1, 2]\n");
  t.def_static(
      "random",
      [](nb::object shape, std::optional<std::uint64_t> seed, const std::string& distribution,
         const OptionalDType& dtype, const OptionalQueue& device) {
        if (distribution != "uniform" && distribution != "normal")
          throw ArgumentError("[random] the distribution must be uniform or normal: " +
                              distribution);
        return shaped(shape, nb::none(), device, [&](const Queue& queue, const Shape& sizes) {
          return Tensor::random(
              queue, sizes, seed ? *seed : nn::next_seed(),
              distribution == "normal" ? Distribution::normal : Distribution::uniform,
              dtype_or(dtype, DType::float32));
        });
      },
      "shape"_a, "seed"_a = nb::none(), "distribution"_a = "uniform", "dtype"_a = nb::none(),
      nb::kw_only(), "device"_a = nb::none(),
      "Uniform in [0, 1) or normal. The same seed gives the same bits on every device.");
}

void add_properties(nb::class_<Tensor>& t) {
  t.def_prop_ro(
       "shape", [](const Tensor& x) { return made(x).shape(); },
       "The sizes: a tuple that also has numel().")
      .def_prop_ro(
          "strides", [](const Tensor& x) { return nb::tuple(nb::cast(x.strides())); },
          "In elements.")
      .def_prop_ro("offset", &Tensor::offset, "Of the first element in the memory, in elements.")
      .def_prop_ro("size", &Tensor::numel, "The number of elements.")
      .def_prop_ro("ndim", &Tensor::ndim, "The number of axes.")
      .def_prop_ro("nbytes", &Tensor::nbytes, "Of all elements.")
      .def_prop_ro(
          "itemsize", [](const Tensor& x) { return size_of(x.dtype()); }, "Bytes of an element.")
      .def_prop_ro("dtype", &Tensor::dtype,
                   "The name of the element type; equals NumPy's dtype too.")
      .def_prop_ro(
          "queue", [](const Tensor& x) { return queue_to_python(x.queue()); },
          "Where work on it is enqueued.")
      .def_prop_ro(
          "context", [](const Tensor& x) { return context_to_python(x.queue().context()); },
          "The OpenCL context; None on the CPU backend.")
      .def_prop_ro("device", &Tensor::device, "Where it is.")
      .def_prop_ro(
          "backend", [](const Tensor& x) { return std::string(x.queue().backend()); },
          "\"cl\" or \"cpu\".")
      .def_prop_ro(
          "buffer",
          [](const Tensor& x) {
            if (x.queue().is_cpu()) return nb::object(nb::none());
            return nb::cast(x.buffer());
          },
          "The OpenCL buffer; None on the CPU backend.")
      .def_prop_ro(
          "array",
          [](const Tensor& x) {
            return x.queue().is_cpu() ? numpy_view(x, true) : nb::object(nb::none());
          },
          "The memory itself as an array on the CPU backend (bfloat16 as its bits); None "
          "elsewhere.")
      .def_prop_ro(
          "is_contiguous", [](const Tensor& x) { return x.is_contiguous(); },
          "Without gaps, last axis fastest.")
      .def_prop_ro(
          "T",
          [](const Tensor& x) {
            std::vector<std::int64_t> axes;
            for (auto i = x.ndim(); i > 0; --i) axes.push_back(i - 1);
            return x.permute(axes);
          },
          "All axes in reverse.")
      .def("numel", &Tensor::numel, "The number of elements.")
      .def("shares_storage", &Tensor::shares_storage, "other"_a,
           "Whether both are views of the same memory.")
      .def_prop_rw(
          "requires_grad", [](const Tensor& x) { return static_cast<bool>(Node::of(x)); },
          [](Tensor& x, bool on) { set_followed(x, on); }, "Whether tapes follow it.")
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            set_followed(nb::cast<Tensor&>(self), on);
            return self;
          },
          "on"_a = true, nb::sig("def requires_grad_(self, on: bool = True) -> Tensor"),
          "Lets tapes follow it, or not; the tensor itself.")
      .def_prop_rw(
          "grad", [](const Tensor& x) { return tensor_or_none(x.grad()); },
          [](const Tensor& x, std::optional<Tensor> gradient) {
            x.set_grad(gradient ? *gradient : Tensor());
          },
          nb::for_setter(nb::arg("gradient").none()),
          "What backward() has added up so far, or None.")
      .def("detach", &Tensor::detach, "The same memory, not followed by tapes.");
}

void add_copies(nb::class_<Tensor>& t) {
  t.def(
       "to_host", [](const Tensor& x) { return to_numpy(x); }, "The values as a new array.")
      .def(
          "to_host_async",
          [](const Tensor& x) {
            std::unique_ptr<AsyncHostArray> download;
            {
              Unlocked now;
              download = std::make_unique<AsyncHostArray>(x.to_host_async());
            }
            return nb::cast(std::move(*download));
          },
          "A download under way; its wait() gives the array.")
      .def(
          "numpy",
          [](const Tensor& x) {
            const bool shares = x.queue().is_cpu() && x.dtype() != DType::bfloat16;
            return shares ? numpy_view(x, false) : to_numpy(x);
          },
          "The values as an array: read-only memory of the tensor on the CPU backend, else a copy.")
      .def(
          "tolist", [](const Tensor& x) { return to_numpy(x).attr("tolist")(); },
          "The values as lists of Python's numbers.")
      .def(
          "item", [](const Tensor& x) { return nb::object(to_numpy(x).attr("item")()); },
          "The value of a tensor of one element, as a number of Python.")
      .def("wait", &Tensor::wait, unlocked(),
           "Until all work on its queue is done; Ctrl+C interrupts.")
      .def(
          "write",
          [](nb::handle self, nb::handle values) {
            const auto& x = nb::cast<const Tensor&>(self);
            if (nb::isinstance<Tensor>(values)) {
              const auto& from = nb::cast<const Tensor&>(values);
              Unlocked now;
              x.copy_from(from);
            } else {
              const auto data = to_host_data(values, DTypeArg{std::string(name_of(x.dtype()))});
              Unlocked now;
              x.write(data.view);
            }
            return self;
          },
          "values"_a, nb::sig("def write(self, values: typing.Any) -> Tensor"),
          "Replace the values in place; equal shapes, the dtype is converted.")
      .def("clone", &Tensor::clone, unlocked(), "A copy with memory of its own.")
      .def("copy", &Tensor::clone, unlocked(), "Another name of clone.")
      .def("__copy__", &Tensor::clone, unlocked())
      .def(
          "__deepcopy__",
          [](const Tensor& x, nb::handle) {
            Unlocked now;
            auto copy = x.detach().clone();
            if (Node::of(x)) copy.set_requires_grad();
            return copy;
          },
          "memo"_a)
      .def("contiguous", &Tensor::contiguous, unlocked(),
           "Itself if it is contiguous, else a copy that is.")
      .def(
          "astype", [](const Tensor& x, const DTypeArg& dtype) { return x.astype(dtype); },
          "dtype"_a, unlocked(),
          "With another element type; saturates, NaN to a whole number is 0.")
      .def(
          "to",
          [](const Tensor& x, nb::handle where) {
            QueueArg queue;
            if (nb::isinstance<nb::str>(where)) {
              const auto selector = nb::cast<std::string>(where);
              Unlocked now;
              return x.to(selector);
            }
            if (!convert(where, queue))
              throw DtypeError(
                  "[to] it needs a selector such as \"gpu\", a queue or a device handle");
            const auto on = queue.get();
            Unlocked now;
            return x.to(on);
          },
          "device"_a, "On another device: a selector, a queue or a device handle.");
}

std::vector<std::int64_t> sizes_of(const nb::args& args) {
  std::vector<std::int64_t> sizes;
  for (nb::handle arg : args) {
    ShapeArg part;
    if (!convert(arg, part)) throw DtypeError("[Tensor] sizes and axes must be whole numbers");
    sizes.insert(sizes.end(), part.sizes.begin(), part.sizes.end());
  }
  return sizes;
}

void add_views(nb::class_<Tensor>& t) {
  t.def(
       "reshape",
       [](const Tensor& x, const nb::args& sizes) {
         const auto list = sizes_of(sizes);
         Unlocked now;
         return x.reshape(list);
       },
       "One size may be -1. Copies when it must.")
      .def(
          "view",
          [](const Tensor& x, const nb::args& args) {
            auto sizes = sizes_of(args);
            const auto open = std::find(sizes.begin(), sizes.end(), -1);
            if (open != sizes.end()) {
              *open = 1;
              const auto rest = Shape(sizes).numel();
              *open = rest == 0 ? 0 : x.numel() / rest;
            }
            return x.view(Shape(sizes));
          },
          "Like reshape, but an error where it would have to copy.")
      .def(
          "flatten", [](const Tensor& x) { return x.reshape({-1}); }, unlocked(),
          "With a single axis.")
      .def(
          "permute",
          [](const Tensor& x, const nb::args& axes) { return x.permute(sizes_of(axes)); },
          "The axes in another order; a view.")
      .def("transpose", &Tensor::transpose, "a"_a = -2, "b"_a = -1, "Two axes exchanged; a view.")
      .def(
          "expand",
          [](const Tensor& x, const nb::args& sizes) { return x.expand(Shape(sizes_of(sizes))); },
          "Axes of size 1 repeated; a view.")
      .def("narrow", &Tensor::narrow, "axis"_a, "start"_a, "length"_a,
           "A part of one axis; a view.")
      .def("select", &Tensor::select, "axis"_a, "index"_a,
           "One place of an axis, which is dropped; a view.")
      .def(
          "squeeze",
          [](const Tensor& x, std::optional<std::int64_t> axis) {
            if (axis) return x.squeeze(*axis);
            Tensor result = x;
            for (auto i = x.ndim(); i > 0; --i)
              if (x.shape()[i - 1] == 1) result = result.squeeze(i - 1);
            return result;
          },
          "axis"_a = nb::none(), "Without axes of size 1, or without one of them; a view.")
      .def("unsqueeze", &Tensor::unsqueeze, "axis"_a, "With another axis of size 1; a view.");
}

}  // namespace

void bind_tensor(nb::module_& m) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(&get_tensor_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_tensor_buffer)},
      {0, nullptr}};
  nb::class_<Tensor> tensor(m, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(),
                            "An n-dimensional array on a device.\n\n"
                            ">>> x = nc.Tensor([[1, 2], [3, 4]], dtype=\"float32\")\n"
                            ">>> (x + 1).to_host().tolist()\n[[2.0, 3.0], [4.0, 5.0]]\n");
  nb::class_<AsyncHostArray>(m, "AsyncHostArray", "A download under way.")
      .def(
          "wait",
          [](AsyncHostArray& download) {
            HostArray array;
            {
              Unlocked now;
              array = download.wait();
            }
            return to_numpy(array);
          },
          "The array, once it is complete.");
  add_factories(tensor);
  add_properties(tensor);
  add_copies(tensor);
  add_views(tensor);
  add_operators(tensor);
  add_indexing(tensor);
  add_interop(tensor);
  add_op_methods(tensor);
}

}  // namespace netcl::python
