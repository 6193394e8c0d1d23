// A group of element-wise nodes as what either backend runs: operands, each read once; numbers;
// steps, each computed once; results. Which device, which sizes and how many elements are not part
// of its key, so one kernel serves all of them.
#pragma once

#include "jit/schedule.h"
#include "ops/element_function.h"
#include "ops/elementwise/program.h"

namespace netcl::fusion {

struct Value {
  enum class Kind : std::uint8_t { operand, number, step };
  Kind kind = Kind::operand;
  int index = 0;
  bool operator==(const Value& other) const = default;
};

struct Step {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  std::vector<int> scalars;  // numbers
};

struct Operand {
  Tensor tensor;
  Strides strides;  // along the loop
};

struct Result {
  int item = 0;
  Value value;
  DType dtype = DType::float32;
};

struct GroupProgram {
  DType compute = DType::float32;
  std::vector<std::int64_t> loop;
  std::int64_t numel = 1;
  std::vector<Operand> operands;
  std::vector<double> numbers;
  std::vector<Step> steps;
  std::vector<Result> results;  // of the items that are stored
  Value last;                   // of the last item
  bool vectors = true;          // every function takes vectors

  BroadcastLoops loops() const;         // of the operands, then of the results
  ElementArgs arguments() const;        // without results
  std::size_t parameter_bytes() const;  // of its kernel
  std::string key() const;              // its structure; holds addresses of the functions
  std::vector<std::shared_ptr<const ElementFunction>> functions() const;
  // Reads and writes through memory, in bytes.
  std::size_t bytes_read() const;
  std::size_t bytes_written() const;
};

// The items, all of one element-wise group.
GroupProgram build_program(const Schedule& schedule, const Group& group,
                           const std::vector<int>& items);

// What the renderer needs beyond operands: names, statements, preamble.
void write_statements(const GroupProgram& program, ElementProgram& to);
std::string name_of_value(const Value& value);

// Computes a group of several element-wise nodes and stores what is to be stored.
void run_elements(const Schedule& schedule, const Group& group, const std::vector<int>& items);
// Its two backends; results are tensors of their own.
std::vector<Tensor> launch_elements(const Queue& queue, const GroupProgram& program);
std::vector<Tensor> run_on_host(const Queue& queue, const GroupProgram& program);

// Fresh memory for the results, in the shapes of their items.
std::vector<Tensor> allocate_results(const Queue& queue, const GroupProgram& program);

}  // namespace netcl::fusion
