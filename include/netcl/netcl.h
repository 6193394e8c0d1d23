// All of netcl.
#pragma once

#include "netcl/backend.h"
#include "netcl/capabilities.h"
#include "netcl/device.h"
#include "netcl/dtype.h"
#include "netcl/environment.h"
#include "netcl/error.h"
#include "netcl/kernel.h"
#include "netcl/memory.h"
#include "netcl/opencl.h"
#include "netcl/runtime.h"
#include "netcl/shape.h"
#include "netcl/tensor.h"
#include "netcl/version.h"
