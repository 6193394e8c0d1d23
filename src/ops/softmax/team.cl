// Work on rows by teams: with GROUP defined a work-group owns a row, its items stride through it
// and meet in local memory; without, a work-item owns a row alone and there are no barriers (CPUs).
// Kernels say TEAM_MEMORY and GUARD_ROW first, then use ROW, and the loops below over i in [0, n).
// Defines: ACC, LANES (accumulators per item), UNROLL before loops over them, WG_MAX with GROUP.

#if defined(GROUP)
#define ROW ((long)get_group_id(0))
#define ITEM ((long)get_local_id(0))
#define ITEMS ((long)get_local_size(0))
#define TEAM_MEMORY __local ACC team[WG_MAX]
// There are as many groups as rows. No return and no branch around the barriers: compilers for CPUs
// copy all that follows for every way to reach one.
#define GUARD_ROW(rows)
#else
#define ROW ((long)get_global_id(0))
#define ITEM 0L
#define ITEMS 1L
#define TEAM_MEMORY __private ACC team[1]
#define GUARD_ROW(rows) \
  if (ROW >= (rows)) return
#endif

#define LARGER(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
#define PLUS(a, b) ((a) + (b))

// `value` becomes the whole team's; every item gets it.
#if defined(GROUP)
#define TEAM_REDUCE(value, OP)                                         \
  {                                                                    \
    team[ITEM] = value;                                                \
    for (long part = ITEMS / 2; part > 0; part /= 2) {                 \
      barrier(CLK_LOCAL_MEM_FENCE);                                    \
      if (ITEM < part) team[ITEM] = OP(team[ITEM], team[ITEM + part]); \
    }                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
    value = team[0];                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
  }
#else
#define TEAM_REDUCE(value, OP) (void)team
#endif

// ACC total = OP over all i of `element`, an expression in i. Several accumulators: faster, and
// errors grow slowly.
#define REDUCE_ROW(total, START, OP, element)                                                    \
  ACC total;                                                                                     \
  {                                                                                              \
    ACC lanes[LANES];                                                                            \
    UNROLL for (int l = 0; l < LANES; ++l) lanes[l] = START;                                     \
    long base = ITEM;                                                                            \
    for (; base + (LANES - 1) * ITEMS < n; base += LANES * ITEMS)                                \
      UNROLL for (int l = 0; l < LANES; ++l) {                                                   \
        const long i = base + l * ITEMS;                                                         \
        const ACC e = (element);                                                                 \
        lanes[l] = OP(lanes[l], e);                                                              \
      }                                                                                          \
    for (; base < n; base += ITEMS) {                                                            \
      const long i = base;                                                                       \
      const ACC e = (element);                                                                   \
      lanes[0] = OP(lanes[0], e);                                                                \
    }                                                                                            \
    UNROLL for (int part = LANES / 2; part > 0; part /= 2) UNROLL for (int l = 0; l < part; ++l) \
        lanes[l] = OP(lanes[l], lanes[l + part]);                                                \
    total = lanes[0];                                                                            \
    TEAM_REDUCE(total, OP);                                                                      \
  }
#define SUM_ROW(total, element) REDUCE_ROW(total, (ACC)0, PLUS, element)
#define MAX_ROW(total, element) REDUCE_ROW(total, (ACC)(-INFINITY), LARGER, element)
#define FOR_ROW(i) for (long i = ITEM; i < n; i += ITEMS)
