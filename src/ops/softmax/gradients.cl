// The gradients of softmax and log_softmax in vectors: dx of y, dy and a sum over the row, and the
// terms of that sum. Needs exp_vector of lane_math.cl.

#define SOFTMAX_DX(y, dy, sum) ((y) * ((dy) - (sum)))
#define LOG_SOFTMAX_DX(y, dy, sum) ((dy)-exp_vector(y) * (sum))
#define SOFTMAX_TERM(y, dy) ((y) * (dy))
#define LOG_SOFTMAX_TERM(y, dy) (dy)
