// What each reduction carries along (STATE) and how: IDENTITY, PUSH (one more element), COMBINE and
// FINISH. The defines that choose: one KIND_<name>, LOWEST and HIGHEST of ACC for max and min, and
// FLOATING where ACC is a floating type.

#if defined(KIND_SUM) || defined(KIND_MEAN)
typedef ACC STATE;
#define IDENTITY ((ACC)0)
#define PUSH(s, v, i) ((s) + (v))
#define COMBINE(a, b) ((a) + (b))

#elif defined(KIND_PROD)
typedef ACC STATE;
#define IDENTITY ((ACC)1)
#define PUSH(s, v, i) ((s) * (v))
#define COMBINE(a, b) ((a) * (b))

#elif defined(KIND_MAX)
typedef ACC STATE;
#define IDENTITY ((ACC)LOWEST)
// A NaN on either side stays: s when s is NaN, v in every comparison that fails.
#define PUSH(s, v, i) ((s) != (s) || (s) > (v) ? (s) : (v))
#define COMBINE(a, b) PUSH(a, b, 0)

#elif defined(KIND_MIN)
typedef ACC STATE;
#define IDENTITY ((ACC)HIGHEST)
#define PUSH(s, v, i) ((s) != (s) || (s) < (v) ? (s) : (v))
#define COMBINE(a, b) PUSH(a, b, 0)

#elif defined(KIND_LOGSUMEXP)
// sum * exp(top), top being the largest element so far: nothing overflows.
typedef struct {
  ACC top, sum;
} STATE;
STATE state_of(ACC top, ACC sum) {
  STATE s = {top, sum};
  return s;
}
// exp(a - top) for a <= top; equal infinities give 1, NaN gives NaN.
ACC scaled(ACC a, ACC top) { return a == top ? (ACC)1 : exp(a - top); }
STATE push(STATE s, ACC v) {
  return v > s.top ? state_of(v, s.sum * scaled(s.top, v) + (ACC)1)
                   : state_of(s.top, s.sum + scaled(v, s.top));
}
STATE combine(STATE a, STATE b) {
  const ACC top = a.top > b.top ? a.top : b.top;
  return state_of(top, a.sum * scaled(a.top, top) + b.sum * scaled(b.top, top));
}
#define IDENTITY state_of((ACC)(-INFINITY), (ACC)0)
#define PUSH(s, v, i) push(s, v)
#define COMBINE(a, b) combine(a, b)

#elif defined(KIND_VAR)
// Welford: count, mean, and the sum of the squared deviations from it.
typedef struct {
  ACC count, mean, squares;
} STATE;
STATE state_of(ACC count, ACC mean, ACC squares) {
  STATE s = {count, mean, squares};
  return s;
}
STATE push(STATE s, ACC v) {
  const ACC count = s.count + (ACC)1, delta = v - s.mean;
  const ACC mean = s.mean + delta / count;
  return state_of(count, mean, s.squares + delta * (v - mean));
}
STATE combine(STATE a, STATE b) {
  if (b.count == (ACC)0) return a;
  if (a.count == (ACC)0) return b;
  const ACC count = a.count + b.count, delta = b.mean - a.mean, part = b.count / count;
  return state_of(count, a.mean + delta * part,
                  a.squares + b.squares + delta * delta * a.count * part);
}
#define IDENTITY state_of((ACC)0, (ACC)0, (ACC)0)
#define PUSH(s, v, i) push(s, v)
#define COMBINE(a, b) combine(a, b)

#else  // KIND_ARGMAX, KIND_ARGMIN
typedef struct {
  ACC value;
  long index;  // -1: nothing yet
} STATE;
STATE state_of(ACC value, long index) {
  STATE s = {value, index};
  return s;
}
#if defined(KIND_ARGMAX)
#define IS_BETTER(a, b) ((a) > (b))
#else
#define IS_BETTER(a, b) ((a) < (b))
#endif
// NaN beats every number; of equals the first wins, in whatever order they come.
STATE combine(STATE a, STATE b) {
  if (b.index < 0) return a;
  if (a.index < 0) return b;
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  if (nan_a != nan_b) return nan_a ? a : b;
  if (IS_BETTER(b.value, a.value)) return b;
  if (IS_BETTER(a.value, b.value)) return a;
  return a.index < b.index ? a : b;
}
#define IDENTITY state_of((ACC)0, -1)
#define PUSH(s, v, i) combine(s, state_of(v, i))
#define COMBINE(a, b) combine(a, b)
#endif

// n elements were reduced; `correction` is that of the variance.
#if defined(KIND_MEAN)
#define FINISH(s, n, correction) ((s) / (ACC)(n))
#elif defined(KIND_VAR)
ACC finish(STATE s, long n, ACC correction) {
  const ACC degrees = (ACC)n - (ACC)correction;
  // 0 / 0 of nothing. A choice of NaN beside the other choice ends the process in PoCL 6.
  return s.squares / (n > 0 && degrees > (ACC)0 ? degrees : (ACC)0);
}
#define FINISH(s, n, correction) finish(s, n, correction)
#elif defined(KIND_LOGSUMEXP)
#define FINISH(s, n, correction) ((s).top + log((s).sum))
#elif defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
#define FINISH(s, n, correction) ((s).index)
#else
#define FINISH(s, n, correction) (s)
#endif

// Variances are taken relative to the first element of each result, so that a mean far from zero
// costs no digits. x points to that element; there may be none.
#if defined(KIND_VAR)
#define SHIFT_AT(x, i, any) ((any) ? (ACC)LOAD_T(x, i) : (ACC)0)
#define SHIFTED(v, shift) ((v) - (shift))
#else
#define SHIFT_AT(x, i, any) ((ACC)0)
#define SHIFTED(v, shift) (v)
#endif
