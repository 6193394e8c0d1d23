// Looking at an OpenCL installation from outside: what is there, what is missing, and the command
// that would fix it. `netcl doctor` prints it.
#pragma once

#include <string>
#include <vector>

namespace netcl {

enum class CheckStatus { good, warning, problem };

struct InstallationCheck {
  CheckStatus status = CheckStatus::good;
  std::string subject;  // "OpenCL loader", "driver file pocl.icd", "cache directory"
  std::string finding;
  std::string fix;  // a command or an advice; empty when nothing is wrong
};

// Loader, driver files and the libraries they name, device files and their permissions, platforms
// that fail, and the cache directory. Never throws for what it finds.
std::vector<InstallationCheck> check_installation();

// The end of a message to somebody who wants a device that is not there: which ones there are and,
// where no OpenCL device is, what to install.
std::string device_advice();

}  // namespace netcl
