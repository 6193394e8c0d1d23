"""The package and its process: errors, Ctrl+C, fork and spawn, the command line, no driver at all."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import netcl as nc
from netcl import errors

# A kernel of about `rounds` nanoseconds on one work-item.
SLOW = """
    slow = nc.KernelSpec("slow", '''__kernel void slow(__global float* x, ulong rounds) {
        float v = x[0];
        for (ulong i = 0; i < rounds; ++i) v = v * 0.999999f + 1.0f;
        x[0] = v; }''', tune=False)
"""


def python(code, env=None, **options):
    source = "import netcl as nc\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, **(env or {})}, **options)


def finish(process):
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()


def result(code, env=None):
    process = python(code, env)
    out, err = finish(process)
    return process.returncode, out, err


def test_exceptions_are_what_python_programs_expect():
    for ours, builtin in [
        (errors.ShapeError, ValueError), (errors.ArgumentError, ValueError), (errors.DtypeError, TypeError),
        (errors.OutOfMemory, MemoryError), (errors.FileError, OSError), (errors.FormatError, ValueError),
        (errors.DeviceError, RuntimeError), (errors.BuildError, RuntimeError), (errors.TimeoutError, TimeoutError),
        (errors.AnomalyError, ArithmeticError), (errors.ForkError, RuntimeError),
    ]:
        assert issubclass(ours, builtin) and issubclass(ours, nc.Error)


def test_messages_have_rule_and_values(on):
    a, b = nc.Tensor.zeros((2, 3)), nc.Tensor.zeros((4, 5))
    with pytest.raises(errors.ShapeError, match=r"\(2, 3\).*\(4, 5\)|3.*4"):
        nc.matmul(a, b)
    with pytest.raises(errors.DtypeError, match="floats"):
        nc.Tensor([1.0], dtype="floats")
    with pytest.raises(errors.ShapeError):
        nc.conv2d(a, b)
    with pytest.raises(ValueError, match="padding"):
        nc.conv2d(nc.Tensor.zeros((1, 1, 4, 4)), nc.Tensor.zeros((1, 1, 3, 3)), padding=-1)
    with pytest.raises(TypeError, match="out"):  # nothing is written into memory that may not fit
        nc.conv2d(nc.Tensor.zeros((1, 1, 4, 4)), nc.Tensor.zeros((1, 1, 3, 3)), out=nc.Tensor.zeros(1))
    with pytest.raises(ValueError, match="stride"):
        nc.conv2d(nc.Tensor.zeros((1, 1, 4, 4)), nc.Tensor.zeros((1, 1, 3, 3)), stride=0)
    with pytest.raises(ValueError):
        nc.conv2d(nc.Tensor.zeros((1, 1, 2, 2)), nc.Tensor.zeros((1, 1, 3, 3)))
    with pytest.raises(ValueError):
        nc.conv2d(nc.Tensor.zeros((1, 1, 4, 4)), nc.Tensor.zeros((2, 1, 3, 3)), nc.Tensor.zeros(3))


def test_too_much_memory(on):
    with pytest.raises(MemoryError) as failed:
        nc.Tensor.empty((1 << 44,))
    assert failed.value.requested >= 1 << 46
    for sizes in ((1 << 40, 1 << 40), (10**30,)):
        with pytest.raises(ValueError, match="63 bits"):
            nc.Tensor.empty(sizes)


def test_a_device_that_is_not_there():
    with pytest.raises(errors.DeviceError, match="no such device|nonesuch"):
        nc.device.manager.default("nonesuch")
    assert nc.device.manager.default("nonesuch", required=False) is None


def test_without_any_driver():
    code, out, err = result("""
        from netcl.core.backend.opencl import OpenCLBackend
        x = nc.Tensor([1.0, -1.0])
        print(nc.relu(x).tolist(), x.backend)
        context, queue = nc.device.manager.default()
        spec = nc.KernelSpec("k", "__kernel void k() {}")
        for call in (
            lambda: nc.device.manager.default("gpu"), lambda: nc.device("gpu").__enter__(), lambda: x.to("gpu"),
            lambda: nc.Tensor([1.0], device="opencl"), lambda: nc.nn.Linear(1, 1).to("gpu"),
            lambda: spec.build(queue), lambda: spec.build(context), lambda: spec.run(queue, 1, None),
            lambda: nc.profiling.Autotuner(device=queue.device), lambda: OpenCLBackend(queue),
            lambda: nc.core.BufferPool(context), lambda: nc.build_matmul_kernel(queue, 2, 2, 2),
        ):
            try:
                print(call())
            except nc.errors.DeviceError as error:
                print(str(error).count("install"))
    """, {"OCL_ICD_VENDORS": os.environ.get("NETCL_EMPTY_VENDORS", "/nonexistent")})
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "[1.0, 0.0] cpu"
    assert lines[1:] == ["1"] * 12, out


def test_import_is_quick_and_quiet():
    code, out, err = result("import sys; print('pyopencl' in sys.modules)")
    assert (code, out.strip(), err) == (0, "False", "")


def test_fork(opencl):
    code, out, err = result("""
        import os, sys
        x = nc.Tensor([1.0], device=nc.device.manager.default("opencl"))
        x.wait()
        pid = os.fork()
        if pid == 0:
            try:
                nc.relu(x)
                print("no error")
            except nc.errors.ForkError as error:
                print("spawn" in str(error), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(nc.relu(x).tolist())
    """)
    assert code == 0 and out.split() == ["True", "[1.0]"], (out, err)


def test_fork_pools_do_not_wait_for_ever(opencl):
    """A pool's task that cannot be unpickled is never answered: its tensors can, and fail when used."""
    code, out, err = result("""
        import multiprocessing as mp
        import numpy as np

        if __name__ == "__main__":
            nc.Tensor([1.0], device="opencl").wait()
            with mp.get_context("fork").Pool(1) as pool:
                for use in (repr, len, float, bool, list, np.asarray):
                    for device in ("opencl", "cpu"):
                        try:
                            print(pool.apply_async(use, [nc.Tensor([1.0], device=device)]).get(20))
                        except nc.errors.ForkError as error:
                            print("spawn" in str(error))
    """)
    assert code == 0 and out.split() == ["True"] * 12, (out, err)


def test_fork_without_any_driver():
    """The CPU backend alone works in forked workers, on one thread: those of the parent are not there."""
    code, out, err = result("""
        import multiprocessing as mp
        x = nc.Tensor.ones((400, 400))

        def work(factor):
            return float((x @ x).sum() * factor), nc.Tensor.full((1 << 21,), factor).abs().mean().item()

        if __name__ == "__main__":
            here = work(2)
            with mp.get_context("fork").Pool(2) as pool:
                print(pool.map(work, [2, 2]) == [here, here], x.backend)
    """, {"OCL_ICD_VENDORS": os.environ.get("NETCL_EMPTY_VENDORS", "/nonexistent")})
    assert code == 0 and out.split() == ["True", "cpu"], (out, err)


def test_spawn_gets_tensors(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(textwrap.dedent("""
        import multiprocessing as mp
        import netcl as nc

        def work(x):
            return nc.relu(x) + 1

        if __name__ == "__main__":
            with mp.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [nc.Tensor([1.0, -2.0])])[0].tolist())
    """))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "[2.0, 1.0]", done.stderr


def interrupt_after(process, word, pause=0.3):
    assert process.stdout.readline().strip() == word
    time.sleep(pause)
    process.send_signal(signal.SIGINT)


def test_ctrl_c_during_a_kernel(opencl):
    process = python(SLOW + """
    queue = nc.device.manager.default("opencl").queue
    x = nc.Tensor([1.0])
    program = slow.build(queue)
    program.run(queue, 1, 1, x, 10)
    x.wait()
    program.run(queue, 1, 1, x, 200_000_000_000)
    print("ready", flush=True)
    import os, time
    try:
        x.wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(7)
    """)
    interrupt_after(process, "ready")
    out, err = finish(process)
    assert out.strip() == "interrupted" and process.returncode == 7, err


def test_own_handlers_are_called(opencl):
    process = python(SLOW + """
    import os, signal
    class Mine(Exception): pass
    def handler(number, frame): raise Mine
    signal.signal(signal.SIGINT, handler)
    queue = nc.device.manager.default("opencl").queue
    x = nc.Tensor([1.0])
    slow.build(queue).run(queue, 1, 1, x, 200_000_000_000)
    print("ready", flush=True)
    try:
        nc.runtime.interruptible_finish(queue, 0)
    except Mine:
        os._exit(9)
    """)
    interrupt_after(process, "ready")
    finish(process)
    assert process.returncode == 9


def test_twice_handled_is_no_reason_to_exit():
    process = python("""
    import time
    for i in range(2):
        print("ready", flush=True)
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            pass
    print("alive", nc.relu(nc.Tensor([1.0], device=nc.device.manager.default("cpu"))).tolist())
    """)
    interrupt_after(process, "ready")
    interrupt_after(process, "ready")
    out, err = finish(process)
    assert out.strip() == "alive [1.0]" and process.returncode == 0, err


def test_a_signal_is_taken_once(opencl):
    process = python("""
    import time
    queue = nc.device.manager.default("opencl").queue
    nc.Tensor([1.0]).wait()
    try:
        print("ready", flush=True)
        time.sleep(30)
    except KeyboardInterrupt:
        nc.runtime.interruptible_finish(queue)  # not interrupted again
        nc.Tensor([1.0]).wait()
        print("alive", flush=True)
        time.sleep(30)
    """)
    interrupt_after(process, "ready")
    assert process.stdout.readline().strip() == "alive"
    process.terminate()  # which must not look like success
    finish(process)
    assert process.returncode == -signal.SIGTERM


def test_fused_kernels_are_found_on_disk(opencl, tmp_path):
    code = """
        f = nc.autograd.jit_compile(lambda a, b: nc.relu(a * b + 1.0))
        with nc.device("opencl"):
            print(f(nc.Tensor([1.0]), nc.Tensor([2.0])).tolist(), nc.runtime.program_cache_stats())
    """
    seen = []
    for _ in range(2):
        status, out, err = result(code, {"XDG_CACHE_HOME": str(tmp_path), "NETCL_CACHE_BINARIES": "1"})
        assert status == 0 and out.startswith("[3.0]"), err
        seen.append(sorted(path.name for path in (tmp_path / "netcl").rglob("*") if path.is_file()))
    assert seen[0] == seen[1] and seen[0]


def test_hard_exit_where_nothing_waits():
    # One long call of the CPU backend asks nobody; the documented way out is exit code 130.
    process = python("""
    nc.runtime.install_sigint_handler(0.1)
    with nc.device("cpu"):
        a = nc.Tensor.random((4000, 4000), 1, dtype="float64")
        print("ready", flush=True)
        while True:
            nc.ops.matmul(a, a)
    """)
    interrupt_after(process, "ready", 0.2)
    out, err = finish(process)
    assert process.returncode == 130 and "netcl: interrupted" in err, err


def test_timeout_is_an_exception(opencl):
    code, out, err = result(SLOW + """
    import os
    queue = nc.device.manager.default("opencl").queue
    x = nc.Tensor([1.0])
    slow.build(queue).run(queue, 1, 1, x, 200_000_000_000)
    try:
        nc.core.backend.opencl.interruptible_finish(queue, timeout=0.2)
    except TimeoutError as error:
        print(type(error).__module__, flush=True)
    os._exit(0)
    """)
    assert out.strip() == "netcl.errors", err


def test_the_command_line():
    done = subprocess.run([sys.executable, "-m", "netcl", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == f"netcl {nc.__version__}"
    done = subprocess.run([sys.executable, "-m", "netcl", "nonesuch"], capture_output=True, text=True)
    assert done.returncode == 2
    done = subprocess.run([sys.executable, "-m", "netcl", "devices"], capture_output=True, text=True)
    assert done.returncode == 0 and "cpu" in done.stdout.lower()


def test_tensors_may_outlive_everything():
    code, out, err = result("""
        import atexit
        x = nc.Tensor([1.0])
        model = nc.nn.Linear(2, 2)
        nc.keep = x
        selector = nc.core.kernel_selector.get_kernel_selector()
        selector.register("matmul", lambda shapes, profile: False, "X")
        atexit.register(lambda: print(x.tolist()))
    """)
    assert (code, out.strip(), err) == (0, "[1.0]", "")


def test_memory_of_a_training_loop_is_bounded():
    with nc.device("cpu"):
        model = nc.nn.Sequential(nc.nn.Linear(64, 64), nc.nn.ReLU(), nc.nn.Linear(64, 10))
        optimizer = nc.optim.SGD(model.parameters(), lr=0.1)
        x, y = nc.Tensor.random((32, 64), 1), nc.Tensor(np.arange(32) % 10)
        pool = nc.core.memory.get_persistent_pool(x.queue)
        used = []
        for _ in range(60):
            with nc.autograd.Tape() as tape:
                loss = nc.nn.cross_entropy(model(x), y)
            tape.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            used.append(pool.get_stats()["bytes_in_use"])
        assert used[-1] == used[5]
