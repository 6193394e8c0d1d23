// The tapes of a thread.
#pragma once

#include <memory>
#include <vector>

#include "autograd/record.h"

namespace netcl::detail {

struct TapeState {
  std::vector<std::weak_ptr<Record>> records;
  std::size_t compact_at = 64;  // records that are gone are dropped when the list reaches this

  void add(const std::shared_ptr<Record>& record);
  void release_all();
};

void add_to_open_tapes(const std::shared_ptr<Record>& record);

// While alive, this one records in the place of the thread's open tapes.
class OnlyTape {
 public:
  explicit OnlyTape(TapeState& state);
  ~OnlyTape();
  OnlyTape(const OnlyTape&) = delete;
  OnlyTape& operator=(const OnlyTape&) = delete;

 private:
  std::vector<std::pair<Tape*, TapeState*>> previous_;
};

// Switches recording for a while, whatever was set.
class GradMode {
 public:
  explicit GradMode(bool on);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

}  // namespace netcl::detail
