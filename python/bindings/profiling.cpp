// Timers, summaries, the caches on disk, the environment.
#include "netcl/profiling.h"

#include "common.h"
#include "netcl/diagnostics.h"
#include "netcl/environment.h"
#include "netcl/program_cache.h"

namespace netcl::python {
namespace {

class Region {
 public:
  Region(std::string name, Queue queue) : name_(std::move(name)), queue_(std::move(queue)) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  void enter() { region_ = std::make_unique<TimingRegion>(name_, queue_); }
  void leave() {
    Unlocked now;
    region_.reset();
  }

 private:
  std::string name_;
  Queue queue_;
  std::unique_ptr<TimingRegion> region_;
};

void bind_timers(nb::module_& m) {
  nb::class_<ProfileRecord>(m, "ProfileRecord", "An event and the time that it took.")
      .def_ro("name", &ProfileRecord::name)
      .def_ro("duration_ms", &ProfileRecord::duration_ms);
  nb::class_<EventTimer>(m, "EventTimer", "Times events of a queue with profiling.")
      .def(
          "__init__",
          [](EventTimer* self, const QueueArg& queue) { new (self) EventTimer(queue.get()); },
          "queue"_a)
      .def(
          "time_event",
          [](const EventTimer& timer, nb::handle event, const std::string& name) {
            const auto theirs = pyopencl_pointer(event, "Event");
            const auto which =
                theirs == 0 ? nb::cast<Event>(event)
                            : Event(Ref<_cl_event>::share(reinterpret_cast<_cl_event*>(theirs)));
            Unlocked now;
            return timer.time_event(which, name);
          },
          "event"_a, "name"_a = "",
          "Waits for an event, of pyopencl too; the time that the device took.");
  nb::class_<Region>(m, "timing_region",
                     "with timing_region(\"load\"): ... times a part of a program.")
      .def(
          "__init__",
          [](Region* self, const std::string& name, const std::optional<QueueArg>& queue) {
            new (self) Region(name, queue ? queue->get() : Queue());
          },
          "name"_a, "queue"_a = nb::none())
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<Region&>(self).enter();
            return self;
          },
          nb::sig("def __enter__(self) -> timing_region"))
      .def("__exit__", [](Region& self, nb::args) { self.leave(); });
}

void bind_summaries(nb::module_& m) {
  nb::class_<KernelSummary>(m, "KernelSummary", "The launches of a kernel together.")
      .def_ro("name", &KernelSummary::name)
      .def_ro("device", &KernelSummary::device)
      .def_ro("count", &KernelSummary::count)
      .def_ro("total_ms", &KernelSummary::total_ms)
      .def_ro("mean_us", &KernelSummary::mean_us)
      .def_ro("min_us", &KernelSummary::min_us)
      .def_ro("max_us", &KernelSummary::max_us)
      .def_ro("gflops", &KernelSummary::gflops)
      .def_ro("gbytes_per_s", &KernelSummary::gbytes_per_s);
  nb::class_<RegionSummary>(m, "RegionSummary", "The times of a region together.")
      .def_ro("name", &RegionSummary::name)
      .def_ro("count", &RegionSummary::count)
      .def_ro("total_ms", &RegionSummary::total_ms);
  m.def("start_profiling", &start_profiling,
        "Records kernels and regions from now on, as NETCL_PROFILE does for a whole program.");
  m.def("stop_profiling", &stop_profiling, "Ends the recording; what was recorded stays.");
  m.def("is_profiling", &is_profiling, "Whether it records.");
  m.def("clear_profile", &clear_profile, "Forgets what was recorded.");
  m.def("kernel_summary", &kernel_summary, unlocked(),
        "Per kernel, the most expensive first; waits for the work.");
  m.def("region_summary", &region_summary, unlocked(),
        "Per region, the most expensive first; waits for the work.");
  m.def("profile_report", &profile_report, unlocked(), "Both summaries as a table.");
  m.def(
      "write_chrome_trace", [](const Path& path) { write_chrome_trace(path.string()); }, "path"_a,
      unlocked(), "A trace for Perfetto or chrome://tracing.");
}

void bind_installation(nb::module_& m) {
  m.def("cache_directory", &cache_directory, "Where compiled kernels and tuning results are kept.");
  m.def(
      "environment",
      [] {
        nb::dict result;
        for (const auto& variable : environment_variables())
          result[std::string(variable.name).c_str()] = environment_value(variable.name);
        return result;
      },
      "The environment variables of netcl with the values in force.");
  nb::class_<ProgramCacheStats>(m, "ProgramCacheStats", "Where programs came from.")
      .def_ro("memory_hits", &ProgramCacheStats::memory_hits)
      .def_ro("disk_hits", &ProgramCacheStats::disk_hits)
      .def_ro("compiled", &ProgramCacheStats::compiled)
      .def_ro("failed", &ProgramCacheStats::failed);
  m.def("program_cache_stats", &program_cache_stats,
        "Where the programs of this process came from.");
  m.def("program_cache_clear", &program_cache_clear, unlocked(),
        "Removes the compiled kernels on disk; how many there were.");
  m.def("device_advice", &device_advice, unlocked(),
        "Which devices there are and, where none has OpenCL, what to install.");
  m.def(
      "check_installation",
      [] {
        nb::list result;
        for (const auto& check : check_installation())
          result.append(nb::make_tuple(check.status == CheckStatus::good      ? "good"
                                       : check.status == CheckStatus::warning ? "warning"
                                                                              : "problem",
                                       check.subject, check.finding, check.fix));
        return result;
      },
      "(status, subject, finding, fix) of everything that `netcl doctor` looks at.");
}

}  // namespace

void bind_profiling(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("profiling", "Where the time goes.");
  bind_timers(m);
  bind_summaries(m);
  bind_installation(m);
}

}  // namespace netcl::python
