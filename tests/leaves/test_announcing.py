"""Long compilation is announced, short compilation and that of others is not."""

import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import fresh_process
import pytest

from kernelmaps import announcing


@pytest.fixture
def said(monkeypatch):
    """How often it was said so far."""
    records = []
    handler = logging.Handler(logging.INFO)
    handler.emit = records.append
    logger = logging.getLogger("kernelmaps")
    monkeypatch.setattr(logger, "handlers", [handler])
    before = logger.level
    logger.setLevel(logging.INFO)
    yield lambda: sum("compiling, once" in record.getMessage() for record in records)
    logger.setLevel(before)


@pytest.mark.parametrize(("patience", "times"), [(0.02, 1), (600.0, 0)])
def test_said_once_and_only_after_a_while(patience, times, monkeypatch, said):
    monkeypatch.setattr(announcing, "_PATIENCE", patience)
    announcer = announcing._Announcer()
    for _ in range(3):  # functions that are compiled for one another
        announcer.begin()
    clock = announcer._timer
    clock.join(60 if times else 0)  # it has spoken, however busy the machine is
    assert clock.is_alive() is not bool(times)
    for _ in range(3):
        announcer.end()
    clock.join(60)
    assert not clock.is_alive()  # nothing is said later
    assert said() == times


def test_functions_one_after_another_share_the_time_and_the_announcement(monkeypatch, said):
    """Ten functions of 0.3 s are announced with the fourth, and no other."""
    now = [0.0]
    clocks = []
    monkeypatch.setattr(announcing, "monotonic", lambda: now[0])

    class Clock(SimpleNamespace):
        def __init__(self, seconds, speak):
            super().__init__(seconds=seconds, speak=speak, stopped=False)
            clocks.append(self)

        def start(self):
            pass

        def cancel(self):
            self.stopped = True

    monkeypatch.setattr(announcing, "Timer", Clock)
    announcer, heard = announcing._Announcer(), []
    for _ in range(10):
        before = len(clocks)
        announcer.begin()
        now[0] += 0.3
        for clock in clocks[before:]:
            if clock.seconds <= 0.3:
                clock.speak()
        heard.append(said())
        announcer.end()
    assert heard == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert all(clock.stopped for clock in clocks)
    clocks[0].speak()  # a clock that strikes when all is compiled
    assert said() == 1


def test_a_person_at_a_terminal_reads_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    announcing.say()
    assert "compiling, once" in capsys.readouterr().err


class TerminalInteractiveShell:
    """IPython in a terminal."""


class ZMQInteractiveShell:
    """That of a kernel, as ipykernel names it."""


class Shell(ZMQInteractiveShell):
    """One that extends it, as Colab's does."""


@pytest.mark.parametrize(
    ("shell", "times"),
    [(ZMQInteractiveShell(), 1), (Shell(), 1), (TerminalInteractiveShell(), 0), (None, 0)],
    ids=["kernel", "extended kernel", "IPython with redirected streams", "IPython imported only"],
)
def test_a_person_in_a_notebook_reads_it(shell, times, monkeypatch, capsys, said):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    announcing.say()
    assert capsys.readouterr().err.count("compiling, once") == times
    assert said() == 1  # the log has it anyway


@pytest.mark.parametrize("module", [None, SimpleNamespace()], ids=["no IPython", "half imported"])
def test_a_script_with_redirected_streams_reads_nothing(module, monkeypatch, capsys, said):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", module)
    announcing.say()
    assert capsys.readouterr().err == ""
    assert said() == 1


def test_only_functions_of_this_library_count():
    def event(module):
        function = SimpleNamespace(__module__=module)
        return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})

    assert announcing._is_ours(event("kernelmaps.engine.table.transform"))
    assert not announcing._is_ours(event("somebody.else"))
    assert not announcing._is_ours(SimpleNamespace(data={}))


FIRST_USES = {
    "an exact kernel": "from kernelmaps.kernels import chi2\nchi2(X, X)",
    "random features": "km.RandomFourierMap(n_components=8).fit_transform(X)",
    "categories": "km.AdditiveRegressor(categorical_features=[0]).fit(X[:, :1].round(), X[:, 1])",
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_whatever_is_compiled_first_is_announced(use):
    code = f"""
import numpy as np
import kernelmaps as km
X = np.random.default_rng(0).random((60, 2))
{use}
from kernelmaps import announcing
from numba.core import event
assert announcing._known[0] in event._registered["numba:compile"]
"""
    done = fresh_process.run(code)
    assert done.status == 0, done.stderr


def test_all_functions_are_compiled_by_the_decorator_that_announces():
    folder = Path(announcing.__file__).parent
    actual = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"\b(numba|nb)\.n?jit\b|from numba import .*jit", path.read_text("utf-8"))
    }
    assert actual == {"compiling.py"}
