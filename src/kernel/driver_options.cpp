#include "kernel/driver_options.h"

namespace netcl {

std::string_view driver_options(const ExtendedDeviceProfile& profile) {
  return profile.platform_name == "Oclgrind" ? " -cl-opt-disable" : "";
}

}  // namespace netcl
