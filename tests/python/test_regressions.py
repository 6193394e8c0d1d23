"""Mistakes that are easy to make in such a package, each seen from Python."""

import gc
import math

import numpy as np
import pytest

import netcl as nc
from netcl import nn
from netcl.autograd import Tape
from netcl.autograd.compiler import jit_compile


def gradient(function, *values):
    inputs = [nc.Tensor(np.float32(value), requires_grad=True) for value in values]
    with Tape() as tape:
        result = function(*inputs).sum()
    return [g.to_host() for g in tape.gradient(result, inputs)]


def test_backends_agree_on_a_convolution_with_relu(opencl):
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 3, 8, 8)), rng.normal(size=(4, 3, 3, 3)), rng.normal(size=4)
    results = []
    for selector in ("cpu", "opencl"):
        with nc.device(selector):
            args = [nc.Tensor(np.float32(v)) for v in (x, w, b)]
            fused = nc.conv2d(*args, padding=1, activation="relu")
            apart = nc.relu(nc.conv2d(*args, padding=1))
            np.testing.assert_allclose(fused.to_host(), apart.to_host(), atol=1e-5)
            results.append(fused.to_host())
    assert results[0].min() == 0
    np.testing.assert_allclose(*results, atol=1e-5)


def test_gradient_of_swish(on):
    (got,) = gradient(nc.ops.swish, [-2.0, 0.5])
    sigmoid = 1 / (1 + np.exp(-np.float64([-2.0, 0.5])))
    np.testing.assert_allclose(got, sigmoid * (1 + np.float64([-2.0, 0.5]) * (1 - sigmoid)), rtol=1e-5)


def test_losses_are_means_and_pass_gradients_on(on):
    a, b = np.random.default_rng(0).random((2, 8, 3), np.float32)
    assert nn.mse_loss(nc.Tensor(a), nc.Tensor(b)).item() == pytest.approx(((a - b) ** 2).mean(), rel=1e-5)
    grads = gradient(lambda x, y: nn.mse_loss(x, y) * 3, a, b)
    np.testing.assert_allclose(grads[0], 3 * 2 * (a - b) / a.size, rtol=1e-4, atol=1e-7)
    assert gradient(lambda x, y: nn.l1_loss(x, y), a, b)[0].shape == a.shape


def test_fused_functions(on):
    add_relu = jit_compile(lambda a, b: nc.relu(a + b))
    values = np.random.default_rng(0).normal(size=(50,)).astype(np.float32)
    x = nc.Tensor(values)
    np.testing.assert_array_equal(add_relu(x, x).to_host(), np.maximum(2 * values, 0))
    for dtype in ("float16", "float64"):
        y = jit_compile(lambda a: a * 2 + 1)(x.astype(dtype))
        assert y.dtype == dtype
        np.testing.assert_allclose(y.to_host(), 2 * values + 1, rtol=2e-3, atol=2e-3)
    assert jit_compile(lambda a: a + 1)(nc.Tensor([1, 2], dtype="int32")).tolist() == [2, 3]
    assert jit_compile(lambda a: nc.ops.minimum(a, math.inf))(nc.Tensor([1.0])).tolist() == [1]


def test_unused_arguments_have_zero_gradients(on):
    unused = jit_compile(lambda a, b: a * 2)
    grads = gradient(unused, [1.0, 2.0], [3.0, 4.0])
    assert grads[0].tolist() == [2, 2] and grads[1].tolist() == [0, 0]


def test_from_shape_is_zero_also_in_used_memory(on):
    for _ in range(3):
        x = nc.Tensor.full((1000,), math.nan)
        del x
        gc.collect()
        assert not nc.Tensor.from_shape((1000,)).to_host().any()


def test_dropout_scales_by_its_own_rate(on):
    x = nc.Tensor.ones(1000)
    assert nc.ops.dropout(x, 0.5, 1).max().item() == pytest.approx(2)
    assert nc.ops.dropout(x, 0.9, 1).max().item() == pytest.approx(10)


def test_extremes(on):
    assert nc.ops.softplus(nc.Tensor([100.0])).item() == pytest.approx(100)
    assert nc.ops.log1p(nc.Tensor([1e-8])).item() == pytest.approx(1e-8, rel=1e-5)
    assert math.isnan(nc.relu(nc.Tensor([math.nan])).item())
    assert math.isnan(nc.ops.maximum(nc.Tensor([math.nan]), 0.0).item())


def test_empty_tensors(on):
    empty = nc.Tensor(np.zeros((0, 3), np.float32))
    assert nc.relu(empty).shape == (0, 3) and (empty + 1).shape == (0, 3)
    assert nc.matmul(empty, nc.Tensor.ones((3, 2))).shape == (0, 2)
    assert not nc.matmul(nc.Tensor.ones((2, 0)), nc.Tensor.ones((0, 2))).to_host().any()
    assert empty.sum().item() == 0 and nc.softmax(empty).shape == (0, 3)


def test_many_axes_and_small_whole_numbers(on):
    a, b = np.ones((2, 1, 2, 1, 2, 1), np.float32), np.full((1, 3, 1, 2, 1, 2), 2, np.float32)
    got = (nc.Tensor(a) + nc.Tensor(b)).sum(axis=(0, 2, 4))
    np.testing.assert_array_equal(got.to_host(), (a + b).sum(axis=(0, 2, 4)))
    for dtype in ("int8", "uint8", "int32", "int64", "bool"):
        values = np.array([[100, 1], [100, 0]]).astype(dtype)
        assert nc.Tensor(values).sum(0).tolist() == values.sum(0, dtype=np.int64).tolist()
        assert nc.Tensor(values).max().item() == values.max()


def test_kernels_by_a_wrong_name_and_backends_by_a_wrong_queue(opencl):
    with pytest.raises(ValueError, match="it has right"):
        nc.KernelSpec("wrong", "__kernel void right() {}").build(opencl.queue)
    with pytest.raises(nc.errors.DeviceError, match="OpenCL device"):
        nc.core.backend.opencl.OpenCLBackend(nc.core.device.CPUQueue())


def test_a_released_lease_stays_released(opencl):
    pool = nc.core.BufferPool(opencl.context)
    first = pool.allocate(100)
    first.release()
    first.release()
    a, b = pool.allocate(100), pool.allocate(100)
    assert a.buffer.int_ptr != b.buffer.int_ptr and first.buffer is None and not first
    with pool.allocate(100) as lease:
        assert lease
    assert not lease


def test_cpu_devices_are_cpus(opencl):
    if opencl.device_type == "cpu":
        assert opencl.profile.is_cpu and opencl.profile.gpu_family == "CPU"
        assert nc.core.capabilities.kernel_strategy(opencl.profile) == "portable"


def test_a_float16_tensor_works_without_the_extension(on):
    x = nc.Tensor([1.0, -2.0, 3.0], dtype="float16")
    assert (nc.relu(x) * 2).tolist() == [2, 0, 6]
    assert (nc.Tensor([1, 2], dtype="int32") + 1).dtype == "int32"


def test_tapes_leave_nothing_behind():
    with nc.device("cpu"):
        w = nc.Tensor(np.ones((32, 32), np.float32), requires_grad=True)
        gc.collect()
        gc.disable()
        try:
            pool = nc.core.memory.get_persistent_pool(w.queue)
            used = []
            for _ in range(20):
                with Tape() as tape:
                    loss = (w @ w).sum()
                tape.backward(loss)
                w.grad = None
                used.append(pool.get_stats()["bytes_in_use"])
            assert used[-1] == used[3]
        finally:
            gc.enable()


def test_report_shows_test_images(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (40, 1, 8, 8), dtype=np.uint8)
    dataset = nc.data.ArrayDataset(images, np.arange(40) % 2, ["even", "odd"])
    transforms = [nc.data.to_float()]
    with nc.device("cpu"):
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
        nc.fit(model, nc.data.DataLoader(dataset, 8, transforms=transforms),
               test=nc.data.DataLoader(dataset, 16, transforms=transforms), report=tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "odd" in page and page.count("data:image/png") >= 10


def test_imported_by_another_thread():
    import subprocess
    import sys

    code = ("import threading\n"
            "t = threading.Thread(target=lambda: __import__('netcl'))\nt.start(); t.join()\n"
            "import netcl\nprint(netcl.relu(netcl.Tensor([1.0])).tolist())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[1.0]" and done.stderr == ""


def test_mistakes_of_newcomers_are_explained():
    with nc.device("cpu"):
        model, x = nn.Linear(2, 1), nc.Tensor.ones((3, 2))

        class Empty(nn.Module):
            pass

        for mistake, kind, words in [
            (lambda: nn.Sequential(model, 3), TypeError, "modules: 3"),
            (lambda: Empty()(x), NotImplementedError, r"define forward\(\): Empty"),
            (lambda: nn.Sequential(Empty())(x), NotImplementedError, r"define forward\(\): Empty"),
            (lambda: nc.optim.Adam(model), TypeError, r"model\.parameters\(\)"),
            (lambda: nc.optim.Adam([1.0]), TypeError, "float"),
            (lambda: nc.optim.Adam([{"params": model.parameters(), "lr": 1.0}]), ValueError, "lr_scale.*'lr'"),
            (lambda: nc.optim.Adam([{"lr_scale": 1.0}]), ValueError, "params"),
            (lambda: nc.optim.clip_grad_norm([1.0], 1.0), TypeError, "type"),
            (lambda: nc.data.DataLoader(5), TypeError, "iterable: int"),
            (lambda: nc.fit(model, [1.0, 2.0]), ValueError, r"pair \(x, target\): one Tensor"),
            (lambda: nc.fit(model, [(1.0, 2.0, 3.0)]), ValueError, "3 parts"),
            (lambda: nc.train.evaluate(model, [1.0]), ValueError, "one Tensor"),
        ]:
            with pytest.raises(kind, match=words):
                mistake()


def test_names_of_other_packages_are_explained():
    x = nc.Tensor([1.0])
    for where, name, words in [
        (nc, "zeros", r"netcl\.Tensor\.zeros"), (nc, "exp", r"netcl\.ops\.exp"), (nc, "no_grad", r"netcl\.autograd\.no_grad"),
        (nn, "MSELoss", "mse_loss"), (nn, "Adam", r"netcl\.optim\.Adam"), (nc.optim, "RMSprop", "RMSProp"),
        (x, "backward", r"tape\.backward"), (x, "cuda", r'to\("gpu"\)'), (x, "add", r"netcl\.ops\.add"),
        (nc, "nonesuch", "'nonesuch'$"), (x, "nonesuch", "'nonesuch'$"),
    ]:
        with pytest.raises(AttributeError, match=words) as failed:
            getattr(where, name)
        assert failed.value.name == name and failed.value.obj is where
        assert not hasattr(where, name)


def test_texts_of_objects(on):
    assert repr(nc.Tensor([[1.0, -2.5], [10.0, 0.0]])).startswith("Tensor([[  1., -2.5],\n        [ 10.,   0.]], shape=(2, 2)")
    assert repr(nc.data.DataLoader([1, 2, 3], 2)) == "DataLoader(3 samples, batch_size=2, shuffle=False)"
    assert "iterable" in repr(nc.data.DataLoader(iter([1])))
    assert "CPU backend" in repr(nc.device.manager)
