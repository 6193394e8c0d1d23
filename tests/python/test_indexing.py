"""Subscripts against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import netcl as nc

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


@settings(max_examples=150, deadline=None)
@given(st.data(), shapes)
def test_views(data, shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    with nc.device("cpu"):
        x = nc.Tensor(values)
        got = x[key]
        assert got.shape == values[key].shape
        np.testing.assert_array_equal(got.to_host(), values[key])
        if got.size:
            assert got.shares_storage(x)


@settings(max_examples=80, deadline=None)
@given(st.data(), shapes)
def test_arrays_of_indices(data, shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    with nc.device("cpu"):
        np.testing.assert_array_equal(nc.Tensor(values)[key].to_host(), values[key])


@settings(max_examples=80, deadline=None)
@given(st.data(), shapes)
def test_assignment(data, shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=False))
    with nc.device("cpu"):
        x = nc.Tensor(values)
        x[key] = -1
        values[key] = -1
        np.testing.assert_array_equal(x.to_host(), values)
        part = np.arange(values[key].size).reshape(values[key].shape)
        x[key] = part
        values[key] = part
        np.testing.assert_array_equal(x.to_host(), values)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), shapes)
def test_any_subscript_on_an_opencl_device(opencl, data, shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    places = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    with nc.device(opencl):
        x = nc.Tensor(values)
        np.testing.assert_array_equal(x[key].to_host(), values[key])
        np.testing.assert_array_equal(x[places].to_host(), values[places])
        x[key] = -1
        values[key] = -1
        np.testing.assert_array_equal(x.to_host(), values)


def test_on_the_device(on):
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for key in [0, -1, (1, 2), (..., 1), (slice(None), None), (slice(None, None, -1), 1), (0, slice(2, 0, -2)),
                [1, 0], (slice(None), [2, 0]), values > 5, ([0, 1], [1, 2]), (0, [True, False, True])]:
        np.testing.assert_array_equal(nc.Tensor(values)[key].to_host(), values[key])
    np.testing.assert_array_equal(nc.Tensor(values)[nc.Tensor([1, 1])].to_host(), values[[1, 1]])
    x = nc.Tensor(values)
    np.testing.assert_array_equal(x[x > 20].to_host(), values[values > 20])


def test_assignment_on_the_device(on):
    values = np.zeros((3, 4), np.float32)
    x = nc.Tensor(values)
    for key, value in [((slice(None), 1), 5), (0, [1, 2, 3, 4]), ((slice(None, None, 2),), np.full((2, 4), 7)),
                       ([0, 2], -1), (values == 0, 3)]:
        x[key] = value
        values[key] = value
        np.testing.assert_array_equal(x.to_host(), values)
    x[1] = nc.Tensor([9.0])
    x[0, 0] = [[2.0]]  # more axes than there is room for, as in NumPy
    x[2] = np.full((1, 4), 3)
    assert x[0, 0].item() == 2 and x[2].tolist() == [3] * 4
    with pytest.raises(ValueError):
        x[0, 0] = [1.0, 2.0]
    assert x[1].tolist() == [9] * 4
    x[x > 5] = 0
    assert x.max().item() <= 5


@pytest.mark.parametrize("key", [3, -4, (0, 4), (0, 0, 0), (..., ...), [7]])
def test_wrong_places(on, key):
    with pytest.raises(IndexError):
        nc.Tensor(np.zeros((3, 4)))[key]


def test_gradients_pass(on):
    x = nc.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True)
    with nc.autograd.Tape() as tape:
        loss = (x[0, ::2] * 2).sum() + x[[1, 1], [0, 2]].sum()
    tape.backward(loss)
    assert x.grad.tolist() == [[2, 0, 2], [1, 0, 1]]
