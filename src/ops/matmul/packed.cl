// For CPUs: both factors are first packed into panels that are read once from beginning to end,
// then a work-item computes a tile of MR rows by NV vectors of VEC columns in registers. No
// barriers, no local memory; a work-group is one work-item. Defines: MR, NV, VEC, ACCV (a vector of
// VEC ACC).
//   matmul_pack_a   panel p holds rows p*MR ...: K groups of MR values; a work-item owns BLOCK_K of
//   k matmul_pack_b   panel p holds columns p*NR ...: K groups of NR = NV * VEC values
//   matmul_packed   global size (row tiles, column tiles, batches); rows vary fastest, so that
//                   neighbours share a panel of b while it is in the cache
// What lies outside the matrices is packed as zero.

#include "ops/matmul/common.cl"

#define NR (NV * VEC)
#define BLOCK_K 128

__kernel void matmul_pack_a(__global const T* a, __global ACC* packed, long8 at, long8 size,
                            long8 sa) {
  const long panel = (long)get_global_id(0), z = (long)get_global_id(2);
  const long start = (long)get_global_id(1) * BLOCK_K, stop = min(start + BLOCK_K, size.s2);
  const long outer = z / size.s4, inner = z - outer * size.s4;
  a += at.s0 + outer * sa.s2 + inner * sa.s3 + panel * MR * A_ROW;
  packed += at.s1 + (z * size.s5 + panel) * MR * size.s2;
  const long rows = min((long)MR, size.s0 - panel * MR);
  for (long k = start; k < stop; ++k)
#pragma unroll
    for (int i = 0; i < MR; ++i)
      packed[k * MR + i] = i < rows ? LOAD_T(a, i * A_ROW + k * A_COL) : (ACC)0;
}

__kernel void matmul_pack_b(__global const T* b, __global ACC* packed, long8 at, long8 size,
                            long8 sa) {
  const long panel = (long)get_global_id(0), z = (long)get_global_id(2);
  const long start = (long)get_global_id(1) * BLOCK_K, stop = min(start + BLOCK_K, size.s2);
  const long outer = z / size.s4, inner = z - outer * size.s4;
  b += at.s0 + outer * sa.s6 + inner * sa.s7 + panel * NR * B_COL;
  packed += at.s1 + (z * size.s6 + panel) * NR * size.s2;
  const long columns = min((long)NR, size.s1 - panel * NR);
  if (columns == NR && B_COL == 1) {
    for (long k = start; k < stop; ++k)
      for (int j = 0; j < NR; ++j) packed[k * NR + j] = LOAD_T(b, k * B_ROW + j);
  } else {
    for (long k = start; k < stop; ++k)
      for (int j = 0; j < NR; ++j)
        packed[k * NR + j] = j < columns ? LOAD_T(b, k * B_ROW + j * B_COL) : (ACC)0;
  }
}

// device(matmul_packed, matmul_pack_a, matmul_pack_b): CPU
__kernel void matmul_packed(__global const ACC* a, __global const ACC* b, __global T* y,
                            __global const T* bias RESIDUAL_PARAMETER, long8 at, long8 size,
                            long8 sa, long4 sy) {
  const long tile_m = (long)get_global_id(0), tile_n = (long)get_global_id(1);
  const long z = (long)get_global_id(2);
  const long outer = z / size.s4, inner = z - outer * size.s4;
  // A batch whose factor repeats (stride 0) was packed once.
  const long a_batch = sa.s2 * outer + sa.s3 * inner, b_batch = sa.s6 * outer + sa.s7 * inner;
  a += at.s0 + (a_batch * size.s5 + tile_m) * MR * size.s2;
  b += at.s1 + (b_batch * size.s6 + tile_n) * NR * size.s2;
  y += at.s2 + outer * sy.s2 + inner * sy.s3;
  bias += at.s3;
  MOVE_RESIDUAL(at.s4 + outer * sy.s2 + inner * sy.s3);

  ACCV sum[MR][NV];
#pragma unroll
  for (int i = 0; i < MR; ++i)
#pragma unroll
    for (int j = 0; j < NV; ++j) sum[i][j] = (ACCV)(0);
  for (long k = 0; k < size.s2; ++k) {
    ACCV column[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) column[j] = VLOAD(j, b);
#pragma unroll
    for (int i = 0; i < MR; ++i) {
      const ACCV value = (ACCV)(a[i]);
#pragma unroll
      for (int j = 0; j < NV; ++j) sum[i][j] = MULTIPLY_ADD(value, column[j], sum[i][j]);
    }
    a += MR;
    b += NR;
  }

  const long row = tile_m * MR, first = tile_n * NR;
#pragma unroll
  for (int i = 0; i < MR; ++i) {
    if (row + i >= size.s0) continue;
#pragma unroll
    for (int j = 0; j < NV; ++j) {
      ACC lanes[VEC];
      STORE_LANES(sum[i][j], lanes);
      const long column = first + j * VEC, count = min((long)VEC, size.s1 - column);
      if (count == VEC) {
        for (int lane = 0; lane < VEC; ++lane) STORE_Y(row + i, column + lane, lanes[lane]);
      } else {
        for (int lane = 0; lane < count; ++lane) STORE_Y(row + i, column + lane, lanes[lane]);
      }
    }
  }
}
