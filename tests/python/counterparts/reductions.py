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
              "max": _reduction(np.max), "min": _reduction(np.min)})


@numpy_op("logsumexp")
def logsumexp(inputs, at):
    x = inputs[0]
    if not x.size:
        return np.log(np.sum(x, axis=_axes(x, at), keepdims=at.keepdim))
    if not x.ndim:  # SciPy gives a scalar an axis when asked to keep its own
        return x
    return special.logsumexp(x, axis=_axes(x, at), keepdims=at.keepdim)


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
    x = inputs[0]
    if not x.size:
        return x
    # Not scipy's, which knows a limit where x is infinite; infinity less infinity is NaN.
    x = x - x.max(axis=at.axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=at.axis, keepdims=True))


@numpy_op("cumsum")
def cumsum(inputs, at):
    x = np.flip(inputs[0], at.axis) if at.reverse else inputs[0]
    y = np.cumsum(x, axis=at.axis)
    return np.flip(y, at.axis) if at.reverse else y


@numpy_op("softmax_backward")
def softmax_backward(inputs, at):
    y, dy = inputs
    return y * (dy - (y * dy).sum(axis=at.axis, keepdims=True))


@numpy_op("log_softmax_backward")
def log_softmax_backward(inputs, at):
    y, dy = inputs
    return dy - np.exp(y) * dy.sum(axis=at.axis, keepdims=True)


@numpy_op("topk")
def topk(inputs, at):
    x = inputs[0]
    # NaN is larger than everything; a stable sort keeps the first of equal values first.
    nan = np.isnan(x)
    order = np.lexsort((np.where(nan, 0, -x if at.largest else x), nan != at.largest), axis=at.axis)
    order = np.take(order, range(at.k), axis=at.axis)
    return np.take_along_axis(x, order, axis=at.axis), order


@numpy_op("matmul")
def matmul(inputs, at):
    return np.matmul(*inputs)


@numpy_op("linear")
def linear(inputs, at):
    x, w, b, *residual = inputs
    y = np.matmul(x, w.T)
    return ACTIVATIONS[at.activation](sum(residual, y if b is None else y + b))


def label_targets(logits, labels, at):
    """The probabilities that the labels stand for; rows to be ignored are marked."""
    classes, ignored = logits.shape[1], labels == at.ignore_index
    one_hot = np.eye(classes)[np.where(ignored, 0, labels)]
    return (1 - at.label_smoothing) * one_hot + at.label_smoothing / classes, ignored


def losses_of(logits, targets):
    # A class of probability 0 does not count, however unlikely it is.
    return -np.where(targets == 0, 0, targets * special.log_softmax(logits, axis=1)).sum(axis=1)


@numpy_op("cross_entropy")
def cross_entropy(inputs, at):
    logits, labels = inputs
    if not logits.size:
        return np.zeros(logits.shape[0])
    targets, ignored = label_targets(logits, labels, at)
    return np.where(ignored, 0, losses_of(logits, targets))


@numpy_op("cross_entropy_backward")
def cross_entropy_backward(inputs, at):
    logits, labels, dy = inputs
    if not logits.size:
        return logits
    targets, ignored = label_targets(logits, labels, at)
    dx = dy[:, None] * (special.softmax(logits, axis=1) - targets)
    return np.where(ignored[:, None], 0, dx)


@numpy_op("cross_entropy_probabilities")
def cross_entropy_probabilities(inputs, at):
    return losses_of(*inputs) if inputs[0].size else np.zeros(inputs[0].shape[0])


@numpy_op("labelled_mean")
def labelled_mean(inputs, at):
    losses, labels = inputs
    return losses.sum() / (labels != at.ignore_index).sum()


@numpy_op("labelled_mean_backward")
def labelled_mean_backward(inputs, at):
    dy, labels = inputs
    return np.full(labels.shape, dy / (labels != at.ignore_index).sum())


@numpy_op("topk_backward")
def topk_backward(inputs, at):
    dy, indices = inputs
    shape = list(dy.shape)
    shape[at.axis] = at.size
    dx = np.zeros(shape)
    np.put_along_axis(dx, indices, dy, axis=at.axis)
    return dx
