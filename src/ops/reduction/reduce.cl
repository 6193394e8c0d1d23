// Reductions of x, seen as (outer, reduced, inner), to y (outer, inner). One file for all kinds and
// all four ways of sharing the work:
//   reduce_sequential  a work-item owns a result
//   reduce_group       a work-group owns a part of a result, and all of it with one part
//   reduce_rows        inner = 1: a work-item owns a part of a row, LANES accumulators, no barrier
//   reduce_columns     inner > 1: a work-item owns a part of LANES neighbouring results (on a GPU
//                      one, from 32 neighbours on)
//   reduce_parts       a work-item puts the parts of one result together
// With several parts the first stage writes its states to `parts` (outer, parts, inner).
// Defines: T ACC Y of the elements, accumulators and results; those of states.cl; LANES; WG_MAX,
// the largest work-group. Sums run in blocks of blocks, so errors grow with the root of the size.

#include "ops/reduction/states.cl"

#define BLOCK 128

// Elements first, first + 1, ... before last, `step` apart in memory.
STATE reduce_run(__global const T* x, long first, long last, long stride, long skip) {
  const ACC shift = SHIFT_AT(x, 0, first < last);
  STATE total = IDENTITY;
  for (long a = first; a < last; a += (long)BLOCK * BLOCK * skip) {
    const long end_a = min(last, a + (long)BLOCK * BLOCK * skip);
    STATE middle = IDENTITY;
    for (long b = a; b < end_a; b += (long)BLOCK * skip) {
      const long end_b = min(end_a, b + (long)BLOCK * skip);
      STATE part = IDENTITY;
      for (long i = b; i < end_b; i += skip)
        part = PUSH(part, SHIFTED((ACC)LOAD_T(x, i * stride), shift), i);
      middle = COMBINE(middle, part);
    }
    total = COMBINE(total, middle);
  }
  return total;
}

// coalescing(reduce_sequential): neighbouring items read neighbours where inner > 1; along the last
// axis each walks its own row of under 64 elements.
__kernel void reduce_sequential(__global const T* x, __global Y* y, long8 at, long outer,
                                long reduced, long inner, ACC correction) {
  x += at.s0, y += at.s1;
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  x += id / inner * reduced * inner + id % inner;
  const STATE s = reduce_run(x, 0, reduced, inner, 1);
  STORE_Y(y, id, FINISH(s, reduced, correction));
}

// Group (result, part): its items stride through the part, then a tree in local memory.
// occupancy(reduce_group): a variance in float64 carries three blocks of three doubles per item.
// coalescing(reduce_group): a group strides through its part by its size, elements `inner` apart:
// neighbours where inner is 1; from 32 results side by side on reduce_columns does it.
__kernel void reduce_group(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                           long outer, long reduced, long inner, long parts, ACC correction) {
  __local STATE shared[WG_MAX];
  x += at.s0, y += at.s1;
  const long group = get_group_id(0), result = group / parts, part = group % parts;
  const int item = get_local_id(0), items = get_local_size(0);
  const long chunk = (reduced + parts - 1) / parts;
  const long first = part * chunk, last = min(reduced, first + chunk);
  x += result / inner * reduced * inner + result % inner;
  shared[item] = reduce_run(x, first + item, last, inner, items);
  for (int half_of = items / 2; half_of > 0; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_of) shared[item] = COMBINE(shared[item], shared[item + half_of]);
  }
  if (item > 0) return;
  if (parts == 1)
    STORE_Y(y, result, FINISH(shared[0], reduced, correction));
  else
    states[(result / inner * parts + part) * inner + result % inner] = shared[0];
}

#define FOR_LANES for (int l = 0; l < LANES; ++l)

STATE reduce_lanes(__global const T* x, long first, long last) {
  const ACC shift = SHIFT_AT(x, 0, first < last);
  STATE total = IDENTITY;
  for (long a = first; a < last; a += (long)BLOCK * BLOCK * LANES) {
    const long end_a = min(last, a + (long)BLOCK * BLOCK * LANES);
    STATE middle[LANES];
    FOR_LANES middle[l] = IDENTITY;
    long b = a;
    for (; b + LANES <= end_a; b += (long)BLOCK * LANES) {
      const long whole = (end_a - b) / LANES * LANES, end_b = b + min(whole, (long)BLOCK * LANES);
      STATE part[LANES];
      FOR_LANES part[l] = IDENTITY;
      for (long i = b; i < end_b; i += LANES)
        FOR_LANES part[l] = PUSH(part[l], SHIFTED((ACC)LOAD_T(x, i + l), shift), i + l);
      FOR_LANES middle[l] = COMBINE(middle[l], part[l]);
    }
    FOR_LANES total = COMBINE(total, middle[l]);
    STATE rest = IDENTITY;
    for (long i = a + (end_a - a) / LANES * LANES; i < end_a; ++i)
      rest = PUSH(rest, SHIFTED((ACC)LOAD_T(x, i), shift), i);
    total = COMBINE(total, rest);
  }
  return total;
}

// device(reduce_rows): CPU, and GPUs whose work-groups are too small to share a row.
__kernel void reduce_rows(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                          long outer, long reduced, long parts, ACC correction) {
  x += at.s0, y += at.s1;
  const long id = get_global_id(0);
  if (id >= outer * parts) return;
  const long row = id / parts, part = id % parts, chunk = (reduced + parts - 1) / parts;
  const long first = min(reduced, part * chunk), last = min(reduced, first + chunk);
  const STATE s = reduce_lanes(x + row * reduced, first, last);
  if (parts == 1)
    STORE_Y(y, row, FINISH(s, reduced, correction));
  else
    states[id] = s;
}

// coalescing(reduce_columns): neighbouring items own neighbouring results (LANES is 1 on GPUs).
__kernel void reduce_columns(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                             long outer, long reduced, long inner, long parts, ACC correction) {
  x += at.s0, y += at.s1;
  const long strips = (inner + LANES - 1) / LANES, id = get_global_id(0);
  if (id >= outer * parts * strips) return;
  const long strip = id % strips, part = id / strips % parts, o = id / strips / parts;
  const long chunk = (reduced + parts - 1) / parts;
  const long first = min(reduced, part * chunk), last = min(reduced, first + chunk);
  const int lanes = LANES == 1 ? 1 : (int)min((long)LANES, inner - strip * LANES);
  x += o * reduced * inner + strip * LANES;
  STATE total[LANES], middle[LANES];
  ACC shift[LANES];
  FOR_LANES shift[l] = SHIFT_AT(x, l, first < last && l < lanes);
  FOR_LANES total[l] = IDENTITY;
  for (long a = first; a < last; a += BLOCK) {
    const long end = min(last, a + BLOCK);
    FOR_LANES middle[l] = IDENTITY;
    if (lanes == LANES) {
      for (long i = a; i < end; ++i)
        FOR_LANES middle[l] = PUSH(middle[l], SHIFTED((ACC)LOAD_T(x, i * inner + l), shift[l]), i);
    } else {
      for (long i = a; i < end; ++i)
        for (int l = 0; l < lanes; ++l)
          middle[l] = PUSH(middle[l], SHIFTED((ACC)LOAD_T(x, i * inner + l), shift[l]), i);
    }
    FOR_LANES total[l] = COMBINE(total[l], middle[l]);
  }
  for (int l = 0; l < lanes; ++l) {
    const long j = strip * LANES + l;
    if (parts == 1)
      STORE_Y(y, o * inner + j, FINISH(total[l], reduced, correction));
    else
      states[(o * parts + part) * inner + j] = total[l];
  }
}

// coalescing(reduce_parts): neighbouring items read neighbouring states where inner > 1, else the
// states of a row, which are few.
__kernel void reduce_parts(__global const STATE* states, __global Y* y, long8 at, long outer,
                           long reduced, long inner, long parts, ACC correction) {
  y += at.s1;
  const long id = get_global_id(0);
  if (id >= outer * inner) return;
  states += id / inner * parts * inner + id % inner;
  STATE total = IDENTITY;
  for (long part = 0; part < parts; ++part) total = COMBINE(total, states[part * inner]);
  STORE_Y(y, id, FINISH(total, reduced, correction));
}
