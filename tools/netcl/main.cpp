// The netcl command. Exit codes: 0 done, 1 the command found or met a problem, 2 it was called
// wrongly, 130 interrupted, 143 ended by SIGTERM.
#include <cstdio>
#include <cstdlib>
#include <exception>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include "command.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

// PoCL has a thread for each core, and the system may leave two of them on one core for seconds
// while another one idles (docs/devices.md). PoCL gives each its own core when this is set; not
// where the process may not use all of them, at which PoCL would end it.
void keep_driver_threads_apart() {
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
      CPU_COUNT(&allowed) == sysconf(_SC_NPROCESSORS_CONF))
    setenv("POCL_AFFINITY", "1", /*overwrite=*/0);
#endif
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("netcl: deep learning on any OpenCL device");
  app.set_version_flag("--version", "netcl " NETCL_VERSION);
  app.require_subcommand(1);
  Action action;
  add_devices(app, action);
  add_doctor(app, action);
  add_env(app, action);
  add_cache(app, action);
  add_tune(app, action);
  add_ops(app, action);
  add_selftest(app, action);
  add_train(app, action);
  add_eval(app, action);
  add_predict(app, action);
  add_export(app, action);
  add_bench(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return action();
}

}  // namespace
}  // namespace netcl::cli

int main(int argc, char** argv) {
  netcl::cli::keep_driver_threads_apart();
  netcl::install_sigint_handler(true);
  try {
    const int code = netcl::cli::parse_and_run(argc, argv);
    std::fflush(stdout);  // now: a driver may crash when the process ends
    return code;
  } catch (const netcl::Interrupted&) {
    std::fputs("netcl: interrupted\n", stderr);
    return netcl::interrupt_exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "netcl: error: %s\n", error.what());
    return netcl::cli::kProblem;
  }
}
