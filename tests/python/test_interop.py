"""Tensors and other packages: the buffer protocol, DLPack, pickle, pyopencl, threads."""

import gc
import pickle
import threading
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


def test_our_objects_for_pyopencl(opencl):
    cl = pytest.importorskip("pyopencl")
    x = nc.Tensor(np.arange(4, dtype=np.float32), device=opencl)
    x.wait()
    queue = cl.CommandQueue.from_int_ptr(opencl.queue.int_ptr)
    buffer = cl.MemoryObject.from_int_ptr(x.buffer.int_ptr)
    back = np.empty(4, np.float32)
    cl.enqueue_copy(queue, back, buffer).wait()
    np.testing.assert_array_equal(back, [0, 1, 2, 3])


def test_a_context_is_not_a_queue(opencl):
    cl = pytest.importorskip("pyopencl")
    context = cl.Context.from_int_ptr(opencl.context.int_ptr)
    with pytest.raises(TypeError):
        nc.Tensor.from_host(context, [1.0])
    with pytest.raises(TypeError):
        nc.core.memory.get_persistent_pool(context)


def test_threads_run_while_netcl_waits(on):
    a = nc.Tensor.random((400, 400), 1)
    seen, done = [], threading.Event()

    def count():
        while not done.is_set():
            seen.append(1)
            done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(20):
        b = nc.matmul(a, a)
        b.wait()
    done.set()
    thread.join()
    assert seen


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
