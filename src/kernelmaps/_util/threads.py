"""Number of threads of a routine, and how Ctrl-C ends them.

Python handles signals in the main thread, between two of its instructions: not while that thread
is in compiled code. Long work is therefore done by other threads, while the main one waits for it
and can leave at any time.
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from .arguments import is_number

Result = TypeVar("Result")
_local = threading.local()  # `stop`: the event that ends the work of this thread
_PIECES = 32  # calls into which one thread divides long work: signals are handled in between


class cached_property(functools.cached_property[Result]):  # noqa: TID251
    """`functools.cached_property` without the lock that all instances share in Python 3.11.

    A process that is forked while another thread computes a value would wait for it forever. Here,
    threads that ask at once compute it twice, and all get the value that was stored first.
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.attrname, self.func(instance))


def available_threads() -> int:
    """Return the number of threads that this process may sensibly use.

    That is the number of processors granted to it (affinity and container quota), or fewer where
    ``NUMBA_NUM_THREADS`` says so. joblib sets that variable in its worker processes, so that
    nested parallelism does not multiply.
    """
    import joblib

    granted = joblib.cpu_count()
    stated = os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, min(granted, int(stated)) if stated.isdecimal() else granted)


def resolve_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's `n_jobs` into a number of threads.

    Parameters
    ----------
    n_jobs : int or None
        A positive number asks for that many threads (never more than are available), −1 for all,
        −2 for all but one, and so on. None takes the number of a surrounding
        ``joblib.parallel_config(n_jobs=k)`` with k other than 1 (1 is also what joblib reports
        outside of any), one inside a joblib worker (its siblings have the other processors), and
        otherwise all: threads share memory, unlike the processes for which scikit-learn's None
        means one.

    Returns
    -------
    int
        At least 1 and at most `available_threads()`.
    """
    if n_jobs is not None and not is_number(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: use 1 for one thread, -1 for all, or None.")
    if n_jobs == 1:
        return 1  # whatever there are: to count them takes longer than short work
    available = available_threads()
    if n_jobs is None:
        return _inherited_threads(available)
    requested = int(n_jobs) if n_jobs > 0 else available + 1 + int(n_jobs)
    return max(1, min(requested, available))


def _inherited_threads(available: int) -> int:
    """Number of threads for n_jobs=None, from joblib's surroundings."""
    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, n_jobs = get_active_backend()
    if n_jobs not in (None, 1):
        return resolve_threads(n_jobs)
    in_worker = isinstance(backend, ThreadingBackend) and backend.nesting_level
    return 1 if in_worker else available


def rows_per_thread(columns: int) -> int:
    """Rows whose work outweighs handing them to a thread (some 20 µs)."""
    return max(1, 20_000 // max(1, columns))


def map_in_threads(
    function: Callable[[Any], Result], items: Sequence[Any], n_jobs: int | None
) -> list[Result]:
    """``[function(item) for item in items]``, several at a time; see `run_in_threads`."""

    def work(begin: int, end: int) -> list[Result]:
        return [function(item) for item in items[begin:end]]

    return [result for results in run_in_threads(work, len(items), n_jobs) for result in results]


def run_in_threads(
    work: Callable[[int, int], Result], n: int, n_jobs: int | None, grain: int = 1, least: int = 1
) -> list[Result]:
    """Call ``work(start, stop)`` on consecutive parts of 0..n, several at a time.

    The work must release the interpreter's lock, as compiled loops do. Threads of Python rather
    than of the compiler's runtime: the loops compile in half the time, may be called from any
    thread, and survive a fork.

    Parameters
    ----------
    work : callable
        Handles items start ≤ i < stop; parts must not depend on one another.
    n : int
        Number of items.
    n_jobs : int or None
        As in `resolve_threads`.
    grain : int
        Items below which a part is not worth a thread.
    least : int
        Items that a part should have where there are enough, because each part costs something.

    Returns
    -------
    list
        What `work` returned, in order.
    """
    parts = max(1, n // max(1, grain))
    # How many threads there are is not asked for short work, which takes less time than the answer.
    n_threads = 1 if parts == 1 and n_jobs is None else min(resolve_threads(n_jobs), parts)
    if n_threads == 1:
        parts = max(1, min(_PIECES, n // max(grain, least, _PIECES**2)))
    else:  # more parts than threads: some rows cost more than others
        parts = max(n_threads, min(4 * n_threads, n // least))
    ends = [n * k // parts for k in range(parts + 1)]
    if n_threads == 1:
        return [work(*bound) for bound in pairwise(ends)]
    return list(_pool(os.getpid(), n_threads).map(work, ends, ends[1:]))


def run_interruptibly(
    work: Callable[[Any], Result], items: Sequence[Any], n_threads: int
) -> list[Result]:
    """``work(item)`` for each item, in threads of their own; Ctrl-C ends it at once.

    The interrupted threads are told to stop, which work that goes on for long has to look for by
    `check_stop`, and are not waited for. So are those next to one that failed.
    """
    if len(items) == 1:
        return [interruptible(work, items[0])]
    stop = getattr(_local, "stop", None) or threading.Event()

    def run(item: Any) -> Result:
        _local.stop = stop
        return work(item)

    pool = ThreadPoolExecutor(max(1, min(n_threads, len(items))), "kernelmaps-work")
    try:
        return list(pool.map(run, items))
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def interruptible(function: Callable[..., Result], *arguments: Any) -> Result:
    """``function(*arguments)``, from which Ctrl-C returns at once.

    Foreign compiled code (a solver of scikit-learn) cannot be stopped: it is left alone in a thread
    that does not keep the process alive, and what it returns is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    import sklearn
    from joblib import parallel_config
    from joblib.parallel import get_active_backend

    result: Future[Result] = Future()
    stop, context = threading.Event(), contextvars.copy_context()
    # What these libraries keep per thread.
    settings, (backend, n_jobs) = sklearn.get_config(), get_active_backend()

    def run() -> None:
        _local.stop = stop
        try:
            with sklearn.config_context(**settings), parallel_config(backend, n_jobs=n_jobs):
                result.set_result(context.run(function, *arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="kernelmaps-interruptible", daemon=True).start()
    try:
        return result.result()
    except BaseException:
        stop.set()
        raise


class Stopped(Exception):
    """Raised in a thread whose result nobody waits for any more."""


def check_stop() -> None:
    """End this thread's work if the call that waits for it was interrupted."""
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


def ordered_map(
    function: Callable[[Any], Result], items: Iterable[Any], n_threads: int
) -> Iterator[Result]:
    """Apply `function` in threads of one BLAS thread each; yield results in order.

    At most ``n_threads + 1`` items are alive: one is read while the others are worked on.
    """
    pending: deque[Any] = deque()
    pool = ThreadPoolExecutor(n_threads, "kernelmaps-fold")
    with limit_blas(1):
        try:
            for item in items:
                pending.append(pool.submit(_run_as_worker, function, item))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for a block


def _run_as_worker(function: Callable[[Any], Result], item: Any) -> Result:
    """Run as joblib's workers do: a map's own n_jobs=None then means one thread."""
    import joblib
    from joblib.parallel import ThreadingBackend

    with joblib.parallel_config(backend=ThreadingBackend(nesting_level=1), n_jobs=1):
        return function(item)


@lru_cache(maxsize=4)
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """Threads that stay; those of a parent process do not live on in its forks."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="kernelmaps")


def pools() -> Any:
    """Controller of the BLAS and OpenMP pools that are loaded (threadpoolctl)."""
    return _pools(len(sys.modules))


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    """Finding the pools takes milliseconds: do it again only when modules were imported since."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limits: list[int] = []
_before: list[tuple[Any, int]] = []
_limits_lock = Lock()


@contextmanager
def limit_blas(n_threads: int) -> Iterator[None]:
    """Let BLAS use no more than `n_threads` threads within a block.

    The setting belongs to the process. While several threads are in such blocks, the least of
    their limits holds, and the last to leave restores what there was before the first.
    """
    with _limits_lock:
        if not _limits:
            controllers = pools().select(user_api="blas").lib_controllers
            _before[:] = [(pool, pool.num_threads) for pool in controllers]
        _limits.append(n_threads)
        _hold_limits()
    try:
        yield
    finally:
        with _limits_lock:
            if n_threads in _limits:  # not so in a process that was forked meanwhile
                _limits.remove(n_threads)
            _hold_limits()


def _forget_limits() -> None:
    """In a forked process: threads that held limits, or the lock, are not there."""
    global _limits_lock
    _limits_lock = Lock()
    _limits.clear()
    _hold_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_limits)


def _hold_limits() -> None:
    for pool, before in _before:
        limit = min([before, *_limits])
        if pool.num_threads != limit:
            # threadpoolctl (3.8) lets one thread alone set the limit of a process, and silently
            # ignores others for as long as that one lives. Whose limit holds is settled here.
            getattr(pool, "_real_set_num_threads", pool.set_num_threads)(limit)


@contextmanager
def limit_threads(n_jobs: int | None = None) -> Iterator[int]:
    """Limit numba's loops, BLAS and OpenMP to `n_jobs` threads within a block.

    Parameters
    ----------
    n_jobs : int or None
        As in `resolve_threads`.

    Yields
    ------
    int
        The number of threads that holds within the block.
    """
    import numba

    n_threads = min(resolve_threads(n_jobs), numba.config.NUMBA_NUM_THREADS)
    before = numba.get_num_threads()
    # OpenMP's setting belongs to the thread.
    with limit_blas(n_threads), pools().limit(limits=n_threads, user_api="openmp"):
        numba.set_num_threads(n_threads)
        try:
            yield n_threads
        finally:
            numba.set_num_threads(before)


BLOCK_BYTES = 16 * 2**20
"""Bound on the temporaries of a call, in addition to input and output."""


def row_blocks(n: int, bytes_per_row: float, budget: int = BLOCK_BYTES) -> list[slice]:
    """Slices of 0..n whose temporaries stay within the budget (at least one row each)."""
    step = max(1, int(budget // max(1.0, bytes_per_row)))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def evenly_spaced(n: int, count: int) -> np.ndarray:
    """At most `most` of the positions 0 … n − 1, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, count)).astype(np.intp)


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, int(n) - 1).bit_length()


def mixed_bits(numbers: np.ndarray) -> np.ndarray:
    """Mix each whole number into 64 bits with the finaliser of SplitMix64.

    The result depends on the number alone, so that a choice made by it (a fold, a sample) is the
    same for any chunks, threads or workers, and rows that repeat with a period are chosen evenly.
    """
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
