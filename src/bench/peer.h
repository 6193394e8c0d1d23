// A contender in a process of its own: libraries do not share threads or address space, and one
// that crashes takes nobody along.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace netcl::bench {

class Peer {
 public:
  // A program and its arguments, NAME=value before them for variables. Error when the process does
  // not say who it is.
  explicit Peer(std::vector<std::string> command);
  ~Peer();  // closes its input and waits; kills it when that does not help
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& contenders() const { return contenders_; }
  const std::string& device() const { return device_; }
  int threads() const { return threads_; }
  // A peer that died answers {"declined": ...} from then on.
  nlohmann::json ask(const nlohmann::json& request);

 private:
  bool read_line(std::string& line);

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string name_, device_, rest_;
  std::vector<std::string> contenders_;
  int threads_ = 0;
};

}  // namespace netcl::bench
