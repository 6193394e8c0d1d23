"""Loaders of Python datasets: several threads, and the same batches as with none."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import netcl as nc
from netcl.data import ArrayDataset, DataLoader, rng

WORKERS = [0, 1, 2, 5]


def loader_threads():
    return [t for t in threading.enumerate() if t.name.startswith("netcl-loader")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert not loader_threads()


class Noisy:
    """Samples that need random numbers and take different times."""

    def __init__(self, count=23):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.003 * (index % 3))
        return rng().normal(index, 1, 4).astype(np.float32), index


def batches(loader, epochs=2):
    return [[x.tolist() for x in batch] for _ in range(epochs) for batch in loader]


@pytest.mark.parametrize("shuffle", [False, True])
def test_any_number_of_workers_gives_the_same(on, shuffle):
    def run(workers):
        flip = nc.data.random_horizontal_flip(0.5)
        transforms = [lambda x: x + rng().random(4).astype(np.float32), lambda x: x.reshape(1, 1, 4), flip]
        return batches(DataLoader(Noisy(), 4, shuffle, seed=7, num_workers=workers, transforms=transforms))

    first = run(0)
    assert len(first) == 12 and first[0] != first[6]  # each epoch has its own numbers
    assert all(run(workers) == first for workers in WORKERS[1:])


def test_functions_on_datasets_of_netcl_have_the_same_numbers(on):
    dataset = ArrayDataset(np.zeros((10, 1, 2, 2), np.float32), np.zeros(10, np.int64))
    noise = [lambda x: x + rng().random((1, 2, 2)).astype(np.float32)]
    runs = [batches(DataLoader(dataset, 3, seed=5, num_workers=n, transforms=noise)) for n in (0, 3)]
    assert runs[0] == runs[1] and runs[0][0] != runs[0][4]


@pytest.mark.parametrize("workers", WORKERS)
def test_iterables_are_read_once_and_in_order(on, workers):
    read = []

    def numbers():
        for i in range(20):
            read.append(i)
            yield float(i)

    slow = [lambda x: (time.sleep(0.002 * (x % 4)), x + 0.5)[1]]
    got = [x.tolist() for x in DataLoader(numbers(), 3, num_workers=workers, transforms=slow)]
    assert read == list(range(20)) and sum(got, []) == [i + 0.5 for i in range(20)]


def test_several_threads_index_at_the_same_time():
    meeting = threading.Barrier(3, timeout=30)

    class Together:
        def __len__(self):
            return 6

        def __getitem__(self, index):
            meeting.wait()  # three samples must be under way for any of them to end
            return float(index)

    got = [x.tolist() for x in DataLoader(Together(), 1, num_workers=3, device="cpu")]
    assert got == [[float(i)] for i in range(6)]


def test_no_further_ahead_than_asked():
    made, allowed = [], threading.Semaphore(0)

    class Counted:
        def __len__(self):
            return 100

        def __getitem__(self, index):
            made.append(index)
            if len(made) == 5:
                allowed.release()
            return float(index)

    batches = iter(DataLoader(Counted(), 1, num_workers=2, prefetch=4, device="cpu"))
    next(batches)
    assert allowed.acquire(timeout=30)  # one given and four ahead
    time.sleep(0.05)
    assert len(made) == 5
    batches.close()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("wrong", [KeyError, StopIteration, SystemExit])
def test_errors_come_in_the_place_of_their_batch(workers, wrong):
    class Broken:
        def __len__(self):
            return 30

        def __getitem__(self, index):
            if index in (12, 13):
                raise wrong(f"sample {index}")
            time.sleep(0.002 if index < 4 else 0)
            return float(index)

    got = []
    with pytest.raises(RuntimeError if wrong is StopIteration else wrong) as failed:
        for x in DataLoader(Broken(), 5, num_workers=workers, device="cpu"):
            got += x.tolist()
    assert got == [float(i) for i in range(10)]
    assert "sample 12" in str(failed.value) or "sample 12" in str(failed.value.__cause__)


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_of_iterables_transforms_and_collate(workers):
    def ends_badly():
        yield from (1.0, 2.0, 3.0)
        raise OSError("the stream broke")

    def fails(batch):
        raise ZeroDivisionError

    got = []
    with pytest.raises(OSError, match="stream"):
        got += [x.tolist() for x in DataLoader(ends_badly(), 1, num_workers=workers, device="cpu")]
    for options in ({"transforms": [fails]}, {"collate": fails}):
        with pytest.raises(ZeroDivisionError):
            next(iter(DataLoader([1.0], num_workers=workers, device="cpu", **options)))


def test_early_ends(on):
    for workers in WORKERS:
        for x, label in DataLoader(Noisy(), 2, num_workers=workers):
            break
        unused = iter(DataLoader(Noisy(), 2, num_workers=workers))
        held = iter(DataLoader(Noisy(), 2, num_workers=workers))
        next(held)
        del unused, held
        gc.collect()
        assert not loader_threads()
    both = DataLoader(Noisy(6), 2, num_workers=2)
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(both, both)] == [([i, i + 1],) * 2 for i in (0, 2, 4)]


def test_two_iterations_of_a_dataset_of_netcl_at_once(on):
    loader = DataLoader(ArrayDataset(np.zeros((6, 1, 1, 1), np.uint8), np.arange(6)), 2)
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader)] == [([i, i + 1],) * 2 for i in (0, 2, 4)]


def test_threads_have_the_device_of_the_loader(on):
    loader = DataLoader([1.0, 2.0], 2, collate=lambda samples: nc.Tensor(samples))
    (batch,) = loader
    assert batch.queue == on.queue and batch.tolist() == [1, 2]


def script(code):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, "NETCL_DEVICE": "cpu"})


def test_ctrl_c_while_a_batch_is_waited_for():
    process = script("""
        import threading, netcl as nc
        class Stuck:
            def __len__(self): return 100
            def __getitem__(self, index):
                if index == 4: print("ready", flush=True)
                if index >= 4: threading.Event().wait()
                return float(index)
        try:
            for x in nc.data.DataLoader(Stuck(), 2, num_workers=2, device="cpu"): pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "interrupted\n" and process.returncode == 0, err


def test_a_process_ends_in_the_middle_of_an_epoch():
    process = script("""
        import netcl as nc
        data = [float(i) for i in range(1000)]
        loader = iter(nc.data.DataLoader(data, 2, num_workers=3, device="cpu"))
        print(next(loader).tolist())
    """)
    out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("[0.0, 1.0]\n", "", 0)


def test_a_forked_process_is_told():
    process = script("""
        import os, netcl as nc
        loader = iter(nc.data.DataLoader([1.0, 2.0, 3.0], 1, device="cpu", collate=list))
        next(loader)
        child = os.fork()
        if child == 0:
            try:
                next(loader)
            except nc.errors.ForkError as error:
                print("spawn" in str(error), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(list(loader))
    """)
    out, err = process.communicate(timeout=60)
    assert out == "True\n[[2.0], [3.0]]\n", err
