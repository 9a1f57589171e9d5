"""How code is compiled by numba: whether at all, from which options, and where it is kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

HELPER = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of compiled functions that compiled code alone calls: the way in for Python would take as
long to compile as the function itself."""
# Options of helpers that are inlined into the loops that call them, and allocate nothing. They are
# called with np.int64(0), not 0: a literal is a type of its own to numba, and the helper would be
# compiled once more.
INNER = HELPER | {"_nrt": False, "forceinline": True}


def static(value: int) -> tuple[None, ...]:
    """A whole number that the compiler knows: a tuple of that length.

    numba compiles a function once for each combination of argument types, and the length of a tuple
    is part of its type. ``if len(kind) == 2`` of an argument `kind` is decided before types are
    inferred: only the branch that is taken is compiled. (numba's own literal arguments are not kept
    on disk.)
    """
    return (None,) * int(value)


def make_read_only(array: Any) -> Any:
    """A view of rows as loops take them: read-only, whether the rows are or not.

    The two are different types to numba. Rows of a pandas table, or of a file that is mapped into
    memory, would have loops of their own, which take a second or two to compile.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def is_interpreted() -> bool:
    """Whether numba's compiler is switched off (``NUMBA_DISABLE_JIT=1``): readable forms run then.

    Imports numba.
    """
    import numba

    return bool(numba.config.DISABLE_JIT)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba's ``njit`` for functions that compiled code calls. Imports numba."""
    import numba

    return numba.njit(**options)


def loop(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for Python to call, without the GIL; the code is kept on disk.

    numba compiles it anew if its file has changed. A change in another file, of a helper that is
    part of the code, is not noticed: `make clean`. An installed version has files of its own.

    If numba cannot read or write what is kept (damaged files, those of another user, no folder that
    can be written to), the function is compiled without it, and one line says so. Imports numba.
    """
    import numba

    _fork_between_compilations()
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if is_interpreted():
            return function
        fresh = numba.njit(**options)(function)
        try:
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # it can write neither next to the source nor below the home
            compiled = fresh
            _report_files("there is no folder that can be written to")

        @wraps(function)
        def call(*args: Any) -> Any:
            nonlocal compiled
            called = compiled  # another thread may replace it
            try:
                return called(*args)
            except Exception as error:  # loops raise nothing, but a damaged pickle anything
                if called is fresh:
                    raise
                compiled = fresh
                result = fresh(*args)  # raises what was no error of the files
                _report_files(f"{type(error).__name__}: {error}")
                return result

        return call

    return decorate


@cache
def _fork_between_compilations() -> None:
    """Let a fork wait until no thread compiles: its child would wait for numba's lock forever."""
    import numba

    if hasattr(os, "register_at_fork"):
        lock = numba.core.compiler_lock.global_compiler_lock
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


@cache
def _report_files(error: str) -> None:
    print(
        f"kernelmaps: compiled code on disk cannot be read or written ({error}); it is compiled "
        "again in each process. Set NUMBA_CACHE_DIR to a folder that can be written to.",
        file=sys.stderr,
    )


def python_fallback(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make a numba intrinsic of a definition; uncompiled code calls `function` in its place."""

    def choose(definition: Callable[..., Any]) -> Any:
        if is_interpreted():
            return function
        from numba.extending import intrinsic

        return intrinsic(definition)

    return choose
