// Properties of real devices as their drivers and data sheets publish them, so that profiles and
// kernel rules can be tested for hardware that the machine does not have.
#pragma once

#include <string_view>
#include <vector>

#include "netcl/capabilities.h"

namespace netcl::test {

struct RecordedDevice {
  std::string_view label;  // how tests call it: "rtx_2080_ti"
  DeviceQueries queries;
  double published_tflops = 0;  // float32, from the data sheet; 0 where there is none
  double published_gbs = 0;     // memory bandwidth, likewise
};

const std::vector<RecordedDevice>& recorded_devices();
// Throws std::out_of_range for a label that is not recorded.
const RecordedDevice& recorded(std::string_view label);
inline ExtendedDeviceProfile recorded_profile(std::string_view label) {
  return make_profile(recorded(label).queries);
}

}  // namespace netcl::test
