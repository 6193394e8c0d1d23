// Reductions over axes with others between them, for CPUs: x (outer, repeats, inner, span), of
// which repeats and span are reduced, is read where it lies, a run of `span` neighbours after the
// other. A work-item owns `block` results, or a part of the repeats of one each; reduce_parts of
// reduce.cl puts the parts together. Defines: those of reduce_vectors.cl and state_vectors.cl,
// ONE_NUMBER (0 or 1): the state is one. device(reduce_runs): CPU

#include "ops/reduction/states.cl"
#include "ops/softmax/vectors.cl"
#if ONE_NUMBER
#include "ops/reduction/reduce_vectors.cl"
#else
#include "ops/reduction/state_vectors.cl"
#endif

#define JOINED 128  // runs that are put together before they join the others

__kernel void reduce_runs(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                          long outer, long repeats, long inner, long span, long parts,
                          ACC correction, long block) {
  x += at.s0, y += at.s1;
  const long results = outer * inner, blocks = (results + block - 1) / block;
  const long part = (long)get_global_id(0) / blocks;
  const long first = part * repeats / parts, last = (part + 1) * repeats / parts;
  long result = (long)get_global_id(0) % blocks * block;
  const long end = min(results, result + block);
  long o = result / inner, k = result - o * inner;
  for (; result < end; ++result) {
    __global const T* from = x + (o * repeats * inner + k) * span;
    const ACC shift = SHIFT_AT(from, 0, 1);
    STATE total = IDENTITY;
    for (long i = first; i < last;) {
      const long stop = min(last, i + JOINED);
      STATE some = IDENTITY;
      for (; i < stop; ++i) {
        __global const T* run = from + i * inner * span;
#if ONE_NUMBER
        some = COMBINE(some, reduce_run(run, span));
#else
        for (long j = 0; j < span; j += PIECE)
          some = JOIN_PIECE(some, run, j, min((long)PIECE, span - j), shift);
#endif
      }
      total = COMBINE(total, some);
    }
    if (parts == 1)
      STORE_Y(y, result, FINISH(total, repeats * span, correction));
    else
      states[(o * parts + part) * inner + k] = total;
    if (++k == inner) k = 0, ++o;
  }
}
