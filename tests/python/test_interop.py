"""Tensors and other packages: the buffer protocol, DLPack, pickle, pyopencl, threads."""

import gc
import pickle
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import netcl as nc


def test_numpy_shares_memory_of_the_cpu_backend():
    x = nc.Tensor(np.arange(4, dtype=np.float32), device=nc.device.manager.default("cpu"))
    view = x.numpy()
    x[0] = 7
    assert view[0] == 7 and not view.flags.writeable and np.shares_memory(view, np.asarray(x))
    x.array[1] = 8  # the documented way to write
    assert x.tolist() == [7, 8, 2, 3] and x.buffer is None
    del x
    gc.collect()
    assert view[0] == 7
    with pytest.raises(ValueError):
        view[0] = 1


def test_functions_of_numpy(on):
    values = np.float32([[1, 4], [9, 16]])
    x = nc.Tensor(values)
    for got, want in [
        (np.sqrt(x), np.sqrt(values)), (np.add(x, 1), values + 1), (np.maximum(x, 5), np.maximum(values, 5)),
        (np.subtract(values, x), 0 * values), (values @ x, values @ values), (values < x + 1, values < values + 1),
        (np.float32(2) ** x, 2 ** values), (np.negative(x), -values), (np.remainder(values, x), 0 * values),
    ]:
        assert isinstance(got, nc.Tensor) and got.queue == on.queue
        np.testing.assert_allclose(got.to_host(), want, rtol=1e-6)
    for got, want in [
        (np.sum(x), values.sum()), (np.mean(x, axis=0), values.mean(0)), (np.var(x), values.var()),
        (np.argsort(x, axis=1), values.argsort(1)), (np.concatenate([x, values]), np.concatenate([values, values])),
        (np.hypot(x, x), np.hypot(values, values)), (np.add.reduce(x), values.sum(0)), (np.where(x > 4, x, 0)[0, 1], 0),
        (np.linalg.norm(x), np.linalg.norm(values)), (np.einsum("ij,ij->i", x, x), (values ** 2).sum(1)),
        (np.stack([x, x])[1], values), (np.allclose(x, values), True), (np.sin(x, out=np.zeros_like(x)), np.sin(values)),
    ]:
        assert not isinstance(got, nc.Tensor)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    values += x
    assert values.tolist() == [[2, 8], [18, 32]] and isinstance(values, np.ndarray)


def test_opencl_tensors_are_copied(opencl):
    x = nc.Tensor([1.0, 2.0], device=opencl)
    view = x.numpy()
    view[0] = 9
    assert x.tolist() == [1, 2] and x.array is None and x.buffer.int_ptr != 0
    with pytest.raises(ValueError):
        np.array(x, copy=False)
    with pytest.raises(BufferError):
        memoryview(x)
    with pytest.raises(BufferError):
        np.from_dlpack(x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_buffer_protocol(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    with nc.device("cpu"):
        x = nc.Tensor(values)
        view = memoryview(x)
        assert view.shape == (2, 3) and view.itemsize == values.itemsize and view.readonly
        assert bytes(view) == values.tobytes()
        assert memoryview(x.T).shape == (3, 2) and np.array_equal(np.asarray(memoryview(x.T)), values.T)
        if dtype != "bool":
            np.testing.assert_array_equal(np.frombuffer(x, dtype).reshape(2, 3), values)


def test_orders_that_are_asked_for():
    buffers = pytest.importorskip("_testbuffer")
    with nc.device("cpu"):
        x = nc.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
        rows, columns, any_order = (
            getattr(buffers, f"PyBUF_{name}_CONTIGUOUS") for name in ("C", "F", "ANY"))
        for tensor, good, bad in [(x, (rows, any_order), (columns,)), (x.T, (columns, any_order), (rows,)),
                                  (x[:, ::2], (), (rows, columns, any_order))]:
            for order in good:
                assert buffers.ndarray(tensor, getbuf=order | buffers.PyBUF_FORMAT).tolist() == tensor.tolist()
            for order in bad:
                with pytest.raises(BufferError, match="contiguous"):
                    buffers.ndarray(tensor, getbuf=order)


def test_dlpack_to_numpy():
    with nc.device("cpu"):
        x = nc.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
        array = np.from_dlpack(x.T)
        assert array.shape == (3, 2) and np.shares_memory(array, x.array)
        assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_dlpack_from_numpy(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    x = nc.Tensor.from_dlpack(values)
    assert x.dtype == dtype and np.shares_memory(x.array, values)
    values[0, 0] = 1
    assert x[0, 0].item() == values[0, 0]


def test_dlpack_keeps_the_memory():
    class Array(np.ndarray):
        pass

    values = np.arange(4, dtype=np.float32).view(Array)
    gone = weakref.ref(values)
    x = nc.Tensor.from_dlpack(values)
    y = x[1:]
    del values, x
    gc.collect()
    assert gone() is not None and y.tolist() == [1, 2, 3]
    del y
    gc.collect()
    assert gone() is None


def test_dlpack_of_a_view_copies():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert nc.Tensor.from_dlpack(values.T).tolist() == values.T.tolist()
    assert nc.Tensor.from_dlpack(np.zeros((0, 2), np.float32)).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_pickle(on, dtype):
    x = nc.Tensor([[0, 1], [1, 0]], dtype=dtype)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist() and y.dtype == dtype and y.backend == on.backend
    z = pickle.loads(pickle.dumps(nc.Tensor([1.0], requires_grad=True)))
    assert z.requires_grad


def test_pyopencl_objects_are_accepted(opencl):
    cl = pytest.importorskip("pyopencl")
    context = cl.Context.from_int_ptr(opencl.context.int_ptr)
    queue = cl.CommandQueue.from_int_ptr(opencl.queue.int_ptr)
    values = np.arange(8, dtype=np.float32)
    x = nc.Tensor.from_host(queue, values)
    assert x.queue == opencl.queue  # the same queue, not another wrapper's
    theirs = cl.Buffer(context, cl.mem_flags.READ_WRITE, values.nbytes)
    cl.enqueue_copy(queue, theirs, values)
    spec = nc.KernelSpec("add_to", "__kernel void add_to(__global const float* a, __global float* b, float s) {"
                         " int i = get_global_id(0); b[i] += s * a[i]; }")
    for target in (queue, context, opencl, opencl.queue, opencl.context):
        prg = spec.build(target)
    prg.run(queue, (8,), None, theirs, x, 2.0)
    np.testing.assert_array_equal(x.to_host(), 3 * values)
    prg.add_to(queue, 8, None, x, theirs, np.float32(1))
    back = np.empty_like(values)
    cl.enqueue_copy(queue, back, theirs).wait()
    np.testing.assert_array_equal(back, 4 * values)
    pool = nc.core.BufferPool(context)
    assert pool.allocate(100).buffer.int_ptr
    profile = nc.core.capabilities.device_profile(queue.device)
    assert profile.name == queue.device.name or profile.name
    nc.core.backend.opencl.interruptible_finish(queue, 5)


TRIPLE = """__kernel void triple(__global float* x) { x[get_global_id(0)] *= 3; }
__kernel void shift(__global const float* x, __global float* y, float by, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] = x[i] + by; }"""


@pytest.fixture(params=["source", "binary"])
def their_program(request, opencl):
    """A program of pyopencl, also one whose driver never saw the source."""
    cl = pytest.importorskip("pyopencl")
    context = cl.Context.from_int_ptr(opencl.context.int_ptr)
    program = cl.Program(context, TRIPLE).build()
    if request.param == "binary":
        binaries = program.get_info(cl.program_info.BINARIES)
        program = cl.Program(context, context.devices, binaries).build()
    return program


def test_kernels_of_pyopencl_are_tuned(opencl, their_program):
    cl = pytest.importorskip("pyopencl")
    queue = cl.CommandQueue.from_int_ptr(opencl.queue.int_ptr)
    x, y = nc.Tensor.ones(512, device=opencl), nc.Tensor.zeros(512, device=opencl)
    theirs = cl.Kernel(their_program, "shift")
    theirs.set_args(cl.MemoryObject.from_int_ptr(x.buffer.int_ptr), cl.MemoryObject.from_int_ptr(y.buffer.int_ptr),
                    np.float32(5), np.int32(512))
    tuner = nc.profiling.Autotuner(device=queue.device)
    tuner.add("triple", their_program, (512,), x)  # the program's kernel of that name
    tuner.add("moved", theirs, (512,), x, y, np.float32(2), np.int32(512))
    assert tuner.tune_all(queue) == 2
    assert x.tolist() == [1] * 512 and not y.to_host().any()  # measured on copies
    local = tuner.lookup("moved", (512,))
    cl.enqueue_nd_range_kernel(queue, theirs, (512,), (local,)).wait()  # with the arguments it had
    assert y.tolist() == [6] * 512
    result = nc.profiling.WorkGroupTuner(theirs, 512).tune(queue, theirs, 512, [32, 64], x, y, np.float32(1), np.int32(9))
    assert result.best_local_size in (32, 64)
    with pytest.raises(ValueError, match="triple"):
        tuner.add("neither", their_program, (512,), x)
    with pytest.raises(TypeError, match="str"):
        tuner.add("text", "triple", (512,), x)


def test_kernels_of_pyopencl_are_launched(opencl, their_program):
    from netcl.core.kernels import Kernel, Program

    cl = pytest.importorskip("pyopencl")
    x, y = nc.Tensor.ones(8, device=opencl), nc.Tensor.zeros(8, device=opencl)
    kernel = Kernel(cl.Kernel(their_program, "triple"))
    kernel(opencl.queue, 8, None, x)
    program = Program(their_program, opencl.device)
    again = Program.from_int_ptr(their_program.int_ptr)
    assert Kernel.from_int_ptr(again.shift.int_ptr).name == "shift" == Kernel(again.shift).name
    assert sorted(program.kernel_names) == ["shift", "triple"] and program.int_ptr == their_program.int_ptr
    program.shift(opencl.queue, (8,), None, x, y, np.float32(0.5), np.int32(4))
    assert y.tolist() == [3.5] * 4 + [0] * 4
    with pytest.raises(nc.Error, match="triple"):
        kernel(opencl.queue, 8, None)
    unbuilt = cl.Program(cl.Context.from_int_ptr(opencl.context.int_ptr), TRIPLE)
    with pytest.raises(ValueError, match="must be built"):
        Program(unbuilt)
    with pytest.raises(TypeError):
        Program("triple")


def test_our_kernels_for_pyopencl(opencl):
    cl = pytest.importorskip("pyopencl")
    program = nc.KernelSpec("triple", TRIPLE).build(opencl)
    assert cl.Kernel.from_int_ptr(program.triple.int_ptr).function_name == "triple"
    assert cl.Program.from_int_ptr(program.int_ptr).num_kernels == 2
    x = nc.Tensor.ones(4, device=opencl)
    event = program.triple(opencl.queue, 4, None, x)
    theirs = cl.Event.from_int_ptr(event.int_ptr)
    theirs.wait()
    assert event.is_complete and nc._netcl.Event.from_int_ptr(theirs.int_ptr).is_complete
    for ours in (opencl.context, opencl.queue, opencl.device, x.buffer, program, program.triple, event):
        assert ours.int_ptr != 0


def test_devices_are_meant_by_queues_and_handles(opencl):
    cl = pytest.importorskip("pyopencl")
    queue = cl.CommandQueue.from_int_ptr(opencl.queue.int_ptr)
    for device in (opencl, opencl.queue, opencl.device, queue, queue.device):
        assert nc.profiling.WorkGroupTuner(64).choose_local_size(device) == 64
        nc.profiling.Autotuner(device=device)


def test_our_objects_for_pyopencl(opencl):
    cl = pytest.importorskip("pyopencl")
    x = nc.Tensor(np.arange(4, dtype=np.float32), device=opencl)
    x.wait()
    queue = cl.CommandQueue.from_int_ptr(opencl.queue.int_ptr)
    buffer = cl.MemoryObject.from_int_ptr(x.buffer.int_ptr)
    back = np.empty(4, np.float32)
    cl.enqueue_copy(queue, back, buffer).wait()
    np.testing.assert_array_equal(back, [0, 1, 2, 3])


def test_a_queue_can_be_the_active_device(opencl):
    cl = pytest.importorskip("pyopencl")
    theirs = cl.CommandQueue(cl.Context([cl.Device.from_int_ptr(opencl.device.int_ptr)]))
    for queue in (opencl.queue, theirs, nc.core.device.CPUQueue()):
        with nc.device(queue) as handle:
            x = nc.Tensor([1.0])
            assert x.queue == handle.queue and (x + 1).tolist() == [2.0]
            if queue is theirs:
                assert x.queue.int_ptr == theirs.int_ptr and handle.platform_name == opencl.platform_name
    for wrong in (3.5, opencl.context, []):
        with pytest.raises(TypeError, match="device handle or a queue"):
            nc.device(wrong).__enter__()


def test_a_context_is_not_a_queue(opencl):
    cl = pytest.importorskip("pyopencl")
    context = cl.Context.from_int_ptr(opencl.context.int_ptr)
    with pytest.raises(TypeError):
        nc.Tensor.from_host(context, [1.0])
    with pytest.raises(TypeError):
        nc.core.memory.get_persistent_pool(context)


@pytest.fixture
def another_thread_runs():
    """Tells whether a call lets other threads run: they get no turn but by its leave."""
    go, ran, end = threading.Semaphore(0), [], []

    def other():
        while go.acquire() and not end:
            ran.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    before = sys.getswitchinterval()

    def check(call):
        for _ in range(300):  # the thread may be late for a short call
            ran.clear()
            sys.setswitchinterval(1000)
            go.release()
            call()
            happened = bool(ran)
            sys.setswitchinterval(before)
            if happened:
                return True
            time.sleep(0.001)
        return False

    yield check
    sys.setswitchinterval(before)
    end.append(1)
    go.release()
    thread.join()


def test_the_lock_of_python_is_released(on, another_thread_runs, tmp_path):
    x = nc.Tensor.random((200, 200), 1)
    nc.io.save_npy(tmp_path / "x.npy", x)
    nc.io.save_safetensors(tmp_path / "x.safetensors", {"x": x})
    model = nc.nn.Linear(200, 200)
    calls = {
        "compute": lambda: nc.matmul(x, x),
        "wait": lambda: (x + 1).wait(),
        "to_host": lambda: x.to_host(),
        "item": lambda: x.sum().item(),
        "finish": lambda: on.queue.finish(),
        "read": lambda: nc.io.load_npy(tmp_path / "x.npy"),
        "read tensors": lambda: nc.io.load_safetensors(tmp_path / "x.safetensors"),
        "write": lambda: nc.io.save_npy(tmp_path / "y.npy", x),
        "write tensors": lambda: nc.io.save_safetensors(tmp_path / "y.safetensors", {"x": x}),
        "layer": lambda: model(x),
    }
    assert not another_thread_runs(lambda: [i * i for i in range(1000)])  # the check can fail
    assert [name for name, call in calls.items() if not another_thread_runs(call)] == []


def test_building_a_kernel_releases_the_lock(opencl, another_thread_runs):
    number = iter(range(1000))
    build = lambda: nc.KernelSpec("k", f"__kernel void k() {{ /* {next(number)} */ }}").build(opencl)  # noqa: E731
    assert another_thread_runs(build)


def test_many_threads(on):
    wrong = []

    def work(seed):
        for i in range(20):
            x = nc.Tensor(np.full(100, seed + i, np.float32))
            if (nc.relu(x) + 1).to_host()[5] != seed + i + 1:
                wrong.append(seed)

    def run(seed):
        with nc.device(on):
            work(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kernel_arguments(opencl):
    queue = opencl.queue
    spec = nc.KernelSpec("k", "__kernel void k(__global float* x, int n, float s, uchar c, __local float* t) {"
                         " if (get_global_id(0) < n) x[get_global_id(0)] = s + c; }")
    prg = spec.build(queue)
    x = nc.Tensor.zeros(4)
    local = nc.core.kernels.primitives.LocalMemory(64)
    prg.run(queue, 4, None, x, np.int32(3), 1.5, True, local)
    assert x.tolist() == [2.5, 2.5, 2.5, 0]
    with pytest.raises((ValueError, TypeError), match="s"):
        prg.run(queue, 4, None, x, 3, "a", 1, local)
    with pytest.raises((ValueError, TypeError)):
        prg.run(queue, 4, None, x)
    with pytest.raises((ValueError, TypeError), match="float32|float"):
        prg.run(queue, 4, None, nc.Tensor.zeros(4, "int32"), 3, 1.0, 1, local)
    with pytest.raises(AttributeError, match="nothing"):
        prg.nothing
    assert prg.spec is spec and "k" in dir(prg)
    with pytest.raises(nc.errors.BuildError) as failed:
        nc.KernelSpec("bad", "__kernel void bad() { undefined_name = 1; }").build(queue)
    assert "undefined_name" in failed.value.log


def test_a_spec_shows_what_tuning_found(opencl):
    spec = nc.KernelSpec("shown", "__kernel void shown(__global float* x) { x[get_global_id(0)] -= 7; }")
    queue, x = opencl.queue, nc.Tensor.zeros(96, device=opencl)
    assert spec.workgroup_size is None
    program = spec.build(queue)
    program.run(queue, 96, 32, x)
    assert spec.workgroup_size is None  # nothing was measured
    spec.run(queue, 96, None, x)
    first = spec.workgroup_size
    assert isinstance(first, int) and 96 % first == 0
    spec.run(queue, 35, None, x)  # which that size need not divide
    assert 35 % spec.workgroup_size == 0 and x.tolist() == [-21] * 35 + [-14] * 61
    tuner = nc.profiling.Autotuner(queue.device)
    tuner.add("shown", program, (64,))
    tuner.tune_all(queue)
    assert spec.workgroup_size == tuner.lookup("shown", (64,))
    given = nc.KernelSpec("shown", spec.src, workgroup_size=16)
    given.run(queue, 64, None, x)
    assert given.workgroup_size == 16 and "workgroup_size=16" in repr(given)
    again = pickle.loads(pickle.dumps(given))
    assert again == given and again.program is None
    copied = pickle.loads(pickle.dumps(spec))
    copied.run(queue, 35, None, x)
    still = nc.KernelSpec("still", "__kernel void still(__global float* x) { x[get_global_id(0)] -= 8; }", tune=False)
    still.run(queue, 64, None, x)
    assert still.workgroup_size is None


def test_events_are_timed(opencl):
    queue = nc.core.device.Queue.create(opencl.context, opencl.device, profiling=True)
    timer = nc.profiling.EventTimer(queue)
    spec = nc.KernelSpec("one", "__kernel void one(__global float* x) { x[get_global_id(0)] = 1; }", tune=False)
    x = nc.Tensor.from_host(queue, np.zeros(64, np.float32))
    event = spec.build(queue).run(queue, 64, 64, x)
    record = timer.time_event(event, "one")
    assert record.name == "one" and record.duration_ms > 0 and event.is_complete
    cl = pytest.importorskip("pyopencl")
    theirs = cl.Event.from_int_ptr(event.int_ptr)
    assert timer.time_event(theirs).duration_ms == record.duration_ms
    with pytest.raises(RuntimeError, match="profiling"):
        nc.profiling.EventTimer(opencl.queue)
