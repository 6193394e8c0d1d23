"""Every op a second time, with NumPy and SciPy, written from what the op is to compute.

A counterpart takes the list of inputs (None where an optional one was left out) and the attributes
as a namespace, and returns one output or a tuple of them.
"""
NUMPY = {}
TORCH = {}


def numpy_op(*names):
    def register(function):
        for name in names:
            NUMPY[name] = function
        return function
    return register


def torch_op(*names):
    def register(function):
        for name in names:
            TORCH[name] = function
        return function
    return register
