// A group program on the CPU backend: blocks of elements that stay in the first cache, each step a
// loop that the compiler has vectorised.
#pragma once

#include <algorithm>

#include "jit/group_program.h"
#include "tensor/convert.h"

namespace netcl::fusion {

inline constexpr std::int64_t kBlock = 512;

template <class V>
class BlockEvaluator {
 public:
  // `results` are the tensors of program.results, or nothing.
  BlockEvaluator(const GroupProgram& program, std::vector<Tensor> results)
      : program_(program), results_(std::move(results)) {
    for (const auto& operand : program.operands)
      reads_.push_back({plan_broadcast(Shape(program.loop), {operand.strides}),
                        operand.tensor.host_data(),
                        operand.tensor.dtype(),
                        {}});
    for (auto& read : reads_) {
      const auto& steps = read.loops.strides[0];
      read.is_linear = read.loops.is_linear(0);
      read.is_single =
          !read.is_linear && std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 0; });
    }
    for (const auto& result : results_) memory_.push_back(result.host_data());
    assign_slots();
  }

  // What one thread works in.
  class Scratch {
   public:
    explicit Scratch(const BlockEvaluator& of)
        : values_(static_cast<std::size_t>(of.slots_) * kBlock + 16) {
      auto* aligned = values_.data();
      while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
      start_ = aligned;
      of.fill_constants(*this);
    }
    V* slot(int i) { return start_ + static_cast<std::int64_t>(i) * kBlock; }

   private:
    std::vector<V> values_;
    V* start_;
  };

  // Elements [begin, begin + count) of the loop, at most kBlock. Stores the results; returns the
  // value of the last item.
  const V* evaluate(std::int64_t begin, std::int64_t count, Scratch& scratch) const {
    std::vector<const V*> operands(reads_.size());
    for (std::size_t i = 0; i < reads_.size(); ++i) operands[i] = load(i, begin, count, scratch);
    const auto at = [&](const Value& value) -> const V* {
      if (value.kind == Value::Kind::operand)
        return operands[static_cast<std::size_t>(value.index)];
      return scratch.slot(value.kind == Value::Kind::number
                              ? number_slot(value.index)
                              : step_slots_[static_cast<std::size_t>(value.index)]);
    };
    const V* inputs[kMaxElementInputs];
    V scalars[kMaxElementInputs];
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const auto& step = program_.steps[i];
      for (std::size_t k = 0; k < step.inputs.size(); ++k) inputs[k] = at(step.inputs[k]);
      for (std::size_t k = 0; k < step.scalars.size(); ++k)
        scalars[k] = static_cast<V>(program_.numbers[static_cast<std::size_t>(step.scalars[k])]);
      step.op->element->run(count, inputs, scalars, scratch.slot(step_slots_[i]));
      for (const auto r : results_after_[i]) store(r, at(program_.results[r].value), begin, count);
    }
    for (const auto r : plain_results_) store(r, at(program_.results[r].value), begin, count);
    return at(program_.last);
  }

 private:
  struct Read {
    BroadcastLoops loops;
    const void* memory;
    DType dtype;
    bool is_linear = false, is_single = false;
  };

  int number_slot(int number) const { return static_cast<int>(reads_.size()) + number; }

  // Operands and numbers have slots of their own; steps share those whose value is used up.
  void assign_slots() {
    const auto& steps = program_.steps;
    std::vector<std::size_t> last_use(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      last_use[i] = std::max(last_use[i], i);
      for (const auto& input : steps[i].inputs)
        if (input.kind == Value::Kind::step) last_use[static_cast<std::size_t>(input.index)] = i;
    }
    if (program_.last.kind == Value::Kind::step)
      last_use[static_cast<std::size_t>(program_.last.index)] = steps.size();
    slots_ = number_slot(static_cast<int>(program_.numbers.size()));
    std::vector<int> free;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (free.empty()) free.push_back(slots_++);
      step_slots_.push_back(free.back());
      free.pop_back();
      for (std::size_t k = 0; k <= i; ++k)
        if (last_use[k] == i) free.push_back(step_slots_[k]);
    }
    results_after_.resize(steps.size());
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const auto& value = program_.results[r].value;
      if (value.kind == Value::Kind::step)
        results_after_[static_cast<std::size_t>(value.index)].push_back(r);
      else
        plain_results_.push_back(r);
    }
  }

  void fill_constants(Scratch& scratch) const {
    for (std::size_t i = 0; i < program_.numbers.size(); ++i)
      std::fill_n(scratch.slot(number_slot(static_cast<int>(i))), kBlock,
                  static_cast<V>(program_.numbers[i]));
    for (std::size_t i = 0; i < reads_.size(); ++i)
      if (reads_[i].is_single)
        visit_dtype(reads_[i].dtype, [&]<class T>(T) {
          std::fill_n(scratch.slot(static_cast<int>(i)), kBlock,
                      convert_element<V>(*static_cast<const T*>(reads_[i].memory)));
        });
  }

  const V* load(std::size_t i, std::int64_t begin, std::int64_t count, Scratch& scratch) const {
    const auto& read = reads_[i];
    V* to = scratch.slot(static_cast<int>(i));
    if (read.is_single) return to;
    return visit_dtype(read.dtype, [&]<class T>(T) -> const V* {
      const auto* from = static_cast<const T*>(read.memory);
      if constexpr (std::is_same_v<T, V>)
        if (read.is_linear) return from + begin;
      if (read.is_linear) {
        for (std::int64_t k = 0; k < count; ++k) to[k] = convert_element<V>(from[begin + k]);
        return to;
      }
      V* next = to;
      for_each_run(read.loops, begin, begin + count,
                   [&](const auto& offsets, const auto& steps, std::int64_t n) {
                     const T* at = from + offsets[0];
                     const auto step = steps[0];
                     for (std::int64_t k = 0; k < n; ++k)
                       next[k] = convert_element<V>(at[k * step]);
                     next += n;
                   });
      return to;
    });
  }

  void store(std::size_t r, const V* from, std::int64_t begin, std::int64_t count) const {
    visit_dtype(program_.results[r].dtype, [&]<class T>(T) {
      auto* to = static_cast<T*>(memory_[r]) + begin;
      if constexpr (std::is_same_v<T, V>)
        std::copy_n(from, count, to);
      else
        for (std::int64_t k = 0; k < count; ++k) to[k] = convert_element<T>(from[k]);
    });
  }

  const GroupProgram& program_;
  const std::vector<Tensor> results_;
  std::vector<void*> memory_;
  std::vector<Read> reads_;
  std::vector<int> step_slots_;
  std::vector<std::vector<std::size_t>> results_after_;  // results that a step gives
  std::vector<std::size_t> plain_results_;               // those that are operands
  int slots_ = 0;
};

}  // namespace netcl::fusion
