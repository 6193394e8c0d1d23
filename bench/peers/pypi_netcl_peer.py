#!/usr/bin/env python3
"""The package called netcl on PyPI (0.4.4) as a contender of `netcl bench`, on the same OpenCL device.

    netcl bench --peer "build/pypi-netcl-venv/bin/python bench/peers/pypi_netcl_peer.py [optimised]"

"optimised" turns on the kernels that it has behind switches. Needs an environment of its own: it has our name."""
import os
import sys

import peer

WAY = sys.argv[1] if len(sys.argv) > 1 else "default"
if WAY == "optimised":  # it reads its switches while it is imported
    os.environ.update(NETCL_MATMUL_OPTIMIZED="1", NETCL_CONV_OPTIMIZED="1")

from netcl.core.device import manager
from netcl.core.tensor import Tensor
from netcl.ops.conv2d import conv2d, conv2d_backward
from netcl.ops.elementwise import elementwise_binary
from netcl.ops.matmul import matmul
from netcl.ops.reduction import reduce_sum
from netcl.ops.softmax import softmax

queue = manager.default("auto").queue


def tensor(shape, seed, scale=1.0):
    return Tensor.from_host(queue, peer.values(shape, seed, scale))


def product(p):
    a, b = tensor((p["m"], p["k"]), 1), tensor((p["k"], p["n"]), 2)
    return lambda: matmul(a, b)


def convolution(p, of_weights=False):
    x = tensor((p["n"], p["c"], p["size"], p["size"]), 1)
    w = tensor((p["k"], p["c"] // p["groups"], p["filter"], p["filter"]), 2)
    how = {"stride": p["stride"], "pad": p["padding"], "groups": p["groups"]}
    if not of_weights:
        return lambda: conv2d(x, w, **how)
    dy = tensor(tuple(conv2d(x, w, **how).shape), 3)
    return lambda: conv2d_backward(x, w, dy, need_grad_x=False, **how)[1]


def add(p):
    a, b = tensor((p["n"],), 1), tensor((p["n"],), 2)
    return lambda: elementwise_binary(a, b, expression="v0 + v1")


def launches(p):
    x, one = tensor((16,), 1), Tensor.from_host(queue, peer.values((16,), 1) * 0 + 1)

    def chain():
        y = x
        for _ in range(p["count"]):
            y = elementwise_binary(y, one, expression="v0 + v1")
        return y

    return chain


def total(p):
    a = tensor((p["n"],), 1)
    return lambda: reduce_sum(a)


def rows(p):
    x = tensor((p["rows"], p["columns"]), 1, 8)
    return lambda: softmax(x)


KINDS = {"matmul": product, "conv2d": convolution, "conv2d_weights": lambda p: convolution(p, True), "add": add, "sum": total,
         "softmax": rows, "launches": launches}


def prepare(p, _):
    if p["kind"] not in KINDS:
        raise peer.Declined("not measured with this package")
    call = KINDS[p["kind"]](p)
    return call, peer.probe_of(call().to_host().reshape(-1))


if __name__ == "__main__":
    peer.serve("PyPI's netcl 0.4.4", [WAY], os.cpu_count() or 1, prepare, queue.finish)
