// Exceptions of netcl as exceptions of Python. The classes are in netcl/errors.py, where each
// derives from the built-in that a Python program would expect.
#include "common.h"
#include "netcl/autograd.h"

namespace netcl::python {
namespace {

void raise_error(const char* name, const std::exception& error,
                 const std::vector<std::pair<const char*, nb::object>>& attributes = {}) {
  nb::object type = nb::module_::import_("netcl.errors").attr(name);
  nb::object value = type(nb::str(error.what()));
  for (const auto& [attribute, content] : attributes) value.attr(attribute) = content;
  PyErr_SetObject(type.ptr(), value.ptr());
}

// Derived classes before their bases.
void translate_error(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const ShapeError& e) {
    raise_error("ShapeError", e);
  } catch (const ArgumentError& e) {
    raise_error("ArgumentError", e);
  } catch (const DtypeError& e) {
    raise_error("DtypeError", e);
  } catch (const BuildError& e) {
    raise_error("BuildError", e,
                {{"log", nb::cast(e.log())},
                 {"device", nb::cast(e.device())},
                 {"options", nb::cast(e.options())}});
  } catch (const DeviceError& e) {
    raise_error(
        "DeviceError", e,
        {{"call", nb::cast(e.call())}, {"code", nb::cast(e.code())}, {"name", nb::cast(e.name())}});
  } catch (const OutOfMemory& e) {
    raise_error("OutOfMemory", e,
                {{"requested", nb::cast(e.requested())},
                 {"in_use", nb::cast(e.in_use())},
                 {"cached", nb::cast(e.cached())}});
  } catch (const ForkError& e) {
    raise_error("ForkError", e);
  } catch (const FormatError& e) {
    raise_error("FormatError", e);
  } catch (const FileError& e) {
    raise_error("FileError", e);
  } catch (const TimeoutError& e) {
    raise_error("TimeoutError", e);
  } catch (const AnomalyError& e) {
    raise_error("AnomalyError", e);
  } catch (const Error& e) {
    raise_error("Error", e);
  }
}

bool unpickled_in_fork = false;

void raise_error_of_fork() {
  raise_error(
      "ForkError",
      ForkError("[unpickle] tensors cannot be used in a forked child of a process that used "
                "OpenCL: start workers with spawn"));
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Interrupted& e) {
    restore_interrupt(e);
  } catch (const Error&) {
    if (unpickled_in_fork) return raise_error_of_fork();
    translate_error(pointer);
  } catch (const std::bad_cast&) {
    // An object inside of a list or dict, of which the signature says nothing.
    raise_error("DtypeError",
                DtypeError("[arguments] an object has a type that does not fit here"));
  }
}

}  // namespace

void set_unpickled_in_fork() { unpickled_in_fork = true; }

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace netcl::python
