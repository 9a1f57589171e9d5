"""How code is compiled by numba: whether at all, with an announcement, and where it is kept."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from threading import Lock, Timer
from time import monotonic
from typing import Any

VARIABLE = "NUMBA_CACHE_DIR"
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_HELPERS = (("engine", "simd"), ("engine", "table"), ("models",))  # folders; of models, losses
HELPER = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of compiled functions that compiled code alone calls: the way in for Python would take as
long to compile as the function itself."""


def interpreted() -> bool:
    """Whether numba's compiler is switched off (``NUMBA_DISABLE_JIT=1``): readable forms run then.

    Imports numba.
    """
    import numba

    return bool(numba.config.DISABLE_JIT)


def njit(*function: Callable[..., Any], **options: Any) -> Any:
    """numba's ``njit`` for all functions of this library: long compilations are announced.

    Imports numba.
    """
    import numba

    announce_compiling()
    if not function:
        return lambda later: njit(later, **options)
    compiled = numba.njit(*function, **options)
    cache: Any = getattr(compiled, "_cache", None)
    if hasattr(cache, "_cache_file"):
        from .compile_cache import check_files

        check_files(cache, _helpers_stamp())
    return compiled


@lru_cache(maxsize=1)
def _helpers_stamp() -> str:
    """Dates and sizes of the files whose functions are part of compiled code elsewhere.

    Code that was kept on disk before one of them changed is compiled anew, not read: it would give
    the results of the old one, or name what is gone.
    """
    stats = []
    for folder in _HELPERS:
        with os.scandir(os.path.join(_PACKAGE, *folder)) as files:
            stats += [(f.name, f.stat()) for f in files if f.name.endswith(".py")]
    return " ".join(f"{name}:{int(stat.st_mtime)}:{stat.st_size}" for name, stat in sorted(stats))


def python_fallback(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make a numba intrinsic of a definition; uncompiled code calls `function` in its place."""

    def choose(definition: Callable[..., Any]) -> Any:
        if interpreted():
            return function
        from numba.extending import intrinsic

        return intrinsic(definition)

    return choose


def provide_cache() -> None:
    """Give numba a folder of this process where it would find none that it can write to.

    numba keeps compiled code beside its source, or below the user's home, and fails if it can write
    to neither. The folder is temporary: everything is compiled anew in the next process, which is
    said in one line.
    """
    folders = (os.path.join(_PACKAGE, "__pycache__"), _user_cache())
    if os.environ.get(VARIABLE) or any(_writable(place) for place in folders):
        return
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="kernelmaps-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = folder  # read when numba is imported, also by processes that we start
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.config.CACHE_DIR = folder
    print(
        "kernelmaps: neither the package nor the home folder can be written to, so compiled code "
        f"is not kept for the next process. Set {VARIABLE} to a folder that can.",
        file=sys.stderr,
    )


def _user_cache() -> str:
    """numba's folder below the user's home."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/numba")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "numba")


def _writable(folder: str) -> bool:
    """Whether files can be made in a folder, which may have to be made first."""
    while not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return os.access(folder, os.W_OK | os.X_OK)


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
