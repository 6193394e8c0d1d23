// How the kernel of a group is written for a device and launched there.
#pragma once

#include "jit/group_program.h"

namespace netcl::fusion {

int vector_width(const ExtendedDeviceProfile& profile, DType compute, const ElementArgs& args);
ElementShape launch_shape(const Queue& queue, const GroupProgram& program,
                          const ElementProgram& described, const ElementArgs& args,
                          const BroadcastLoops& loops);
void append_shape(std::string& key, const ElementProgram& described, const ElementShape& shape);
// The expression that is stored for a value.
std::string result_text(const Value& value, DType dtype);

std::string elements_source(const GroupProgram& program, ElementProgram described,
                            const ElementShape& shape);
// As it would be written for a GPU: for people, where there is no OpenCL device.
ElementProgram described_without_device(const GroupProgram& program);
std::string elements_source(const GroupProgram& program);

}  // namespace netcl::fusion
