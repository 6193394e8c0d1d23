// Copies elements between two strided arrays, without conversion. One work-item owns one element;
// the range is guarded, so the global size may be rounded up.
// Defines: T (a type of the element's size), INDEX (uint or ulong, holds n), RANK (1 to 8).
// Axis 0 of the vectors is the innermost one.

#include "tensor/kernels/index.cl"

__kernel void copy(__global const T* src, __global T* dst, ulong n, long dst_offset,
                   long src_offset, long8 sizes, long8 dst_strides, long8 src_strides) {
  const INDEX gid = (INDEX)get_global_id(0);
  if (gid >= n) return;
  long d = dst_offset, s = src_offset;
  STRIDED_INDEX(gid, sizes, dst_strides, src_strides, d, s);
  dst[d] = src[s];
}
