#include "device/driver_limits.h"

#include <charconv>

namespace netcl::detail {
namespace {

struct Version {
  int major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};

// "3.0-rc2", "3.1+debian" -> 3, 0 and 3, 1
Version version_of(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, version.major);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '.')
    std::from_chars(first.ptr + 1, end, version.minor);
  return version;
}

bool is_pocl(const ExtendedDeviceProfile& profile) {
  return profile.platform_name == "Portable Computing Language";
}

}  // namespace

std::int64_t max_vector_bytes(const ExtendedDeviceProfile& profile) {
  const bool takes_amd_for_older = is_pocl(profile) && profile.vendor == "AuthenticAMD" &&
                                   version_of(profile.driver_version) < Version{3, 1};
  return takes_amd_for_older ? 32 : 128;
}

bool keeps_programs_itself(const ExtendedDeviceProfile& profile) { return is_pocl(profile); }

}  // namespace netcl::detail
