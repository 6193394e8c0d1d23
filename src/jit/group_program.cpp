#include "jit/group_program.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "tensor/access.h"

namespace netcl::fusion {
namespace {

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::int64_t steps_of(const Strides& strides, const std::vector<std::int64_t>& loop) {
  std::int64_t expected = 1;
  bool linear = true, single = true;
  for (std::size_t axis = loop.size(); axis-- > 0;) {
    linear = linear && strides[axis] == expected;
    single = single && strides[axis] == 0;
    expected *= loop[axis];
  }
  return linear ? 0 : single ? 1 : 2;
}

class Builder {
 public:
  Builder(const Schedule& schedule, const Group& group, const std::vector<int>& items)
      : schedule_(schedule) {
    program_.compute = group.compute == DType::boolean ? DType::float32 : group.compute;
    program_.numel = group.numel;
    program_.loop = group.is_reshaped ? std::vector{group.numel} : group.loop;
    for (const int i : items) add(i);
  }

  GroupProgram take() { return std::move(program_); }

 private:
  void add(int i) {
    const auto& item = schedule_.items[static_cast<std::size_t>(i)];
    const auto& node = *item.node;
    Step step{&node.op, {}, {}};
    for (std::size_t k = 0; k < node.inputs.size(); ++k) step.inputs.push_back(input_of(item, k));
    Value value;
    if (node.kind == NodeKind::cast) {
      value = step.inputs[0];  // the load has converted it, the store will round it
    } else {
      for (const auto& name : node.op.element->scalars)
        step.scalars.push_back(number(node.attributes.number(name)));
      program_.vectors = program_.vectors && node.op.element->vectors;
      value = step_of(std::move(step));
    }
    values_[i] = program_.last = value;
    if (item.stored) program_.results.push_back({i, value, node.spec.dtype});
  }

  Value input_of(const Item& item, std::size_t k) {
    const auto& node = *item.node;
    const auto& input = node.inputs[k];
    if (!input) return {Value::Kind::number, number(number_of(node, k))};
    if (item.links[k] != Link::none)
      if (const auto found = values_.find(item.producers[k]); found != values_.end())
        return found->second;
    return operand(input, node.spec.shape);
  }

  int number(double value) {
    program_.numbers.push_back(value);
    return static_cast<int>(program_.numbers.size()) - 1;
  }

  Value operand(const Tensor& tensor, const Shape& shape) {
    Strides strides;
    if (program_.loop == loop_of(shape))
      strides = loop_strides(tensor, shape);
    else  // one flat loop for several shapes
      strides = {tensor.numel() == 1 ? 0 : 1};
    auto& list = program_.operands;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].tensor.shares_storage(tensor) && list[i].tensor.offset() == tensor.offset() &&
          list[i].strides == strides)
        return {Value::Kind::operand, static_cast<int>(i)};
    list.push_back({tensor, std::move(strides)});
    return {Value::Kind::operand, static_cast<int>(list.size()) - 1};
  }

  // The same function of the same values is computed once.
  Value step_of(Step step) {
    const auto same_number = [&](int a, int b) {
      const auto &x = program_.numbers[static_cast<std::size_t>(a)],
                 &y = program_.numbers[static_cast<std::size_t>(b)];
      return std::memcmp(&x, &y, sizeof x) == 0;
    };
    const auto same_value = [&](const Value& a, const Value& b) {
      return a == b ||
             (a.kind == Value::Kind::number && b.kind == a.kind && same_number(a.index, b.index));
    };
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const auto& one = program_.steps[i];
      if (one.op == step.op &&
          std::equal(one.inputs.begin(), one.inputs.end(), step.inputs.begin(), step.inputs.end(),
                     same_value) &&
          std::equal(one.scalars.begin(), one.scalars.end(), step.scalars.begin(),
                     step.scalars.end(), same_number)) {
        drop_numbers(step);
        return {Value::Kind::step, static_cast<int>(i)};
      }
    }
    program_.steps.push_back(std::move(step));
    return {Value::Kind::step, static_cast<int>(program_.steps.size()) - 1};
  }

  // Its own are the last ones.
  void drop_numbers(const Step& step) {
    auto count = step.scalars.size();
    for (const auto& input : step.inputs) count += input.kind == Value::Kind::number ? 1 : 0;
    program_.numbers.resize(program_.numbers.size() - count);
  }

  const Schedule& schedule_;
  GroupProgram program_;
  std::map<int, Value> values_;  // of the items so far
};

}  // namespace

GroupProgram build_program(const Schedule& schedule, const Group& group,
                           const std::vector<int>& items) {
  return Builder(schedule, group, items).take();
}

BroadcastLoops GroupProgram::loops() const {
  const Shape shape(loop);
  std::vector<Strides> strides;
  for (const auto& operand : operands) strides.push_back(operand.strides);
  strides.resize(strides.size() + results.size(), contiguous_strides(shape));
  return plan_broadcast(shape, std::move(strides));
}

ElementArgs GroupProgram::arguments() const {
  ElementArgs args;
  for (const auto& operand : operands) args.inputs.push_back(operand.tensor);
  args.scalars = numbers;
  return args;
}

std::size_t GroupProgram::parameter_bytes() const {
  std::size_t bytes = 8, strided = 0;
  for (const auto& operand : operands) {
    bytes += 16;
    if (steps_of(operand.strides, loop) == 2) ++strided;
  }
  bytes += 16 * results.size() + numbers.size() * size_of(compute);
  return bytes + (strided > 0 ? 64 * (strided + 1) : 0);
}

std::string GroupProgram::key() const {
  std::string key;
  append(key, compute);
  for (const auto& operand : operands) {
    append(key, operand.tensor.dtype());
    append(key, static_cast<char>(steps_of(operand.strides, loop)));
  }
  append(key, numbers.size());
  for (const auto& step : steps) {
    append(key, step.op->element.get());
    for (const auto& input : step.inputs)
      append(key, static_cast<int>(input.kind) << 24 | input.index);
    for (const auto scalar : step.scalars) append(key, scalar);
  }
  append(key, operands.size());
  for (const auto& result : results) {
    append(key, static_cast<int>(result.value.kind) << 24 | result.value.index);
    append(key, result.dtype);
  }
  return key;
}

std::vector<std::shared_ptr<const ElementFunction>> GroupProgram::functions() const {
  std::vector<std::shared_ptr<const ElementFunction>> all;
  for (const auto& step : steps) all.push_back(step.op->element);
  return all;
}

std::size_t GroupProgram::bytes_read() const {
  std::size_t bytes = 0;
  for (const auto& operand : operands) {
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < loop.size(); ++axis)
      if (operand.strides[axis] != 0) elements *= loop[axis];
    bytes += static_cast<std::size_t>(elements) * size_of(operand.tensor.dtype());
  }
  return bytes;
}

std::size_t GroupProgram::bytes_written() const {
  std::size_t bytes = 0;
  for (const auto& result : results)
    bytes += static_cast<std::size_t>(numel) * size_of(result.dtype);
  return bytes;
}

std::string name_of_value(const Value& value) {
  constexpr const char* kLetters[] = {"x", "c", "t"};
  return fmt::format("{}{}", kLetters[static_cast<int>(value.kind)], value.index);
}

void write_statements(const GroupProgram& program, ElementProgram& to) {
  // Every function rounds by itself, as it does when it is called alone.
  to.preamble = "#pragma OPENCL FP_CONTRACT OFF\n";
  for (std::size_t i = 0; i < program.operands.size(); ++i)
    to.names.push_back(name_of_value({Value::Kind::operand, static_cast<int>(i)}));
  std::vector<bool> is_input(program.numbers.size());
  for (const auto& step : program.steps)
    for (const auto& input : step.inputs)
      if (input.kind == Value::Kind::number) is_input[static_cast<std::size_t>(input.index)] = true;
  for (std::size_t i = 0; i < program.numbers.size(); ++i) {
    to.scalars.push_back(fmt::format("p{}", i));
    if (is_input[i]) to.statements.push_back(fmt::format("const V c{0} = K(p{0});", i));
  }
  std::set<std::string> preambles;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto& step = program.steps[i];
    std::vector<std::string> inputs, scalars;
    for (const auto& input : step.inputs) inputs.push_back(name_of_value(input));
    for (const auto scalar : step.scalars) scalars.push_back(fmt::format("p{}", scalar));
    const auto& function = *step.op->element;
    function.write(program.compute, inputs, scalars, fmt::format("t{}", i), to.statements);
    if (!function.preamble.empty() && preambles.insert(function.preamble).second)
      to.preamble += function.preamble;
  }
}

}  // namespace netcl::fusion
