"""Attention and dropout."""
import numpy as np
from scipy import special

from . import numpy_op
from .elementwise import philox4x32


@numpy_op("dropout")
def dropout(inputs, at):
    x = inputs[0]
    blocks = np.arange(-(-x.size // 4), dtype=np.uint64)
    seed = at.seed % 2**64
    counter = np.stack([blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32),
                        np.zeros_like(blocks), np.zeros_like(blocks)], axis=-1)
    words = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:x.size]
    kept = words.reshape(x.shape) / 2.0**32 >= at.p
    return np.where(kept, x / (1 - at.p), 0.0) if at.p < 1 else np.zeros_like(x)


def attention_weights(q, k, mask, at):
    scale = at.scale or 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if at.causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    # A row that sees nothing is zero.
    weights = special.softmax(scores, axis=-1)
    return np.where(np.all(scores == -np.inf, axis=-1, keepdims=True), 0, weights)


@numpy_op("scaled_dot_product_attention", "attention")
def attention(inputs, at):
    q, k, v, mask = (list(inputs) + [None])[:4]
    return attention_weights(q, k, mask, at) @ v
