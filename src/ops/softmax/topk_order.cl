// The order of topk on CPUs: values turned around where the smallest come first (TURNED), so that
// more is always better; NaN is the largest. Defines: ACC, LARGEST (0 or 1), FLOATING where there
// are NaNs.

#if LARGEST
#define TURNED(v) (v)
#elif defined(FLOATING)
#define TURNED(v) (-(v))
#else
#define TURNED(v) (~(v))
#endif

// Whether v comes before w that came first; it may be a vector. And whether it comes before or
// equals a number.
#if !defined(FLOATING)
#define BETTERV(v, w) ((v) > (w))
#define NOT_WORSEV(v, w) ((v) >= (w))
#elif LARGEST
#define BETTERV(v, w) ((((v) <= (w)) == 0) & ((w) == (w)))
#define NOT_WORSEV(v, w) (((v) < (w)) == 0)
#else
#define BETTERV(v, w) ((((w) >= (v)) == 0) & ((v) == (v)))
#define NOT_WORSEV(v, w) ((v) >= (w))
#endif

bool is_better(ACC v, ACC w) { return BETTERV(v, w); }
bool is_not_worse(ACC v, ACC w) { return NOT_WORSEV(v, w); }
