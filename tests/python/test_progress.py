"""The bar of fit and of loops: in terminals and notebooks, and nowhere else."""

import os
import pty
import subprocess
import sys
import textwrap
import types

import pytest

import netcl as nc
from netcl.progress import Progress, track

LOOP = """
    import netcl as nc, time
    def items():
        for i in range(4):
            time.sleep(0.11)  # longer than the bar's pause
            yield i
    print(sum(nc.progress.track(items(), "adding", total=4)))
"""


def test_terminal():
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(LOOP)], stdout=subprocess.PIPE, stderr=follower,
                               env={**os.environ, "COLUMNS": "60"})
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 1000)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    out, _ = process.communicate(timeout=60)
    lines = shown.decode().replace("\r\n", "\n").split("\r")
    assert out.strip() == b"6" and len(lines) >= 4
    assert "adding" in lines[1] and lines[-1].startswith("adding 100% [####################] 4/4")
    assert lines[-1].endswith("\n") and all(len(line.rstrip("\n")) < 60 for line in lines)


def test_logs_stay_readable():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(LOOP)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_notebook(monkeypatch, capsys):
    class ZMQInteractiveShell:  # what a notebook's kernel is called
        pass

    def use(shell):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
        assert list(track([1, 2], "cells")) == [1, 2]
        return capsys.readouterr().err

    assert "cells 100%" in use(ZMQInteractiveShell())
    assert use(None) == "" == use(object())  # a plain interpreter that imported IPython, and its console


def test_loops_of_unknown_length_and_errors(capsys):
    assert list(track((i for i in range(3)), show=True)) == [0, 1, 2]
    assert " 3 0:00" in " " + capsys.readouterr().err.split("\r")[-1]
    with pytest.raises(KeyError):
        with Progress("failing", 2, show=True) as bar:
            bar.update("text", 1)
            raise KeyError
    assert capsys.readouterr().err.endswith("\n")
    with Progress("empty", 0, show=True):
        pass


def test_without_a_place_to_write(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert sum(track([1, 2])) == 3
    with nc.device("cpu"):
        model = nc.nn.Linear(1, 1)
        nc.fit(model, [([1.0], [2.0])], loss=nc.nn.mse_loss, epochs=1)
