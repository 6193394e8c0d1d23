// Runs of bytes by vectors that need no alignment, the longest of LONGEST bytes (32 or 64). The
// last vector of a run overlaps the one before instead of leaving a rest. With STREAMS long runs
// are written past the caches.

#include "tensor/kernels/stream.cl"

typedef uint8 __attribute__((aligned(1))) bytes32;
typedef uint4 __attribute__((aligned(1))) bytes16;
typedef uint2 __attribute__((aligned(1))) bytes8;
typedef uint __attribute__((aligned(1))) bytes4;
#if LONGEST == 64
typedef uint16 __attribute__((aligned(1))) bytes64;
typedef bytes64 longest_bytes;
typedef uint16 aligned_bytes;
#else
typedef bytes32 longest_bytes;
typedef uint8 aligned_bytes;
#endif
#define MOVE(type, to, from) (*(global type*)(to) = *(global const type*)(from))
#define MOVE_BOTH_ENDS(type, to, from, n) \
  MOVE(type, to, from);                   \
  MOVE(type, (to) + (n) - sizeof(type), (from) + (n) - sizeof(type));

// The C library copies long runs in ways that no compiler makes of a loop: processors need not read
// lines that are written as a whole. PoCL's kernels are linked with it.
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__has_builtin)
#if __has_builtin(__builtin_memcpy)
#define COPY_LONG(to, from, n) \
  __builtin_memcpy((void*)(size_t)(to), (const void*)(size_t)(from), (size_t)(n))
#endif
#endif
#define LONG_RUN 4096

static inline void copy_short_run(global const uchar* from, global uchar* to, int n) {
#if LONGEST == 64
  if (n >= 32) {
    MOVE_BOTH_ENDS(bytes32, to, from, n)
    return;
  }
#endif
  if (n >= 16) {
    MOVE_BOTH_ENDS(bytes16, to, from, n)
  } else if (n >= 8) {
    MOVE_BOTH_ENDS(bytes8, to, from, n)
  } else if (n >= 4) {
    MOVE_BOTH_ENDS(bytes4, to, from, n)
  } else {
    for (int i = 0; i < n; ++i) to[i] = from[i];
  }
}

static inline void copy_run(global const uchar* from, global uchar* to, int n) {
  if (n < LONGEST) {
    copy_short_run(from, to, n);
    return;
  }
  int i = 0;
#if STREAMS
  if (n >= 4 * LONGEST) {
    MOVE(longest_bytes, to, from);
    i = (int)(-(size_t)to & (LONGEST - 1));
    for (; i + LONGEST <= n; i += LONGEST)
      STREAM(*(global const longest_bytes*)(from + i), (global aligned_bytes*)(to + i));
  }
#elif defined(COPY_LONG)
  if (n >= LONG_RUN) {
    COPY_LONG(to, from, n);
    return;
  }
#endif
  for (; i + LONGEST <= n; i += LONGEST) MOVE(longest_bytes, to + i, from + i);
  MOVE(longest_bytes, to + n - LONGEST, from + n - LONGEST);
}
