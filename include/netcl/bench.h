// The benchmark: the same work done by netcl on a device, netcl's CPU backend and other libraries,
// in turns, on the same inputs, with the results compared. `netcl bench` is its command;
// docs/performance.md says how to read it and how to add a peer.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace netcl::bench {

// One thing to compute. The parameters are what a peer is told, in JSON.
struct Case {
  std::string id;          // "matmul 128x256x784"
  std::string group;       // "matmul"; rows of a table belong together
  std::string parameters;  // {"kind": "matmul", "m": 128, "n": 256, "k": 784}
  double flops = 0, bytes = 0;
  // What is aimed at: so many times the speed of the fastest peer whose name begins with `against`,
  // and this share of the memory's bandwidth. 0: nothing.
  double goal = 0;
  std::string against;
  double bandwidth_goal = 0;
  bool reads_only = false;  // which may be faster than to write as well
};

// What one contender needed for one case.
struct Measurement {
  std::string contender;                 // "netcl opencl", "PyTorch 2.15 compiled"
  double median = 0, low = 0, high = 0;  // seconds of one call: median and quartiles
  std::size_t samples = 0;
  std::vector<double> probe;  // some elements of the result
  double memory = 0;          // bytes held at most, where the contender says so
  std::string declined;       // why there is nothing; then all of the above is empty
  bool differs = false;       // from netcl's result by more than rounding explains
};

struct Row {
  Case what;
  std::vector<Measurement> measurements;
  std::vector<std::string> remarks;  // of contenders: what they had to do without
  // Bytes per second of the memory, measured in turns with a case that aims at a share of it; 0:
  // as in the whole run. Its speed changes from minute to minute where others share it.
  double memory_limit = 0;
};

struct Limits {
  double flops = 0, bytes = 0, read_bytes = 0;  // per second: FMA, triad, reading alone
};

struct Report {
  std::string device, host;
  int threads = 0;
  Limits limits;
  std::vector<Row> rows;
  // Seconds from the start of a process to its first training step: without caches, with them.
  double first_step_cold = 0, first_step_warm = 0;
  std::vector<std::string> notes;  // what could not be measured, and why; remarks of contenders
  bool interrupted = false;        // by Ctrl+C: the rows up to then
};

struct Options {
  std::string filter;  // cases whose id or group contains it
  std::string device = "auto";
  std::vector<std::string> peers;  // commands that speak the protocol of docs/performance.md
  std::string self;                // the netcl executable, started as its own contender
  int rounds = 5;                  // turns of every contender
  double seconds = 0.1;            // of one turn
  bool sweeps = false;             // also how the cost grows with the size
  bool start_up = false;           // also the time of a process to its first step
  std::function<void(const std::string& case_id, std::size_t done, std::size_t of)> progress;
  std::function<void(const Report& so_far, const Row& row)> finished;
};

std::vector<Case> cases(const Options& options);
Report run(const Options& options);

// How a row stands.
struct Verdict {
  const Measurement* own = nullptr;        // netcl on the device
  const Measurement* best_peer = nullptr;  // among those that the goal is against, if it has any
  double ratio = 0;                        // their time by ours
  double of_limit = 0;                     // of FMA or bandwidth, whichever is nearer
  double of_bandwidth = 0;
  bool has_goal = false, met = false;
};
Verdict verdict(const Row& row, const Limits& limits);
// Beside one contender over all rows that both have: how many times as fast netcl on the device is.
struct Standing {
  std::string contender;
  std::size_t rows = 0;
  double least = 0, median = 0, most = 0;
};
std::vector<Standing> standings(const Report& report);
// Sizes that fall off: pairs of cases whose sizes differ by one and whose rates by more than 20 %.
std::vector<std::string> cliffs(const Report& report);

std::string table(const Report& report);  // for a terminal, and as Markdown
std::string json_line(const Row& row);    // one line per measurement
std::string html(const Report& report);   // one page, with the roofline and the sweeps

// The other side: answers requests about cases on `device` until the input ends.
void serve(const std::string& device, std::istream& requests, std::ostream& answers);

}  // namespace netcl::bench
