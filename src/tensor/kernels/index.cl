// Turns the number of an element into its place in two strided arrays.
// Defines: INDEX, RANK (1 to 8). The outermost axis needs no division.

#define AXIS_LAST(i, rest, sizes, dst_strides, src_strides, d, s) \
  d += (long)rest * dst_strides.s##i;                             \
  s += (long)rest * src_strides.s##i;

#define AXIS(i, rest, sizes, dst_strides, src_strides, d, s) \
  {                                                          \
    const INDEX size = (INDEX)sizes.s##i;                    \
    const INDEX next = rest / size;                          \
    const long at = (long)(rest - next * size);              \
    d += at * dst_strides.s##i;                              \
    s += at * src_strides.s##i;                              \
    rest = next;                                             \
  }

#if RANK == 1
#define AXES(...) AXIS_LAST(0, __VA_ARGS__)
#elif RANK == 2
#define AXES(...) AXIS(0, __VA_ARGS__) AXIS_LAST(1, __VA_ARGS__)
#elif RANK == 3
#define AXES(...) AXIS(0, __VA_ARGS__) AXIS(1, __VA_ARGS__) AXIS_LAST(2, __VA_ARGS__)
#elif RANK == 4
#define AXES(...) \
  AXIS(0, __VA_ARGS__) AXIS(1, __VA_ARGS__) AXIS(2, __VA_ARGS__) AXIS_LAST(3, __VA_ARGS__)
#elif RANK == 5
#define AXES(...)      \
  AXIS(0, __VA_ARGS__) \
  AXIS(1, __VA_ARGS__) AXIS(2, __VA_ARGS__) AXIS(3, __VA_ARGS__) AXIS_LAST(4, __VA_ARGS__)
#elif RANK == 6
#define AXES(...)      \
  AXIS(0, __VA_ARGS__) \
  AXIS(1, __VA_ARGS__) \
  AXIS(2, __VA_ARGS__) AXIS(3, __VA_ARGS__) AXIS(4, __VA_ARGS__) AXIS_LAST(5, __VA_ARGS__)
#elif RANK == 7
#define AXES(...)      \
  AXIS(0, __VA_ARGS__) \
  AXIS(1, __VA_ARGS__) \
  AXIS(2, __VA_ARGS__) \
  AXIS(3, __VA_ARGS__) AXIS(4, __VA_ARGS__) AXIS(5, __VA_ARGS__) AXIS_LAST(6, __VA_ARGS__)
#else
#define AXES(...)      \
  AXIS(0, __VA_ARGS__) \
  AXIS(1, __VA_ARGS__) \
  AXIS(2, __VA_ARGS__) \
  AXIS(3, __VA_ARGS__) \
  AXIS(4, __VA_ARGS__) AXIS(5, __VA_ARGS__) AXIS(6, __VA_ARGS__) AXIS_LAST(7, __VA_ARGS__)
#endif

#define STRIDED_INDEX(gid, sizes, dst_strides, src_strides, d, s) \
  {                                                               \
    INDEX rest = gid;                                             \
    AXES(rest, sizes, dst_strides, src_strides, d, s)             \
  }
