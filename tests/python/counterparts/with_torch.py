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
    x, w, b, *residual = tensors(inputs)
    return ACTIVATIONS[at.activation](sum(residual, F.linear(x, w, b))).numpy()


def has_size(*arrays):
    return all(a is None or a.size for a in arrays)


def convolved(x, w, b, at):
    return F.conv2d(x, w, b, tuple(at.stride), tuple(at.padding), tuple(at.dilation), at.groups)


@torch_op("conv2d")
def conv2d(inputs, at):
    if not has_size(*inputs):
        return None
    x, w, b, *residual = tensors(inputs)
    return ACTIVATIONS[at.activation](sum(residual, convolved(x, w, b, at))).numpy()


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


# ---- norms, attention, losses. Special values: PyTorch fuses in its own way.

def is_finite(*arrays):
    return all(x is None or (x.size and abs(x.astype(float)).max() < 1e30) for x in arrays)


@torch_op("layer_norm")
def layer_norm(inputs, at):
    if not is_finite(*inputs):
        return None
    x, scale, shift = tensors(inputs)
    return F.layer_norm(x, x.shape[x.ndim - at.axes:], scale, shift, at.eps).numpy()


@torch_op("group_norm")
def group_norm(inputs, at):
    if not is_finite(*inputs) or inputs[0].size == inputs[0].shape[0] * inputs[0].shape[1]:
        return None
    x, scale, shift = tensors(inputs)
    return F.group_norm(x, at.groups, scale, shift, at.eps).numpy()


def normalized(x, scale, shift, at):
    return F.batch_norm(x, None, None, scale, shift, training=True, eps=at.eps)


@torch_op("batch_norm_train")
def batch_norm_train(inputs, at):
    x = inputs[0]
    if not is_finite(*inputs) or x.size == x.shape[1]:
        return None
    return normalized(*tensors(inputs), at).numpy(), None, None


@torch_op("batch_norm")
def batch_norm(inputs, at):
    if not is_finite(*inputs):
        return None
    x, scale, shift, mean, variance = tensors(inputs)
    y = F.batch_norm(x, mean, variance, scale, shift, eps=at.eps)
    return (F.relu(y) if at.fuse_relu else y).numpy()


@torch_op("cross_entropy")
def cross_entropy(inputs, at):
    if not is_finite(inputs[0]):
        return None
    logits, labels = tensors(inputs)
    return F.cross_entropy(logits, labels.long(), reduction="none", ignore_index=at.ignore_index,
                           label_smoothing=at.label_smoothing).numpy()


@torch_op("cross_entropy_probabilities")
def cross_entropy_probabilities(inputs, at):
    return F.cross_entropy(*tensors(inputs), reduction="none").numpy() if is_finite(*inputs) else None


@torch_op("var")
def var(inputs, at):
    x = tensors(inputs)[0]
    if not is_finite(inputs[0]) or at.correction not in (0, 1):
        return None
    return torch.var(x, dim=tuple(at.axes) or tuple(range(x.ndim)), unbiased=at.correction == 1,
                     keepdim=at.keepdim).numpy()


@torch_op("attention")
def attention(inputs, at):
    q, k, v, mask = tensors(inputs)
    if not is_finite(*inputs[:3]):
        return None
    scores = torch.matmul(q, k.transpose(-1, -2)) * at.scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if at.causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return torch.matmul(F.softmax(scores, dim=-1), v).numpy(), torch.logsumexp(scores, -1).numpy()


@torch_op("softmax")
def softmax(inputs, at):
    return None if not inputs[0].size else F.softmax(tensors(inputs)[0], dim=at.axis).numpy()


@torch_op("log_softmax")
def log_softmax(inputs, at):
    return None if not inputs[0].size else F.log_softmax(tensors(inputs)[0], dim=at.axis).numpy()


@torch_op("topk")
def topk(inputs, at):
    y, _ = torch.topk(tensors(inputs)[0], at.k, dim=at.axis, largest=at.largest)
    return y.numpy(), None  # of equal values PyTorch takes any
