// Saving and restoring signal handlers around calls into drivers.
#include "base/signals.h"

namespace netcl {

KeepSignalHandlers::KeepSignalHandlers() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
}

KeepSignalHandlers::~KeepSignalHandlers() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace netcl
