"""Views, joining, indexing."""
import numpy as np

from . import numpy_op


@numpy_op("reshape")
def reshape(inputs, at):
    return inputs[0].reshape(at.sizes)


@numpy_op("transpose")
def transpose(inputs, at):
    return np.swapaxes(inputs[0], at.a, at.b)


@numpy_op("permute")
def permute(inputs, at):
    return np.transpose(inputs[0], at.axes)


@numpy_op("expand")
def expand(inputs, at):
    return np.broadcast_to(inputs[0], at.shape)


@numpy_op("narrow")
def narrow(inputs, at):
    return np.take(inputs[0], range(at.start, at.start + at.length), axis=at.axis)


@numpy_op("concat")
def concat(inputs, at):
    return np.concatenate(inputs, axis=at.axis)


@numpy_op("stack")
def stack(inputs, at):
    return np.stack(inputs, axis=at.axis)


@numpy_op("index_select")
def index_select(inputs, at):
    return np.take(inputs[0], inputs[1], axis=at.axis)


def picked(shape, indices, axis):
    """Index arrays that pick, along `axis`, what `indices` says, and their own place elsewhere."""
    grid = list(np.indices(indices.shape, sparse=True))
    grid[axis % len(shape)] = indices
    return tuple(grid)


@numpy_op("gather")
def gather(inputs, at):
    x, indices = inputs
    return x[picked(x.shape, indices, at.axis)]


@numpy_op("scatter_add")
def scatter_add(inputs, at):
    x, indices, source = inputs
    y = x.copy()
    places = picked(x.shape, indices, at.axis)
    np.add.at(y, places, source[tuple(slice(0, n) for n in indices.shape)])
    return y


@numpy_op("index_add")
def index_add(inputs, at):
    x, indices, source = inputs
    y = x.copy()
    np.add.at(np.moveaxis(y, at.axis, 0), indices, np.moveaxis(source, at.axis, 0))
    return y


@numpy_op("embedding")
def embedding(inputs, at):
    indices, table = inputs
    return table[indices]


@numpy_op("one_hot")
def one_hot(inputs, at):
    return np.equal.outer(inputs[0], np.arange(at.classes)).astype(float)


@numpy_op("tril")
def tril(inputs, at):
    return np.where(np.tri(*inputs[0].shape[-2:], at.diagonal, bool), inputs[0], 0)


@numpy_op("triu")
def triu(inputs, at):
    return np.where(np.tri(*inputs[0].shape[-2:], at.diagonal - 1, bool), 0, inputs[0])
