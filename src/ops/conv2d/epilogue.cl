// What products and convolutions do to a result while it is in a register: a residual is added,
// then the activation taken.
// Needs ACC (of t_and_acc) and ACTIVATION: 0 none, 1 relu, 2 gelu (erf form), 3 silu, 4 sigmoid,
// 5 tanh, the order of ops::Activation. NaN stays NaN in all of them.
// HAS_RESIDUAL: kernels have one more tensor behind their last one, RESIDUAL_PARAMETER. It is laid
// out as y, and MOVE_RESIDUAL moves it along with y. Without it, both vanish.
#ifndef ACTIVATION
#define ACTIVATION 0
#endif

#if HAS_RESIDUAL
#define RESIDUAL_PARAMETER , global const T* restrict residual
#define MOVE_RESIDUAL(by) residual += (by)
#define WITH_RESIDUAL(value, i) ((value) + LOAD_T(residual, i))
#else
#define RESIDUAL_PARAMETER
#define MOVE_RESIDUAL(by)
#define WITH_RESIDUAL(value, i) (value)
#endif
// The result into the place i of y.
#define FINISH(i, value) STORE_T(y, i, activate(WITH_RESIDUAL(value, i)))

// Of a value or a vector x of the type V.
#if ACTIVATION == 1
#define ACTIVATED(V, x) ((x) <= (V)0 ? (V)0 : (x))
#elif ACTIVATION == 2
#define ACTIVATED(V, x) ((ACC)0.5 * (x)*erfc(-(x) * (ACC)0.70710678118654752440))
#elif ACTIVATION == 3
#define ACTIVATED(V, x) ((x) / ((ACC)1 + exp(-(x))))
#elif ACTIVATION == 4
#define ACTIVATED(V, x) ((ACC)1 / ((ACC)1 + exp(-(x))))
#elif ACTIVATION == 5
#define ACTIVATED(V, x) tanh(x)
#else
#define ACTIVATED(V, x) (x)
#endif

ACC activate(ACC x) { return ACTIVATED(ACC, x); }
