// The registry of users' primitives, and their calls.
#include "netcl/primitive.h"

#include <mutex>
#include <shared_mutex>

#include "base/check.h"
#include "base/near_names.h"
#include "kernel/source_scan.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expression/expression_op.h"
#include "ops/primitive/library.h"
#include "ops/registry.h"

namespace netcl {
namespace {

constexpr int kMostArity = 16;
constexpr std::size_t kMostPrepared = 256;  // sets of attributes that are remembered

// The functions' results for one set of attributes, read.
struct Expressions {
  Expression forward;
  std::optional<std::vector<std::optional<Expression>>> gradients;
};

// A call ready to be made: its op, and its numbers as attributes.
struct Prepared {
  const OpDef* op = nullptr;
  Attributes attributes;
};

class Primitive {
 public:
  explicit Primitive(AutogradPrimitive definition) : definition_(std::move(definition)) {
    const auto spec = find_kernel_spec(definition_.name);
    const auto text = (spec ? library_text(*spec) + "\n" : std::string()) + definition_.source;
    const bool own_preamble = spec && spec->preamble;
    library_ = make_library(text, own_preamble ? "" : std::string(PRIMITIVE_PREAMBLE));
    fusible_ = definition_.fusible && !library_.is_exclusive;
    for (int i = 0; i < definition_.arity; ++i) args_.push_back(fmt::format("x{}", i));
  }

  const AutogradPrimitive& definition() const { return definition_; }
  void set_plain(const OpDef* op) { plain_ = std::make_shared<const Prepared>(Prepared{op, {}}); }

  // The op without attributes, whose numbers are part of its text: nothing in it changes.
  OpDef make_plain() const {
    std::string why_not;
    try {
      auto op = op_of(expressions_of({}));
      op.infer = [infer = op.infer](const OpSpec& spec) {
        for (const auto& [name, value] : spec.attributes.entries())
          check<ArgumentError>(name.starts_with("scalar"),
                               "[{}] attributes are given to call_primitive: {}", spec.op.name,
                               name);
        return infer(spec);
      };
      return op;
    } catch (const UserFailure& failure) {
      why_not = failure.what();
    }
    OpDef op;
    op.name = definition_.name;
    op.dtypes = kFloats;
    op.infer = [why_not](const OpSpec&) -> std::vector<TensorSpec> {
      throw ArgumentError(why_not);
    };
    op.host = [](const OpCall&) {};
    return op;
  }

  std::shared_ptr<const Prepared> prepare(const PrimitiveAttributes& attributes) {
    if (attributes.empty()) return plain_;
    const auto key = key_of(attributes);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = prepared_.find(key); found != prepared_.end()) return found->second;
    }
    auto made = std::make_shared<const Prepared>(make_prepared(attributes));
    const std::lock_guard lock(mutex_);
    if (prepared_.size() >= kMostPrepared) prepared_.clear();
    return prepared_.emplace(key, std::move(made)).first->second;
  }

 private:
  // What a user's function threw.
  class UserFailure : public ArgumentError {
   public:
    using ArgumentError::ArgumentError;
  };

  static std::string key_of(const PrimitiveAttributes& attributes) {
    std::string key;
    for (const auto& [name, value] : attributes) {
      key += name;
      key += '\0';
      key.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return key;
  }

  template <class F>
  auto asked(const char* which, const PrimitiveAttributes& attributes, F&& f) const {
    try {
      return f();
    } catch (const std::exception& error) {
      std::vector<std::string> given;
      for (const auto& [name, value] : attributes)
        given.push_back(fmt::format("{}={}", name, value));
      throw UserFailure(fmt::format("[{}] its {} failed for the attributes ({}): {}",
                                    definition_.name, which, join(given, ", "), error.what()));
    }
  }

  Expressions expressions_of(const PrimitiveAttributes& attributes) const {
    const auto& name = definition_.name;
    const auto text =
        asked("forward", attributes, [&] { return definition_.forward(args_, attributes); });
    Expressions result{Expression::parse(name, text, {args_, {}, library_.functions}), {}};
    if (!definition_.backward) return result;
    const auto texts = asked("backward", attributes,
                             [&] { return definition_.backward(args_, "dy", attributes, "y"); });
    check<ArgumentError>(texts.size() == args_.size(),
                         "[{}] backward must give one expression per operand, {}: {}", name,
                         args_.size(), texts.size());
    auto names = args_;
    names.insert(names.end(), {"y", "dy"});
    auto& gradients = result.gradients.emplace();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      gradients.emplace_back();
      if (!texts[i].empty())
        gradients.back() = Expression::parse(fmt::format("{}, gradient {}", name, i), texts[i],
                                             {names, {}, library_.functions});
    }
    return result;
  }

  OpDef op_of(const Expressions& expressions) const {
    ExpressionOp op{definition_.name, expressions.forward, nullptr, fusible_};
    if (expressions.gradients)
      op.gradients =
          std::make_shared<ExpressionGradients>(definition_.name, *expressions.gradients, fusible_);
    return make_expression_op(op);
  }

  Prepared make_prepared(const PrimitiveAttributes& attributes) {
    auto expressions = expressions_of(attributes);
    std::vector<double> numbers;
    const auto parametrised = [&](Expression& expression) {
      expression = expression.with_numbers_as_parameters(number_names(), numbers);
      return expression.structure() + "\n";
    };
    auto structure = parametrised(expressions.forward);
    if (expressions.gradients)
      for (auto& gradient : *expressions.gradients)
        structure += gradient ? parametrised(*gradient) : "none\n";
    return {&forms_.get(structure, [&] { return op_of(expressions); }), number_attributes(numbers)};
  }

  const AutogradPrimitive definition_;
  CLibrary library_;
  bool fusible_ = true;
  std::vector<std::string> args_;
  std::shared_ptr<const Prepared> plain_;
  ExpressionForms forms_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Prepared>> prepared_;
};

// Primitives stay when they are replaced: their ops may be recorded anywhere.
struct Registry {
  std::shared_mutex mutex;
  std::vector<std::unique_ptr<Primitive>> ever;
  std::map<std::string, Primitive*, std::less<>> by_name;
};

Registry& registry() {
  static auto* const instance = new Registry();
  return *instance;
}

Primitive& find(std::string_view name) {
  auto& all = registry();
  const std::shared_lock lock(all.mutex);
  if (const auto found = all.by_name.find(name); found != all.by_name.end()) return *found->second;
  std::vector<std::string> names;
  for (const auto& [known, primitive] : all.by_name) names.push_back(known);
  const auto near = near_names(name, names);
  fail<ArgumentError>("[primitive] there is no primitive called '{}': there are {}{}", name,
                      names.empty() ? "none" : join(names, ", "),
                      near.empty() ? "" : "; did you mean " + join(near, " or ") + "?");
}

void validate(const AutogradPrimitive& primitive) {
  const auto& name = primitive.name;
  check<ArgumentError>(is_identifier(name),
                       "[register_primitive] the name must be a C identifier: '{}'", name);
  check<ArgumentError>(static_cast<bool>(primitive.forward),
                       "[register_primitive {}] there must be a forward function", name);
  check<ArgumentError>(primitive.arity >= 1 && primitive.arity <= kMostArity,
                       "[register_primitive {}] the arity must be 1 ... {}: {}", name, kMostArity,
                       primitive.arity);
}

}  // namespace

void register_primitive(AutogradPrimitive primitive, bool replace) {
  validate(primitive);
  const auto name = primitive.name;
  // Not under the lock: users' functions may do anything, also call primitives.
  auto made = std::make_unique<Primitive>(std::move(primitive));
  auto op = made->make_plain();
  auto& all = registry();
  const std::unique_lock lock(all.mutex);
  check<ArgumentError>(replace || !all.by_name.contains(name),
                       "[register_primitive {}] there is a primitive of this name: replace it, or "
                       "unregister_primitive first",
                       name);
  made->set_plain(&register_op(std::move(op), all.by_name.contains(name)));
  all.by_name[name] = all.ever.emplace_back(std::move(made)).get();
}

void register_primitive(const std::string& name, PrimitiveForward forward,
                        PrimitiveBackward backward, int arity, bool fusible, bool replace) {
  register_primitive({name, std::move(forward), std::move(backward), arity, fusible, {}}, replace);
}

bool unregister_primitive(std::string_view name) {
  auto& all = registry();
  const std::unique_lock lock(all.mutex);
  const auto found = all.by_name.find(name);
  if (found == all.by_name.end()) return false;
  unregister_op(name);
  all.by_name.erase(found);
  return true;
}

AutogradPrimitive get_primitive(std::string_view name) { return find(name).definition(); }

bool has_primitive(std::string_view name) {
  auto& all = registry();
  const std::shared_lock lock(all.mutex);
  return all.by_name.find(name) != all.by_name.end();
}

std::vector<std::string> primitive_names() {
  auto& all = registry();
  const std::shared_lock lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, primitive] : all.by_name) names.push_back(name);
  return names;
}

Tensor call_primitive(std::string_view name, const std::vector<ops::Operand>& operands,
                      const PrimitiveAttributes& attrs) {
  auto& primitive = find(name);
  const auto arity = static_cast<std::size_t>(primitive.definition().arity);
  check<ArgumentError>(operands.size() == arity, "[{}] it takes {} operands: {} were given", name,
                       arity, operands.size());
  std::optional<DType> dtype;
  for (const auto& operand : operands) {
    if (operand.is_number()) continue;
    check<ArgumentError>(static_cast<bool>(operand.tensor()),
                         "[{}] an operand must not be an empty tensor (default-made)", name);
    const auto own = operand.tensor().dtype();
    dtype = dtype ? promoted(*dtype, own) : own;
  }
  check<ArgumentError>(dtype.has_value(), "[{}] at least one operand must be a tensor", name);
  const auto prepared = primitive.prepare(attrs);
  std::vector<Tensor> inputs;
  auto attributes = prepared->attributes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_number()) {
      attributes.set(scalar_input(i), operands[i].number());
      inputs.emplace_back();
    } else {
      inputs.push_back(as_dtype(operands[i].tensor(), floating_of(*dtype)));
    }
  }
  return call_op(*prepared->op, std::move(inputs), attributes)[0];
}

// The folder has ops, but they are the users'.
std::vector<OpDef> ops_of_primitive() { return {}; }

}  // namespace netcl
