// A long training run with batches of changing shapes. Memory must stay where it is after the first
// steps, the cache directory below its cap, and the same seed must give the same losses after all
// that as in a new process.
//   soak [STEPS [SELECTOR]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "netcl/netcl.h"
#include "support/temp_dir.h"

namespace {

using netcl::Shape;
using netcl::Tensor;
namespace nn = netcl::nn;
namespace ops = netcl::ops;

constexpr std::int64_t kClasses = 4;
constexpr int kLong = 5000;
constexpr int kCompared = 100;    // losses of the run from a seed
constexpr double kGrowth = 0.01;  // of resident memory
constexpr const char* kCacheMB = "2";

// 33 shapes, in an order that has no period of their number.
Shape shape_of(int step) {
  const auto mixed = (static_cast<unsigned>(step) * 2654435761u) >> 16;
  const std::int64_t sides[] = {6, 9, 13};
  return {1 + static_cast<std::int64_t>(mixed % 11), 1, sides[mixed / 11 % 3], 10};
}

class Run {
 public:
  Run() : model_(make()), adam_(model_->parameters(), {.lr = 1e-3}) {}

  double step(int number) {
    const auto shape = shape_of(number);
    const auto x = Tensor::random(shape, static_cast<std::uint64_t>(number) + 7);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(shape[0]));
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = (number + static_cast<std::int64_t>(i)) % kClasses;
    netcl::Tape tape;
    const auto loss = ops::cross_entropy((*model_)(x), Tensor::from_host(labels));
    tape.backward(loss);
    adam_.step();
    adam_.zero_grad();
    return loss.item();
  }

 private:
  static nn::ModulePtr make() {
    nn::manual_seed(3);
    auto model = nn::make<nn::Sequential>();
    ops::Conv2dOptions padded;
    padded.padding = {1, 1};
    model->append(nn::make<nn::Conv2d>(1, 8, ops::Pair{3, 3}, padded));
    model->append(nn::make<nn::BatchNorm2d>(8));
    model->append(nn::make<nn::Activation>("relu"));
    model->append(nn::make<nn::AdaptiveAvgPool2d>(ops::Pair{3, 3}));
    model->append(nn::make<nn::Flatten>());
    model->append(nn::make<nn::Dropout>(0.1));
    model->append(nn::make<nn::Linear>(72, kClasses));
    return model;
  }
  nn::ModulePtr model_;
  netcl::optim::Adam adam_;
};

std::vector<double> losses_of_a_new_run() {
  Run run;
  std::vector<double> losses;
  for (int i = 0; i < kCompared; ++i) losses.push_back(run.step(i));
  return losses;
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t bytes_below(const std::filesystem::path& directory) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

// Kernels that no other run has: more of them than the cache directory may hold.
void fill_cache(const netcl::Queue& queue) {
  if (queue.is_cpu()) return;
  for (int i = 0; i < 40; ++i) {
    std::string body;
    for (int j = 0; j < 40; ++j)
      body += "  x[i] = sin(x[i] * " + std::to_string(i * 100 + j) + ".5f) + cos(x[i]);\n";
    const netcl::KernelSpec spec{
        .name = "filler" + std::to_string(i),
        .src = "__kernel void filler" + std::to_string(i) +
               "(__global float* x) {\n  const int i = get_global_id(0);\n" + body + "}\n",
        .workgroup_size = 8,
        .tune = false};
    spec.build(queue).run(queue, 8, 8, Tensor::full(queue, {8}, 1));
  }
  queue.finish();
}

void write_losses(const std::string& path, const std::vector<double>& losses) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(losses.data()),
             static_cast<std::streamsize>(losses.size() * sizeof(double)));
}

// The same in a new process.
std::vector<double> losses_of_a_new_process(const std::string& directory,
                                            const std::string& device) {
  const auto path = directory + "/losses";
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto command = "'" + self + "' --compare '" + path + "' '" + device + "'";
  if (std::system(command.c_str()) != 0) return {};
  const auto text = netcl::test::read_text(path);
  std::vector<double> losses(text.size() / sizeof(double));
  std::memcpy(losses.data(), text.data(), losses.size() * sizeof(double));
  return losses;
}

int check(bool holds, const char* rule) {
  std::printf("%s: %s\n", holds ? "ok" : "FAILED", rule);
  return holds ? 0 : 1;
}

int soak(int steps, const std::string& device, const std::string& cache) {
  fill_cache(netcl::get_active_device().queue);
  const auto first_losses = losses_of_a_new_run();
  Run run;
  const int warm = std::max(steps / 4, 100), report = std::max(steps / 20, 1);
  std::size_t low = 0, high = 0;
  for (int i = 0; i < steps; ++i) {
    const double loss = run.step(i);
    if (i < warm || (i + 1) % report != 0) continue;
    const auto now = resident_bytes();
    low = low == 0 ? now : std::min(low, now);
    high = std::max(high, now);
    std::printf("step %6d  loss %.4f  resident %7.2f MB  cache %6.2f MB\n", i + 1, loss,
                static_cast<double>(now) / 1e6, static_cast<double>(bytes_below(cache)) / 1e6);
    std::fflush(stdout);
  }
  const auto cap = static_cast<std::uint64_t>(std::atoi(kCacheMB)) << 20;
  std::printf("\nresident memory from step %d on: %.2f to %.2f MB (%.2f %%)\n", warm,
              static_cast<double>(low) / 1e6, static_cast<double>(high) / 1e6,
              100 * (static_cast<double>(high) / static_cast<double>(low) - 1));
  const auto programs = std::filesystem::path(cache) / "netcl" / "programs";
  const auto kept = std::filesystem::exists(programs) ? bytes_below(programs) : 0;
  std::printf("program cache: %.2f MB of %.2f MB\n", static_cast<double>(kept) / 1e6,
              static_cast<double>(cap) / 1e6);
  int bad = 0;
  if (steps >= kLong)  // a short run has not seen all that it will keep
    bad += check(static_cast<double>(high) <= (1 + kGrowth) * static_cast<double>(low),
                 "memory is flat within 1 %");
  bad += check(kept <= cap, "the cache directory is below its cap");
  bad += check(losses_of_a_new_run() == first_losses, "a new run has the losses of the first");
  bad += check(losses_of_a_new_process(cache, device) == first_losses,
               "and so has a run in a new process");
  return bad == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--compare") {
    const netcl::ActiveDevice active(argv[3]);
    write_losses(argv[2], losses_of_a_new_run());
    return 0;
  }
  const netcl::test::TempDir cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  ::setenv("NETCL_CACHE_MB", kCacheMB, 1);
  ::setenv("NETCL_CACHE_BINARIES", "1", 1);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  const std::string device = argc > 2 ? argv[2] : "auto";
  const netcl::ActiveDevice active(device);
  std::printf("%d steps on %s\n", steps, active.handle().device_name.c_str());
  return soak(steps, device, cache.path().string());
}
