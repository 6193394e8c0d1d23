"""Batches made ahead by threads, in their order, for netcl.data.DataLoader.

Threads share one _Work and never see the iterator, so that an iterator that nobody holds any more
ends them.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Any, Callable, Iterator

from .errors import ForkError

Job = Callable[[Callable[[], bool]], Any]  # is told how to find out that nobody wants it any more


class _Work:
    """Jobs are taken in turn by the threads; results wait until it is theirs to be given out."""

    def __init__(self, jobs: Iterator[Job], window: int) -> None:
        self.jobs, self.window = jobs, window
        self.taking = threading.Lock()  # held while the next job is asked for
        self.changed = threading.Condition()
        self.results: dict[int, tuple[Any, BaseException | None]] = {}
        self.taken = self.given = 0
        self.end: int | None = None  # the number of jobs, once it is known
        self.stopped = False
        self.process = os.getpid()
        self.threads: list[threading.Thread] = []

    # ---- the threads' side
    def run(self) -> None:
        while True:
            with self.taking:
                if not self._wait_for_room():
                    return
                number = self.taken
                try:
                    job = next(self.jobs)
                except StopIteration:
                    self._finish(number)
                    return
                except BaseException as error:  # the dataset's; it comes after what was made before
                    self._put(number, None, error)
                    self._finish(number + 1)
                    return
                self.taken = number + 1
            try:
                result, error = job(self.is_stopped), None
            except BaseException as caught:
                result, error = None, caught
                self._finish(number + 1)
            self._put(number, result, error)

    def is_stopped(self) -> bool:
        return self.stopped

    def _wait_for_room(self) -> bool:
        with self.changed:
            while not self.stopped and self.end is None and self.taken - self.given >= self.window:
                self.changed.wait()
            return not self.stopped and self.end is None

    def _put(self, number: int, result: Any, error: BaseException | None) -> None:
        with self.changed:
            if not self.stopped:
                self.results[number] = (result, error)
            self.changed.notify_all()

    def _finish(self, count: int) -> None:
        with self.changed:
            self.end = count if self.end is None else min(self.end, count)
            self.changed.notify_all()

    # ---- the iterator's side
    def get(self) -> tuple[Any, BaseException | None] | None:
        """The next result in order, or None after the last."""
        if os.getpid() != self.process:
            raise ForkError(
                "[DataLoader] the threads of a loader do not exist in a forked process: "
                'begin the iteration there, or start processes with "spawn"'
            )
        with self.changed:
            while self.given not in self.results:
                if self.end is not None and self.given >= self.end:
                    return None
                self.changed.wait()
            item = self.results.pop(self.given)
            self.given += 1
            self.changed.notify_all()
            return item

    def stop(self, wait: float | None = None) -> None:
        """Lets the threads end after what they are at, and waits for that, `wait` seconds at most."""
        if self.stopped or os.getpid() != self.process:
            return  # in a forked process the locks are as some thread of the parent left them
        with self.changed:
            self.stopped = True
            self.results.clear()
            self.changed.notify_all()
        for thread in self.threads:
            # The collector runs in any thread, and perhaps not all could be started.
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(wait)


_running: weakref.WeakSet[_Work] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before the interpreter takes itself apart: after that threads end nowhere and cannot be
    waited for. One that hangs in a dataset must not keep the process."""
    for work in list(_running):
        work.stop(wait=1.0)


def in_order(jobs: Iterator[Job], threads: int, window: int) -> Iterator[Any]:
    """The results of the jobs in their order, made by `threads` threads that are at most `window`
    jobs ahead. The iterator `jobs` itself is asked by one thread at a time. An error comes in the
    place of its result and ends the iteration; the threads end with the iteration."""
    work = _Work(jobs, max(window, threads))
    work.threads = [
        threading.Thread(target=work.run, name=f"netcl-loader-{i}", daemon=True) for i in range(threads)
    ]
    _running.add(work)
    try:
        for thread in work.threads:
            thread.start()
        while (item := work.get()) is not None:
            result, error = item
            if error is not None:
                raise error
            yield result
    except KeyboardInterrupt:
        work.stop(wait=0.0)  # at once, whatever the threads are at
        raise
    finally:
        work.stop()
