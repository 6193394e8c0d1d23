// The epilogue for vectors: `value` and the residual, activated, into place i of y and behind it.
// Needs epilogue.cl and lanes.cl, and what they need.
#if HAS_RESIDUAL
#define WITH_RESIDUALS(value, i) ((value) + LOADV(residual, i))
#else
#define WITH_RESIDUALS(value, i) (value)
#endif
ACCV activate_lanes(ACCV x) { return ACTIVATED(ACCV, x); }
#define FINISH_LANES(i, value) STORE_RESULTS(activate_lanes(WITH_RESIDUALS(value, i)), y + (i))
// The same past the caches; y + i must lie at a multiple of a vector.
#define STREAM_LANES(i, value) \
  STREAM(activate_lanes(WITH_RESIDUALS(value, i)), (global ACCV*)(y + (i)))
