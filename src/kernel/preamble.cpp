// PRIMITIVE_PREAMBLE. RELU, MAX, MIN and ABS are overloaded through macros over built-in functions
// of every floating type, so that no argument is evaluated twice and NaN is kept: fmax and fmin
// would drop it.
#include "netcl/kernel.h"

namespace netcl {

const std::string_view PRIMITIVE_PREAMBLE = R"(// netcl primitives
#define LOAD(ptr, idx) ((ptr)[(idx)])
#define STORE(ptr, idx, value) ((ptr)[(idx)] = (value))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define SQRT(x) sqrt(x)
#define TANH(x) tanh(x)
#define ABS(x) fabs(x)
#define RELU(x) netcl_relu(x)
#define MAX(a, b) netcl_max(a, b)
#define MIN(a, b) netcl_min(a, b)
#ifndef NETCL_FUNCTION
#define NETCL_FUNCTION static inline __attribute__((overloadable))
NETCL_FUNCTION float netcl_relu(float x) { return x <= 0.0f ? 0.0f : x; }
NETCL_FUNCTION float netcl_max(float a, float b) { return a != a || a > b ? a : b; }
NETCL_FUNCTION float netcl_min(float a, float b) { return a != a || a < b ? a : b; }
NETCL_FUNCTION int netcl_relu(int x) { return x <= 0 ? 0 : x; }
NETCL_FUNCTION int netcl_max(int a, int b) { return a > b ? a : b; }
NETCL_FUNCTION int netcl_min(int a, int b) { return a < b ? a : b; }
NETCL_FUNCTION long netcl_relu(long x) { return x <= 0 ? 0 : x; }
NETCL_FUNCTION long netcl_max(long a, long b) { return a > b ? a : b; }
NETCL_FUNCTION long netcl_min(long a, long b) { return a < b ? a : b; }
#ifdef cl_khr_fp64
NETCL_FUNCTION double netcl_relu(double x) { return x <= 0.0 ? 0.0 : x; }
NETCL_FUNCTION double netcl_max(double a, double b) { return a != a || a > b ? a : b; }
NETCL_FUNCTION double netcl_min(double a, double b) { return a != a || a < b ? a : b; }
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
NETCL_FUNCTION half netcl_relu(half x) { return x <= (half)0 ? (half)0 : x; }
NETCL_FUNCTION half netcl_max(half a, half b) { return a != a || a > b ? a : b; }
NETCL_FUNCTION half netcl_min(half a, half b) { return a != a || a < b ? a : b; }
#endif
#endif
)";

}  // namespace netcl
