// What all matrix-product kernels share: y = activate(a b + bias + residual), with strides for
// everything. Defines: T, ACC, LOAD_T, STORE_T; HAS_BIAS (0 or 1), ACTIVATION and HAS_RESIDUAL
// (epilogue.cl).
//
// Sizes and strides come as three vectors, filled by src/ops/matmul/plan.cpp:
//   long8 size  M, N, K, batches, inner batches (the batch index z is outer * inner + rest)
//   long8 sa    row and column strides of a, outer and inner batch strides; the same of b
//   long4 sy    row and column strides of y, outer and inner batch strides

#include "ops/conv2d/epilogue.cl"

#define A_ROW sa.s0
#define A_COL sa.s1
#define B_ROW sa.s4
#define B_COL sa.s5

// Moves the pointers to the matrices of batch z.
#define TO_BATCH(z)                                       \
  {                                                       \
    const long outer = (z) / size.s4;                     \
    const long inner = (z)-outer * size.s4;               \
    a += at.s0 + outer * sa.s2 + inner * sa.s3;           \
    b += at.s1 + outer * sa.s6 + inner * sa.s7;           \
    y += at.s2 + outer * sy.s2 + inner * sy.s3;           \
    bias += at.s3;                                        \
    MOVE_RESIDUAL(at.s4 + outer * sy.s2 + inner * sy.s3); \
  }

#if HAS_BIAS
#define WITH_BIAS(sum, column) ((sum) + LOAD_T(bias, column))
#define WITH_BIASES(sum, column) ((sum) + LOADV(bias, column))  // of vectors
#else
#define WITH_BIAS(sum, column) (sum)
#define WITH_BIASES(sum, column) (sum)
#endif
#define STORE_Y(row, column, sum) FINISH((row)*sy.s0 + (column)*sy.s1, WITH_BIAS(sum, column))
