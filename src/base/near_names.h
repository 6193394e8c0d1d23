// Names that somebody may have meant, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace netcl {

// Those that differ from `word` in a third of its letters or fewer, or only in case; nearest first,
// at most three.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names);

}  // namespace netcl
