// Results of tuning on their way into the TuningStore and out of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernel/program_cache.h"
#include "netcl/autotuner.h"

namespace netcl::tune {

// The element types of the memory arguments, each once, in their order: "float16,float32". Those
// of the signature where an argument does not tell, or without arguments.
std::string dtypes_of(const detail::KernelState& kernel, std::span<const KernelArg> args);

TuningKey key_of(const detail::KernelState& kernel, const WorkSize& global,
                 std::span<const KernelArg> args);

TuningRecord to_record(const AutotuneResult& result);
AutotuneResult from_record(const TuningRecord& record);
// The best size; where the driver's own choice was fastest, the fastest that has a number.
WorkSize explicit_size(const AutotuneResult& result);

// Puts a result into the default store. The file is written at exit, and now when the last time is
// more than two seconds ago: writing waits for the disk, which a launch should not.
void keep(const TuningKey& key, TuningRecord record);

// Raised when what launches remember may no longer be the best that is known.
std::uint64_t results_generation();
void raise_results_generation();

}  // namespace netcl::tune
