// The text of a tuning file: parsing that trusts nothing, and writing. Knows no paths, no locks.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "netcl/tuning_store.h"

namespace netcl {

// Shared and never changed, so that copying a whole table costs little.
using TuningTable = std::map<TuningKey, std::shared_ptr<const TuningRecord>>;

inline constexpr std::size_t kMaxTuningFileBytes = std::size_t{64} << 20;

// FormatError, naming `path`, on anything that tuning_text would not have written.
TuningTable parse_tuning_file(std::span<const std::byte> bytes, const std::string& path);
std::string tuning_text(const TuningTable& table);

// ArgumentError on what a file could not hold: sizes of 0, times that are no numbers, odd names.
void check_tuning_entry(const TuningKey& key, const TuningRecord& record);

// Names of devices may hold bytes that are not UTF-8, which JSON cannot: those become U+FFFD.
bool is_plain_ascii(const TuningKey& key) noexcept;
TuningKey with_valid_utf8(TuningKey key);
std::string with_valid_utf8(const std::string& text);

}  // namespace netcl
