// nn::Module for subclasses in Python: tensors and modules that are assigned to attributes are
// found by parameters(), state_dict(), to() and so on.
#pragma once

#include <nanobind/trampoline.h>

#include "common.h"
#include "netcl/nn.h"

namespace netcl::python {

class PythonModule : public nn::Module {
 public:
  NB_TRAMPOLINE(nn::Module);

  std::string type() const override {
    nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb_trampoline.base().type().attr("__name__"));
  }
  Tensor forward(const Tensor& x) override {
    {
      nb::gil_scoped_acquire lock;
      nb::handle own = nb_trampoline.base().type();
      if (own.attr("forward").is(nb::type<nn::Module>().attr("forward"))) {
        PyErr_SetString(PyExc_NotImplementedError,
                        ("[Module] a subclass must define forward(): " + type()).c_str());
        throw nb::python_error();
      }
    }
    NB_OVERRIDE_PURE(forward, x);
  }

  void set_parameter(const std::string& name, const Tensor& tensor) {
    remove(name);
    tensors_[name] = std::make_unique<Tensor>(tensor);
    add_parameter(name, *tensors_[name]);
  }
  void set_buffer(const std::string& name, const Tensor& tensor) {
    remove(name);
    tensors_[name] = std::make_unique<Tensor>(tensor);
    add_buffer(name, *tensors_[name]);
    buffers_.push_back(name);
  }
  void set_child(const std::string& name, nn::ModulePtr module) {
    remove(name);
    add_module(name, std::move(module));
  }
  bool remove(const std::string& name) {
    std::erase(buffers_, name);
    tensors_.erase(name);
    return forget(name);
  }
  bool is_buffer(const std::string& name) const {
    return std::find(buffers_.begin(), buffers_.end(), name) != buffers_.end();
  }
  const Tensor* find_tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.get();
  }

 private:
  std::map<std::string, std::unique_ptr<Tensor>> tensors_;  // where the base class points
  std::vector<std::string> buffers_;
};

}  // namespace netcl::python
