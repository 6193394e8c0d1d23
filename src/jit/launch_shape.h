// How the kernel of a group is written for a device and launched there.
#pragma once

#include "jit/group_program.h"

namespace netcl::fusion {

struct LaunchShape {
  int vec = 1, items = 1;
  std::int64_t local = 64;
};

int vector_width(const Queue& queue, const GroupProgram& program);
LaunchShape launch_shape(const Queue& queue, const GroupProgram& program,
                         const ElementProgram& described);
void append_shape(std::string& key, const ElementProgram& described, const LaunchShape& shape);
// The expression that is stored for a value.
std::string result_text(const Value& value, DType dtype);

std::string elements_source(const GroupProgram& program, ElementProgram described,
                            const LaunchShape& shape);
// As it would be written for a GPU: for people, where there is no OpenCL device.
ElementProgram described_without_device(const GroupProgram& program);
std::string elements_source(const GroupProgram& program);

}  // namespace netcl::fusion
