// conv2d with a patch of the input in local memory, one channel at a time. A work-group owns a
// rectangle of pixels of y, its own size (any), times FILTERS filters; a work-item one pixel of it.
// Dimensions: pixels across, pixels down, (n, group, block of filters). `patch` holds what the
// rectangle sees: patch_h x patch_w. Needs T and ACC, FILTERS, ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

// occupancy(conv2d_tiled_local): what a pixel sees with large strides and dilations, in float64,
// takes more local memory than half of the items leave.
// coalescing(conv2d_tiled_local): the patch is filled along its rows, neighbours by neighbours; all
// items of a group read the same weights; neighbours write neighbours.
kernel void conv2d_tiled_local(global const T* x, global const T* w, global const T* b,
                               global T* y RESIDUAL_PARAMETER, const long8 at, const int16 g,
                               const int has_bias, const int patch_h, const int patch_w,
                               local ACC* patch) {
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS, blocks = (Kg + FILTERS - 1) / FILTERS;
  const int block = get_group_id(2) % blocks, group = get_group_id(2) / blocks % GROUPS;
  const long n = get_group_id(2) / (blocks * GROUPS);
  const int across = get_local_id(0), down = get_local_id(1);
  const int q0 = get_group_id(0) * get_local_size(0), p0 = get_group_id(1) * get_local_size(1);
  const int h0 = p0 * STRIDE_H - PAD_H, w0 = q0 * STRIDE_W - PAD_W;
  const int items = get_local_size(0) * get_local_size(1);
  const int k0 = group * Kg + block * FILTERS, filters = min(FILTERS, Kg - block * FILTERS);
  ACC sums[FILTERS];
#pragma unroll
  for (int f = 0; f < FILTERS; ++f) sums[f] = 0;
  for (int c = 0; c < Cg; ++c) {
    const long plane = (n * C + (long)group * Cg + c) * H;
    for (int i = down * get_local_size(0) + across; i < patch_h * patch_w; i += items) {
      const int h = h0 + i / patch_w, v = w0 + i % patch_w;
      const bool inside = h >= 0 && h < H && v >= 0 && v < W;
      patch[i] = inside ? LOAD_T(x, (plane + h) * W + v) : (ACC)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < R; ++r)
      for (int s = 0; s < S; ++s) {
        const ACC value =
            patch[(down * STRIDE_H + r * DIL_H) * patch_w + across * STRIDE_W + s * DIL_W];
        // All of them, the last one again where there are fewer: sums with a variable number in use
        // would live in memory.
#pragma unroll
        for (int f = 0; f < FILTERS; ++f)
          sums[f] +=
              value * LOAD_T(w, (((long)(k0 + min(f, filters - 1)) * Cg + c) * R + r) * S + s);
      }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const int p = p0 + down, q = q0 + across;
  if (p >= P || q >= Q) return;
#pragma unroll
  for (int f = 0; f < FILTERS; ++f) {
    if (f >= filters) break;
    const ACC bias = has_bias ? LOAD_T(b, k0 + f) : (ACC)0;
    FINISH(((n * K + k0 + f) * P + p) * Q + q, sums[f] + bias);
  }
}
