"""Element-wise ops and conversions."""
import numpy as np
from scipy import special

from . import NUMPY, numpy_op


def _truth(f):
    return lambda *operands: f(*(np.asarray(x) != 0 for x in operands))


_FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative, "abs": np.abs,
    "sign": np.sign, "square": np.square, "reciprocal": np.reciprocal, "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "erf": special.erf, "sigmoid": special.expit,
    "relu": lambda a: np.maximum(a, 0), "gelu": lambda a: a * special.ndtr(a),
    "gelu_tanh": lambda a: a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
    "silu": lambda a: a * special.expit(a), "softplus": lambda a: np.logaddexp(0, a),
    "mish": lambda a: a * np.tanh(np.logaddexp(0, a)),
    "prelu": lambda a, b: np.where(a > 0, a, b * a),
    "hard_sigmoid": lambda a: np.clip(a / 6 + 0.5, 0, 1),
    "hard_swish": lambda a: a * np.clip(a / 6 + 0.5, 0, 1),
    "where": lambda a, b, c: np.where(a != 0, b, c),
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": _truth(np.logical_and),
    "logical_or": _truth(np.logical_or), "logical_xor": _truth(np.logical_xor),
    "logical_not": _truth(np.logical_not), "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def _with_numbers(function):
    """An operand that is left out is a number in the attributes."""
    def counterpart(inputs, at):
        return function(*(getattr(at, f"scalar{i}") if x is None else x
                          for i, x in enumerate(inputs)))
    return counterpart


NUMPY.update({name: _with_numbers(function) for name, function in _FUNCTIONS.items()})


@numpy_op("leaky_relu")
def leaky_relu(inputs, at):
    return np.where(inputs[0] > 0, inputs[0], at.slope * inputs[0])


@numpy_op("elu")
def elu(inputs, at):
    return np.where(inputs[0] > 0, inputs[0], at.alpha * np.expm1(inputs[0]))


@numpy_op("clamp", "hard_tanh")
def clamp(inputs, at):
    return np.clip(inputs[0], at.min, at.max)


@numpy_op("cast")
def cast(inputs, at):
    x = inputs[0]
    if at.dtype == "bool":
        return x != 0
    if at.dtype in ("int8", "uint8", "int32", "int64"):
        # In float: what int64 saturates to is no int64 once it is rounded to a double.
        info = np.iinfo(at.dtype)
        return np.clip(np.trunc(np.nan_to_num(x.astype(float), nan=0, posinf=np.inf, neginf=-np.inf)),
                       float(info.min), float(info.max))
    if at.dtype == "bfloat16":
        return x
    return x.astype(at.dtype)


PHILOX_M = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
PHILOX_W = (0x9E3779B9, 0xBB67AE85)


def philox4x32(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): counter (..., 4), key (2) as 32-bit words."""
    low = np.uint64(0xFFFFFFFF)
    c = [counter[..., i].astype(np.uint64) for i in range(4)]
    k0, k1 = (np.uint64(k) for k in key)
    for _ in range(10):
        p0, p1 = PHILOX_M[0] * c[0], PHILOX_M[1] * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & low]
        k0, k1 = (k0 + np.uint64(PHILOX_W[0])) & low, (k1 + np.uint64(PHILOX_W[1])) & low
    return np.stack(c, axis=-1).astype(np.uint32)


# The expressions of the samples of elementwise_binary, as NumPy writes them.
_EXPRESSIONS = {
    "MUL(ADD(v0, v1), 2.0f) - v0 / v1": lambda a, b: (a + b) * 2 - a / b,
    "v0 > v1 && !(v0 < 1) || v1 == v0 ? RELU(v0 - v1) : -v1 * .5":
        lambda a, b: np.where((a > b) & ~(a < 1) | (a == b), np.maximum(a - b, 0), -b / 2),
    "MAX(exp(-v0), TANH(v1)) + MIN(log1p(v0), SQRT(v1)) * ABS(v0 - 1e0)":
        lambda a, b: (np.maximum(np.exp(-a), np.tanh(b))
                      + np.minimum(np.log1p(a), np.sqrt(b)) * np.abs(a - 1)),
    "sin(v0) * cos(v1) + tan(v0 * .5) + atan2(v0, v1)":
        lambda a, b: np.sin(a) * np.cos(b) + np.tan(a / 2) + np.arctan2(a, b),
    "pow(v0, v1) + rsqrt(v0) + cbrt(v1) + hypot(v0, v1)":
        lambda a, b: a**b + 1 / np.sqrt(a) + np.cbrt(b) + np.hypot(a, b),
    "floor(v0 * 4) + ceil(v1 * 4) - trunc(v0 * 3) + rint(v1 * 8) + round(v0 * 5)":
        lambda a, b: (np.floor(a * 4) + np.ceil(b * 4) - np.trunc(a * 3) + np.rint(b * 8)
                      + np.trunc(a * 5 + np.copysign(0.5, a))),  # halves away from zero
    "erf(v0) - erfc(v1) + expm1(v0) * clamp(v1, 0.5, 1)":
        lambda a, b: special.erf(a) - special.erfc(b) + np.expm1(a) * np.clip(b, 0.5, 1),
    "(v0 <= v1) + 2 * (v0 >= v1) + 4 * (v0 != v1) + 8 * (v0 > 1) + sign(v0 - 1)":
        lambda a, b: (a <= b) + 2.0 * (a >= b) + 4 * (a != b) + 8 * (a > 1) + np.sign(a - 1),
    "M_PI": lambda a, b: np.full(np.broadcast(a, b).shape, np.pi),
    "v1": lambda a, b: np.broadcast_to(b, np.broadcast(a, b).shape),
    "isnan(v0) ? MIN(v0, v1) : isinf(v1) ? MAX(v0, 1) : RELU(v1) == v1 ? fmax(v0, v1) : "
    "isfinite(v0) - 2":
        lambda a, b: np.select([np.isnan(a), np.isinf(b), np.maximum(b, 0) == b],
                               [np.minimum(a, b), np.maximum(a, 1), np.fmax(a, b)],
                               np.isfinite(a) - 2.0),
}


@numpy_op("elementwise_binary")
def elementwise_binary(inputs, at):
    assert at.expression in _EXPRESSIONS, f"write this expression with NumPy too: {at.expression}"
    return _EXPRESSIONS[at.expression](*inputs)
