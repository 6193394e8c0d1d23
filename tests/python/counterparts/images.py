"""Convolutions, pooling, resizing, padding: (N, C, H, W)."""
from types import SimpleNamespace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

from . import numpy_op

ACTIVATIONS = (
    lambda x: x,
    lambda x: np.maximum(x, 0),
    lambda x: x * special.ndtr(x),
    lambda x: x * special.expit(x),
    special.expit,
    np.tanh,
)


def windows(x, size, stride=(1, 1), padding=(0, 0), dilation=(1, 1), fill=0.0):
    """(N, C, P, Q, R, S): what every output position sees."""
    padded = np.pad(x, ((0, 0), (0, 0)) + tuple((p, p) for p in padding), constant_values=fill)
    reach = tuple((r - 1) * d + 1 for r, d in zip(size, dilation))
    every = sliding_window_view(padded, reach, axis=(2, 3))
    return every[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]


def by_group(x, axis, groups):
    return x.reshape(x.shape[:axis] + (groups, x.shape[axis] // groups) + x.shape[axis + 1:])


@numpy_op("conv2d")
def conv2d(inputs, at):
    x, w, b, *residual = inputs
    seen = by_group(windows(x, w.shape[2:], at.stride, at.padding, at.dilation), 1, at.groups)
    y = np.einsum("ngcpqrs,gkcrs->ngkpq", seen, by_group(w, 0, at.groups))
    y = y.reshape((x.shape[0], w.shape[0]) + y.shape[3:])
    if b is not None:
        y = y + b.reshape(1, -1, 1, 1)
    return ACTIVATIONS[at.activation](sum(residual, y))


def spread(dy, w, size, at):
    """The transpose of a convolution: every dy is spread over what it was computed from."""
    n, k, p, q = dy.shape
    parts = np.einsum("ngkpq,gkcrs->ngcpqrs", by_group(dy, 1, at.groups), by_group(w, 0, at.groups))
    parts = parts.reshape((n, at.groups * w.shape[1]) + parts.shape[3:])
    full = np.zeros((n, at.groups * w.shape[1]) + tuple(s + 2 * z for s, z in zip(size, at.padding)))
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            top, left = r * at.dilation[0], s * at.dilation[1]
            full[:, :, top:top + p * at.stride[0]:at.stride[0],
                 left:left + q * at.stride[1]:at.stride[1]][:, :, :p, :q] += parts[..., r, s]
    return full[:, :, at.padding[0]:at.padding[0] + size[0], at.padding[1]:at.padding[1] + size[1]]


@numpy_op("conv2d_backward_data")
def conv2d_backward_data(inputs, at):
    dy, w, b = inputs
    dx = spread(dy, w, at.size, at)
    return dx if b is None else dx + b.reshape(1, -1, 1, 1)


@numpy_op("conv2d_backward_weights")
def conv2d_backward_weights(inputs, at):
    x, dy = inputs
    seen = windows(x, at.filter, at.stride, at.padding, at.dilation)
    seen = seen[:, :, :dy.shape[2], :dy.shape[3]]
    dw = np.einsum("ngkpq,ngcpqrs->gkcrs", by_group(dy, 1, at.groups), by_group(seen, 1, at.groups))
    return dw.reshape((dy.shape[1],) + dw.shape[2:])


def stride_of(at):
    return tuple(s or w for s, w in zip(at.stride, at.window))


def largest(seen, places):
    """The largest of each window and where it is in the image: the first of equals, but of NaNs the last
    (as PyTorch has it)."""
    count = seen.shape[4] * seen.shape[5]
    flat, at = (a.reshape(a.shape[:4] + (count,)) for a in (seen, places))
    first = np.argmax(np.where(at < 0, -np.inf, flat), axis=-1)[..., None]
    last = count - 1 - np.argmax(np.isnan(flat)[..., ::-1], axis=-1)[..., None]
    first = np.where(np.isnan(flat).any(axis=-1, keepdims=True), last, first)
    # Padding never wins, not even against -inf.
    only_low = np.all((flat == -np.inf) | (at < 0), axis=-1, keepdims=True)
    first = np.where(only_low, np.argmax(at >= 0, axis=-1)[..., None], first)
    at = np.broadcast_to(at, flat.shape)
    return np.take_along_axis(flat, first, -1)[..., 0], np.take_along_axis(at, first, -1)[..., 0]


def image_places(shape):
    return np.arange(shape[2] * shape[3], dtype=float).reshape(1, 1, *shape[2:])


@numpy_op("max_pool2d")
def max_pool2d(inputs, at):
    x = inputs[0]
    seen = windows(x, at.window, stride_of(at), at.padding, fill=-np.inf)
    return largest(seen, windows(image_places(x.shape), at.window, stride_of(at), at.padding, fill=-1))


def put_back(dy, places, image):
    dx = np.zeros(dy.shape[:2] + (image[0] * image[1],))
    n, c = np.indices(dy.shape[:2], sparse=True)
    np.add.at(dx, (n[..., None, None], c[..., None, None], places), dy)
    return dx.reshape(dy.shape[:2] + tuple(image))


@numpy_op("max_pool2d_backward", "adaptive_max_pool2d_backward")
def max_pool2d_backward(inputs, at):
    return put_back(inputs[0], inputs[1], at.image)


def pool_counts(shape, at):
    if at.count_padding:
        return at.window[0] * at.window[1]
    return windows(np.ones((1, 1) + shape[2:]), at.window, stride_of(at), at.padding).sum(axis=(4, 5))


@numpy_op("avg_pool2d")
def avg_pool2d(inputs, at):
    x = inputs[0]
    return windows(x, at.window, stride_of(at), at.padding).sum(axis=(4, 5)) / pool_counts(x.shape, at)


@numpy_op("avg_pool2d_backward")
def avg_pool2d_backward(inputs, at):
    dy = inputs[0]
    share = dy / pool_counts(dy.shape[:2] + tuple(at.image), at)
    # Every output is spread evenly: a transposed convolution, channel by channel, with ones.
    flat = share.reshape((-1, 1) + share.shape[2:])
    steps = SimpleNamespace(stride=stride_of(at), padding=at.padding, dilation=(1, 1), groups=1)
    dx = spread(flat, np.ones((1, 1) + tuple(at.window)), at.image, steps)
    return dx.reshape(dy.shape[:2] + tuple(at.image))


def adaptive_parts(size, parts):
    """Part o covers [floor(o * size / parts), ceil((o + 1) * size / parts))."""
    return [slice(o * size // parts, -(-(o + 1) * size // parts)) for o in range(parts)]


def adaptive_windows(x, size):
    """((p, q), rows, columns) of every output."""
    for p, rows in enumerate(adaptive_parts(x[0], size[0])):
        for q, columns in enumerate(adaptive_parts(x[1], size[1])):
            yield (p, q), rows, columns


@numpy_op("adaptive_avg_pool2d")
def adaptive_avg_pool2d(inputs, at):
    x = inputs[0]
    y = np.empty(x.shape[:2] + tuple(at.size))
    for (p, q), rows, columns in adaptive_windows(x.shape[2:], at.size):
        y[:, :, p, q] = x[:, :, rows, columns].mean(axis=(2, 3))
    return y


@numpy_op("adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(inputs, at):
    dy = inputs[0]
    dx = np.zeros(dy.shape[:2] + tuple(at.image))
    for (p, q), rows, columns in adaptive_windows(at.image, at.size):
        part = dx[:, :, rows, columns]
        part += dy[:, :, p, q, None, None] / max(part.shape[2] * part.shape[3], 1)
    return dx


@numpy_op("adaptive_max_pool2d")
def adaptive_max_pool2d(inputs, at):
    x = inputs[0]
    y, places = np.empty((2,) + x.shape[:2] + tuple(at.size))
    for (p, q), rows, columns in adaptive_windows(x.shape[2:], at.size):
        y[:, :, p, q], places[:, :, p, q] = (
            a[:, :, 0, 0] for a in largest(x[:, :, None, None, rows, columns],
                                           image_places(x.shape)[:, :, None, None, rows, columns]))
    return y, places


def resize_matrix(source, target, bilinear, align):
    """(target, source): how much of each source line is in each target line."""
    lines = np.arange(target)
    if not bilinear:
        return np.eye(source)[lines * source // target] if target else np.zeros((0, source))
    if align:
        at = lines * (source - 1) / max(target - 1, 1)
    else:
        at = np.clip((lines + 0.5) * source / target - 0.5, 0, source - 1)
    return np.stack([np.interp(at, np.arange(source), one) for one in np.eye(source)], axis=1)


def resize_matrices(sizes, targets, at):
    bilinear = hasattr(at, "align_corners")
    return [resize_matrix(s, t, bilinear, bilinear and at.align_corners)
            for s, t in zip(sizes, targets)]


def resize_axis(x, axis, target, at):
    """Not a product with a matrix: infinity beside a line must not meet the zeros of all others."""
    source, lines = x.shape[axis], np.arange(target)
    if not hasattr(at, "align_corners"):
        return x.take(lines * source // target, axis)
    if at.align_corners:
        place = lines * (source - 1) / max(target - 1, 1)
    else:
        place = np.maximum((lines + 0.5) * source / target - 0.5, 0)
    low = np.minimum(np.floor(place).astype(int), source - 1)
    rest = (place - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return x.take(low, axis) * (1 - rest) + x.take(np.minimum(low + 1, source - 1), axis) * rest


@numpy_op("upsample_nearest", "upsample_bilinear")
def upsample(inputs, at):
    return resize_axis(resize_axis(inputs[0], 2, at.size[0], at), 3, at.size[1], at)


@numpy_op("upsample_nearest_backward", "upsample_bilinear_backward")
def upsample_backward(inputs, at):
    rows, columns = resize_matrices(at.size, inputs[0].shape[2:], at)
    return np.einsum("ph,ncpq,qw->nchw", rows, inputs[0], columns)


@numpy_op("pad")
def pad(inputs, at):
    if not at.padding:
        return inputs[0]
    return np.pad(inputs[0], np.reshape(at.padding, (-1, 2)), constant_values=at.value)


@numpy_op("conv_transpose2d")
def conv_transpose2d(inputs, at):
    x, w, b = inputs
    size = tuple((n - 1) * s - 2 * p + d * (r - 1) + 1 + o for n, s, p, d, r, o in
                 zip(x.shape[2:], at.stride, at.padding, at.dilation, w.shape[2:], at.output_padding))
    y = spread(x, w, size, at)
    return y if b is None else y + b.reshape(1, -1, 1, 1)
