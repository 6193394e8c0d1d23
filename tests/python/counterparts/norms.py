"""Norms and their gradients, from the definition of the normal form (x - mean) / deviation."""
import numpy as np

from . import numpy_op


def as_rows(x, at):
    """x with what is normalised together as the last axis."""
    if hasattr(at, "groups"):
        return x.reshape(x.shape[0], at.groups, int(np.prod(x.shape[1:])) // at.groups)
    kept = x.shape[:x.ndim - at.axes]
    return x.reshape(kept + (int(np.prod(x.shape[x.ndim - at.axes:])),))


def parameter(p, x, at):
    """scale or shift, to be multiplied with x."""
    if p is None:
        return None
    return p.reshape((1, -1) + (1,) * (x.ndim - 2)) if hasattr(at, "groups") else p


def normal_form(x, at, rms):
    rows = as_rows(x, at)
    mean = 0 if rms else rows.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(((rows - mean) ** 2).mean(axis=-1, keepdims=True) + at.eps)
    return (rows - mean) / deviation, deviation


def norm(inputs, at, rms=False):
    x, scale, shift = (list(inputs) + [None])[:3]
    if not x.size:
        return x
    y = normal_form(x, at, rms)[0].reshape(x.shape)
    y = y if scale is None else y * parameter(scale, x, at)
    return y if shift is None else y + parameter(shift, x, at)


@numpy_op("layer_norm", "group_norm")
def layer_norm(inputs, at):
    return norm(inputs, at)


@numpy_op("rms_norm")
def rms_norm(inputs, at):
    return norm(inputs, at, rms=True)


def summed(g, at):
    """A gradient of scale or shift: summed over everything that shares one."""
    if hasattr(at, "groups"):
        return g.sum(axis=tuple(i for i in range(g.ndim) if i != 1))
    return g.sum(axis=tuple(range(g.ndim - at.axes)))


def norm_backward(inputs, at, rms=False):
    x, scale, dy = inputs
    if not x.size:
        return x, None, None
    normal, deviation = normal_form(x, at, rms)
    g = as_rows(dy if scale is None else dy * parameter(scale, x, at), at)
    dx = g - normal * (g * normal).mean(axis=-1, keepdims=True)
    if not rms:
        dx = dx - g.mean(axis=-1, keepdims=True)
    dx = (dx / deviation).reshape(x.shape)
    if not getattr(at, "parameters", True):
        return (dx,)
    return dx, summed(dy * normal.reshape(x.shape), at), summed(dy, at)


@numpy_op("layer_norm_backward", "group_norm_backward")
def layer_norm_backward(inputs, at):
    return norm_backward(inputs, at)


@numpy_op("rms_norm_backward")
def rms_norm_backward(inputs, at):
    return norm_backward(inputs, at, rms=True)


def per_channel(p, x):
    return p.reshape((1, -1) + (1,) * (x.ndim - 2))


def batch_axes(x):
    return (0,) + tuple(range(2, x.ndim))


@numpy_op("batch_norm_train")
def batch_norm_train(inputs, at):
    x, scale, shift = inputs
    mean, inverse = x.mean(axis=batch_axes(x)), 1 / np.sqrt(x.var(axis=batch_axes(x)) + at.eps)
    y = (x - per_channel(mean, x)) * per_channel(inverse * scale, x) + per_channel(shift, x)
    return y, mean, inverse


@numpy_op("batch_norm_backward")
def batch_norm_backward(inputs, at):
    x, scale, mean, inverse, dy = inputs
    normal, axes = (x - per_channel(mean, x)) * per_channel(inverse, x), batch_axes(x)
    dscale, dshift = (dy * normal).sum(axis=axes), dy.sum(axis=axes)
    count = x.size // x.shape[1] if x.shape[1] else 1
    dx = dy - per_channel(dshift / count, x) - normal * per_channel(dscale / count, x)
    return dx * per_channel(scale * inverse, x), dscale, dshift


@numpy_op("batch_norm")
def batch_norm(inputs, at):
    x, scale, shift, mean, variance = (p if i == 0 else per_channel(p, inputs[0])
                                       for i, p in enumerate(inputs))
    y = (x - mean) / np.sqrt(variance + at.eps) * scale + shift
    return np.maximum(y, 0) if at.fuse_relu else y
