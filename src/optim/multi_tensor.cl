// One step of an optimiser for up to eight parameters. A work-group owns CHUNK neighbouring
// elements of one of them: group i belongs to the first parameter k with i < ends[k]. Needs T, ACC
// (of t_and_acc), ACC8, CHUNK and RULE:
//   0 SGD      numbers: lr momentum dampening decay nesterov first;     a: velocity
//   1 Adam     numbers: lr beta1 beta2 eps decay decoupled c1 c2;       a, b: averages of g and g^2
//   2 RMSProp  numbers: lr alpha eps decay momentum;                    a: average of g^2, b:
//   velocity 3 average  numbers: rate;                                           p moves towards g
// p has the dtype of the parameter, g that of its gradient (the same), a and b are ACC. With STORED
// the numbers are in memory, where a recorded step may change them between its replays.

void update(__global T* p, __global const T* g, __global ACC* a, __global ACC* b, long i,
            ACC8 numbers) {
  ACC x = LOAD_T(p, i);
  ACC d = LOAD_T(g, i);
#if RULE == 0
  d += numbers.s3 * x;
  if (numbers.s1 != 0) {
    const ACC v = numbers.s5 != 0 ? d : numbers.s1 * a[i] + (1 - numbers.s2) * d;
    a[i] = v;
    d = numbers.s4 != 0 ? d + numbers.s1 * v : v;
  }
  x -= numbers.s0 * d;
#elif RULE == 1
  if (numbers.s5 != 0)
    x -= numbers.s0 * numbers.s4 * x;
  else
    d += numbers.s4 * x;
  const ACC m = numbers.s1 * a[i] + (1 - numbers.s1) * d;
  const ACC v = numbers.s2 * b[i] + (1 - numbers.s2) * d * d;
  a[i] = m;
  b[i] = v;
  // What is the same for all elements is divided once: one division and one root for each.
  const ACC rate = numbers.s0 / numbers.s6, root = 1 / sqrt(numbers.s7);
  x -= rate * m / (sqrt(v) * root + numbers.s3);
#elif RULE == 2
  d += numbers.s3 * x;
  const ACC s = numbers.s1 * a[i] + (1 - numbers.s1) * d * d;
  a[i] = s;
  d = d / (sqrt(s) + numbers.s2);
  if (numbers.s4 != 0) {
    d += numbers.s4 * b[i];
    b[i] = d;
  }
  x -= numbers.s0 * d;
#else
  x += numbers.s0 * (d - x);
#endif
  STORE_T(p, i, x);
}

#define POINTERS(type, name)                                                                      \
  __global type *name##0, __global type *name##1, __global type *name##2, __global type *name##3, \
      __global type *name##4, __global type *name##5, __global type *name##6,                     \
      __global type *name##7
// Components by name: an array with a variable index would live in memory.
#define PICK(k, before)   \
  case k:                 \
    p = p##k + at_p.s##k; \
    g = g##k + at_g.s##k; \
    a = a##k;             \
    b = b##k;             \
    n = sizes.s##k;       \
    first = before;       \
    break;

// coalescing(multi_tensor): the items of a group stride through its elements by the size of the
// group.
__kernel void multi_tensor(POINTERS(T, p), POINTERS(const T, g), POINTERS(ACC, a), POINTERS(ACC, b),
                           long8 at_p, long8 at_g, long8 sizes, long8 ends,
#if STORED
                           __global const ACC* stored) {
  const ACC8 numbers = vload8(0, stored);
#else
                           ACC8 numbers) {
#endif
  const long group = (long)get_group_id(0);
  const int which = group < ends.s0   ? 0
                    : group < ends.s1 ? 1
                    : group < ends.s2 ? 2
                    : group < ends.s3 ? 3
                    : group < ends.s4 ? 4
                    : group < ends.s5 ? 5
                    : group < ends.s6 ? 6
                                      : 7;
  __global T* p = p0;
  __global const T* g = g0;
  __global ACC *a = a0, *b = b0;
  long n = 0, first = 0;
  switch (which) {
    PICK(0, 0)
    PICK(1, ends.s0)
    PICK(2, ends.s1)
    PICK(3, ends.s2)
    PICK(4, ends.s3)
    PICK(5, ends.s4)
    PICK(6, ends.s5)
    PICK(7, ends.s6)
  }
  const long begin = (group - first) * CHUNK;
  const long end = min(begin + CHUNK, n);
  for (long i = begin + (long)get_local_id(0); i < end; i += (long)get_local_size(0))
    update(p, g, a, b, i, numbers);
}
