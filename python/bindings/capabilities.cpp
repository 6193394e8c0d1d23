// What a device can do.
#include "netcl/capabilities.h"

#include "common.h"

namespace netcl::python {
namespace {

void bind_profile(nb::module_& m) {
  using P = DeviceProfile;
  nb::class_<P>(m, "DeviceProfile", "What a device can do. Read-only.")
      .def_ro("name", &P::name)
      .def_ro("vendor", &P::vendor)
      .def_ro("device_type", &P::device_type)
      .def_ro("compute_units", &P::compute_units)
      .def_ro("max_work_group_size", &P::max_work_group_size)
      .def_ro("max_work_item_sizes", &P::max_work_item_sizes)
      .def_ro("global_mem_size", &P::global_mem_size)
      .def_ro("local_mem_size", &P::local_mem_size)
      .def_ro("preferred_vector_width_float", &P::preferred_vector_width_float)
      .def_ro("extensions", &P::extensions)
      .def_ro("opencl_c_version", &P::opencl_c_version)
      .def_ro("has_fp16", &P::has_fp16)
      .def_ro("supports_fp16", &P::supports_fp16)
      .def_ro("has_subgroups", &P::has_subgroups)
      .def_ro("is_cpu", &P::is_cpu)
      .def_ro("tiny_local_mem", &P::tiny_local_mem)
      .def_ro("fast_atomics", &P::fast_atomics)
      .def(
          "has_extension",
          [](const P& p, const std::string& extension) { return p.has_extension(extension); },
          "extension"_a, "Whether the device names this OpenCL extension.")
      .def("__repr__", [](const P& p) {
        return "<netcl profile of '" + p.name + "' (" + p.device_type + ")>";
      });
}

void bind_extended(nb::module_& m) {
  using E = ExtendedDeviceProfile;
  nb::class_<E, DeviceProfile>(m, "ExtendedDeviceProfile",
                               "A DeviceProfile with what kernels need.")
      .def_ro("platform_name", &E::platform_name)
      .def_ro("platform_version", &E::platform_version)
      .def_ro("device_version", &E::device_version)
      .def_ro("driver_version", &E::driver_version)
      .def_ro("opencl_major", &E::opencl_major)
      .def_ro("opencl_minor", &E::opencl_minor)
      .def_ro("clock_mhz", &E::clock_mhz)
      .def_ro("max_sub_groups", &E::max_sub_groups)
      .def_ro("sub_group_sizes", &E::sub_group_sizes)
      .def_ro("max_constant_buffer_size", &E::max_constant_buffer_size)
      .def_ro("global_mem_cache_size", &E::global_mem_cache_size)
      .def_ro("global_mem_cache_line_size", &E::global_mem_cache_line_size)
      .def_ro("max_mem_alloc_size", &E::max_mem_alloc_size)
      .def_ro("preferred_vector_width_half", &E::preferred_vector_width_half)
      .def_ro("native_vector_width_float", &E::native_vector_width_float)
      .def_ro("has_fp64", &E::has_fp64)
      .def_ro("has_local_atomics", &E::has_local_atomics)
      .def_ro("has_global_atomics", &E::has_global_atomics)
      .def_ro("has_images", &E::has_images)
      .def_ro("local_mem_is_real", &E::local_mem_is_real)
      .def_ro("has_coarse_svm", &E::has_coarse_svm)
      .def_ro("has_fine_grain_svm", &E::has_fine_grain_svm)
      .def_prop_ro("gpu_family", [](const E& e) { return std::string(name_of(e.gpu_family)); })
      .def_ro("is_integrated", &E::is_integrated)
      .def_ro("estimated_flops", &E::estimated_flops)
      .def_ro("memory_bandwidth", &E::memory_bandwidth)
      .def_ro("optimal_tile_m", &E::optimal_tile_m)
      .def_ro("optimal_tile_n", &E::optimal_tile_n)
      .def_ro("optimal_tile_k", &E::optimal_tile_k)
      .def_ro("optimal_wg_size_1d", &E::optimal_wg_size_1d)
      .def_ro("optimal_wg_size_2d", &E::optimal_wg_size_2d)
      .def_ro("use_vectorization", &E::use_vectorization)
      .def_ro("use_local_memory", &E::use_local_memory);
}

}  // namespace

void bind_capabilities(nb::module_& m) {
  bind_profile(m);
  bind_extended(m);
  m.def(
      "device_profile", [](const DeviceArg& device) { return device_profile(device.get()); },
      "device"_a, "The profile of a device (or of a queue's device).");
  m.def(
      "kernel_strategy", [](const DeviceProfile& profile) { return kernel_strategy(profile); },
      "profile"_a, "\"portable\" or \"optimized\"; NETCL_KERNEL_STRATEGY wins.");
}

}  // namespace netcl::python
