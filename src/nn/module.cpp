#include <map>
#include <set>

#include "base/check.h"
#include "netcl/autograd.h"
#include "netcl/nn.h"
#include "nn/together.h"
#include "ops/attributes.h"
#include "tensor/access.h"

namespace netcl::nn {

// Walks the tree; names are paths.
struct ModuleAccess {
  template <class F>
  static void for_each(const Module& module, const std::string& prefix, F&& f) {
    f(module, prefix);
    for (const auto& [name, child] : module.children_) for_each(*child, prefix + name + ".", f);
  }

  using List = std::vector<std::pair<std::string, Tensor*>> Module::*;
  static std::vector<NamedTensor> collected(const Module& module, List list) {
    std::vector<NamedTensor> result;
    for_each(module, "", [&](const Module& one, const std::string& prefix) {
      for (const auto& [name, tensor] : one.*list) result.push_back({prefix + name, *tensor});
    });
    return result;
  }
  // Every tensor by what f makes of it; marks stay, and what was one tensor stays one.
  template <class F>
  static void replace(Module& module, F&& f) {
    const no_grad off;
    std::map<std::shared_ptr<detail::GradState>, Tensor> done;
    for_each(module, "", [&](const Module& one, const std::string&) {
      for (const auto& list : {one.parameters_, one.buffers_})
        for (const auto& [name, tensor] : list) {
          const auto state = TensorAccess::grad_state(*tensor);
          if (const auto same = done.find(state); same != done.end()) {
            *tensor = same->second;
            continue;
          }
          auto changed = f(tensor->detach());
          if (changed.shares_storage(*tensor)) continue;
          const bool followed = static_cast<bool>(Node::of(*tensor));
          *tensor = std::move(changed);
          if (state == nullptr) continue;
          tensor->set_requires_grad();
          if (!followed) Tensor(*tensor).set_requires_grad(false);
          done.emplace(state, *tensor);
        }
    });
  }
  static std::vector<NamedTensor> parameters(const Module& module) {
    return collected(module, &Module::parameters_);
  }
  static std::vector<NamedTensor> buffers(const Module& module) {
    return collected(module, &Module::buffers_);
  }
};

static_assert(std::is_same_v<ConfigValue, AttributeValue>, "they are written alike");

void Module::add_parameter(std::string name, Tensor& member) {
  if (!member) return;  // a layer without its bias
  member.set_requires_grad();
  parameters_.emplace_back(std::move(name), &member);
}

void Module::add_buffer(std::string name, Tensor& member) {
  buffers_.emplace_back(std::move(name), &member);
}

void Module::add_module(std::string name, ModulePtr module) {
  check<ArgumentError>(module != nullptr, "[{}] the module '{}' must not be null", type(), name);
  children_.emplace_back(std::move(name), std::move(module));
}

bool Module::forget(const std::string& name) {
  const auto is_it = [&](const auto& one) { return one.first == name; };
  return std::erase_if(parameters_, is_it) + std::erase_if(buffers_, is_it) +
             std::erase_if(children_, is_it) >
         0;
}

// A tensor that several modules share is trained once, under its first name.
std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> result;
  std::set<std::shared_ptr<detail::GradState>> seen;
  for (auto& one : ModuleAccess::parameters(*this)) {
    const auto& state = TensorAccess::grad_state(one.tensor);
    if (state == nullptr || seen.insert(state).second) result.push_back(std::move(one));
  }
  return result;
}
std::vector<NamedTensor> Module::named_buffers() const { return ModuleAccess::buffers(*this); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (const auto& one : named_parameters()) result.push_back(one.tensor);
  return result;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& tensor : parameters()) count += tensor.numel();
  return count;
}

std::vector<NamedTensor> Module::state_dict() const {
  auto state = ModuleAccess::parameters(*this);  // by all names, which files have too
  for (auto& buffer : named_buffers()) state.push_back(std::move(buffer));
  return state;
}

void Module::load_state_dict(const std::vector<NamedTensor>& state, bool strict) {
  std::map<std::string, Tensor> own;
  for (const auto& one : state_dict()) own.emplace(one.name, one.tensor);
  std::vector<std::pair<Tensor, Tensor>> copies;  // made when everything fits
  std::map<std::string, bool> seen;
  for (const auto& [name, tensor] : state) {
    const auto found = own.find(name);
    if (found == own.end()) {
      check<ArgumentError>(!strict, "[load_state_dict] the model has no tensor '{}'", name);
      continue;
    }
    check<ArgumentError>(!seen[name], "[load_state_dict] '{}' comes twice", name);
    seen[name] = true;
    if (!(tensor.shape() == found->second.shape()))
      fail<ShapeError>("[load_state_dict] '{}' must have the shape {}: {}", name,
                       found->second.shape().to_string(), tensor.shape().to_string());
    check<DtypeError>(is_floating(tensor.dtype()) == is_floating(found->second.dtype()),
                      "[load_state_dict] '{}' must be {}: {}", name, name_of(found->second.dtype()),
                      name_of(tensor.dtype()));
    copies.emplace_back(found->second, tensor);
  }
  for (const auto& [name, tensor] : own)
    check<ArgumentError>(!strict || seen[name], "[load_state_dict] '{}' is missing", name);
  const no_grad off;
  for (const auto& [to, from] : copies) to.copy_from(from);
}

Module& Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
  return *this;
}

Module& Module::to(const Queue& queue) {
  ModuleAccess::replace(*this, [&](const Tensor& tensor) { return tensor.to(queue); });
  return *this;
}

Module& Module::astype(DType dtype) {
  check<DtypeError>(is_floating(dtype), "[astype] the dtype of a model must be floating: {}",
                    name_of(dtype));
  ModuleAccess::replace(*this, [&](const Tensor& tensor) {
    return is_floating(tensor.dtype()) ? tensor.astype(dtype) : tensor;
  });
  return *this;
}

Module& Module::to(std::string_view selector) {
  return to(manager().default_device(selector).queue);
}

void Module::set_requires_grad(bool on) {
  for (const auto& [name, tensor] : parameters_)
    on ? tensor->set_requires_grad() : Tensor(*tensor).set_requires_grad(false);
  for (const auto& [name, child] : children_) child->set_requires_grad(on);
}

void Module::zero_grad() const {
  for (const auto& tensor : parameters())
    if (tensor.requires_grad()) tensor.set_grad({});
}

std::string Module::describe() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : config())
    parts.push_back(fmt::format("{}={}", name, value_text(value)));
  return fmt::format("{}({})", type(), join(parts, ", "));
}

std::string Module::to_string() const {
  std::string text;
  ModuleAccess::for_each(*this, "", [&](const Module& module, const std::string& prefix) {
    const auto depth = static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.'));
    const auto path = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ";
    text += fmt::format("{}{}{}\n", std::string(2 * depth, ' '), path, module.describe());
  });
  return text;
}

// ---- Sequential

Sequential::Sequential(std::vector<ModulePtr> modules) {
  for (auto& module : modules) append(std::move(module));
}

void Sequential::append(ModulePtr module) {
  add_module(std::to_string(children().size()), std::move(module));
}

Tensor Sequential::forward(const Tensor& x) {
  return forward_layers(children(), children().size(), x);
}

Tensor forward_layers(const Layers& layers, std::size_t count, const Tensor& x) {
  auto y = x;
  for (std::size_t i = 0; i < count;) {
    const auto& [name, module] = layers[i];
    const auto where = [&, &layer = name, &one = module](const std::exception& error) {
      return fmt::format("{}\n  in layer {}, {}, given {}", error.what(), layer, one->describe(),
                         y.shape().to_string());
    };
    try {
      const auto together = layers_together(layers, i);
      y = together ? together.forward(y) : module->forward(y);
      i += std::max<std::size_t>(together.count, 1);
    } catch (const ShapeError& error) {
      throw ShapeError(where(error));
    } catch (const DtypeError& error) {
      throw DtypeError(where(error));
    }
  }
  return y;
}

}  // namespace netcl::nn
