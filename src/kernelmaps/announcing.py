"""Announce on standard error that numba is compiling a function.

numba tells its listeners when it begins and ends to compile a function. What takes longer than a
second is announced on standard error to a person at a terminal, and to the log of everyone else.
"""

from __future__ import annotations

import logging
import sys
from threading import Lock, Timer
from typing import Any

_PATIENCE = 1.0  # seconds
_MESSAGE = "kernelmaps: compiling, once (later runs read the result from disk) ..."
_log = logging.getLogger("kernelmaps")
_known: list[Any] = []


class _Announcer:
    """Starts a clock with the first of our functions that is compiled, stops it with the last."""

    def __init__(self) -> None:
        self._lock, self._depth = Lock(), 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._timer = Timer(_PATIENCE, say)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._timer = None


def say() -> None:
    """The message itself."""
    _log.info(_MESSAGE)
    if sys.stderr is not None and sys.stderr.isatty():
        print(_MESSAGE, file=sys.stderr, flush=True)


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
