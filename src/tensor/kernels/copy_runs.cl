// Copies between two strided arrays whose innermost axis is contiguous in both, on CPUs: a tile of
// runs per work-item. Axis 0 and all strides and offsets are in bytes, so one kernel serves every
// type. Defines: LONGEST, STREAMS (run.cl). tile: as in tile.cl.

#include "tensor/kernels/run.cl"
#include "tensor/kernels/tile.cl"

// device(copy_runs): CPU
__kernel void copy_runs(__global const uchar* src, __global uchar* dst, ulong tiles,
                        long dst_offset, long src_offset, long8 sizes, long8 dst_strides,
                        long8 src_strides, long4 tile) {
  const long number = (long)get_global_id(0);
  if (number >= (long)tiles) return;
  long d = dst_offset, s = src_offset;
  const int2 count = begin_of_tile(number, sizes, dst_strides, src_strides, tile, &d, &s);
  for (int j = 0; j < count.s1; ++j)
    copy_run(src + s + j * src_strides.s1, dst + d + j * dst_strides.s1, count.s0);
}
