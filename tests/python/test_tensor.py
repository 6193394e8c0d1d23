"""Tensors against NumPy: values in and out, operators, broadcasting, what they look like."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import netcl as nc

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_come_back(on, dtype):
    values = np.arange(-6, 6).reshape(3, 4).astype(dtype)
    x = nc.Tensor.from_host(values)
    assert x.dtype == dtype == x.dtype and x.dtype == values.dtype and x.dtype == values.dtype.type
    assert x.shape == (3, 4) and x.size == 12 and x.ndim == 2 and len(x) == 3
    for got in (x.to_host(), x.numpy(), np.asarray(x), np.array(x)):
        assert got.dtype == values.dtype
        np.testing.assert_array_equal(got, values)


def test_bfloat16_is_float32_in_numpy(on):
    x = nc.Tensor([1.0, 2.5, -3.0], dtype="bfloat16")
    assert x.dtype == "bfloat16" and x.nbytes == 6
    assert x.to_host().dtype == np.float32 and x.tolist() == [1.0, 2.5, -3.0]


@pytest.mark.parametrize("make", [
    lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: np.asfortranarray(a),
    lambda a: a.astype(a.dtype.newbyteorder()), lambda a: np.broadcast_to(a[0], a.shape), lambda a: a[:0],
])
def test_any_layout(on, make):
    values = make(np.arange(20, dtype=np.int32).reshape(4, 5))
    np.testing.assert_array_equal(nc.Tensor.from_host(values).to_host(), values)


def test_numbers_and_lists(on):
    assert nc.Tensor([1.5, 2]).dtype == "float32"
    assert nc.Tensor([1, 2]).dtype == "int64"
    assert nc.Tensor([True]).dtype == "bool"
    assert nc.Tensor(3.5).shape == () and float(nc.Tensor(3.5)) == 3.5
    assert nc.Tensor([[1, 2]], dtype=np.float16).dtype == "float16"
    assert nc.Tensor([1, 2], dtype=float).dtype == "float32"
    with pytest.raises(TypeError, match="uint16"):
        nc.Tensor(np.zeros(2, np.uint16))
    assert nc.Tensor(np.full(2, 7, np.uint16), dtype="int32").tolist() == [7, 7]


def test_both_forms_of_from_host(on):
    values = np.ones((2, 2), np.float32)
    for x in (nc.Tensor.from_host(values), nc.Tensor.from_host(on.queue, values),
              nc.Tensor.from_host(on, values), nc.Tensor.from_host(None, values)):
        assert x.queue == on.queue and x.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match="queue"):
        nc.Tensor.from_host(3, values)
    with pytest.raises(nc.errors.DeviceError, match="nonesuch"):
        nc.Tensor.from_host("nonesuch", values)
    selector = "cpu" if on.backend == "cpu" else "opencl"
    for y in (nc.Tensor(values, device=selector), nc.Tensor.zeros(2, device=selector), nc.Tensor.from_host(selector, values)):
        assert y.queue == on.queue
    values[:] = 5  # a copy was taken
    assert x.tolist() == [[1, 1], [1, 1]]


def test_factories(on):
    assert not nc.Tensor.from_shape((2, 3)).to_host().any()
    assert nc.Tensor.zeros(3).shape == (3,) and nc.Tensor.ones((1, 2)).tolist() == [[1, 1]]
    assert nc.Tensor.full((2,), 7, "int32").tolist() == [7, 7]
    assert nc.Tensor.arange(4).tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(nc.Tensor.arange(0, 1, 0.25, "float32").to_host(), np.arange(0, 1, 0.25))
    a, b = nc.Tensor.random((100,), 3, "normal"), nc.Tensor.random((100,), 3, "normal")
    np.testing.assert_array_equal(a.to_host(), b.to_host())
    assert nc.Tensor.empty((2, 2)).shape == (2, 2) and nc.Tensor.empty((0, 3)).to_host().shape == (0, 3)
    with pytest.raises(ValueError, match="negative|must"):
        nc.Tensor.zeros((2, -1))


small = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@settings(max_examples=60, deadline=None)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4), st.sampled_from("+-*/<"))
def test_operators_broadcast_like_numpy(shapes, operator):
    with nc.device("cpu"):
        rng = np.random.default_rng(1)
        a, b = (rng.random(shape, np.float32) + 0.5 for shape in shapes.input_shapes)
        got = eval(f"x {operator} y", {"x": nc.Tensor(a), "y": nc.Tensor(b)})
        want = eval(f"a {operator} b", {"a": a, "b": b})
        assert got.shape == want.shape
        np.testing.assert_allclose(got.to_host(), want, rtol=1e-6)


def test_operators_with_numbers_and_arrays(on):
    values = np.float32([1, 2, 3])
    x = nc.Tensor(values)
    for got, want in [
        (x + 1, values + 1), (1 + x, 1 + values), (2 - x, 2 - values), (x / 2, values / 2), (6 / x, 6 / values),
        (x ** 2, values ** 2), (2 ** x, 2 ** values), (x // 2, values // 2), (-x, -values), (abs(-x), values),
        (x + values, 2 * values), (values * x, values * values), (values - x, 0 * values),
        (x + np.float32(1), values + 1), (x @ x, values @ values), (x > 1.5, values > 1.5), (x == 2, values == 2),
        (x != 2, values != 2), ([1, 2, 3] * x, values * values), (x % 2, values % 2), (-x % 2, -values % 2),
        (7 % -x, 7 % -values), (x % 0.75, values % 0.75), (x // 0.75, values // 0.75),
    ]:
        np.testing.assert_allclose(got.to_host(), want, rtol=1e-6)
    assert (nc.Tensor([1, 2], dtype="int32") + 1).tolist() == [2, 3]
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x + None
    with pytest.raises(ValueError, match=r"\(3,\)"):
        x + nc.Tensor([1.0, 2.0])


def test_signs_of_logic_are_for_masks(on):
    a, b = np.array([True, True, False]), np.array([True, False, False])
    x, y = nc.Tensor(a), nc.Tensor(b)
    for got, want in [(x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (a & y, a & b), (x & True, a & True)]:
        assert got.dtype == "bool"
        np.testing.assert_array_equal(got.to_host(), want)
    whole = nc.Tensor([6, 5, 4])  # whose bits NumPy would combine
    for wrong in (lambda: whole & 3, lambda: 3 | whole, lambda: whole ^ whole, lambda: ~whole, lambda: x & whole,
                  lambda: np.bitwise_and(whole.to_host(), whole)):
        with pytest.raises(TypeError, match="bool.*int64"):
            wrong()
    assert nc.ops.logical_and(whole, 0).tolist() == [False] * 3


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_whole_numbers_divide_as_in_python(on, dtype):
    values = np.array([7, 9, 0, 200], dtype)
    if dtype != "uint8":
        values = np.concatenate([values, -values, np.array([2**31 - 1, 16777217], dtype)])
    x = nc.Tensor(values)
    for divisor in (1, 2, 3, 7) if dtype == "uint8" else (1, 2, -3, 7):
        for got, want in [(x // divisor, values // divisor), (x % divisor, values % divisor)]:
            assert got.dtype == ("int64" if dtype == "int64" else "int32")
            np.testing.assert_array_equal(got.to_host(), want)
    y = nc.Tensor(values[:4] + 1)
    np.testing.assert_array_equal((100 // y).to_host(), 100 // (values[:4].astype("int64") + 1))
    np.testing.assert_array_equal((100 % y).to_host(), 100 % (values[:4].astype("int64") + 1))
    np.testing.assert_array_equal((x // 0.5).to_host()[:4], values[:4] // 0.5)


def test_whole_numbers_of_64_bits_are_exact(on):
    rng = np.random.default_rng(0)
    ends = np.array([2**63 - 1, -(2**63), 2**53 + 1, 0, 1, -1])
    a = np.concatenate([rng.integers(-(2**63), 2**63 - 1, 300), rng.integers(-(2**55), 2**55, 300), ends])
    b = rng.permutation(np.concatenate([rng.integers(-(2**62), 2**62, 300), rng.integers(-99, 99, 300), ends + 3]))
    with np.errstate(all="ignore"):  # 0 where the divisor is
        quotient, rest = a // b, a % b
    x, y = nc.Tensor(a), nc.Tensor(b)
    np.testing.assert_array_equal((x // y).to_host(), quotient)
    np.testing.assert_array_equal((x % y).to_host(), rest)
    for divisor in (1, 10, -7, 2**60 + 1):
        np.testing.assert_array_equal((x // divisor).to_host(), a // divisor)
        np.testing.assert_array_equal((x % divisor).to_host(), a % divisor)
    large = 2**60 + 1
    x = nc.Tensor([large, 0])
    assert (x + large).tolist() == [2 * large, large] and (x == large).tolist() == [True, False]
    x[1] = large + 2
    assert x.tolist() == [large, large + 2] and nc.Tensor.full((1,), large, "int64").item() == large
    for wrong in (lambda: x + 2**70, lambda: nc.Tensor.full((1,), 2**63, "int64")):
        with pytest.raises(OverflowError):
            wrong()


def test_whole_and_fractional_numbers(on):
    x = nc.Tensor([1, -2], dtype="int32")
    for got, dtype, want in [
        (x + 2**40, "int64", [2**40 + 1, 2**40 - 2]), (x * 2.0, "float32", [2, -4]), (7 // (x + 0.0), "float32", [7, -4]),
        (x**3, "int32", [1, -8]), (x**0, "int32", [1, 1]), (x**2.0, "float32", [1, 4]), (x**-1, "float32", [1, -0.5]),
        (nc.Tensor([3, 4]) / 2, "float64", [1.5, 2]), (nc.Tensor([True, False]) * 1.0, "float32", [1, 0]),
        (nc.ops.where(x > 0, 1, 0), "int64", [1, 0]), (nc.ops.where(x > 0, 0.5, 2), "float32", [0.5, 2]),
    ]:
        assert (got.dtype, got.tolist()) == (dtype, want)
    assert (x < 2**40).tolist() == [True, True] and [part.tolist() for part in divmod(x, 2)] == [[0, -1], [1, 0]]


def test_no_digit_is_lost_before_it_is_time(on):
    assert nc.Tensor([0.1], dtype="float64").tolist() == [0.1] == nc.Tensor.from_host([0.1], dtype="float64").tolist()
    assert nc.Tensor([16777217.0], dtype="int32").item() == 16777217
    x = nc.Tensor.zeros(2, "float64")
    x[:] = [0.1, 0.2]
    assert x.tolist() == [0.1, 0.2] == (x * 0 + [0.1, 0.2]).tolist() == x.fill_(0).write([0.1, 0.2]).tolist()
    values = np.array([300, -1], np.int16)
    assert nc.Tensor(values, dtype="uint8").tolist() == [255, 0] == nc.Tensor(values.astype(int), dtype="uint8").tolist()
    assert nc.Tensor(np.array([2**64 - 1], np.uint64), dtype="int64").item() == 2**63 - 1
    for wrong in (1j, np.zeros(2, np.complex64), "text", np.array(["2020"], "datetime64[Y]")):
        with pytest.raises(TypeError, match="real numbers"):
            nc.Tensor(wrong, dtype="float32")


def test_small_methods(on):
    values = np.float32([[1, 0, 3], [4, 5, 6]])
    x = nc.Tensor(values)
    for name in ("all", "any"):
        for axis in (None, 0, 1):
            got = getattr(x - 1, name)(axis)
            assert got.dtype == "bool" and got.tolist() == getattr(values - 1, name)(axis).tolist()
    np.testing.assert_allclose(x.std(axis=0).to_host(), values.std(0, ddof=1), rtol=1e-6)
    assert x.clamp(min=3).min().item() == 3 and x.clamp(max=3).max().item() == 3
    assert round(nc.Tensor([0.5, 1.5])).tolist() == [0, 2] and x.view(-1).shape == (6,) and x.view(3, -1).shape == (3, 2)
    for wrong in (lambda: x.view(4, -1), lambda: x.T.view(-1), lambda: x.clamp()):
        with pytest.raises(ValueError):
            wrong()


def test_in_place(on):
    x = nc.Tensor([1.0, 2.0])
    same = x
    x += 1
    x *= nc.Tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert same is x and x.tolist() == [1.5, 4.0]


def test_one_element(on):
    x = nc.Tensor([[2.5]])
    assert float(x) == 2.5 and int(x) == 2 and x.item() == 2.5 and bool(x) and not bool(x * 0)
    assert [10, 20, 30][nc.Tensor(1)] == 20
    assert isinstance(nc.Tensor([3]).item(), int) and isinstance(nc.Tensor([True]).item(), bool)
    assert f"{x:.3f} {nc.Tensor(7):4d}|" == "2.500    7|" and f"{x}" == str(x)
    with pytest.raises(ValueError):
        f"{nc.Tensor([1.0, 2.0]):.3f}"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(nc.Tensor([1, 2]))
    with pytest.raises(ValueError, match="one element"):
        float(nc.Tensor([1.0, 2.0]))
    with pytest.raises(TypeError):
        [1][nc.Tensor(0.0)]


def test_repr_shows_everything(on):
    text = repr(nc.Tensor([[1.0, 2.5]]))
    assert "2.5" in text and "(1, 2)" in text and "float32" in text and on.queue.name in text
    assert "requires_grad=True" in repr(nc.Tensor([1.0], requires_grad=True)) and "requires_grad" not in text


def test_iteration(on):
    x = nc.Tensor(np.arange(6).reshape(3, 2))
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    a, b, c = x
    assert c.tolist() == [4, 5] and 3 in x and 9 not in x
    with pytest.raises(TypeError):
        iter(nc.Tensor(1.0))
    with pytest.raises(TypeError):
        len(nc.Tensor(1.0))


def test_views_and_copies(on):
    x = nc.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.reshape(3, 2).shape == (3, 2) == x.reshape((3, -1)).shape
    assert x.T.tolist() == x.to_host().T.tolist() and x.transpose().shape == (3, 2)
    assert x.T.shares_storage(x) and not x.clone().shares_storage(x)
    assert x.unsqueeze(0).squeeze().shape == (2, 3) and x.flatten().shape == (6,)
    assert x.permute(1, 0).shape == (3, 2) and x.expand(4, 2, 3).shape == (4, 2, 3)
    y = copy.deepcopy(x)
    y[0] = 9
    assert x[0, 0].item() == 0 and y.write(x.to_host()).tolist() == x.tolist()
    assert x.astype("int8").dtype == "int8" and x.to("cpu").backend == "cpu"
    with pytest.raises(ValueError):
        x.reshape(4)


def test_hash_and_sets(on):
    x, y = nc.Tensor([1.0]), nc.Tensor([1.0])
    assert len({x, y}) == 2


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "floor", "tanh", "sign", "square", "abs"])
def test_unary_ops(on, name):
    values = np.linspace(0.1, 3, 20, dtype=np.float32)
    x = nc.Tensor(values)
    want = getattr(np, name)(values)
    np.testing.assert_allclose(getattr(nc.ops, name)(x).to_host(), want, rtol=2e-6)
    np.testing.assert_allclose(getattr(x, name)().to_host(), want, rtol=2e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions(on, name, axis):
    values = np.random.default_rng(0).random((2, 3, 4), np.float32)
    x = nc.Tensor(values)
    for keep in (False, True):
        got = getattr(nc.ops, name)(x, axis, keepdims=keep)
        want = getattr(np, name)(values, axis=axis, keepdims=keep)
        assert got.shape == want.shape
        np.testing.assert_allclose(got.to_host(), want, rtol=1e-5)
        np.testing.assert_array_equal(getattr(x, name)(axis=axis, keepdims=keep).to_host(), got.to_host())


def test_shortcuts(on):
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 5), np.float32), rng.random((5, 3), np.float32)
    np.testing.assert_allclose(nc.matmul(nc.Tensor(a), nc.Tensor(b)).to_host(), a @ b, rtol=1e-5)
    np.testing.assert_allclose(nc.reduce_sum(nc.Tensor(a)).item(), a.sum(), rtol=1e-5)
    soft = nc.softmax(nc.Tensor(a)).to_host()
    np.testing.assert_allclose(soft, np.exp(a) / np.exp(a).sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(nc.bias_add(nc.Tensor(a), nc.Tensor(a[0])).to_host(), a + a[0], rtol=1e-6)
    x, w = rng.random((2, 3, 6, 6), np.float32), rng.random((4, 3, 3, 3), np.float32)
    got = nc.conv2d(nc.Tensor(x), nc.Tensor(w), stride=(1, 2), padding=1)
    assert got.shape == (2, 4, 6, 3)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    want = np.einsum("nchwrs,kcrs->nkhw", windows[:, :, :, ::2], w)
    np.testing.assert_allclose(got.to_host(), want, rtol=1e-4)
    kernel = nc.build_matmul_kernel(on.queue, 4, 3, 5) if on.backend == "cl" else None
    if kernel is not None:
        np.testing.assert_allclose(kernel(nc.Tensor(a), nc.Tensor(b)).to_host(), a @ b, rtol=1e-5)


def test_functions_with_values(on):
    x = nc.Tensor([-1.0, math.nan, 2.0])
    np.testing.assert_array_equal(nc.relu(x).to_host(), np.float32([0, math.nan, 2]))
    assert nc.ops.where(x > 0, x, 0.0).tolist() == [0, 0, 2]
    assert nc.ops.maximum(x, 1.0).tolist()[2] == 2 and nc.ops.clamp(x, 0, 1).tolist()[2] == 1
    values, places = nc.ops.topk(nc.Tensor([3.0, 1.0, 2.0]), 2)
    assert values.tolist() == [3, 2] and places.tolist() == [0, 2]
    assert nc.ops.concat([x, x]).shape == (6,) and nc.ops.stack([x, x], 1).shape == (3, 2)
    assert [part.shape[0] for part in nc.ops.split(x, [1, 2])] == [1, 2]
    with pytest.raises(TypeError):
        nc.ops.add(1, 2)
    assert nc.softmax(nc.Tensor([100.0, 0.0])).tolist()[0] == pytest.approx(1)
    assert nc.ops.softplus(nc.Tensor([100.0])).item() == 100


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(st.sampled_from([np.float32, np.int64, np.uint8]), small, elements=st.integers(0, 100)))
def test_round_trip_of_any_shape(values):
    with nc.device("cpu"):
        np.testing.assert_array_equal(nc.Tensor(values).to_host(), values)


@settings(max_examples=60, deadline=None)
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
def test_reductions_over_any_axes(data, shape):
    axes = data.draw(st.none() | st.sets(st.integers(-len(shape), len(shape) - 1)).filter(
        lambda axes: len({axis % len(shape) for axis in axes}) == len(axes) > 0).map(tuple))
    name, keep = data.draw(st.sampled_from(["sum", "mean", "max", "min", "prod"])), data.draw(st.booleans())
    values = np.random.default_rng(len(shape)).random(shape, np.float32) + 0.5
    with nc.device("cpu"):
        got = getattr(nc.Tensor(values), name)(axis=axes, keepdims=keep)
    want = getattr(values, name)(axis=axes, keepdims=keep)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.to_host(), want, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
def test_chains_of_views(data, shape):
    """Views of views, of which the last is written to: all of them see it."""
    values = np.arange(np.prod(shape)).reshape(shape)
    with nc.device("cpu"):
        x = nc.Tensor(values)
        got, want = x, values
        for _ in range(data.draw(st.integers(1, 4))):
            what = data.draw(st.sampled_from(["permute", "unsqueeze", "squeeze", "slice", "expand"]))
            if what == "permute":
                order = data.draw(st.permutations(range(want.ndim)))
                got, want = got.permute(*order), want.transpose(order)
            elif what == "unsqueeze" and want.ndim < 6:
                axis = data.draw(st.integers(0, want.ndim))
                got, want = got.unsqueeze(axis), np.expand_dims(want, axis)
            elif what == "squeeze":
                got, want = got.squeeze(), want.squeeze()
            elif what == "slice" and want.ndim:
                key = data.draw(hnp.basic_indices(want.shape, allow_newaxis=False, min_dims=1))
                got, want = got[key], want[key]
            elif what == "expand" and want.ndim < 6:
                got, want = got.expand(2, *want.shape), np.broadcast_to(want, (2, *want.shape))
            if not isinstance(want, np.ndarray) or want.ndim == 0 or want.size == 0:
                return
            assert got.shape == want.shape and got.shares_storage(x)
            np.testing.assert_array_equal(got.to_host(), want)
        np.testing.assert_array_equal(got.reshape(-1).to_host(), want.reshape(-1))
        if want.flags.writeable:
            got[...] = -5
            want[...] = -5
            np.testing.assert_array_equal(x.to_host(), values)


@settings(max_examples=40, deadline=None)
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), st.integers(1, 4))
def test_joining_and_splitting(data, shape, count):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    parts = []
    for size in sizes:
        one = list(shape)
        one[axis] = size
        parts.append(np.random.default_rng(size).integers(0, 9, one))
    with nc.device("cpu"):
        whole = nc.ops.concat([nc.Tensor(part) for part in parts], axis)
        np.testing.assert_array_equal(whole.to_host(), np.concatenate(parts, axis))
        for got, want in zip(nc.ops.split(whole, sizes, axis), parts):
            np.testing.assert_array_equal(got.to_host(), want)
        equal = [nc.Tensor(np.full(shape, i)) for i in range(count)]
        np.testing.assert_array_equal(nc.ops.stack(equal, axis).to_host(), np.stack([e.to_host() for e in equal], axis))
