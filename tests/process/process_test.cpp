// What happens at the edges of a process: fork, Ctrl+C, exit. Every scenario runs in a new process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cl/cl.h"
#include "netcl/netcl.h"
#include "support/child_process.h"
#include "support/devices.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace netcl {
namespace {

using namespace std::chrono_literals;
using test::child_role;
using test::ChildProcess;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `child` in a fork and returns its exit code, or -1 when it had to be killed after 5 s.
template <class F>
int exit_code_of_fork(F&& child) {
  const auto pid = ::fork();
  if (pid == 0) child();
  const auto start = Clock::now();
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (seconds_since(start) > 5) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(1ms);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

constexpr int kForkError = 42;

template <class F>
int fork_and_call(F&& call) {
  return exit_code_of_fork([&] {
    try {
      call();
    } catch (const ForkError&) {
      std::exit(kForkError);  // with exit handlers and static destructors
    } catch (...) {
      std::exit(2);
    }
    std::exit(3);
  });
}

TEST(Fork, ChildrenOfAnOpenCLProcessGetForkError) {
  NETCL_NEED_OPENCL();
  if (!child_role()) {
    const auto start = Clock::now();
    EXPECT_EQ(ChildProcess("parent").wait(), 0);
    EXPECT_LT(seconds_since(start), 30);
    return;
  }
  auto tensor = Tensor::from_host(std::vector<float>{1, 2, 3});
  tensor.wait();
  EXPECT_EQ(fork_and_call([&] { tensor.to_host(); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { Tensor::from_shape({2}); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { manager().default_device(); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { manager().discover(); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { DeviceManager().discover(); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { tensor.queue().finish(); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { get_persistent_pool(tensor.queue())->allocate(10); }), kForkError);
  EXPECT_EQ(fork_and_call([&] { Tensor::from_shape(CPUQueue(), {2}); }), kForkError);
  EXPECT_EQ(fork_and_call([&] {
              KernelSpec{.name = "k", .src = "__kernel void k() {}"}.build(tensor.queue());
            }),
            kForkError);
  EXPECT_EQ(tensor.to_vector<float>(), (std::vector<float>{1, 2, 3})) << "the parent goes on";
}

TEST(Fork, AChildThatUsesNothingExitsCleanly) {
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("parent").wait(), 0);
    return;
  }
  auto tensor = Tensor::from_host(std::vector<float>(100'000, 1));
  EXPECT_EQ(exit_code_of_fork([] { std::exit(7); }), 7);
  EXPECT_EQ(exit_code_of_fork([&] {
              tensor = Tensor();  // destructors make no OpenCL call
              std::exit(8);
            }),
            8);
  EXPECT_EQ(exit_code_of_fork([] { ::_exit(9); }), 9);
}

TEST(Fork, BeforeTheFirstUseTheChildIsFree) {
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("parent").wait(), 0);
    return;
  }
  EXPECT_EQ(
      exit_code_of_fork([] {
        const bool right = Tensor::full({3}, 2).to_vector<float>() == std::vector<float>{2, 2, 2};
        std::exit(right ? 5 : 6);
      }),
      5);
  EXPECT_EQ(Tensor::full({1}, 2).item(), 2);
}

TEST(Fork, TheCpuBackendAloneGoesOnInTheChild) {
  if (test::kThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads after a fork with threads";
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("parent").wait(), 0);
    return;
  }
  // Both kinds of threads: our loops, and oneDNN's.
  const auto compute = [] {
    const auto x = Tensor::full(CPUQueue(), {400, 400}, 2);
    const auto many = Tensor::full(CPUQueue(), {1 << 21}, -2);
    return ops::matmul(x, x).narrow(0, 7, 1).narrow(1, 7, 1).item() +
           ops::abs(many).narrow(0, 1 << 20, 1).item();
  };
  ASSERT_EQ(compute(), 1602);
  EXPECT_EQ(exit_code_of_fork([&] { std::exit(compute() == 1602 ? 5 : 6); }), 5);
  EXPECT_EQ(exit_code_of_fork([&] {
              double result = 0;
              std::thread([&] { result = compute(); }).join();
              std::exit(result == 1602 ? 5 : 6);
            }),
            5);
  EXPECT_EQ(compute(), 1602) << "the parent goes on";
}

// A kernel that keeps the device busy for about `seconds`, started without waiting for it.
void start_long_kernel(const Queue& queue, double seconds) {
  const KernelSpec spec{.name = "spin",
                        .src =
                            "__kernel void spin(__global float* x, long n) {\n"
                            "  float a = x[0];\n"
                            "  for (long i = 0; i < n; ++i) a = a * 0.999f + 0.5f;\n"
                            "  x[0] = a;\n}\n",
                        .workgroup_size = 1,
                        .tune = false};
  const auto program = spec.build(queue);
  static auto* x = new Tensor(Tensor::full(queue, {1}, 1));
  constexpr std::int64_t kProbe = 20'000'000;
  program.run(queue, 1, 1, *x, kProbe);
  queue.finish();
  const auto start = Clock::now();
  program.run(queue, 1, 1, *x, kProbe);
  queue.finish();
  const auto rounds = static_cast<double>(kProbe) * seconds / seconds_since(start);
  program.run(queue, 1, 1, *x, static_cast<std::int64_t>(rounds));
  queue.flush();
}

void interrupt_after(std::chrono::milliseconds delay) {
  std::thread([delay] {
    std::this_thread::sleep_for(delay);
    ::kill(::getpid(), SIGINT);
  }).detach();
}

TEST(Finish, TimeoutIsAnError) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  start_long_kernel(queue, 1.0);
  const auto start = Clock::now();
  EXPECT_THROW(interruptible_finish(queue, 0.2), TimeoutError);
  EXPECT_LT(seconds_since(start), 0.8);
  interruptible_finish(queue, 0);  // the work itself went on
  EXPECT_THROW(interruptible_finish(queue, -1), ArgumentError);
}

TEST(Finish, TheHookEndsAWait) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  start_long_kernel(queue, 1.0);
  set_interrupt_hook([] { throw Interrupted("from the hook"); });
  EXPECT_THROW(queue.finish(), Interrupted);
  set_interrupt_hook({});
  queue.finish();
}

TEST(Sigint, EndsAWaitAndTheProcessGoesOn) {
  NETCL_NEED_OPENCL();
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("interrupted").wait(), 0);
    return;
  }
  ASSERT_TRUE(install_sigint_handler());
  const auto queue = manager().default_device("opencl").queue;
  // Twice: a handled Ctrl+C leaves nothing behind that would make the next one deadly.
  for (int round = 0; round < 2; ++round) {
    start_long_kernel(queue, 1.5);
    interrupt_after(200ms);
    const auto start = Clock::now();
    EXPECT_THROW(queue.finish(), Interrupted);
    EXPECT_LT(seconds_since(start), 1.0);
    queue.finish();
  }
  EXPECT_NO_THROW(check_interrupt());
}

TEST(Sigint, NobodyListensTheProcessEndsWith130) {
  if (child_role() == "deaf") {
    install_sigint_handler();
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(20s);
    ::_exit(1);
  }
  if (child_role() == "twice") {
    install_sigint_handler();
    ::kill(::getpid(), SIGINT);
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(20s);
    ::_exit(1);
  }
  auto start = Clock::now();
  EXPECT_EQ(ChildProcess("deaf").wait(), 130);
  EXPECT_GT(seconds_since(start), 2.5);
  EXPECT_LT(seconds_since(start), 6);
  start = Clock::now();
  EXPECT_EQ(ChildProcess("twice").wait(), 130);
  EXPECT_LT(seconds_since(start), 2.5);
}

TEST(Sigint, SigtermIsLikeItWhereThatIsAskedFor) {
  const auto role = child_role();
  if (role == "deaf") {
    install_sigint_handler(true);
    ::kill(::getpid(), SIGTERM);
    std::this_thread::sleep_for(20s);
    ::_exit(1);
  }
  if (role == "heard") {
    install_sigint_handler(true);
    ::kill(::getpid(), SIGTERM);
    EXPECT_THROW(check_interrupt(), Interrupted);
    ::_exit(testing::Test::HasFailure() ? 1 : interrupt_exit_code());
  }
  if (role == "background job") {
    ::signal(SIGINT, SIG_IGN);
    EXPECT_TRUE(install_sigint_handler(true));
    ::raise(SIGINT);
    EXPECT_NO_THROW(check_interrupt());
    ::raise(SIGTERM);
    EXPECT_THROW(check_interrupt(), Interrupted);
    ::_exit(testing::Test::HasFailure() ? 1 : interrupt_exit_code());
  }
  if (role == "not asked") {
    install_sigint_handler();
    ::kill(::getpid(), SIGTERM);
    ::_exit(1);
  }
  EXPECT_EQ(ChildProcess("deaf").wait(), 143);
  EXPECT_EQ(ChildProcess("heard").wait(), 143);
  EXPECT_EQ(ChildProcess("background job").wait(), 143);
  EXPECT_EQ(ChildProcess("not asked").wait(), -SIGTERM);
}

TEST(Sigint, ForeignHandlersStay) {
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("foreign").wait(), 0);
    return;
  }
  ::signal(SIGINT, [](int) {});
  EXPECT_FALSE(install_sigint_handler());
  ::signal(SIGINT, SIG_DFL);
  EXPECT_TRUE(install_sigint_handler());
  remove_sigint_handler();
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

// Drivers that are built on LLVM install handlers of their own when they are loaded.
TEST(Sigint, DriversDoNotTakeTheSignal) {
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("driver").wait(), 0);
    return;
  }
  static std::atomic<int> seen{0};
  ::signal(SIGINT, [](int) { ++seen; });
  ::signal(SIGTERM, [](int) { ++seen; });
  Tensor::random({10}, 1).to_host();  // loads a driver and compiles a kernel
  ::raise(SIGINT);
  ::raise(SIGINT);
  ::raise(SIGTERM);
  EXPECT_EQ(seen, 3);
}

// The library alone installs nothing: the default action ends the process.
TEST(Sigint, WithoutAHandlerTheDefaultHolds) {
  if (child_role()) {
    Tensor::full({10}, 1).to_host();
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(5s);
    return;
  }
  EXPECT_EQ(ChildProcess("default").wait(), -SIGINT);
}

// ---- exit

Tensor g_static_tensor;  // made before, destroyed after everything that netcl makes

TEST(Exit, StaticTensorsAndPendingWork) {
  if (!child_role()) {
    for (const char* how : {"static", "late static", "pending", "thread", "quick", "stuck"})
      EXPECT_EQ(ChildProcess(how).wait(), 0) << how;
    return;
  }
  const auto role = *child_role();
  if (role == "static") g_static_tensor = Tensor::full({1000}, 1);
  if (role == "late static") static const auto late = Tensor::full({1000}, 1);
  if (role == "pending") {
    g_static_tensor = Tensor::random({3'000'000}, 1).transpose(0, 0);
    for (int i = 0; i < 20; ++i) g_static_tensor = g_static_tensor.clone();
  }
  if (role == "thread") {
    std::thread([] {
      static thread_local auto tensor = Tensor::full({1000}, 1);
      std::exit(0);
    }).join();
  }
  if (role == "quick") {
    Tensor::full({1000}, 1);
    std::quick_exit(0);
  }
  if (role == "stuck" && !test::opencl_devices().empty())
    start_long_kernel(manager().default_device("opencl").queue, 0.5);
}

// Work that is pending at exit is finished: the device writes into memory that outlives the
// process.
TEST(Exit, PendingWorkIsFinished) {
  NETCL_NEED_OPENCL();
  const test::TempDir dir;
  constexpr std::size_t kBytes = 4096;
  const auto map = [](const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::ftruncate(fd, kBytes), 0);
    auto* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return static_cast<float*>(memory);
  };
  if (const auto path = child_role()) {
    const auto queue = manager().default_device("opencl").queue;
    const auto shared = Tensor::adopt_host(queue, map(*path), {kBytes / 4}, DType::float32);
    const auto values = Tensor::full(queue, shared.shape(), 7);
    start_long_kernel(queue, 0.5);
    shared.copy_from(values);  // behind the long kernel, and nobody waits for it
    return;
  }
  const auto* memory = map(dir / "memory");
  EXPECT_EQ(ChildProcess(dir / "memory").wait(), 0);
  if (device_profile(manager().default_device("opencl").queue).is_cpu) EXPECT_EQ(memory[9], 7);
}

// PoCL compiles in its worker threads at the first launch. A process that ends meanwhile must not
// take the compiler's static objects away under it. The role makes the source new to every cache.
TEST(Exit, WhileTheDriverStillCompiles) {
  NETCL_NEED_OPENCL();
  const auto now = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  if (!child_role()) {
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(ChildProcess(now + "." + std::to_string(i)).wait(), 0) << i;
    return;
  }
  const auto queue = manager().default_device("opencl").queue;
  std::string body = "float a = x[get_global_id(0)] + " + *child_role() + "e-30f;\n";
  for (int i = 0; i < 6; ++i)
    body += "for (int j = 0; j < n; ++j) a = sin(a) * x[j] + " + std::to_string(i) + ";\n";
  const KernelSpec spec{
      .name = "fresh",
      .src = "__kernel void fresh(__global float* x, int n) {\n" + body + "x[0] = a;\n}\n",
      .workgroup_size = 1,
      .tune = false};
  spec.build(queue).run(queue, 1, 1, *new Tensor(Tensor::empty(queue, {8}, DType::float32)), 1);
}

TEST(Exit, UseAfterExitBeganIsAnErrorNotACrash) {
  if (!child_role()) {
    EXPECT_EQ(ChildProcess("late").wait(), 17);
    return;
  }
  struct Late {
    ~Late() {
      try {
        Tensor::full({10}, 1).to_host();
        ::_exit(manager().discover().empty() ? 17 : 1);
      } catch (const Error&) {
        ::_exit(17);
      }
    }
  };
  static const Late late;  // destroyed after netcl's exit handler, which is registered later
  Tensor::full({10}, 1).to_host();
}

}  // namespace
}  // namespace netcl
