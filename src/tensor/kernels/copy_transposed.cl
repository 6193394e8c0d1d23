// Copies between two strided arrays on CPUs where dst is contiguous along axis 0 and src along axis
// 1: a tile per work-item, in square blocks of VEC x VEC elements that are turned around in
// registers, so that memory is read and written by whole vectors. The last block along an axis
// overlaps the one before; a tile that is narrower than VEC takes smaller blocks, and one of less
// than 4 goes element by element. Defines: T (a type of the element's size), WORDS (T has four
// bytes), VEC (4, 8 or 16), STREAMS (vectors of dst that lie at multiples of their size are written
// past the caches). tile: as in tile.cl.

#include "tensor/kernels/stream.cl"
#include "tensor/kernels/tile.cl"

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

// TURN(N, v, t): lane j of vector i becomes lane i of vector j; t is of the same size.
#if WORDS
// The exchanges that the vector units have instructions for: of elements and pairs within 16 bytes,
// then of 16 bytes between vectors.
#define EVEN_PAIRS4 s01
#define ODD_PAIRS4 s23
#define EVEN_PAIRS8 s0145
#define ODD_PAIRS8 s2367
#define EVEN_PAIRS16 s014589cd
#define ODD_PAIRS16 s2367abef
#define EVEN_QUADS s012389ab
#define ODD_QUADS s4567cdef
#define TURN_QUADS4(v, t)
#define TURN_QUADS8(v, t)                                     \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) {             \
    t[s].lo = v[2 * s].lo, t[s].hi = v[2 * s + 1].lo;         \
    t[4 + s].lo = v[2 * s].hi, t[4 + s].hi = v[2 * s + 1].hi; \
  }                                                           \
  _Pragma("unroll") for (int s = 0; s < 8; ++s) v[s] = t[s];
#define TURN_QUADS16(v, t)                                                        \
  _Pragma("unroll") for (int s = 0; s < 16; s += 2) {                             \
    t[s].lo = v[s].EVEN_QUADS, t[s].hi = v[s + 1].EVEN_QUADS;                     \
    t[s + 1].lo = v[s].ODD_QUADS, t[s + 1].hi = v[s + 1].ODD_QUADS;               \
  }                                                                               \
  _Pragma("unroll") for (int s = 0; s < 4; ++s) {                                 \
    v[s].lo = t[4 * s].EVEN_QUADS, v[s].hi = t[4 * s + 2].EVEN_QUADS;             \
    v[4 + s].lo = t[4 * s + 1].EVEN_QUADS, v[4 + s].hi = t[4 * s + 3].EVEN_QUADS; \
    v[8 + s].lo = t[4 * s].ODD_QUADS, v[8 + s].hi = t[4 * s + 2].ODD_QUADS;       \
    v[12 + s].lo = t[4 * s + 1].ODD_QUADS, v[12 + s].hi = t[4 * s + 3].ODD_QUADS; \
  }
#define TURN(N, v, t)                                                                    \
  _Pragma("unroll") for (int i = 0; i < N; i += 2) {                                     \
    t[i].even = v[i].GLUE(EVEN_PAIRS, N), t[i].odd = v[i + 1].GLUE(EVEN_PAIRS, N);       \
    t[i + 1].even = v[i].GLUE(ODD_PAIRS, N), t[i + 1].odd = v[i + 1].GLUE(ODD_PAIRS, N); \
  }                                                                                      \
  _Pragma("unroll") for (int g = 0; g < N / 4; ++g)                                      \
      _Pragma("unroll") for (int s = 0; s < 2; ++s) {                                    \
    const int i = 4 * g + s, even = 2 * s * (N / 4) + g, odd = even + N / 4;             \
    v[even].GLUE(EVEN_PAIRS, N) = t[i].GLUE(EVEN_PAIRS, N);                              \
    v[even].GLUE(ODD_PAIRS, N) = t[i + 2].GLUE(EVEN_PAIRS, N);                           \
    v[odd].GLUE(EVEN_PAIRS, N) = t[i].GLUE(ODD_PAIRS, N);                                \
    v[odd].GLUE(ODD_PAIRS, N) = t[i + 2].GLUE(ODD_PAIRS, N);                             \
  }                                                                                      \
  GLUE(TURN_QUADS, N)(v, t)
#else
// Every step interleaves the halves.
#define TURN(N, v, t)                                                  \
  _Pragma("unroll") for (int step = 1; step < N; step *= 2) {          \
    _Pragma("unroll") for (int i = 0; i < N / 2; ++i) {                \
      t[2 * i].even = v[i].lo, t[2 * i].odd = v[i + N / 2].lo;         \
      t[2 * i + 1].even = v[i].hi, t[2 * i + 1].odd = v[i + N / 2].hi; \
    }                                                                  \
    _Pragma("unroll") for (int i = 0; i < N; ++i) v[i] = t[i];         \
  }
#endif

// blockN: one block. coverN: all of a tile that is at least N wide and high.
#define BLOCKS(N)                                                                                 \
  typedef GLUE(T, N) GLUE(vector, N);                                                             \
  typedef GLUE(T, N) __attribute__((aligned(sizeof(T)))) GLUE(loose, N);                          \
  static inline void GLUE(block, N)(global const T* x, long x_pitch, global T* y, long y_pitch,   \
                                    bool streams) {                                               \
    GLUE(vector, N) v[N], t[N];                                                                   \
    _Pragma("unroll") for (int i = 0; i < N; ++i) v[i] =                                          \
        *(global const GLUE(loose, N)*)(x + i * x_pitch);                                         \
    TURN(N, v, t)                                                                                 \
    if (streams) {                                                                                \
      _Pragma("unroll") for (int i = 0; i < N; ++i)                                               \
          STREAM(v[i], (global GLUE(vector, N)*)(y + i * y_pitch));                               \
    } else {                                                                                      \
      _Pragma("unroll") for (int i = 0; i < N; ++i) * (global GLUE(loose, N)*)(y + i * y_pitch) = \
          v[i];                                                                                   \
    }                                                                                             \
  }                                                                                               \
  static inline void GLUE(cover, N)(global const T* x, long x_pitch, global T* y, long y_pitch,   \
                                    int2 count, bool streams) {                                   \
    for (int j = 0; j < count.s1; j += N) {                                                       \
      const int row = min(j, count.s1 - N);                                                       \
      for (int i = 0; i < count.s0; i += N) {                                                     \
        const int column = min(i, count.s0 - N);                                                  \
        GLUE(block, N)                                                                            \
        (x + column * x_pitch + row, x_pitch, y + row * y_pitch + column, y_pitch,                \
         streams && column == i);                                                                 \
      }                                                                                           \
    }                                                                                             \
  }

BLOCKS(4)
#if VEC >= 8
BLOCKS(8)
#endif
#if VEC >= 16
BLOCKS(16)
#endif

// device(copy_transposed): CPU
__kernel void copy_transposed(__global const T* src, __global T* dst, ulong tiles, long dst_offset,
                              long src_offset, long8 sizes, long8 dst_strides, long8 src_strides,
                              long4 tile) {
  const long number = (long)get_global_id(0);
  if (number >= (long)tiles) return;
  long d = dst_offset, s = src_offset;
  const int2 count = begin_of_tile(number, sizes, dst_strides, src_strides, tile, &d, &s);
  global T* y = dst + d;
  global const T* x = src + s;
  const long to = dst_strides.s1, from = src_strides.s0;
  const int least = min(count.s0, count.s1);
  bool streams = false;
#if STREAMS
  streams = (((size_t)y | (size_t)(to * (long)sizeof(T))) & (VEC * sizeof(T) - 1)) == 0;
#endif
  if (least >= VEC) {
    GLUE(cover, VEC)(x, from, y, to, count, streams);
#if VEC == 16
  } else if (least >= 8) {
    cover8(x, from, y, to, count, false);
#endif
#if VEC >= 8
  } else if (least >= 4) {
    cover4(x, from, y, to, count, false);
#endif
  } else if (count.s0 < count.s1) {
    for (int i = 0; i < count.s0; ++i)
      for (int j = 0; j < count.s1; ++j) y[j * to + i] = x[i * from + j];
  } else {
    for (int j = 0; j < count.s1; ++j)
      for (int i = 0; i < count.s0; ++i) y[j * to + i] = x[i * from + j];
  }
}
