// Copies elements between two strided arrays on CPUs, a tile per work-item: cuts of axis 0, along
// which dst is walked, and of axis 1, along which src lies closest together, so that whole lines of
// both are used while they are in the cache. Defines: T (a type of the element's size). tile: as in
// tile.cl.

#include "tensor/kernels/tile.cl"

// device(copy_tiles): CPU
__kernel void copy_tiles(__global const T* src, __global T* dst, ulong tiles, long dst_offset,
                         long src_offset, long8 sizes, long8 dst_strides, long8 src_strides,
                         long4 tile) {
  const long number = (long)get_global_id(0);
  if (number >= (long)tiles) return;
  long d = dst_offset, s = src_offset;
  const int2 count = begin_of_tile(number, sizes, dst_strides, src_strides, tile, &d, &s);
  const long to = dst_strides.s0, from = src_strides.s0;
  for (int j = 0; j < count.s1; ++j) {
    global T* y = dst + d + j * dst_strides.s1;
    global const T* x = src + s + j * src_strides.s1;
    if (to == 1)
      for (int i = 0; i < count.s0; ++i) y[i] = x[i * from];
    else
      for (int i = 0; i < count.s0; ++i) y[i * to] = x[i * from];
  }
}
