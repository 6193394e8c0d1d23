// Finding the best work-group size of a kernel by measuring, and keeping it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl/kernel.h"
#include "netcl/opencl.h"
#include "netcl/tuning_store.h"

namespace netcl {

struct AutotuneCandidate {
  WorkSize local_size;
  double runtime_us = 0;  // median; 0 when it was not measured
  std::string note;       // "" or why it lost: "wrong result", the driver's refusal
};

struct AutotuneResult {
  WorkSize best_local_size;
  double runtime_us = 0;
  double default_us = 0;  // of the local size that would have been taken without tuning
  std::vector<AutotuneCandidate> candidates;
};

// Chooses local sizes: by rule (choose_local_size, global_local_sizes) or by measuring (tune).
class WorkGroupTuner {
 public:
  // By rule at most 256; tune() measures up to 1024.
  WorkGroupTuner() = default;
  // At most `max_local` in both.
  explicit WorkGroupTuner(std::size_t max_local);
  WorkGroupTuner(Kernel kernel, WorkSize global_size, std::vector<WorkSize> candidates = {});

  std::size_t max_local() const { return max_local_; }

  // The largest power of two that is at most max_local and the device's limit.
  std::size_t choose_local_size(const Device& device) const;
  // The items rounded up to a multiple of the local size, and the local size. Without a device
  // nothing is rounded and the local size is empty.
  std::pair<std::size_t, WorkSize> global_local_sizes(std::size_t items,
                                                      const Device& device) const;

  // Measures the candidates (default: what would be taken without tuning, the driver's own choice,
  // powers of two and their two- and three-dimensional products within the limits of device and
  // kernel) and returns the fastest right one. An empty size is the driver's choice. Arguments that
  // the kernel may write are replaced by scratch copies, so nothing of the caller changes. Without
  // arguments scratch ones are made from the signature: memory with an element per work-item (1 MiB
  // at least), the global sizes in turn for integers; a kernel that indexes beyond that needs real
  // arguments. A candidate whose outputs differ from the first one's loses. Nothing is stored.
  AutotuneResult tune(const Queue& queue, const Kernel& kernel, const WorkSize& global_size,
                      const std::vector<WorkSize>& candidates = {},
                      const std::vector<KernelArg>& args = {}) const;
  AutotuneResult tune(const Queue& queue) const;  // of the kernel given to the constructor

 private:
  std::size_t max_local_ = 256;
  bool is_bounded_ = false;  // max_local was given
  Kernel kernel_;
  WorkSize global_size_;
  std::vector<WorkSize> candidates_;
};

struct TuneProgress {
  std::size_t done, total;
  std::string name;  // of the kernel just finished
  double seconds;    // since tune_all began
};

struct TuneOptions {
  // 0: no limit. Looked at between kernels, so one is tuned at least; what is not reached stays
  // for the next call.
  double budget_seconds = 0;
  bool show_progress = true;  // a bar on standard error when that is a terminal
  std::function<void(const TuneProgress&)> on_progress = {};
};

// Tunes a list of kernels for one device and keeps the results, in memory and in the TuningStore
// that launches without a local size consult.
class Autotuner {
 public:
  explicit Autotuner(const Device& device);
  explicit Autotuner(const Queue& queue) : Autotuner(queue.device()) {}
  ~Autotuner();
  Autotuner(Autotuner&&) noexcept;
  Autotuner& operator=(Autotuner&&) noexcept;

  // Without arguments, scratch arguments are made from the kernel's signature. Memory given as an
  // argument must live until tune_all.
  void add(const std::string& name, const Kernel& kernel, const WorkSize& global_size,
           const std::vector<KernelArg>& args = {});
  // Tunes what has no result yet. Ctrl+C (Interrupted) and the budget keep what is done; calling it
  // again goes on. A kernel that cannot be launched does not keep the others from being tuned: its
  // error is thrown at the end. Returns how many kernels were tuned now.
  std::size_t tune_all(const Queue& queue, const TuneOptions& options = {});

  // The best local size, or 64 (clamped to device and kernel) when there is no result. Always a
  // size that can be passed on: where the driver's own choice was fastest, the next best one.
  // `dtypes` ("float32", "float16,float32") tells kernels of one name apart; without it the last
  // result counts.
  WorkSize lookup(const std::string& name, const WorkSize& global_size,
                  std::string_view dtypes = {}) const;
  // (name, global size) -> what lookup gives
  std::map<std::pair<std::string, std::vector<std::size_t>>, WorkSize> results() const;
  std::optional<AutotuneResult> result(const std::string& name, const WorkSize& global_size,
                                       std::string_view dtypes = {}) const;

  // A tuning file (docs/files.md), merged with what is in it. FileError when it cannot be written.
  void save(const std::string& path) const;
  // Takes over the results for this device and driver, for lookup and for launches without a local
  // size; those of other devices are kept for save() but not applied. FormatError when the file is
  // malformed; then nothing has changed.
  void load(const std::string& path);
  // Forgets the results (not the kernels), so that tune_all measures again. Launches use what is
  // stored until it is replaced.
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netcl
