"""Gradients, fusion, primitives, recorded steps from Python."""

import threading
import time

import numpy as np
import pytest

import netcl as nc
from netcl.autograd import Tape, apply_op, checkpoint, detect_anomaly, gradcheck, is_grad_enabled, no_grad
from netcl.autograd import compiler


def test_backward_and_gradient(on):
    w = nc.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x = nc.Tensor([[1.0, -1.0]])
    with Tape() as tape:
        loss = nc.ops.square(x @ w).sum()
    tape.backward(loss)
    np.testing.assert_allclose(w.grad.to_host(), [[-4, -4], [4, 4]])
    tape.backward(loss)  # adds up, and does not change what was recorded
    np.testing.assert_allclose(w.grad.to_host(), [[-8, -8], [8, 8]])
    (only,) = tape.gradient(loss, [w])
    np.testing.assert_allclose(only.to_host(), [[-4, -4], [4, 4]])
    assert tape.gradient(loss, w).shape == (2, 2)
    w.grad = None
    assert w.grad is None
    assert any(node.op_name == "matmul" for node in tape.nodes())


def test_second_derivative(on):
    x = nc.Tensor([2.0], requires_grad=True)
    with Tape() as outer:
        with Tape() as inner:
            y = x * x * x
        slope = inner.gradient(y, x, create_graph=True)
    assert outer.gradient(slope, x).item() == pytest.approx(12)


def test_no_grad(on):
    x = nc.Tensor([1.0], requires_grad=True)
    with Tape() as tape:
        with no_grad():
            assert not is_grad_enabled()
            y = x * 2
        assert is_grad_enabled() and not y.requires_grad

        @no_grad
        def quietly():
            return x * 3

        @no_grad()
        def as_well():
            return x * 3

        assert not quietly().requires_grad and not as_well().requires_grad
    with pytest.raises(ValueError):
        tape.backward(y)


def test_a_tape_must_record():
    with pytest.raises(ValueError, match="with Tape"):
        Tape().backward(nc.Tensor([1.0]))


def test_gradcheck(on):
    x = nc.Tensor(np.random.default_rng(0).random((3, 2)), requires_grad=True)
    assert gradcheck(lambda x: nc.ops.silu(x) * x, [x])
    wrong = lambda x: apply_op("wrong", lambda x: x * 2, lambda inputs, outputs, grads: grads[0], x)  # noqa: E731
    assert not gradcheck(wrong, x) and "wrong" not in gradcheck(lambda x: x * 2, x).message


def test_own_op_and_checkpoint(on):
    x = nc.Tensor([3.0], requires_grad=True)
    with Tape() as tape:
        y = apply_op("cube", lambda x: x * x * x, lambda inputs, outputs, grads: [grads[0] * 3 * inputs[0] ** 2], x)
        z = checkpoint(lambda v: nc.ops.exp(v) * 2, x)
    assert tape.gradient(y, x).item() == pytest.approx(27)
    assert tape.gradient(z, x).item() == pytest.approx(2 * np.exp(3), rel=1e-5)


def test_errors_of_python_functions_pass(on):
    def fails(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        checkpoint(fails, nc.Tensor([1.0]))
    with pytest.raises(RuntimeError, match="mine"):
        compiler.jit_compile(fails)(nc.Tensor([1.0]))


def test_anomaly(on):
    x = nc.Tensor([0.0], requires_grad=True)
    with detect_anomaly():
        with Tape():
            with pytest.raises(ArithmeticError, match=r"log[\s\S]*test_autograd.py:\d+ in test_anomaly"):
                nc.ops.log(x)


def test_jit_compile(on):
    factor = 2.0

    @compiler.jit_compile
    def f(a, b, scale=1.0):
        return nc.relu(a * b + scale) * factor, a - b

    a, b = nc.Tensor([1.0, -2.0], requires_grad=True), nc.Tensor([3.0, 3.0], requires_grad=True)
    y, d = f(a, b)
    assert y.tolist() == [8, 0] and d.tolist() == [-2, -5]
    factor = 5.0  # not baked into the kernel
    assert f(a, b, scale=2.0)[0].tolist() == [25, 0] and f.__name__ == "f"
    with Tape() as tape:
        loss = f(a, b)[0].sum()
    tape.backward(loss)
    assert a.grad.tolist() == [15, 0] and b.grad.tolist() == [5, 0]
    assert f(nc.Tensor([1.0], dtype="float64"), nc.Tensor([2.0], dtype="float64"))[0].dtype == "float64"
    assert len(f.explain(a, b).groups) >= 1


def test_primitives(on):
    name = "scaled_sin"
    compiler.register_primitive(
        name,
        lambda args, attrs: f"(sin({args[0]}) * {attrs.get('scale', 1.0)})",
        lambda args, grad, attrs, out: [f"({grad} * cos({args[0]}) * {attrs.get('scale', 1.0)})"],
        arity=1,
    )
    try:
        with pytest.raises(ValueError, match=name):
            compiler.register_primitive(name, lambda args, attrs: args[0], None, 1)
        x = nc.Tensor([0.5], requires_grad=True)
        f = compiler.get_primitive(name)
        with Tape() as tape:
            y = f(x, scale=3.0)
        assert y.item() == pytest.approx(3 * np.sin(0.5), rel=1e-5)
        assert tape.gradient(y, x).item() == pytest.approx(3 * np.cos(0.5), rel=1e-5)
        assert name in compiler.primitive_names()
    finally:
        assert compiler.unregister_primitive(name)
    with pytest.raises(ValueError, match=name):
        compiler.get_primitive(name)
    with pytest.raises(ValueError):
        compiler.register_primitive("broken", lambda args, attrs: "not ) an expression", None, 1)


def test_captured_step(opencl):
    w = nc.Tensor([1.0, 2.0])
    step = nc.runtime.CapturedStep(lambda x: x * w + 1)
    for i in range(4):
        assert step(nc.Tensor([float(i), 1.0])).tolist() == [i + 1.0, 3.0]
    assert step.stats().replays == 2 and step.why_not() == ""


def test_custom_kernel_of_an_op(opencl):
    calls = []

    def run(queue, inputs, outputs):
        calls.append(inputs[0].shape)
        outputs[0].write(np.full(outputs[0].shape, 7, np.float32))

    nc.ops.register_op_kernel("matmul", "MATMUL_SEVEN", run)
    selector = nc.core.kernel_selector.get_kernel_selector()
    selector.register("matmul", lambda shapes, profile: shapes[0] == (3, 13), "MATMUL_SEVEN")
    assert nc.matmul(nc.Tensor.ones((3, 13)), nc.Tensor.ones((13, 2))).tolist() == [[7, 7]] * 3
    assert calls and nc.matmul(nc.Tensor.ones((2, 2)), nc.Tensor.ones((2, 2))).tolist() == [[2, 2]] * 2
    assert selector._rules["matmul"][0][1] == "MATMUL_SEVEN"


def test_a_step_can_be_looked_at_while_it_runs():
    started = threading.Event()

    def slow(x):
        started.set()
        time.sleep(0.05)  # the other thread runs, and must not keep the GIL while it waits for the step
        return x + 1

    with nc.device("cpu"):
        step = nc.runtime.CapturedStep(slow)
        x = nc.Tensor([1.0])
    thread = threading.Thread(target=step, args=(x,))
    thread.start()
    started.wait()
    assert step.stats().eager_calls == 1
    thread.join()
