"""Reductions, softmax and what follows rows, losses, norms, matrix products."""
import numpy as np
from scipy import special

from . import NUMPY, numpy_op
from .images import ACTIVATIONS


def _axes(x, at):
    return tuple(at.axes) if at.axes else None


def _reduction(function):
    return lambda inputs, at: function(inputs[0], axis=_axes(inputs[0], at), keepdims=at.keepdim)


NUMPY.update({"sum": _reduction(np.sum), "mean": _reduction(np.mean), "prod": _reduction(np.prod),
              "max": _reduction(np.max), "min": _reduction(np.min),
              "logsumexp": _reduction(special.logsumexp)})


@numpy_op("var")
def var(inputs, at):
    return np.var(inputs[0], axis=_axes(inputs[0], at), keepdims=at.keepdim, ddof=at.correction)


@numpy_op("argmax")
def argmax(inputs, at):
    return np.argmax(inputs[0], axis=at.axis, keepdims=at.keepdim)


@numpy_op("argmin")
def argmin(inputs, at):
    return np.argmin(inputs[0], axis=at.axis, keepdims=at.keepdim)


@numpy_op("softmax")
def softmax(inputs, at):
    return special.softmax(inputs[0], axis=at.axis) if inputs[0].size else inputs[0]


@numpy_op("log_softmax")
def log_softmax(inputs, at):
    return special.log_softmax(inputs[0], axis=at.axis) if inputs[0].size else inputs[0]


@numpy_op("cumsum")
def cumsum(inputs, at):
    return np.cumsum(inputs[0], axis=at.axis)


@numpy_op("topk")
def topk(inputs, at):
    x = inputs[0]
    # NaN counts as the largest (smallest); a stable sort keeps the first of equal values first.
    key = np.where(np.isnan(x), -np.inf, -x if at.largest else x)
    order = np.lexsort((key, ~np.isnan(x)), axis=at.axis)
    order = np.take(order, range(at.k), axis=at.axis)
    return np.take_along_axis(x, order, axis=at.axis), order


@numpy_op("matmul")
def matmul(inputs, at):
    return np.matmul(*inputs)


@numpy_op("linear")
def linear(inputs, at):
    x, w, b = inputs
    y = np.matmul(x, w.T)
    return ACTIVATIONS[at.activation](y if b is None else y + b)


def log_likelihood(logits):
    return special.log_softmax(logits, axis=1) if logits.size else logits


def target_of(logits, labels, smoothing):
    """The probabilities that a label stands for."""
    classes = logits.shape[1]
    return (1 - smoothing) * np.eye(classes)[labels] + smoothing / classes
