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


def scores_of(q, k, mask, at):
    scores = q @ np.swapaxes(k, -1, -2) * at.scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf) if at.causal else scores


@numpy_op("attention")
def attention(inputs, at):
    q, k, v, mask = inputs
    scores = scores_of(q, k, mask, at)
    if not scores.size:
        return np.zeros(q.shape[:-1] + v.shape[-1:]), np.full(q.shape[:-1], -np.inf)
    return special.softmax(scores, axis=-1) @ v, special.logsumexp(scores, axis=-1)


@numpy_op("attention_backward")
def attention_backward(inputs, at):
    q, k, v, mask, y, lse, dy, dlse = inputs
    weights = np.exp(scores_of(q, k, mask, at) - lse[..., None])
    ds = dy @ np.swapaxes(v, -1, -2) - (dy * y).sum(axis=-1, keepdims=True)
    if dlse is not None:
        ds = ds + dlse[..., None]
    ds = ds * weights * at.scale
    return ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ dy
