#!/usr/bin/env python3
"""PyTorch as a contender of `netcl bench`: eager and compiled, in the layouts that it has.

    netcl bench --peer "python bench/peers/torch_peer.py [contender, ...]"

Answers requests in lines of JSON (docs/performance.md describes them).
"""
import math
import os
import sys

os.environ.setdefault("TORCHINDUCTOR_FREEZING", "1")

import peer
import torch
import torch.nn.functional as F
from peer import Declined
from torch import nn

CLASSES, IMAGE_CLASSES = 10, 1000
CONTENDERS = ["eager", "eager nhwc", "eager blocked", "compiled", "compiled nhwc"]


def values(shape, seed, scale=1.0):
    return torch.from_numpy(peer.values(shape, seed, scale))


def probe_of(result):
    flat = result.to_dense() if result.is_mkldnn else result
    return peer.probe_of(flat.detach().contiguous().reshape(-1))


class Way:
    """How a contender runs a function: eager or compiled, and the layout of images."""

    def __init__(self, name):
        self.compiled = name.startswith("compiled")
        self.layout = name.split()[1] if " " in name else "nchw"

    def function(self, f):
        return torch.compile(f, dynamic=False) if self.compiled else f

    def images(self, x):
        if self.layout == "nhwc":
            return x.to(memory_format=torch.channels_last)
        return x.to_mkldnn() if self.layout == "blocked" else x

    def require_plain(self):
        if self.layout != "nchw":
            raise Declined("the layout of images does not matter here")


def matmul(p, way):
    way.require_plain()
    a, b = values((p["m"], p["k"]), 1), values((p["k"], p["n"]), 2)
    out = torch.empty(p["m"], p["n"])
    f = way.function(lambda a, b, out: torch.mm(a, b, out=out))
    return lambda: f(a, b, out)


def convolution(p, way):
    x = way.images(values((p["n"], p["c"], p["size"], p["size"]), 1))
    w = values((p["k"], p["c"] // p["groups"], p["filter"], p["filter"]), 2)
    w = way.images(w) if way.layout == "nhwc" else w
    if way.layout == "blocked":
        if way.compiled:
            raise Declined("blocked tensors are not compiled")
        layer = nn.Conv2d(p["c"], p["k"], p["filter"], p["stride"], p["padding"],
                          groups=p["groups"], bias=False)
        layer.weight.data.copy_(w)
        from torch.utils import mkldnn
        layer = mkldnn.to_mkldnn(layer.eval())
        return lambda: layer(x)
    f = way.function(lambda x, w: F.conv2d(x, w, None, p["stride"], p["padding"], 1, p["groups"]))
    return lambda: f(x, w)


def convolution_gradient(p, way, mask):
    if way.layout == "blocked":
        raise Declined("blocked tensors have no gradients")
    if way.compiled:
        raise Declined("the same library call as eager")
    x = way.images(values((p["n"], p["c"], p["size"], p["size"]), 1))
    w = way.images(values((p["k"], p["c"] // p["groups"], p["filter"], p["filter"]), 2))
    stride, padding = [p["stride"]] * 2, [p["padding"]] * 2
    y = F.conv2d(x, w, None, stride, padding, 1, p["groups"])
    g = way.images(values(tuple(y.shape), 3))
    backward = torch.ops.aten.convolution_backward
    return lambda: backward(g, x, w, None, stride, padding, [1, 1], False, [0, 0], p["groups"],
                            mask)[0 if mask[0] else 1]


def elementwise(p, way):
    way.require_plain()
    n, kind = p["n"], p["kind"]
    a = values((n,), 1)
    if kind == "sum":
        f = way.function(lambda a: torch.sum(a))
        return lambda: f(a)
    b, out = values((n,), 2), torch.empty(n)
    if kind == "add":
        f = way.function(lambda a, b, out: torch.add(a, b, out=out))
        return lambda: f(a, b, out)
    c = values((n,), 3)

    def chain(a, b, c, out):
        return out.copy_(torch.relu((a * b + c) * 1.5 - a) + 0.25)

    f = way.function(chain)
    return lambda: f(a, b, c, out)


def rows(p, way):
    way.require_plain()
    x = values((p["rows"], p["columns"]), 1, 8)
    if p["kind"] == "softmax":
        f = way.function(lambda x: torch.softmax(x, -1))
        return lambda: f(x)
    w, b = values((p["columns"],), 2), values((p["columns"],), 3)
    f = way.function(lambda x, w, b: F.layer_norm(x, (p["columns"],), w, b))
    return lambda: f(x, w, b)


def places(count, rows):
    return torch.arange(count) * 7919 % rows


# What `netcl bench` calls an op (src/bench/op_work.cpp): a function of x, and of more inputs where it needs them.
POOL = {"kernel_size": 3, "stride": 2, "padding": 1}
OPS = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "to_half": lambda x: x.half(),
    "transpose": lambda x: x.t().contiguous(),
    "channels_last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "dropout": lambda x: F.dropout(x, 0.25, True),
    "normal": lambda x: torch.randn(x.shape),
    "channel_bias": lambda x, b: x + b.reshape(-1, 1, 1),
    "where": lambda x, y: torch.where(x > y, x, y),
    "concat": lambda x, y: torch.cat([x, y], 1),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "column_sum": lambda x: x.sum(0),
    "channel_mean": lambda x: x.mean((0, 2, 3)),
    "row_max": lambda x: x.amax(-1),
    "row_var": lambda x: x.var(-1),
    "argmax": lambda x: x.argmax(-1),
    "topk": lambda x: x.topk(5)[0],
    "cumsum": lambda x: x.cumsum(-1),
    "channel_softmax": lambda x: torch.softmax(x, 1),
    "softmax": lambda x: torch.softmax(x, -1),
    "cross_entropy": F.cross_entropy,
    "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "group_norm": lambda x, w, b: F.group_norm(x, 8, w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "max_pool": lambda x: F.max_pool2d(x, **POOL),
    "avg_pool": lambda x: F.avg_pool2d(x, **POOL),
    "global_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "embedding": lambda x, i: F.embedding(i, x),
    "attention": F.scaled_dot_product_attention,
}
IMAGES = {"channel_bias", "concat", "pad", "channel_mean", "channel_softmax", "group_norm", "batch_norm", "max_pool",
          "avg_pool", "global_pool", "bilinear", "nearest"}
# The inputs beside x, which is from -4 to 4 but where the sizes of others matter more.
MORE = {
    "channel_bias": lambda s: [values((s[1],), 2)],
    "where": lambda s: [values(s, 2)],
    "concat": lambda s: [values(s, 2)],
    "cross_entropy": lambda s: [places(s[0], s[1])],
    "layer_norm": lambda s: [values((s[1],), 2), values((s[1],), 3)],
    "group_norm": lambda s: [values((s[1],), 2), values((s[1],), 3)],
    "batch_norm": lambda s: [values((s[1],), 2), values((s[1],), 3)],
    "embedding": lambda s: [places(4096, s[0])],
    "attention": lambda s: [values(s, 2, 8), values(s, 3, 8)],
}


def statistics_of(result):
    return [round(100 * float((result == 0).double().mean())), round(10 * float(result.double().square().mean()))]


def op(p, way):
    name, shape = p["op"], tuple(p["shape"])
    backward = name.endswith("_backward")
    forward = name.removesuffix("_backward")
    if forward not in IMAGES:
        way.require_plain()
    if way.layout == "blocked":
        raise Declined("not every op takes blocked tensors")
    x = values(shape, 1, 1 if forward in ("concat", "embedding") else 8)
    more = [way.images(v) if v.dim() == 4 and forward in IMAGES else v for v in MORE.get(forward, lambda s: [])(shape)]
    x = way.images(x) if forward in IMAGES else x
    f = way.function(OPS[forward])
    if not backward:
        call = lambda: f(x, *more)  # noqa: E731
        if name in ("dropout", "normal"):
            call.probe = statistics_of(call())
        return call
    x.requires_grad_(True)
    with torch.enable_grad():
        y = f(x, *more)
    g = values(tuple(y.shape), 3)
    g = way.images(g) if way.layout == "nhwc" else g
    return lambda: torch.autograd.grad(y, x, g, retain_graph=True)[0]


def launches(p, way):
    way.require_plain()
    if way.compiled:
        raise Declined("would be one kernel")
    x = values((16,), 1)

    def chain():
        y = x
        for _ in range(p["count"]):
            y = y + 1.0
        return y

    return chain


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                      nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.down is None else self.down(x)))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    width = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, out, stride), Block(out, out, 1)]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(512, IMAGE_CLASSES))


def digits_model(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(32 * 49, 10))


def fill_weights(model):
    with torch.no_grad():
        for i, (name, parameter) in enumerate(model.named_parameters()):
            if parameter.ndim >= 2:
                fan = parameter.numel() // parameter.shape[0]
                parameter.copy_(values(tuple(parameter.shape), 101 + i, math.sqrt(24 / fan)))
            elif name.endswith("bias"):
                parameter.zero_()


def training(p, way):
    if way.layout == "blocked" or (way.layout == "nhwc" and p["model"] == "mlp"):
        raise Declined("not a layout of this network")
    x = way.images(values((p["batch"], 1, 28, 28), 1))
    y = torch.arange(p["batch"]) % CLASSES

    def fresh():
        model = digits_model(p["model"])
        fill_weights(model)
        if way.layout == "nhwc":
            model = model.to(memory_format=torch.channels_last)
        adam = torch.optim.Adam(model.parameters(), fused=True)
        forward = way.function(lambda x, y: F.cross_entropy(model(x), y))

        def step():
            adam.zero_grad(set_to_none=True)
            loss = forward(x, y)
            loss.backward()
            adam.step()
            return loss

        return step

    first = fresh()
    losses = [float(first()) for _ in range(2)]
    step = fresh()
    step.probe = losses
    return step


def inference(p, way):
    model = resnet18()
    fill_weights(model)
    model.eval()
    x = way.images(values((p["batch"], 3, 224, 224), 1))
    if way.layout == "blocked":
        if way.compiled:
            raise Declined("blocked tensors are not compiled")
        raise Declined("not every layer takes blocked tensors")
    if way.layout == "nhwc":
        model = model.to(memory_format=torch.channels_last)
    f = way.function(model)

    def call():
        with torch.no_grad():
            return f(x)

    return call


KINDS = {
    "matmul": matmul,
    "conv2d": convolution,
    "conv2d_data": lambda p, way: convolution_gradient(p, way, [True, False, False]),
    "conv2d_weights": lambda p, way: convolution_gradient(p, way, [False, True, False]),
    "add": elementwise, "sum": elementwise, "chain": elementwise,
    "softmax": rows, "layer_norm": rows, "op": op,
    "launches": launches, "train": training, "forward": inference,
}


def guarded(p, call):
    """The mode in which a case is called, which compiled functions are compiled for."""
    learns = p["kind"] in ("train", "forward") or p.get("op", "").endswith("_backward")

    def inside(*arguments):
        with torch.inference_mode(not learns):
            return call(*arguments)

    return inside


def prepare(p, contender):
    kind = p["kind"]
    if kind not in KINDS:
        raise Declined("PyTorch has no such case")
    torch._dynamo.reset()
    made = guarded(p, KINDS[kind])(p, Way(contender))
    call = guarded(p, made)
    return call, getattr(made, "probe", None) or probe_of(call())


def main():
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    version = torch.__version__.split("+")[0]
    peer.serve(f"PyTorch {version}", sys.argv[1:] or CONTENDERS, threads, prepare)


if __name__ == "__main__":
    main()
