// Which of the pending nodes are computed together, and in which order.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "jit/rules.h"

namespace netcl::fusion {

// A node in a schedule. Producers are numbers of items; -1: the input is in memory.
struct Item {
  NodePtr node;
  std::vector<int> producers;
  std::vector<Link> links;
  std::vector<int> consumers;
  int group = -1;
  int sink = -1;        // the reduction that alone uses it, directly or through others
  bool stored = false;  // its result has to be in memory afterwards
};

struct Group {
  enum class Kind : std::uint8_t { elements, reduction, product, single };
  Kind kind = Kind::elements;
  std::vector<int> items;  // in the order of their calls
  std::vector<std::int64_t> loop;
  std::int64_t numel = 0;
  DType compute = DType::boolean;
  int sink = -1;
  bool is_flat = true;         // every operand is flat
  bool is_reshaped = false;    // loops differ: one flat loop for all
  std::set<int> depends;       // groups whose results it reads from memory
  std::set<const void*> read;  // storages of its operands
  std::size_t parameter_bytes = 0;
  std::vector<std::string> reasons;  // why it ends where it does
};

struct Schedule {
  std::vector<Item> items;    // in the order of the calls
  std::vector<Group> groups;  // in the order of computation; those without items are gone
};

Schedule make_schedule(const std::vector<NodePtr>& targets);

// OpenCL promises 1024 bytes for the parameters of a kernel.
inline constexpr std::size_t kMaxParameterBytes = 1000;
inline constexpr std::size_t kMaxStatements = 128;

}  // namespace netcl::fusion
