// Measuring work-group sizes.
#include "launch.h"
#include "netcl/autotuner.h"
#include "netcl/nn.h"

namespace netcl::python {
namespace {

// The library wants the memory of arguments to live until tune_all.
struct Tuner {
  explicit Tuner(const Device& of) : device(of), tuner(of) {}
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;
  Device device;
  Autotuner tuner;
  std::vector<std::unique_ptr<LaunchArgs>> args;
  std::vector<nb::object> launches;  // whose arguments were taken over
};

std::vector<WorkSize> sizes_of(nb::handle candidates) {
  std::vector<WorkSize> result;
  if (candidates.is_none()) return result;
  for (nb::handle item : nb::borrow<nb::iterable>(candidates)) {
    WorkSizeArg size;
    if (!convert(item, size))
      throw DtypeError("[tune] a candidate must be a number, a tuple of numbers or None");
    result.push_back(size);
  }
  return result;
}

void bind_results(nb::module_& m) {
  nb::class_<AutotuneCandidate>(m, "AutotuneCandidate", "A local size and the time that it took.")
      .def_prop_ro("local_size",
                   [](const AutotuneCandidate& c) { return work_size_to_python(c.local_size); })
      .def_ro("runtime_us", &AutotuneCandidate::runtime_us)
      .def_ro("note", &AutotuneCandidate::note);
  nb::class_<AutotuneResult>(m, "AutotuneResult", "What a measurement found.")
      .def_prop_ro("best_local_size",
                   [](const AutotuneResult& r) { return work_size_to_python(r.best_local_size); })
      .def_ro("runtime_us", &AutotuneResult::runtime_us)
      .def_ro("default_us", &AutotuneResult::default_us)
      .def_ro("candidates", &AutotuneResult::candidates)
      .def("__repr__", [](const AutotuneResult& r) {
        return "AutotuneResult(best_local_size=" + r.best_local_size.to_string() +
               ", runtime_us=" + std::to_string(r.runtime_us) + ")";
      });
}

void bind_group_tuner(nb::module_& m) {
  nb::class_<WorkGroupTuner>(m, "WorkGroupTuner", "Chooses local sizes, by rule or by measuring.")
      .def(
          "__init__",
          [](WorkGroupTuner* self, nb::object kernel, const WorkSizeArg& global_size,
             nb::object candidates, std::optional<std::size_t> max_local) {
            if (nb::isinstance<nb::int_>(kernel))
              new (self) WorkGroupTuner(nb::cast<std::size_t>(kernel));
            else if (!kernel.is_none())
              new (self) WorkGroupTuner(kernel_of(kernel), global_size, sizes_of(candidates));
            else if (max_local)
              new (self) WorkGroupTuner(*max_local);
            else
              new (self) WorkGroupTuner();
          },
          "kernel"_a = nb::none(), "global_size"_a = nb::none(), "candidates"_a = nb::none(),
          "max_local"_a = nb::none())
      .def_prop_ro("max_local", &WorkGroupTuner::max_local)
      .def(
          "choose_local_size",
          [](const WorkGroupTuner& t, const DeviceArg& d) { return t.choose_local_size(d.get()); },
          "device"_a, "The largest power of two within max_local and the limit of the device.")
      .def(
          "global_local_sizes",
          [](const WorkGroupTuner& t, std::size_t items, std::optional<DeviceArg> device) {
            const auto [global, local] =
                t.global_local_sizes(items, device ? device->get() : Device());
            return nb::make_tuple(global, work_size_to_python(local));
          },
          "n_items"_a, "device"_a = nb::none(),
          "The items rounded up to a multiple of the local size, and the local size.")
      .def(
          "tune",
          [](const WorkGroupTuner& t, const QueueArg& queue, nb::object kernel,
             const WorkSizeArg& global_size, nb::object candidates, const nb::args& args) {
            const LaunchArgs list(args);
            const auto on = queue.get();
            if (kernel.is_none()) {
              Unlocked now;
              return t.tune(on);
            }
            const auto which = kernel_of(kernel, {}, on.device());
            const auto sizes = sizes_of(candidates);
            const WorkSize global = global_size;
            Unlocked now;
            return t.tune(on, which, global, sizes, list.list());
          },
          "queue"_a, "kernel"_a = nb::none(), "global_size"_a = nb::none(),
          "candidates"_a = nb::none(), "args"_a,
          "Measure, on scratch copies of what the kernel may write. Nothing is stored.");
}

std::size_t tune_all(Tuner& self, const QueueArg& queue, double budget_seconds, bool progress) {
  const auto on = queue.get();
  Unlocked now;
  return self.tuner.tune_all(on, {budget_seconds, progress, {}});
}

nb::dict results_dict(const Tuner& self) {
  nb::dict result;
  for (const auto& [key, local] : self.tuner.results())
    result[nb::make_tuple(key.first, nb::tuple(nb::cast(key.second)))] = work_size_to_python(local);
  return result;
}

void bind_autotuner(nb::module_& m) {
  nb::class_<Tuner>(m, "Autotuner", "Tunes a list of kernels for one device and keeps the results.")
      .def(
          "__init__", [](Tuner* self, const DeviceArg& device) { new (self) Tuner(device.get()); },
          "device"_a)
      .def(
          "add",
          [](Tuner& self, const std::string& name, nb::object kernel,
             const WorkSizeArg& global_size, const nb::args& args) {
            if (args.size() == 0 && nb::isinstance<nn::KernelLaunch>(kernel)) {
              const auto& launch = nb::cast<const nn::KernelLaunch&>(kernel);
              self.tuner.add(name, launch.kernel, global_size, launch.arguments);
              self.launches.push_back(kernel);
              return;
            }
            auto list = std::make_unique<LaunchArgs>(args);
            self.tuner.add(name, kernel_of(kernel, name, self.device), global_size, list->list());
            self.args.push_back(std::move(list));
          },
          "name"_a, "kernel"_a, "global_size"_a, "args"_a,
          "A kernel, a program's kernel of this name or its own, or a launch of Module.kernels "
          "with\n"
          "its arguments; kernels and programs of pyopencl too. Otherwise scratch arguments are\n"
          "made where none are given.")
      .def("tune_all", &tune_all, "queue"_a, "budget_seconds"_a = 0.0, "show_progress"_a = true,
           "Tune what has no result yet; returns how many kernels that were.")
      .def(
          "lookup",
          [](const Tuner& self, const std::string& name, const WorkSizeArg& global_size,
             const std::string& dtypes) {
            return work_size_to_python(self.tuner.lookup(name, global_size, dtypes));
          },
          "name"_a, "global_size"_a, "dtypes"_a = "",
          "The best local size (a number in one dimension, else a tuple), or the default of 64.")
      .def(
          "result",
          [](const Tuner& self, const std::string& name, const WorkSizeArg& global_size,
             const std::string& dtypes) { return self.tuner.result(name, global_size, dtypes); },
          "name"_a, "global_size"_a, "dtypes"_a = "", "All that was measured of a kernel, or None.")
      .def_prop_ro("results", &results_dict, "(name, global size) -> what lookup gives")
      .def(
          "save", [](const Tuner& self, const Path& path) { self.tuner.save(path.string()); },
          "path"_a, unlocked(), "Writes the results into a file, beside what is in it.")
      .def(
          "load", [](Tuner& self, const Path& path) { self.tuner.load(path.string()); }, "path"_a,
          unlocked(), "Takes over the results of this device in a file of save().")
      .def(
          "clear", [](Tuner& self) { self.tuner.clear(); },
          "Forgets the results, so that tune_all() measures again.");
}

}  // namespace

void bind_tuner(nb::module_& m) {
  bind_results(m);
  bind_group_tuner(m);
  bind_autotuner(m);
}

}  // namespace netcl::python
