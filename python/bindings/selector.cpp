// Rules that choose kernels.
#include <nanobind/stl/variant.h>

#include "common.h"
#include "netcl/kernel_selector.h"

namespace netcl::python {
namespace {

// A selector with the conditions that Python gave it, which _rules shows again.
struct Selector {
  KernelSelector selector;
  std::map<std::string, std::vector<nb::object>> conditions;
};

const ExtendedDeviceProfile& extended(nb::handle profile) {
  if (nb::isinstance<ExtendedDeviceProfile>(profile))
    return nb::cast<const ExtendedDeviceProfile&>(profile);
  if (nb::isinstance<DeviceHandle>(profile))
    return nb::cast<const DeviceHandle&>(profile).profile();
  DeviceArg device;
  if (convert(profile, device)) return device_profile(device.get());
  throw DtypeError("[select] the profile must be one of device_profile(device): " +
                   nb::cast<std::string>(profile.type().attr("__name__")));
}

std::vector<Shape> shapes_of(nb::handle shapes) {
  std::vector<Shape> result;
  for (nb::handle shape : nb::borrow<nb::iterable>(shapes)) {
    ShapeArg arg;
    if (nb::isinstance<Tensor>(shape))
      result.push_back(nb::cast<const Tensor&>(shape).shape());
    else if (convert(shape, arg))
      result.emplace_back(arg);
    else
      throw DtypeError("[select] shapes must be tuples of whole numbers or tensors");
  }
  return result;
}

void register_rule(Selector& self, const std::string& op, nb::object condition,
                   const std::string& kernel, const std::string& reason) {
  if (PyCallable_Check(condition.ptr()) == 0)
    throw DtypeError("[register] the condition must be callable");
  const Callback callback(condition);
  self.selector.register_rule(
      op,
      KernelSelector::Condition(
          [callback](const std::vector<Shape>& shapes, const ExtendedDeviceProfile& profile) {
            nb::gil_scoped_acquire lock;
            const nb::object answer = callback.function()(nb::cast(shapes), nb::cast(profile));
            const int truth = PyObject_IsTrue(answer.ptr());
            if (truth < 0) throw nb::python_error();
            return truth == 1;
          }),
      kernel, reason);
  self.conditions[op].push_back(std::move(condition));
}

// The condition of a built-in rule: text to read, and callable like a user's.
struct BuiltinCondition {
  std::string op, when;
  std::size_t place;  // among the built-in rules
  bool operator()(nb::handle shapes, nb::handle profile) const {
    const KernelSelector fresh;
    return fresh.explain({op, shapes_of(shapes), DType::float32, {}}, extended(profile)).rule ==
           place;
  }
};

// op -> (condition, kernel) in the order in which they are tried.
nb::dict rules_dict(const Selector& self) {
  nb::dict result;
  for (const auto& [op, rules] : self.selector.rules()) {
    nb::list list;
    std::size_t user = 0, builtin = 0;
    const auto known = self.conditions.find(op);
    for (const auto& rule : rules) {
      nb::object condition;
      if (rule.source == "builtin")
        condition = nb::cast(BuiltinCondition{op, rule.when, builtin++});
      else if (known != self.conditions.end() && user < known->second.size())
        condition = known->second[user++];
      else
        condition = nb::none();  // of C++
      list.append(nb::make_tuple(condition, rule.kernel));
    }
    result[op.c_str()] = list;
  }
  return result;
}

nb::dict builtins_dict(const Selector& self) {
  nb::dict result;
  for (const auto& [op, rules] : self.selector.rules())
    for (const auto& rule : rules)
      if (rule.source == "builtin") result[op.c_str()] = rule.kernel;  // the last is the default
  return result;
}

KernelProblem problem_of(const std::string& op, nb::handle shapes, const std::string& dtype,
                         const std::map<std::string, KernelValue>& attributes) {
  KernelProblem problem{op, shapes_of(shapes), parse_dtype(dtype), {}};
  for (const auto& [name, value] : attributes) problem.attributes[name] = value;
  return problem;
}

void bind_config(nb::module_& m) {
  auto variants =
      nb::enum_<KernelVariant>(m, "KernelVariant", "The kernels that rules choose from.");
  for (int i = 0; i < kKernelVariants; ++i) {
    const auto variant = static_cast<KernelVariant>(i);
    variants.value(std::string(name_of(variant)).c_str(), variant);
  }
  nb::class_<KernelConfig>(m, "KernelConfig", "Tile sizes and launch parameters.")
      .def(
          "__init__",
          [](KernelConfig* self, KernelVariant variant, int tile_m, int tile_n, int tile_k,
             int work_per_thread, int local_size_1d, std::pair<int, int> local_size_2d,
             bool use_local_memory, bool use_vectorization, int vector_width,
             std::optional<std::map<std::string, KernelValue>> extra) {
            new (self) KernelConfig{variant,
                                    tile_m,
                                    tile_n,
                                    tile_k,
                                    work_per_thread,
                                    local_size_1d,
                                    local_size_2d,
                                    use_local_memory,
                                    use_vectorization,
                                    vector_width,
                                    extra.value_or(std::map<std::string, KernelValue>{})};
          },
          "variant"_a, "tile_m"_a = 32, "tile_n"_a = 32, "tile_k"_a = 8, "work_per_thread"_a = 4,
          "local_size_1d"_a = 256, "local_size_2d"_a = std::pair<int, int>(16, 16),
          "use_local_memory"_a = true, "use_vectorization"_a = true, "vector_width"_a = 4,
          "extra"_a = nb::none())
      .def_rw("variant", &KernelConfig::variant)
      .def_rw("tile_m", &KernelConfig::tile_m)
      .def_rw("tile_n", &KernelConfig::tile_n)
      .def_rw("tile_k", &KernelConfig::tile_k)
      .def_rw("work_per_thread", &KernelConfig::work_per_thread)
      .def_rw("local_size_1d", &KernelConfig::local_size_1d)
      .def_rw("local_size_2d", &KernelConfig::local_size_2d)
      .def_rw("use_local_memory", &KernelConfig::use_local_memory)
      .def_rw("use_vectorization", &KernelConfig::use_vectorization)
      .def_rw("vector_width", &KernelConfig::vector_width)
      .def_rw("extra", &KernelConfig::extra)
      .def("__eq__", [](const KernelConfig& a, const KernelConfig& b) { return a == b; })
      .def("__repr__", [](const KernelConfig& c) {
        return "KernelConfig(variant=" + std::string(name_of(c.variant)) +
               ", tile_m=" + std::to_string(c.tile_m) + ", tile_n=" + std::to_string(c.tile_n) +
               ", tile_k=" + std::to_string(c.tile_k) +
               ", work_per_thread=" + std::to_string(c.work_per_thread) +
               ", vector_width=" + std::to_string(c.vector_width) + ")";
      });
  nb::class_<KernelRule>(m, "KernelRule", "A rule: which kernel, when, and why.")
      .def_ro("kernel", &KernelRule::kernel)
      .def_ro("source", &KernelRule::source, "\"user\" or \"builtin\"")
      .def_ro("when", &KernelRule::when)
      .def_ro("reason", &KernelRule::reason)
      .def("__repr__", [](const KernelRule& r) {
        return "<" + r.source + " rule: " + r.kernel + (r.when.empty() ? "" : " when " + r.when) +
               ">";
      });
}

void bind_typed(nb::class_<Selector>& selector) {
  const auto type = [](const std::optional<DTypeArg>& dtype) {
    return dtype ? DType(*dtype) : DType::float32;
  };
  selector
      .def(
          "select_matmul_kernel",
          [type](const Selector& s, std::int64_t M, std::int64_t N, std::int64_t K,
                 std::optional<DTypeArg> dtype, bool allow_vectorized) {
            return s.selector.select_matmul_kernel(M, N, K, type(dtype), allow_vectorized);
          },
          "M"_a, "N"_a, "K"_a, "dtype"_a = nb::none(), "allow_vectorized"_a = true,
          "The KernelConfig for a problem of this size.")
      .def(
          "select_conv2d_kernel",
          [type](const Selector& s, std::int64_t batch, std::int64_t in, std::int64_t out,
                 std::int64_t height, std::int64_t width, std::int64_t kernel_h,
                 std::int64_t kernel_w, std::int64_t stride, std::int64_t padding,
                 std::optional<DTypeArg> dtype, std::int64_t dilation, std::int64_t groups) {
            return s.selector.select_conv2d_kernel(batch, in, out, height, width, kernel_h,
                                                   kernel_w, stride, padding, type(dtype), dilation,
                                                   groups);
          },
          "batch"_a, "in_channels"_a, "out_channels"_a, "height"_a, "width"_a, "kernel_h"_a,
          "kernel_w"_a, "stride"_a = 1, "padding"_a = 0, "dtype"_a = nb::none(), "dilation"_a = 1,
          "groups"_a = 1, "The KernelConfig for a problem of this size.")
      .def(
          "select_elementwise_kernel",
          [type](const Selector& s, std::int64_t n, std::optional<DTypeArg> dtype,
                 bool vectorized) {
            return s.selector.select_elementwise_kernel(n, type(dtype), vectorized);
          },
          "n"_a, "dtype"_a = nb::none(), "allow_vectorized"_a = true,
          "The KernelConfig for a problem of this size.")
      .def(
          "select_reduction_kernel",
          [](const Selector& s, std::int64_t n, const std::string& kind) {
            return s.selector.select_reduction_kernel(n, kind);
          },
          "n"_a, "kind"_a = "sum", "The KernelConfig for a problem of this size.")
      .def(
          "select_batchnorm_kernel",
          [](const Selector& s, std::int64_t batch, std::int64_t channels, std::int64_t spatial,
             bool training, bool fuse_relu) {
            return s.selector.select_batchnorm_kernel(batch, channels, spatial, training,
                                                      fuse_relu);
          },
          "batch"_a, "channels"_a, "spatial"_a, "training"_a = true, "fuse_relu"_a = false,
          "The KernelConfig for a problem of this size.");
}

}  // namespace

void bind_selector(nb::module_& m) {
  bind_config(m);
  nb::class_<BuiltinCondition>(
      m, "BuiltinCondition", "condition(shapes, profile): whether a built-in rule would be taken.")
      .def("__call__", &BuiltinCondition::operator(), "shapes"_a, "profile"_a)
      .def("__str__", [](const BuiltinCondition& c) { return c.when; })
      .def("__repr__", [](const BuiltinCondition& c) { return "<when " + c.when + ">"; });
  nb::class_<Selector> selector(m, "KernelSelector", "An ordered list of rules per op.");
  selector.def(nb::init<>())
      .def(
          "__init__",
          [](Selector* self, nb::object profile) {
            new (self) Selector{KernelSelector(extended(profile)), {}};
          },
          "profile"_a)
      .def("register", &register_rule, "op_name"_a, "condition"_a, "kernel"_a, "reason"_a = "",
           "Where condition(shapes, profile) holds, `op_name` runs `kernel`. Tried before the\n"
           "built-in rules, in the order of registration.")
      .def(
          "select",
          [](const Selector& self, const std::string& op, nb::object shapes, nb::object profile) {
            return self.selector.select(op, shapes_of(shapes), extended(profile));
          },
          "op_name"_a, "shapes"_a, "profile"_a, "The kernel of the first rule that holds.")
      .def(
          "explain",
          [](const Selector& self, const std::string& op, nb::object shapes, nb::object profile,
             const std::string& dtype, const std::map<std::string, KernelValue>& attributes) {
            return self.selector
                .explain(problem_of(op, shapes, dtype, attributes), extended(profile))
                .to_string();
          },
          "op_name"_a, "shapes"_a, "profile"_a, "dtype"_a = "float32",
          "attributes"_a = std::map<std::string, KernelValue>{},
          "The decision in words, with the rules that were passed over.")
      .def(
          "rules",
          [](const Selector& self, const std::string& op) { return self.selector.rules(op); },
          "op_name"_a, "Of an op, in the order in which they are tried.")
      .def_prop_ro("_rules", &rules_dict)
      .def_prop_ro("_builtins", &builtins_dict)
      .def(
          "clear_cache", [](Selector& self) { self.selector.clear_cache(); },
          "Forgets the decisions (not the rules) and reads the environment again.")
      .def_prop_ro("profile", [](const Selector& self) { return self.selector.profile(); });
  bind_typed(selector);
  // One object for the process, so that _rules knows its conditions.
  m.attr("_process_selector") = nb::cast(Selector{get_kernel_selector(), {}});
  m.def(
      "select_matmul_config",
      [](std::int64_t M, std::int64_t N, std::int64_t K) { return select_matmul_config(M, N, K); },
      "M"_a, "N"_a, "K"_a, "The same by the process's selector.");
  m.def(
      "select_conv2d_config",
      [](std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t height,
         std::int64_t width, std::int64_t kernel_h, std::int64_t kernel_w, std::int64_t stride,
         std::int64_t padding) {
        return select_conv2d_config(batch, in, out, height, width, kernel_h, kernel_w, stride,
                                    padding);
      },
      "batch"_a, "in_channels"_a, "out_channels"_a, "height"_a, "width"_a, "kernel_h"_a,
      "kernel_w"_a, "stride"_a = 1, "padding"_a = 0, "The same by the process's selector.");
}

}  // namespace netcl::python
