// Where a tile of a copy between two strided arrays begins. `tile`: the elements of one along axes
// 0 and 1, and the number of tiles along them, of which the last takes what is left. Gives its
// elements along both, and moves `d` and `s`.
static int2 begin_of_tile(long number, long8 sizes, long8 dst_strides, long8 src_strides,
                          long4 tile, long* d, long* s) {
  const long at0 = number % tile.s2, first0 = at0 * tile.s0;
  number /= tile.s2;
  const long at1 = number % tile.s3, first1 = at1 * tile.s1;
  number /= tile.s3;
  *d += first0 * dst_strides.s0 + first1 * dst_strides.s1;
  *s += first0 * src_strides.s0 + first1 * src_strides.s1;
  if (number > 0) {
    long size[8], to[8], from[8];
    // Halves: PoCL 3.0 cannot store 64 bytes at once on some processors.
    vstore4(sizes.lo, 0, size), vstore4(sizes.hi, 0, size + 4);
    vstore4(dst_strides.lo, 0, to), vstore4(dst_strides.hi, 0, to + 4);
    vstore4(src_strides.lo, 0, from), vstore4(src_strides.hi, 0, from + 4);
    for (int axis = 2; axis < 8 && number > 0; ++axis) {
      const long at = number % size[axis];
      number /= size[axis];
      *d += at * to[axis];
      *s += at * from[axis];
    }
  }
  return (int2)((int)(at0 + 1 == tile.s2 ? sizes.s0 - first0 : tile.s0),
                (int)(at1 + 1 == tile.s3 ? sizes.s1 - first1 : tile.s1));
}
