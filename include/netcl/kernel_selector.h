// Which kernel runs an op, for a problem on a device: an ordered list of rules per op. The built-in
// rules are data (docs/kernel-selection.md shows them); your own are tried before them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "netcl/capabilities.h"
#include "netcl/dtype.h"
#include "netcl/shape.h"

namespace netcl {

enum class KernelVariant : std::uint8_t {
  MATMUL_NAIVE,
  MATMUL_TILED,
  MATMUL_REGISTER_TILED,
  MATMUL_VECTORIZED,
  MATMUL_PACKED,  // CPUs: panels of columns, one work-item each, no barriers
  MATMUL_GEMV,    // one row or one column
  CONV2D_NAIVE,
  CONV2D_IM2COL,
  CONV2D_IMPLICIT_GEMM,
  CONV2D_TILED_LOCAL,
  CONV2D_WINOGRAD,
  CONV2D_PACKED,           // CPUs: panels of pixels, one work-item each, no barriers
  CONV2D_WINOGRAD_PANELS,  // CPUs: tiles of 4x4 results, likewise
  CONV2D_DEPTHWISE,        // one input channel per filter
  ELEMENTWISE_SCALAR,
  ELEMENTWISE_VECTORIZED,
  REDUCTION_SEQUENTIAL,
  REDUCTION_PARALLEL,
  REDUCTION_WORKGROUP,
  REDUCTION_CHUNKED,  // CPUs: one work-item per chunk, no barriers
  BATCHNORM_NAIVE,
  BATCHNORM_FUSED,
  ROWWISE_ITEM,   // a work-item per row, no barriers
  ROWWISE_GROUP,  // a work-group per row
  CUSTOM,         // a kernel of a user's rule; its name is in KernelConfig::extra["kernel"]
};

inline constexpr int kKernelVariants = static_cast<int>(KernelVariant::CUSTOM) + 1;

std::string_view name_of(KernelVariant variant);  // "MATMUL_TILED"
std::optional<KernelVariant> find_kernel_variant(std::string_view name);
KernelVariant parse_kernel_variant(std::string_view name);  // ArgumentError lists the names

using KernelValue = std::variant<std::int64_t, double, std::string, bool>;

// Where tuning starts: tile sizes and launch parameters that fit the device.
struct KernelConfig {
  KernelVariant variant = KernelVariant::CUSTOM;
  int tile_m = 32, tile_n = 32, tile_k = 8;
  int work_per_thread = 4;
  int local_size_1d = 256;
  std::pair<int, int> local_size_2d{16, 16};
  bool use_local_memory = true;
  bool use_vectorization = true;
  int vector_width = 4;
  std::map<std::string, KernelValue> extra;

  bool operator==(const KernelConfig& other) const = default;
};

// Everything a rule may look at, besides the device.
//   matmul       shapes x (..., M, K), w (K, N)        allow_vectorized
//   conv2d       shapes x (N, C, H, W), w (K, C/groups, R, S)
//                                                      stride, padding, dilation, groups; _h and _w
//                                                      (stride_h, ...) where the axes differ
//   elementwise  shapes of the operands                allow_vectorized
//   reduction    shapes x, or (results, elements each) kind
//   batchnorm    shapes x (N, C, ...)                  training, fuse_relu
//   rowwise      shapes (outer, elements, inner)       softmax, norms, attention: a result per row
// Every op adds its own name as the attribute `name`: several share the rules of elementwise,
// reduction and rowwise.
struct KernelProblem {
  std::string op;
  std::vector<Shape> shapes;
  DType dtype = DType::float32;
  std::map<std::string, KernelValue, std::less<>> attributes;

  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;  // also of booleans
  bool operator==(const KernelProblem& other) const = default;
};

// A decision and how it came about.
struct KernelDecision {
  std::string kernel;  // "CONV2D_WINOGRAD", or what a user's rule named
  KernelConfig config;
  std::string reason;    // of the rule that was taken
  bool by_user = false;  // taken from a user's rule
  std::size_t rule = 0;  // its place in rules()[op]

  struct Declined {
    std::string kernel, why;
  };
  std::vector<Declined> declined;  // the rules before it, in order

  std::string to_string() const;
};

struct KernelRule {
  std::string kernel;
  std::string source;  // "user" or "builtin"
  std::string when;    // the condition in words, empty for a user's rule
  std::string reason;
};

// Copies share rules and memo. Thread-safe; conditions are called without a lock held.
class KernelSelector {
 public:
  using Condition =
      std::function<bool(const std::vector<Shape>& shapes, const ExtendedDeviceProfile& profile)>;
  using ProblemCondition =
      std::function<bool(const KernelProblem& problem, const ExtendedDeviceProfile& profile)>;

  // The select_* methods without a profile ask for the active device of the calling thread ...
  KernelSelector();
  // ... or for this one.
  explicit KernelSelector(const ExtendedDeviceProfile& profile);
  // The same rules and memo, for a fixed device.
  KernelSelector for_device(const ExtendedDeviceProfile& profile) const;

  // "Where `condition` holds, `op` runs `kernel`." Tried before the built-in rules, in the order of
  // registration. Conditions have to be pure: their answer is remembered per problem and device.
  // They may use the selector, but one that keeps a copy of it keeps it alive for ever.
  void register_rule(const std::string& op, Condition condition, const std::string& kernel,
                     const std::string& reason = "");
  void register_rule(const std::string& op, ProblemCondition condition, const std::string& kernel,
                     const std::string& reason = "");

  // The kernel's name. ArgumentError when `op` has no rule, or only users' rules that decline.
  std::string select(const std::string& op, const std::vector<Shape>& shapes,
                     const ExtendedDeviceProfile& profile) const;
  std::string select(const KernelProblem& problem, const ExtendedDeviceProfile& profile) const;
  // With configuration and reasons; the cheapest form, nothing is copied.
  std::shared_ptr<const KernelDecision> decide(const KernelProblem& problem,
                                               const ExtendedDeviceProfile& profile) const;
  // The same afresh, without the memo.
  KernelDecision explain(const KernelProblem& problem, const ExtendedDeviceProfile& profile) const;

  KernelConfig select_matmul_kernel(std::int64_t M, std::int64_t N, std::int64_t K,
                                    DType dtype = DType::float32,
                                    bool allow_vectorized = true) const;
  KernelConfig select_conv2d_kernel(std::int64_t batch, std::int64_t in_channels,
                                    std::int64_t out_channels, std::int64_t height,
                                    std::int64_t width, std::int64_t kernel_h,
                                    std::int64_t kernel_w, std::int64_t stride = 1,
                                    std::int64_t padding = 0, DType dtype = DType::float32,
                                    std::int64_t dilation = 1, std::int64_t groups = 1) const;
  KernelConfig select_elementwise_kernel(std::int64_t n, DType dtype = DType::float32,
                                         bool allow_vectorized = true) const;
  KernelConfig select_reduction_kernel(std::int64_t n, std::string_view kind = "sum") const;
  KernelConfig select_batchnorm_kernel(std::int64_t batch, std::int64_t channels,
                                       std::int64_t spatial, bool training = true,
                                       bool fuse_relu = false) const;

  // Per op, in the order in which they are tried.
  std::map<std::string, std::vector<KernelRule>> rules() const;
  std::vector<KernelRule> rules(const std::string& op) const;  // empty for an unknown op

  // Takes a kernel out of the choice on devices with this profile, with one warning: what an op
  // does when the device's compiler refuses it. The next rule that holds is taken from then on.
  void strike_out(const ExtendedDeviceProfile& profile, const std::string& kernel,
                  const std::string& reason);
  std::map<std::string, std::string> struck_out(const ExtendedDeviceProfile& profile) const;

  // Forgets the decisions (not the rules, not what is struck out) and reads NETCL_KERNEL_STRATEGY,
  // NETCL_CONV_WINOGRAD and NETCL_CONV_TILED_LOCAL again. Never needed for another device.
  void clear_cache();
  std::size_t cache_size() const;

  // The profile that the select_* methods use.
  const ExtendedDeviceProfile& profile() const;

 private:
  struct State;
  friend KernelSelector& get_kernel_selector();
  friend KernelSelector get_kernel_selector(const Device& device);
  KernelSelector(std::shared_ptr<State> state,
                 std::shared_ptr<const ExtendedDeviceProfile> profile);

  std::shared_ptr<State> state_;
  std::shared_ptr<const ExtendedDeviceProfile> profile_;  // empty: the active device
};

// The selector of the process, which the built-in ops use. Notices a changed environment.
KernelSelector& get_kernel_selector();
// The same for a fixed device.
KernelSelector get_kernel_selector(const Device& device);

// Of the process's selector, for the active device or the one given.
KernelConfig select_matmul_config(std::int64_t M, std::int64_t N, std::int64_t K,
                                  std::optional<Device> device = {});
KernelConfig select_conv2d_config(std::int64_t batch, std::int64_t in_channels,
                                  std::int64_t out_channels, std::int64_t height,
                                  std::int64_t width, std::int64_t kernel_h, std::int64_t kernel_w,
                                  std::int64_t stride = 1, std::int64_t padding = 0,
                                  std::optional<Device> device = {});

// The built-in rules as Markdown, as in docs/kernel-selection.md.
std::string kernel_rules_markdown();

}  // namespace netcl
