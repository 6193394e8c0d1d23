// OpenCL's objects, finding devices and choosing one.
#include "netcl/device.h"

#include "common.h"

namespace netcl::python {
namespace {

// Only its type differs from Queue's.
struct CpuQueue : Queue {
  explicit CpuQueue(Queue queue) : Queue(std::move(queue)) {}
};

// A number is the place in discover().
std::string selector_of(nb::handle given) {
  const auto text = nb::cast<std::string>(nb::str(given));
  return nb::isinstance<nb::int_>(given) ? "opencl:" + text : text;
}

DeviceHandle handle_of(const Queue& queue) {
  DeviceHandle handle{"", queue.name(), std::string(queue.backend()), "cpu", {}, queue};
  if (queue.is_cpu()) return handle;
  handle.context = queue.context();
  for (const auto& one : manager().discover())
    if (one.device == queue.device()) {
      handle.platform_name = one.platform_name;
      handle.device_type = one.device_type;
    }
  return handle;
}

// `with device("gpu") as dev:`, also re-entered and nested.
class DeviceScope {
 public:
  explicit DeviceScope(nb::object which) : which_(std::move(which)) {}
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  DeviceHandle enter() {
    DeviceHandle handle = find();
    active_.push_back(std::make_unique<ActiveDevice>(handle));
    return handle;
  }
  void leave() {
    if (!active_.empty()) active_.pop_back();
  }

 private:
  DeviceHandle find() const {
    if (nb::isinstance<DeviceHandle>(which_)) return nb::cast<DeviceHandle>(which_);
    QueueArg queue;
    if (!nb::isinstance<nb::str>(which_) && !nb::isinstance<nb::int_>(which_)) {
      if (!convert(which_, queue))
        throw DtypeError(
            "[device] it needs a selector such as \"gpu\", a device handle or a queue: " +
            nb::cast<std::string>(which_.type().attr("__name__")));
      return handle_of(queue.get());
    }
    const auto selector = selector_of(which_);
    Unlocked now;
    return manager().default_device(selector);
  }
  nb::object which_;
  std::vector<std::unique_ptr<ActiveDevice>> active_;
};

std::string handle_text(const DeviceHandle& handle) {
  return "DeviceHandle(platform_name='" + handle.platform_name + "', device_name='" +
         handle.device_name + "', backend='" + handle.backend + "', device_type='" +
         handle.device_type + "')";
}

void bind_objects(nb::module_& m) {
  nb::class_<Device>(m, "Device", "An OpenCL device; empty for the CPU backend.")
      .def_prop_ro("name", [](const Device& d) { return d ? d.name() : std::string("cpu"); })
      .def_prop_ro("int_ptr", &Device::int_ptr)
      .def_prop_ro("max_work_group_size",
                   [](const Device& d) { return device_profile(d).max_work_group_size; })
      .def("__bool__", [](const Device& d) { return static_cast<bool>(d); })
      .def("__eq__", [](const Device& a, const Device& b) { return a == b; })
      .def("__eq__", [](const Device&, nb::handle) { return false; })
      .def("__hash__", [](const Device& d) { return d.int_ptr(); })
      .def("__repr__", [](const Device& d) {
        return "<netcl.Device '" + (d ? d.name() : std::string("cpu")) + "'>";
      });
  nb::class_<Context>(m, "Context", "An OpenCL context.")
      .def_static(
          "from_int_ptr",
          [](std::uintptr_t p) { return Context::wrap(reinterpret_cast<_cl_context*>(p)); },
          "int_ptr"_a, "The context behind a cl_context, of which it takes a reference.")
      .def_prop_ro("devices", &Context::devices)
      .def_prop_ro("int_ptr", &Context::int_ptr)
      .def("__eq__", [](const Context& a, const Context& b) { return a == b; })
      .def("__eq__", [](const Context&, nb::handle) { return false; })
      .def("__hash__", [](const Context& c) { return c.int_ptr(); });
  nb::class_<Event>(m, "Event", "The completion of work that was sent to a device.")
      .def_static(
          "from_int_ptr",
          [](std::uintptr_t p) {
            return Event(Ref<_cl_event>::share(reinterpret_cast<_cl_event*>(p)));
          },
          "int_ptr"_a, "The event behind a cl_event, of which it takes a reference.")
      .def("wait", &Event::wait, unlocked(), "Until it is done; Ctrl+C interrupts.")
      .def_prop_ro("is_complete", &Event::is_complete, unlocked())
      .def_prop_ro("start_ns", &Event::start_ns)
      .def_prop_ro("end_ns", &Event::end_ns)
      .def_prop_ro("int_ptr", &Event::int_ptr);
  nb::class_<Buffer>(m, "Buffer", "Device memory.")
      .def_prop_ro("nbytes", &Buffer::nbytes)
      .def_prop_ro("size", &Buffer::nbytes)
      .def_prop_ro("int_ptr", &Buffer::int_ptr)
      .def("__bool__", [](const Buffer& b) { return static_cast<bool>(b); });
}

void bind_queues(nb::module_& m) {
  nb::class_<Queue>(m, "Queue", "Where work is sent: an OpenCL command queue or the CPU backend.")
      .def_static(
          "from_int_ptr",
          [](std::uintptr_t p) { return Queue::wrap(reinterpret_cast<_cl_command_queue*>(p)); },
          "int_ptr"_a, "The queue behind a cl_command_queue, of which it takes a reference.")
      .def_static(
          "create",
          [](const ContextArg& context, const DeviceArg& device, bool profiling) {
            return Queue::create(context.get(), device.get(), profiling);
          },
          "context"_a.none(), "device"_a, "profiling"_a = false, "A further queue of a context.")
      .def_prop_ro("backend", [](const Queue& q) { return std::string(q.backend()); })
      .def_prop_ro("name", &Queue::name)
      .def_prop_ro("context", [](const Queue& q) { return context_to_python(q.context()); })
      .def_prop_ro("device", &Queue::device)
      .def_prop_ro("has_profiling", &Queue::has_profiling)
      .def_prop_ro("int_ptr", &Queue::int_ptr)
      .def("finish", &Queue::finish, unlocked(), "Wait until all work is done.")
      .def("flush", &Queue::flush, unlocked(), "Hands over to the device what was enqueued.")
      .def("__eq__", [](const Queue& a, const Queue& b) { return a == b; })
      .def("__eq__", [](const Queue&, nb::handle) { return false; })
      .def("__hash__",
           [](const Queue& q) { return reinterpret_cast<std::uintptr_t>(q.shared_state().get()); })
      .def("__repr__", [](const Queue& q) {
        return "<netcl.Queue of '" + q.name() + "' (" + q.backend() + ")>";
      });
  nb::class_<CpuQueue, Queue>(m, "CPUQueue", "The queue of the CPU backend.")
      .def(
          "__init__",
          [](CpuQueue* self, const std::string& name) { new (self) CpuQueue(CPUQueue(name)); },
          "name"_a = "cpu");
}

void bind_handle(nb::module_& m) {
  nb::class_<DeviceHandle>(m, "DeviceHandle",
                           "A device that is ready to be used; unpacks into (context, queue).")
      .def_ro("platform_name", &DeviceHandle::platform_name)
      .def_ro("device_name", &DeviceHandle::device_name)
      .def_ro("backend", &DeviceHandle::backend, "\"cl\" or \"cpu\"")
      .def_ro("device_type", &DeviceHandle::device_type, "\"gpu\", \"cpu\", \"accel\", \"other\"")
      .def_prop_ro("context", [](const DeviceHandle& h) { return context_to_python(h.context); })
      .def_prop_ro("queue", [](const DeviceHandle& h) { return queue_to_python(h.queue); })
      .def_prop_ro("device", [](const DeviceHandle& h) { return h.queue.device(); })
      .def_prop_ro("profile", [](const DeviceHandle& h) { return h.profile(); })
      .def(
          "__iter__",
          [](const DeviceHandle& h) {
            return nb::iter(nb::make_tuple(context_to_python(h.context), queue_to_python(h.queue)));
          })
      .def("__eq__", [](const DeviceHandle& a, const DeviceHandle& b) { return a == b; })
      .def("__eq__", [](const DeviceHandle&, nb::handle) { return false; })
      .def("__hash__",
           [](const DeviceHandle& h) {
             return reinterpret_cast<std::uintptr_t>(h.queue.shared_state().get());
           })
      .def("__repr__", &handle_text);
  nb::class_<DiscoveredDevice>(m, "DiscoveredDevice", "A device that a driver reports.")
      .def_ro("platform_name", &DiscoveredDevice::platform_name)
      .def_ro("platform_version", &DiscoveredDevice::platform_version)
      .def_ro("device_name", &DiscoveredDevice::device_name)
      .def_ro("device_type", &DiscoveredDevice::device_type)
      .def_ro("device", &DiscoveredDevice::device)
      .def("__iter__",
           [](const DiscoveredDevice& d) {
             return nb::iter(nb::make_tuple(d.platform_name, d.device));
           })
      .def("__len__", [](const DiscoveredDevice&) { return 2; })
      .def("__getitem__",
           [](const DiscoveredDevice& d, nb::int_ index) {
             nb::object pair = nb::make_tuple(d.platform_name, d.device);
             return nb::object(pair[index]);
           })
      .def("__repr__", [](const DiscoveredDevice& d) {
        return "<" + d.device_type + " '" + d.device_name + "' of '" + d.platform_name + "'>";
      });
}

// All managers of Python are the process's one.
struct Manager {};

nb::object default_device(const Manager&, nb::handle given, bool required) {
  const auto selector = selector_of(given);
  std::optional<DeviceHandle> found;
  {
    Unlocked now;
    found = required ? manager().default_device(selector) : manager().find_device(selector);
  }
  return found ? nb::cast(*found) : nb::none();
}

void bind_manager(nb::module_& m) {
  nb::class_<Manager>(m, "DeviceManager", "Finds devices and hands them out, one handle each.")
      .def(nb::init<>())
      .def("__repr__",
           [](const Manager&) {
             std::size_t count = 0;
             {
               Unlocked now;
               count = manager().discover().size();
             }
             return "<netcl.DeviceManager: the CPU backend, OpenCL devices: " +
                    std::to_string(count) + ">";
           })
      .def(
          "discover", [](const Manager&) { return manager().discover(); }, unlocked(),
          "Every device of every platform; each unpacks into (platform name, device).")
      .def(
          "rediscover", [](const Manager&) { manager().rediscover(); }, unlocked(),
          "Forgets what discover() found; handles stay valid.")
      .def(
          "problems",
          [](const Manager&) {
            std::vector<std::pair<std::string, std::string>> result;
            for (const auto& one : manager().problems())
              result.emplace_back(one.platform_name, one.problem);
            return result;
          },
          "Platforms that cannot be used, and why.")
      // Not "or None" for type checkers: it is None for those only who ask for that.
      .def("default", &default_device, "selector"_a = "auto", "required"_a = true,
           nb::sig("def default(self, selector: str | int = \"auto\", required: bool = True) -> "
                   "DeviceHandle"),
           "The device that a selector means: \"auto\", \"gpu\", \"cpu\", \"gpu:1\", "
           "\"opencl:cpu\",\n"
           "a part of a name, or the number of a device in discover(). netcl.DeviceError when "
           "there is none, or None unless required.")
      .def_static(
          "_device_type",
          [](const DeviceArg& device) {
            const auto which = device.get();
            return which ? device_type_name(device_queries(which).type_bits) : std::string("cpu");
          },
          "device"_a);
  m.attr("manager") = nb::cast(Manager{});
  nb::class_<DeviceScope>(m, "device",
                          "Makes a device the thread's active one: with device(\"gpu\"): ...")
      .def(nb::init<nb::object>(), "selector"_a = "auto")
      .def("__enter__", &DeviceScope::enter)
      .def("__exit__", [](DeviceScope& scope, nb::args) { scope.leave(); });
  m.def("get_active_device", &get_active_device, unlocked(),
        "The device of the innermost `with device(...)` of this thread, else the \"auto\" one.");
}

}  // namespace

nb::object queue_to_python(const Queue& queue) {
  return queue && queue.is_cpu() ? nb::cast(CpuQueue(queue)) : nb::cast(queue);
}

void bind_device(nb::module_& m) {
  bind_objects(m);
  bind_queues(m);
  bind_handle(m);
  bind_manager(m);
}

}  // namespace netcl::python
