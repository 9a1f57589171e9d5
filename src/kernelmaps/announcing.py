"""Announce on standard error that numba is compiling a function.

numba tells its listeners when it begins and ends to compile a function. Once a process has spent a
second on our functions, it says so: on standard error to a person at a terminal or in a notebook,
and to the log of everyone else. Listening begins with the first function that is to be compiled
(`compiling.njit`).
"""

from __future__ import annotations

import logging
import sys
from threading import Lock, Timer
from time import monotonic
from typing import Any

_PATIENCE = 1.0  # seconds
_MESSAGE = "kernelmaps: compiling, once (later runs read the result from disk) ..."
_log = logging.getLogger("kernelmaps")
_known: list[Any] = []


class _Announcer:
    """A clock that runs while functions of ours are compiled, and speaks once, after a while.

    Functions that are compiled for one another count as one, and those compiled one after another
    share the time: a fit that compiles ten of them for half a second each is announced, too.
    """

    def __init__(self) -> None:
        self._lock, self._depth = Lock(), 0
        self._timer: Timer | None = None
        self._since, self._spent, self._said = 0.0, 0.0, False

    def begin(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._since = monotonic()
                self._timer = Timer(max(0.0, _PATIENCE - self._spent), self._print_message)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._spent += monotonic() - self._since

    def _print_message(self) -> None:
        with self._lock:
            if self._said or self._depth == 0:  # it ended while the clock struck
                return
            self._said = True
        say()


def say() -> None:
    """The message itself."""
    _log.info(_MESSAGE)
    if sys.stderr is not None and (sys.stderr.isatty() or _in_notebook()):
        print(_MESSAGE, file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    """Whether an IPython kernel runs this process: it shows what its streams, no terminals, get.

    Whoever has one has imported IPython. Kernels of others extend its shell (Colab's, say).
    """
    active = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = active() if active is not None else None
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


def announce_compiling() -> None:
    """Listen to numba from now on (once per process)."""
    if _known:
        return
    from numba.core import event

    announcer = _Announcer()

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if _is_ours(event):
                announcer.begin()

        def on_end(self, event: Any) -> None:
            if _is_ours(event):
                announcer.end()

    _known.append(Listener())
    event.register("numba:compile", _known[0])


def _is_ours(event: Any) -> bool:
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", "").startswith("kernelmaps.")
