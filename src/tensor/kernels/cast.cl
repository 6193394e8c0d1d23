// Copies elements between two strided arrays of different dtypes. A work-item owns ITEMS elements,
// one local size apart; the range is guarded, so the global size may be rounded up. Defines: those
// of convert.cl, which says what a conversion means; INDEX, RANK and ITEMS as in copy.cl.

#include "tensor/kernels/convert.cl"
#include "tensor/kernels/index.cl"

// coalescing(cast): as copy: neighbours write neighbours, reads follow the strides of the view.
__kernel void cast(__global const SRC* src, __global DST* dst, ulong n, long dst_offset,
                   long src_offset, long8 sizes, long8 dst_strides, long8 src_strides) {
  ulong at = (ulong)get_group_id(0) * get_local_size(0) * ITEMS + get_local_id(0);
  for (int item = 0; item < ITEMS; ++item, at += get_local_size(0)) {
    if (at >= n) return;
    long d = dst_offset, s = src_offset;
    STRIDED_INDEX((INDEX)at, sizes, dst_strides, src_strides, d, s);
    const V x = LOAD_SRC(src, s);
    STORE_DST(dst, d, x);
  }
}
