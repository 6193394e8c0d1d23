#include "kernel/driver_options.h"

namespace netcl {

std::string_view driver_options(const ExtendedDeviceProfile& profile) {
  return profile.platform_name == "Oclgrind" ? " -cl-opt-disable" : "";
}

bool keeps_programs_itself(const ExtendedDeviceProfile& profile) {
  return profile.platform_name == "Portable Computing Language";
}

}  // namespace netcl
