"""A bar in terminals and notebooks; nothing elsewhere, so that logs stay readable."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, Callable, Iterable, Iterator

__all__ = ["Progress", "track"]


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return type(instance).__name__ == "ZMQInteractiveShell"


def _is_watched() -> bool:
    return (sys.stderr is not None and sys.stderr.isatty()) or _in_notebook()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Progress:
    """with Progress("epoch 1", total=100) as bar: ... bar.update(lambda: "loss 0.3")

    The text is asked for only when it is shown, ten times a second at most.
    """

    def __init__(self, title: str, total: int | None = None, show: bool | None = None) -> None:
        self.title, self.total = title, total
        self.show = _is_watched() if show is None else show
        self.done = 0
        self._text, self._width = "", 0
        self._start = self._shown = 0.0

    def __enter__(self) -> "Progress":
        self._start = time.perf_counter()
        return self

    def update(self, text: Callable[[], str] | str = "", count: int = 1) -> None:
        """So many more are done."""
        self.done += count
        now = time.perf_counter()
        if self.show and now - self._shown >= 0.1:
            self._shown = now
            self._text = text() if callable(text) else text
            self._write(self.line())

    def line(self) -> str:
        """What is shown: title, bar, count, times, rate, text."""
        seconds = max(time.perf_counter() - self._start, 1e-9)
        rate = self.done / seconds
        parts = [self.title] if self.title else []
        if self.total:
            part = min(self.done / self.total, 1.0)
            filled = int(20 * part)
            left = (self.total - self.done) / rate if rate else 0.0
            parts += [f"{100 * part:3.0f}%", "[" + "#" * filled + "." * (20 - filled) + "]"]
            parts += [f"{self.done}/{self.total}", f"{_duration(seconds)}<{_duration(left)}"]
        else:
            parts += [str(self.done), _duration(seconds)]
        parts += [f"{rate:.1f}/s"]
        return " ".join(parts + ([self._text] if self._text else []))

    def _write(self, line: str, end: str = "") -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + line.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = len(line)

    def __exit__(self, *exception: Any) -> None:
        if self.show:
            self._write(self.line(), "\n")


def track(items: Iterable[Any], title: str = "", total: int | None = None, show: bool | None = None) -> Iterator[Any]:
    """The items, with a bar that counts them.

    >>> sum(track([1, 2, 3], "adding"))
    6
    """
    if total is None and hasattr(items, "__len__"):
        total = len(items)
    with Progress(title, total, show) as bar:
        for item in items:
            yield item
            bar.update()
