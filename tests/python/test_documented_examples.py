"""Every documented example runs as it is written. Each file in examples/ is one block; what a block
leaves open (a queue, an array, the body of a kernel) is given here."""

import dataclasses
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import netcl as nc

EXAMPLES = Path(__file__).parent / "examples"
MATMUL_BODY = """int i = get_global_id(0), j = get_global_id(1);
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
        c[i * N + j] = sum;"""


def run(name, replace=(), **names):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for old, new in replace:
        assert old in text
        text = text.replace(old, new)
    exec(compile(text, f"{name}.py", "exec"), names)
    return names


@pytest.fixture
def queue(opencl):
    return opencl.queue


@pytest.fixture
def context(opencl):
    return opencl.context


def test_kernel_spec_minimal(queue):
    values = np.arange(100, dtype=np.float32)
    got = run("kernel_spec_minimal", queue=queue, numpy_array=values)
    # Tuned at its first run, and still applied exactly once.
    np.testing.assert_array_equal(got["x"].to_host(), 2 * values)
    assert isinstance(got["spec"].workgroup_size, int) and 100 % got["spec"].workgroup_size == 0


def test_kernel_spec_tuned(queue):
    rng = np.random.default_rng(0)
    M, N, K = 32, 48, 16
    left, right = rng.random((M, K), np.float32), rng.random((K, N), np.float32)
    a, b, c = nc.Tensor(left), nc.Tensor(right), nc.Tensor.zeros((M, N))
    spec = run("kernel_spec_tuned", [("// ... tiled GEMM body ...", MATMUL_BODY)], **locals(), nc=nc)["spec"]
    assert len(spec.workgroup_size) == 2
    np.testing.assert_allclose(c.to_host(), left @ right, rtol=1e-5)


def test_kernel_spec_primitive(queue):
    body = "#define MY_OP(a, b) ((a) * (b))\\n__kernel void my_op(__global float* x) { x[0] = MY_OP(x[0], x[0]); }"
    try:
        run("kernel_spec_primitive", [('src="..."', f'src="{body}"')], queue=queue)
        from netcl.autograd import Tape
        from netcl.autograd.compiler import call_primitive

        a, b = nc.Tensor([1.0, 2.0], requires_grad=True), nc.Tensor([3.0, 5.0], requires_grad=True)
        with Tape() as tape:
            y = call_primitive("my_op", a, b)
            loss = y.sum()
        tape.backward(loss)
        assert y.tolist() == [3.0, 10.0]
        assert a.grad.tolist() == [3.0, 5.0] and b.grad.tolist() == [1.0, 2.0]
    finally:
        nc.autograd.compiler.unregister_primitive("my_op")


def test_core_manager(capsys):
    got = run("core_manager")
    text = capsys.readouterr().out
    assert got["dev"].device_name in text and "Queue" in text


def test_discovered_devices_are_pairs(opencl):
    found = nc.device.manager.discover()
    for platform, device in found:
        assert isinstance(platform, str) and nc.core.DeviceManager._device_type(device) in ("gpu", "cpu", "accel", "other")
    assert len(found[0]) == 2 and found[0][1] == nc.device.manager.default(0).device
    assert nc.device.manager.default(1000, required=False) is None


def test_core_device_scope():
    has_gpu = nc.device.manager.default("gpu", required=False) is not None
    if has_gpu:
        assert run("core_device_scope")["dev"].device_type == "gpu"
    else:
        with pytest.raises(nc.errors.DeviceError, match="gpu"):
            run("core_device_scope")
    before = nc.get_active_device()
    got = run("core_device_scope", [('"gpu"', '"cpu"'), ("...", "inside = get_active_device()")],
              get_active_device=nc.get_active_device)
    assert got["inside"] == got["dev"] and nc.get_active_device() == before


def test_core_tensor():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = run("core_tensor", host_ndarray=values)
    np.testing.assert_array_equal(got["a"].to_host(), values)
    assert got["b"].shape == (4, 8) and not got["b"].to_host().any()


def test_core_buffer_pool(context, capsys):
    got = run("core_buffer_pool", context=context, nbytes=1000)
    assert capsys.readouterr().out.split()[:2] == ["0", "1"]
    assert got["pool"].stats.bytes_cached == 1024


def test_core_persistent_pool(queue):
    got = run("core_persistent_pool", queue=queue)
    assert {"hits", "misses", "hit_rate", "bytes_allocated", "bytes_cached", "buckets"} <= set(
        got["pool"].get_stats()
    )


def test_core_cpu_backend(capsys):
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    got = run("core_cpu_backend", host_arr=values)
    assert str(values) in capsys.readouterr().out
    assert not got["be"].to_host(got["y"]).any()


def test_core_spec_source():
    source = run("core_spec_source")["src"]
    assert "__kernel void vec_add(" in source and "#define ADD" in source


def test_core_primitive_builder(context):
    spec = run("core_primitive_builder")["spec"]
    assert spec.build(context).kernel_names == ["mul_add"]


def test_core_elementwise_kernel(context, queue):
    got = run("core_elementwise_kernel", context=context)
    x, y = nc.Tensor(np.float32([1, 2, 3])), nc.Tensor.zeros(3)
    got["kernel"](queue, (3,), None, x, x, y, 3)
    assert y.tolist() == [4.0, 8.0, 12.0]


def test_core_capabilities(queue):
    assert isinstance(run("core_capabilities", queue=queue)["prof"].has_fp16, bool)


def test_selector_register():
    got = run("selector_register")
    profile = nc.get_active_device().profile
    choose = got["selector"].select
    assert choose("conv2d", [(1, 3, 8, 8), (4, 3, 3, 3)], profile) == "CONV2D_NAIVE_SMALL"
    assert choose("conv2d", [(8, 64, 56, 56), (64, 64, 3, 3)], profile) != "CONV2D_NAIVE_SMALL"


def test_selector_rules(capsys):
    selector = run("selector_register")["selector"]
    run("selector_rules", selector=selector)
    lines = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert int(lines["conv2d"].split()[0]) >= 5 and int(lines["matmul"].split()[0]) >= 4
    assert selector._rules["conv2d"][0][1] == "CONV2D_NAIVE_SMALL"
    shapes, profile = [(4, 8), (8, 4)], nc.get_active_device().profile
    taken = [kernel for condition, kernel in selector._rules["matmul"] if condition(shapes, profile)]
    assert taken == [selector.select("matmul", shapes, profile)]
    assert all(str(condition) for condition, kernel in selector._rules["matmul"])


def test_pyopencl_pattern(opencl, monkeypatch):
    pytest.importorskip("pyopencl")
    monkeypatch.setenv("PYOPENCL_CTX", "0")
    got = run("pyopencl_pattern")
    after = run("pyopencl_equivalent", host_in=got["host_in"])
    np.testing.assert_array_equal(after["host_out"], got["host_out"])


def test_pyopencl_equivalent():
    values = np.float32([-1, 0, 2, np.nan])
    got = run("pyopencl_equivalent", host_in=values)
    np.testing.assert_array_equal(got["host_out"], np.float32([0, 0, 2, np.nan]))


def test_pyopencl_spec(queue):
    x = nc.Tensor(np.arange(10, dtype=np.float32))
    run("pyopencl_spec", queue=queue, n=10, x=x)
    np.testing.assert_array_equal(x.to_host(), 2 * np.arange(10, dtype=np.float32))


def kernels_source():
    one = """__kernel void {name}(__global const float* a, __global const float* b, __global float* c) {{
        size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);
        c[i] = a[i] + b[i];
    }}"""
    return "\n".join(one.format(name=f"matmul_{size}") for size in ("small", "medium", "large"))


def test_autotuner(queue):
    prg = nc.KernelSpec(name="matmul_small", src=kernels_source()).build(queue)
    autotuner = run("autotuner_kernels", queue=queue, prg=prg)["autotuner"]
    assert set(autotuner.results) == {
        ("matmul_small", (256, 256)), ("matmul_medium", (1024, 1024)), ("matmul_large", (4096, 4096))
    }
    in_a = in_b = nc.Tensor.ones((256, 256))
    out_c = nc.Tensor.zeros((256, 256))
    got = run("autotuner_lookup", **{k: v for k, v in locals().items() if k != "got"})
    assert isinstance(got["local_size"], (int, tuple))
    assert (out_c.to_host() == 2).all()


def test_autotuner_session(queue, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = nc.KernelSpec(name="matmul_small", src=kernels_source()).build(queue)

    class Model:
        def kernels(self):
            yield "small", program.matmul_small, (64, 64)
            yield "whole", program, (128,)

    first = run("autotuner_session", model=Model())["autotuner"]
    again = run("autotuner_restore", queue=queue, Autotuner=nc.profiling.Autotuner)["autotuner"]
    assert again.lookup("small", (64, 64)) == first.lookup("small", (64, 64))
    assert isinstance(again.lookup("whole", (128,)), int)


def test_autotuner_session_of_a_model(queue, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = nc.nn.Sequential(nc.nn.Linear(40, 16), nc.nn.ReLU(), nc.nn.Linear(16, 4)).to(queue)
    with pytest.raises(ValueError, match="called once"):
        model.kernels()
    model(nc.Tensor.ones((8, 40), device=queue))
    tuned = [(name, shape) for name, _, shape in model.kernels()]
    autotuner = run("autotuner_session", model=model)["autotuner"]
    assert tuned and all(autotuner.lookup(name, shape) for name, shape in tuned)


def test_documented_classes():
    spec = [f.name for f in dataclasses.fields(nc.KernelSpec)]
    assert spec[:6] == ["name", "src", "shape_sig", "workgroup_size", "extra_flags", "tune"]
    plain = nc.KernelSpec("k", "__kernel void k() {}")
    assert (plain.shape_sig, plain.workgroup_size, plain.extra_flags, plain.tune) == ((), None, (), True)
    from netcl.core.kernel_selector import KernelConfig, KernelVariant

    config = KernelConfig(KernelVariant.MATMUL_TILED)
    assert (config.tile_m, config.tile_n, config.tile_k, config.work_per_thread) == (32, 32, 8, 4)
    assert (config.local_size_1d, config.local_size_2d, config.vector_width) == (256, (16, 16), 4)
    assert config.use_local_memory and config.use_vectorization and config.extra == {}
    for name in """MATMUL_NAIVE MATMUL_TILED MATMUL_REGISTER_TILED MATMUL_VECTORIZED CONV2D_NAIVE CONV2D_IM2COL
        CONV2D_IMPLICIT_GEMM CONV2D_TILED_LOCAL CONV2D_WINOGRAD ELEMENTWISE_SCALAR ELEMENTWISE_VECTORIZED
        REDUCTION_SEQUENTIAL REDUCTION_PARALLEL REDUCTION_WORKGROUP BATCHNORM_NAIVE BATCHNORM_FUSED""".split():
        assert KernelVariant[name].name == name
    handle = nc.device.manager.default("cpu")
    for name in ("platform_name", "device_name", "backend", "device_type", "context", "queue"):
        assert hasattr(handle, name)
    from netcl.core.kernel_selector import KernelSelector

    for name in ("register", "select", "select_matmul_kernel", "select_conv2d_kernel", "clear_cache",
                 "select_elementwise_kernel", "select_reduction_kernel", "select_batchnorm_kernel"):
        assert inspect.isroutine(getattr(KernelSelector, name))


def test_documented_paths():
    import netcl.core.backend.opencl, netcl.core.capabilities, netcl.core.device_profile  # noqa: E401
    from netcl.core import BufferHandle, BufferPool, DeviceHandle, DeviceManager, KernelSpec, Tensor, manager
    from netcl.core.device import CPUQueue
    from netcl.core.memory import (PersistentBufferPool, PinnedBufferPool, PoolStats, create_pinned_buffer,
                                   create_zero_copy_buffer, has_svm_support, is_integrated_gpu)
    from netcl.core.kernel_selector import get_kernel_selector, select_conv2d_config, select_matmul_config
    from netcl.profiling.autotuner import AutotuneResult, Autotuner

    assert KernelSpec is nc.KernelSpec and Tensor is nc.Tensor and manager is nc.device.manager
    for name in """matmul build_matmul_kernel elementwise_binary relu bias_add reduce_sum softmax conv2d Tensor
        KernelSpec""".split():
        assert hasattr(nc, name)


def test_all_examples_are_run():
    run_here = set(re.findall(r'run\(\s*"(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert run_here == {path.stem for path in EXAMPLES.glob("*.py")}
