// Do the data's classes fit the model's?
#pragma once

#include <string>
#include <vector>

namespace netcl::train {

// ArgumentError unless the data's are the first of the model's.
void check_classes(const char* op, const std::vector<std::string>& model,
                   const std::vector<std::string>& data);

}  // namespace netcl::train
