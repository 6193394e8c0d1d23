// What products and convolutions do to a result while it is in a register: the activation.
// Needs ACC (of t_and_acc) and ACTIVATION: 0 none, 1 relu, 2 gelu (erf form), 3 silu, 4 sigmoid,
// 5 tanh, the order of ops::Activation. NaN stays NaN in all of them.
#ifndef ACTIVATION
#define ACTIVATION 0
#endif

ACC activate(ACC x) {
#if ACTIVATION == 1
  return x <= (ACC)0 ? (ACC)0 : x;
#elif ACTIVATION == 2
  return (ACC)0.5 * x * erfc(-x * (ACC)0.70710678118654752440);
#elif ACTIVATION == 3
  return x / ((ACC)1 + exp(-x));
#elif ACTIVATION == 4
  return (ACC)1 / ((ACC)1 + exp(-x));
#elif ACTIVATION == 5
  return tanh(x);
#else
  return x;
#endif
}
