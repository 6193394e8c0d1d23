// Kernels of the user: specs, programs, launches.
#include "launch.h"
#include "netcl/nn.h"

namespace netcl::python {

LaunchArgs::LaunchArgs(nb::handle sequence) {
  for (nb::handle value : nb::borrow<nb::iterable>(sequence)) {
    objects_.push_back(nb::borrow(value));
    add(value);
  }
}

void LaunchArgs::add(nb::handle value) {
  if (nb::isinstance<Tensor>(value))
    args_.push_back(nb::cast<const Tensor&>(value));
  else if (nb::isinstance<Buffer>(value))
    args_.emplace_back(nb::cast<const Buffer&>(value));
  else if (nb::isinstance<BufferHandle>(value))
    args_.emplace_back(nb::cast<const BufferHandle&>(value));
  else if (nb::isinstance<LocalMemory>(value))
    args_.push_back(KernelArg::local(nb::cast<const LocalMemory&>(value).size));
  else if (PyBytes_Check(value.ptr()))
    args_.push_back(KernelArg::by_value(PyBytes_AsString(value.ptr()),
                                        static_cast<std::size_t>(PyBytes_Size(value.ptr()))));
  else if (!add_memory(value))
    add_number(value);
}

bool LaunchArgs::add_memory(nb::handle value) {
  if (pyopencl_pointer(value, "LocalMemory") != 0 ||
      (nb::hasattr(value, "size") && nb::hasattr(value.type(), "__module__") &&
       nb::cast<std::string>(value.type().attr("__name__")) == "LocalMemory")) {
    args_.push_back(KernelArg::local(nb::cast<std::size_t>(value.attr("size"))));
    return true;
  }
  // An array of pyopencl has its buffer in `base_data`.
  nb::object holder =
      nb::hasattr(value, "base_data") ? nb::object(value.attr("base_data")) : nb::borrow(value);
  auto pointer = pyopencl_pointer(holder, "Buffer");
  if (pointer == 0) pointer = pyopencl_pointer(holder, "MemoryObjectHolder");
  if (pointer == 0) return false;
  if (nb::hasattr(value, "offset") && nb::hasattr(value, "base_data") &&
      nb::cast<std::size_t>(value.attr("offset")) != 0)
    throw ArgumentError("[run] an array of pyopencl must begin where its buffer does");
  buffers_.emplace_back(Ref<_cl_mem>::share(reinterpret_cast<_cl_mem*>(pointer)),
                        nb::cast<std::size_t>(holder.attr("size")));
  objects_.push_back(holder);
  args_.emplace_back(buffers_.back());
  return true;
}

// A number of NumPy keeps its size, for kernels whose driver does not tell what they take.
bool LaunchArgs::add_sized(nb::handle value) {
  if (PyLong_CheckExact(value.ptr()) || PyFloat_CheckExact(value.ptr()) ||
      !nb::hasattr(value, "itemsize") || !nb::hasattr(value, "dtype"))
    return false;
  const auto bytes = nb::cast<int>(value.attr("itemsize"));
  if (bytes != 4) return false;
  const auto kind = nb::cast<std::string>(value.attr("dtype").attr("kind"));
  if (kind == "i") args_.emplace_back(nb::cast<std::int32_t>(nb::int_(nb::borrow(value))));
  if (kind == "u") args_.emplace_back(nb::cast<std::uint32_t>(nb::int_(nb::borrow(value))));
  if (kind == "f") args_.emplace_back(static_cast<float>(PyFloat_AsDouble(value.ptr())));
  return kind == "i" || kind == "u" || kind == "f";
}

void LaunchArgs::add_number(nb::handle value) {
  if (add_sized(value)) return;
  if (!PyFloat_Check(value.ptr()) && PyIndex_Check(value.ptr())) {
    nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    const auto integer = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0)
      args_.emplace_back(static_cast<std::int64_t>(integer));
    else
      args_.emplace_back(static_cast<std::uint64_t>(nb::cast<unsigned long long>(number)));
    return;
  }
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw DtypeError(
        "[run] an argument must be a tensor, a buffer, a number, bytes or LocalMemory: " +
        nb::cast<std::string>(value.type().attr("__name__")));
  }
  args_.emplace_back(number);
}

namespace {

template <class Object>
Object* as_pointer(std::uintptr_t value) {
  return reinterpret_cast<Object*>(value);
}

Kernel kernel_in(const Program& program, const std::string& name) {
  return program.has_kernel(name) ? program.kernel(name) : program.kernel();
}

}  // namespace

Kernel kernel_of(nb::handle object, const std::string& name, const Device& device) {
  if (nb::isinstance<Kernel>(object)) return nb::cast<const Kernel&>(object);
  if (nb::isinstance<Program>(object)) return kernel_in(nb::cast<const Program&>(object), name);
  if (nb::isinstance<nn::KernelLaunch>(object))
    return nb::cast<const nn::KernelLaunch&>(object).kernel;
  if (const auto kernel = pyopencl_pointer(object, "Kernel"))
    return Kernel::wrap(as_pointer<_cl_kernel>(kernel), device);
  if (const auto program = pyopencl_pointer(object, "Program"))
    return kernel_in(Program::wrap(as_pointer<_cl_program>(program), device), name);
  throw DtypeError("[kernel] it must be a kernel or a program of netcl or pyopencl: " +
                   nb::cast<std::string>(object.type().attr("__name__")));
}

namespace {

Event launch(const Kernel& kernel, const QueueArg& queue, const WorkSizeArg& global,
             const WorkSizeArg& local, const nb::args& args) {
  const LaunchArgs list(args);
  const auto on = queue.get();
  const WorkSize global_size = global, local_size = local;
  Unlocked now;
  return kernel.launch(on, global_size, local_size, list.list().data(), list.list().size());
}

KernelSpec make_spec(const std::string& name, const std::string& src,
                     const std::vector<std::string>& params, const std::string& body,
                     const std::optional<std::string>& preamble, const std::string& shape_sig,
                     const WorkSizeArg& workgroup_size, const std::vector<std::string>& extra_flags,
                     bool tune, std::size_t max_workgroup_size, bool guards_range) {
  return {name,           src,
          params,         body,
          preamble,       shape_sig,
          workgroup_size, extra_flags,
          tune,           max_workgroup_size,
          guards_range};
}

void bind_spec(nb::module_& m) {
  nb::class_<KernelSpec>(m, "_KernelSpec", "What netcl.KernelSpec hands to the library.")
      .def(
          "__init__",
          [](KernelSpec* self, const std::string& name, const std::string& src,
             const std::vector<std::string>& params, const std::string& body,
             const std::optional<std::string>& preamble, const std::string& shape_sig,
             const WorkSizeArg& workgroup_size, const std::vector<std::string>& extra_flags,
             bool tune, std::size_t max_workgroup_size, bool guards_range) {
            new (self)
                KernelSpec(make_spec(name, src, params, body, preamble, shape_sig, workgroup_size,
                                     extra_flags, tune, max_workgroup_size, guards_range));
          },
          "name"_a, "src"_a, "params"_a, "body"_a, "preamble"_a.none(), "shape_sig"_a,
          "workgroup_size"_a.none(), "extra_flags"_a, "tune"_a, "max_workgroup_size"_a,
          "guards_range"_a)
      .def_ro("name", &KernelSpec::name)
      .def_ro("src", &KernelSpec::src)
      .def_ro("params", &KernelSpec::params)
      .def_ro("body", &KernelSpec::body)
      .def_ro("preamble", &KernelSpec::preamble)
      .def_ro("shape_sig", &KernelSpec::shape_sig)
      .def_prop_ro("workgroup_size",
                   [](const KernelSpec& s) { return work_size_to_python(s.workgroup_size); })
      .def_ro("extra_flags", &KernelSpec::extra_flags)
      .def_ro("tune", &KernelSpec::tune)
      .def_ro("max_workgroup_size", &KernelSpec::max_workgroup_size)
      .def_ro("guards_range", &KernelSpec::guards_range)
      .def("to_source", &KernelSpec::to_source, "Exactly what is compiled.")
      .def(
          "build",
          [](const KernelSpec& spec, nb::handle where) {
            QueueArg queue;
            ContextArg context;
            if (convert(where, queue)) {
              const auto on = queue.get();
              Unlocked now;
              return spec.build(on);
            }
            if (!convert(where, context))
              throw DtypeError("[build] it needs a queue, a context or a device handle: " +
                               nb::cast<std::string>(where.type().attr("__name__")));
            const auto in = context.get();
            Unlocked now;
            return spec.build(in);
          },
          "where"_a.none());
}

void bind_program(nb::module_& m) {
  nb::class_<KernelParameterInfo>(m, "KernelParameterInfo")
      .def_ro("name", &KernelParameterInfo::name)
      .def_ro("type", &KernelParameterInfo::type)
      .def_ro("address_space", &KernelParameterInfo::address_space)
      .def_ro("writable", &KernelParameterInfo::writable);
  nb::class_<Kernel>(m, "Kernel", "One kernel of a program: kernel(queue, global, local, *args).")
      .def(
          "__init__",
          [](Kernel* self, nb::handle kernel, const std::optional<DeviceArg>& device) {
            new (self) Kernel(kernel_of(kernel, {}, device ? device->get() : Device()));
          },
          "kernel"_a, "device"_a = nb::none(),
          "To launch a kernel of pyopencl like one of netcl's. Arguments that were set on it stay\n"
          "as they are.")
      .def_static(
          "from_int_ptr",
          [](std::uintptr_t p, const std::optional<DeviceArg>& device) {
            return Kernel::wrap(as_pointer<_cl_kernel>(p), device ? device->get() : Device());
          },
          "int_ptr"_a, "device"_a = nb::none(),
          "The kernel behind a cl_kernel. Arguments that were set on that one stay as they are.")
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("parameters", &Kernel::parameters)
      .def_prop_ro("max_work_group_size", &Kernel::max_work_group_size)
      .def_prop_ro(
          "tuned_size", [](const Kernel& k) { return work_size_to_python(k.tuned_size()); },
          "The local size that tuning found last, or None.")
      .def_prop_ro("int_ptr", &Kernel::int_ptr)
      .def("to_source", &Kernel::to_source, "Exactly what was compiled.")
      .def("__call__", &launch, "queue"_a, "global_size"_a, "local_size"_a.none(), "args"_a)
      .def("run", &launch, "queue"_a, "global_size"_a, "local_size"_a.none(), "args"_a,
           "Enqueues a launch and gives its event. Without a local size the tuned one is taken, "
           "and measured\n"
           "at the first run of a spec with tune=True.")
      .def("__repr__", [](const Kernel& k) { return "<netcl.Kernel '" + k.name() + "'>"; });
  nb::class_<Program>(m, "Program", "A built spec; its kernels are its attributes.",
                      nb::dynamic_attr())
      .def(
          "__init__",
          [](Program* self, nb::handle program, const std::optional<DeviceArg>& device) {
            const auto theirs = pyopencl_pointer(program, "Program");
            if (theirs == 0) throw DtypeError("[Program] it must be a program of pyopencl");
            new (self) Program(
                Program::wrap(as_pointer<_cl_program>(theirs), device ? device->get() : Device()));
          },
          "program"_a, "device"_a = nb::none(),
          "To use a program that pyopencl built like one of netcl's.")
      .def_static(
          "from_int_ptr",
          [](std::uintptr_t p, const std::optional<DeviceArg>& device) {
            return Program::wrap(as_pointer<_cl_program>(p), device ? device->get() : Device());
          },
          "int_ptr"_a, "device"_a = nb::none(),
          "The program behind a cl_program, which must be built. Nothing is compiled again.")
      .def_prop_ro("int_ptr", &Program::int_ptr)
      .def_prop_ro("_spec", &Program::spec)
      .def_prop_ro("kernel_names", &Program::kernel_names)
      .def(
          "kernel",
          [](const Program& p, const std::optional<std::string>& name) {
            return name ? p.kernel(*name) : p.kernel();
          },
          "name"_a = nb::none(), "A kernel by its name, or the one that is named like the spec.")
      .def(
          "run",
          [](const Program& p, const QueueArg& queue, const WorkSizeArg& global,
             const WorkSizeArg& local,
             const nb::args& args) { return launch(p.kernel(), queue, global, local, args); },
          "queue"_a, "global_size"_a, "local_size"_a.none(), "args"_a,
          "Launch the kernel that is named like the spec. Without a local size the tuned one is\n"
          "taken, and measured at the first run of a spec with tune=True.")
      .def("__getattr__",
           [](const Program& p, const std::string& name) {
             if (!p.has_kernel(name))
               throw nb::attribute_error(("the program has no kernel '" + name + "'").c_str());
             return p.kernel(name);
           })
      .def(
          "__dir__",
          [](nb::handle self) {
            nb::list names(nb::borrow(
                nb::handle(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__dir__")(self)));
            for (const auto& name : nb::cast<const Program&>(self).kernel_names())
              names.append(name);
            return names;
          })
      .def("__repr__",
           [](const Program& p) { return "<netcl.Program of '" + p.spec().name + "'>"; });
}

void bind_builder(nb::module_& m) {
  nb::class_<PrimitiveBuilder>(m, "_PrimitiveBuilder")
      .def(
          "__init__",
          [](PrimitiveBuilder* self, const std::string& dtype, std::size_t largest) {
            new (self) PrimitiveBuilder(dtype, largest);
          },
          "dtype"_a, "max_workgroup_size"_a)
      .def("elementwise_spec", &PrimitiveBuilder::elementwise_spec, "name"_a, "arity"_a,
           "expression"_a, "A spec that computes an expression over v0, v1, ... for each element.");
  m.def(
      "_build_elementwise_kernel",
      [](std::optional<ContextArg> context, const std::string& name, int arity,
         const std::string& expression, const std::string& dtype,
         const std::vector<std::string>& options, std::size_t largest) {
        const auto in = context ? context->get() : Context();
        std::optional<ElementwiseKernel> built;
        {
          Unlocked now;
          built = build_elementwise_kernel(in, name, arity, expression, dtype, options, largest);
        }
        nb::object kernel = built->kernel ? nb::cast(built->kernel) : nb::none();
        return nb::make_tuple(built->spec, kernel);
      },
      "context"_a.none(), "name"_a, "arity"_a, "expression"_a, "dtype"_a, "options"_a,
      "max_workgroup_size"_a);
}

}  // namespace

void bind_kernel(nb::module_& m) {
  nb::class_<LocalMemory>(m, "LocalMemory", "`size` bytes of local memory as a kernel's argument.")
      .def(
          "__init__", [](LocalMemory* self, std::size_t size) { new (self) LocalMemory{size}; },
          "size"_a)
      .def_ro("size", &LocalMemory::size);
  bind_spec(m);
  bind_program(m);
  bind_builder(m);
  m.attr("PRIMITIVE_PREAMBLE") = nb::str(PRIMITIVE_PREAMBLE.data(), PRIMITIVE_PREAMBLE.size());
  m.def(
      "_find_kernel_spec",
      [](const std::string& name, const std::string& sig) { return find_kernel_spec(name, sig); },
      "name"_a, "shape_sig"_a = "");
}

}  // namespace netcl::python
