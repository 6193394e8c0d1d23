// What a user's program sees: one include, the version, the devices.
#include <netcl/netcl.h>

#include <iostream>

int main() {
  std::cout << "netcl " << NETCL_VERSION << " sees " << netcl::manager().discover().size()
            << " device(s)\n";
}
