"""PyTorch's own functions, where NumPy has none that computes the op directly.

None stands for a form of the op that PyTorch does not have.
"""
import torch
import torch.nn.functional as F

from . import TORCH, torch_op

ACTIVATIONS = (lambda x: x, F.relu, F.gelu, F.silu, torch.sigmoid, torch.tanh)


def tensors(inputs):
    return [None if x is None else torch.from_numpy(x.copy()) for x in inputs]


def _unary(function):
    return lambda inputs, at: function(*tensors(inputs)).numpy()


TORCH.update({name: _unary(function) for name, function in {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "mish": F.mish, "softplus": lambda x: F.softplus(x, threshold=1e9),
    "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish, "matmul": torch.matmul,
}.items()})


# Where PyTorch knows a limit that the formula does not: at infinities, and beyond 1e9.
def _finite(name, function):
    inner = TORCH[name]
    TORCH[name] = lambda inputs, at: inner(inputs, at) if function(inputs[0]) else None


for _name in ("gelu", "gelu_tanh", "silu", "mish", "softplus", "hard_sigmoid", "hard_swish"):
    _finite(_name, lambda x: abs(x).max(initial=0) < 1e9)


@torch_op("elu")
def elu(inputs, at):
    return F.elu(tensors(inputs)[0], at.alpha).numpy()


@torch_op("linear")
def linear(inputs, at):
    return ACTIVATIONS[at.activation](F.linear(*tensors(inputs))).numpy()


def has_size(*arrays):
    return all(a is None or a.size for a in arrays)


def convolved(x, w, b, at):
    return F.conv2d(x, w, b, tuple(at.stride), tuple(at.padding), tuple(at.dilation), at.groups)


@torch_op("conv2d")
def conv2d(inputs, at):
    if not has_size(*inputs):
        return None
    return ACTIVATIONS[at.activation](convolved(*tensors(inputs), at)).numpy()


def pulled_back(forward, x, dy):
    """The gradient of a forward function by PyTorch's own differentiation."""
    x.requires_grad_(True)
    return torch.autograd.grad(forward(x), x, dy)[0].numpy()


@torch_op("conv2d_backward_data")
def conv2d_backward_data(inputs, at):
    dy, w, b = tensors(inputs)
    if not has_size(*inputs):
        return None
    x = torch.zeros(dy.shape[0], w.shape[1] * at.groups, *at.size, dtype=torch.float64)
    dx = pulled_back(lambda z: convolved(z, w, None, at), x, dy)
    return dx if b is None else dx + b.numpy().reshape(1, -1, 1, 1)


@torch_op("conv2d_backward_weights")
def conv2d_backward_weights(inputs, at):
    x, dy = tensors(inputs)
    if not has_size(*inputs):
        return None
    w = torch.zeros(dy.shape[1], x.shape[1] // at.groups, *at.filter, dtype=torch.float64)
    return pulled_back(lambda z: convolved(x, z, None, at), w, dy)


def pool_options(at):
    return {"kernel_size": tuple(at.window), "padding": tuple(at.padding),
            "stride": tuple(s or w for s, w in zip(at.stride, at.window))}


def pool_fits(x, at):
    return x.size and all(2 * p <= w for p, w in zip(at.padding, at.window))


@torch_op("max_pool2d")
def max_pool2d(inputs, at):
    if not pool_fits(inputs[0], at):
        return None
    y, places = F.max_pool2d(tensors(inputs)[0], **pool_options(at), return_indices=True)
    return y.numpy(), places.numpy()


def averaged(x, at):
    return F.avg_pool2d(x, **pool_options(at), count_include_pad=at.count_padding)


@torch_op("avg_pool2d")
def avg_pool2d(inputs, at):
    return averaged(tensors(inputs)[0], at).numpy() if pool_fits(inputs[0], at) else None


@torch_op("avg_pool2d_backward")
def avg_pool2d_backward(inputs, at):
    if not pool_fits(inputs[0], at):
        return None
    dy = tensors(inputs)[0]
    x = torch.zeros(*dy.shape[:2], *at.image, dtype=torch.float64)
    return pulled_back(lambda z: averaged(z, at), x, dy)


@torch_op("adaptive_avg_pool2d")
def adaptive_avg_pool2d(inputs, at):
    if not has_size(inputs[0]):
        return None
    return F.adaptive_avg_pool2d(tensors(inputs)[0], tuple(at.size)).numpy()


@torch_op("adaptive_max_pool2d")
def adaptive_max_pool2d(inputs, at):
    if not has_size(inputs[0]):
        return None
    y, places = F.adaptive_max_pool2d(tensors(inputs)[0], tuple(at.size), return_indices=True)
    return y.numpy(), places.numpy()


def resized(x, size, at):
    if hasattr(at, "align_corners"):
        return F.interpolate(x, tuple(size), mode="bilinear", align_corners=at.align_corners)
    return F.interpolate(x, tuple(size), mode="nearest")


@torch_op("upsample_nearest", "upsample_bilinear")
def upsample(inputs, at):
    return resized(tensors(inputs)[0], at.size, at).numpy() if has_size(inputs[0]) else None


@torch_op("upsample_nearest_backward", "upsample_bilinear_backward")
def upsample_backward(inputs, at):
    if not has_size(inputs[0]):
        return None
    dy = tensors(inputs)[0]
    x = torch.zeros(*dy.shape[:2], *at.size, dtype=torch.float64)
    return pulled_back(lambda z: resized(z, dy.shape[2:], at), x, dy)


@torch_op("conv_transpose2d")
def conv_transpose2d(inputs, at):
    if not has_size(*inputs):
        return None
    return F.conv_transpose2d(*tensors(inputs), tuple(at.stride), tuple(at.padding),
                              tuple(at.output_padding), at.groups, tuple(at.dilation)).numpy()
