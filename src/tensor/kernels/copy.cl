// Copies elements between two strided arrays, without conversion. A work-item owns ITEMS elements,
// one local size apart, so that neighbours touch neighbours; the range is guarded, so the global
// size may be rounded up. Defines: T (a type of the element's size), INDEX (uint or ulong, holds
// n), RANK (1 to 8), ITEMS. Axis 0 of the vectors is the innermost one.

#include "tensor/kernels/index.cl"

// coalescing(copy): neighbouring items write neighbouring elements of dst, whose order the loops
// follow; reads are as far apart as the view says.
__kernel void copy(__global const T* src, __global T* dst, ulong n, long dst_offset,
                   long src_offset, long8 sizes, long8 dst_strides, long8 src_strides) {
  ulong at = (ulong)get_group_id(0) * get_local_size(0) * ITEMS + get_local_id(0);
  for (int item = 0; item < ITEMS; ++item, at += get_local_size(0)) {
    if (at >= n) return;
    long d = dst_offset, s = src_offset;
    STRIDED_INDEX((INDEX)at, sizes, dst_strides, src_strides, d, s);
    dst[d] = src[s];
  }
}
