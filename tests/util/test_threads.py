"""n_jobs means here what it means in scikit-learn, within what the machine grants."""

import os
import subprocess
import sys
import threading

import joblib
import numba
import numpy as np
import pytest

from kernelmaps._util import threads
from kernelmaps._util.threads import (
    available_threads,
    limit_threads,
    resolve_threads,
    run_in_threads,
)


def run(code, **settings):
    """How a process of its own ends, which runs the code."""
    command, environment = [sys.executable, "-c", code], os.environ | settings
    return subprocess.run(command, timeout=300, check=False, env=environment).returncode


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 4)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(1, 1), (3, 3), (4, 4), (9, 4), (-1, 4), (-2, 3), (-9, 1), (None, 4)]
)
def test_resolve(n_jobs, expected):
    assert resolve_threads(n_jobs) == expected


@pytest.mark.usefixtures("four")
def test_none_follows_joblib():
    with joblib.parallel_config(n_jobs=3):
        assert resolve_threads(None) == 3
    call = joblib.delayed(resolve_threads)
    inside = joblib.Parallel(n_jobs=2, backend="threading")(call(None) for _ in range(2))
    assert inside == [1, 1]


def test_zero_has_no_meaning():
    with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
        resolve_threads(0)


@pytest.mark.parametrize("n_jobs", [1.5, "2", True, np.timedelta64(1)])
def test_not_an_integer(n_jobs):
    with pytest.raises(TypeError, match="n_jobs must be an integer or None"):
        resolve_threads(n_jobs)


def test_environment_lowers_the_number(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert available_threads() == 1


def test_limit_holds_inside_and_ends_even_by_an_interrupt():
    from threadpoolctl import threadpool_info

    before = numba.get_num_threads()
    pools = {p["filepath"]: p["num_threads"] for p in threadpool_info()}
    try:
        with limit_threads(1) as n_threads:
            assert n_threads == numba.get_num_threads() == 1
            assert {p["num_threads"] for p in threadpool_info()} <= {1}
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert numba.get_num_threads() == before
    assert {p["filepath"]: p["num_threads"] for p in threadpool_info()} == pools


def test_in_threads_covers_all_items_once_and_in_order():
    seen = np.zeros(1001, int)

    def work(begin, end):
        seen[begin:end] += 1
        return begin

    begins = run_in_threads(work, 1001, -1)
    assert begins == sorted(begins)
    np.testing.assert_array_equal(seen, 1)


@pytest.mark.usefixtures("four")
def test_in_threads_makes_no_parts_smaller_than_asked_for_unless_threads_would_rest():
    def size(begin, end):
        return end - begin

    assert run_in_threads(size, 800, 2) == [100] * 8  # four for each thread
    assert run_in_threads(size, 800, 2, least=200) == [200] * 4
    assert run_in_threads(size, 800, 2, least=500) == [400] * 2
    assert run_in_threads(size, 8000, 1, least=4000) == [4000] * 2


def test_in_threads_keeps_small_work_on_the_calling_thread():
    names = run_in_threads(lambda begin, end: threading.current_thread(), 100, -1, grain=1000)
    assert names == [threading.current_thread()]
    assert run_in_threads(lambda begin, end: threading.current_thread(), 100, 1) == names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_threads_works_again_after_a_fork():
    """A forked child has none of its parent's threads: the pool must not wait for them."""
    script = (
        "import os, sys\n"
        "from kernelmaps._util.threads import run_in_threads\n"
        "run_in_threads(lambda b, e: e - b, 1000, -1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if sum(run_in_threads(lambda b, e: e - b, 1000, -1)) == 1000 else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert run(script) == 0


class FourThreads:
    """Stands for a BLAS: that of the tests has one thread, whatever is done to it."""

    num_threads = 4

    def set_num_threads(self, count):
        self.num_threads = count

    def select(self, **wanted):
        return self

    @property
    def lib_controllers(self):
        return [self]


def test_threads_that_limit_blas_at_once_leave_it_as_it_was(monkeypatch):
    blas, entered = FourThreads(), threading.Barrier(2)
    monkeypatch.setattr(threads, "pools", lambda: blas)
    monkeypatch.setattr(threads, "_limits", [])  # a test that failed may hold a limit
    monkeypatch.setattr(threads, "_before", [])

    def first():
        with threads.limit_blas(1):
            entered.wait()  # the other one comes in, and stays longer
            entered.wait()
        entered.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with threads.limit_blas(2):
        entered.wait()
        entered.wait()
        assert blas.num_threads == 2
        with threads.limit_blas(1):
            assert blas.num_threads == 1
        with threads.limit_blas(3):
            assert blas.num_threads == 2  # the least holds
    thread.join()
    assert blas.num_threads == 4


def test_any_thread_may_limit_blas():
    """threadpoolctl listens to the first thread that sets a limit, here the main one, alone."""
    script = (
        "import threading, numpy\n"
        "from kernelmaps._util.threads import limit_blas, pools\n"
        "seen = []\n"
        "def look():\n"
        "    with limit_blas(1):\n"
        "        found = pools().select(user_api='blas').lib_controllers\n"
        "        seen.extend(pool.num_threads for pool in found)\n"
        "look()\n"
        "thread = threading.Thread(target=look)\n"
        "thread.start()\n"
        "thread.join()\n"
        "assert len(seen) > 1 and set(seen) == {1}, seen\n"
    )
    threads_of_blas = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert run(script, **threads_of_blas) == 0


# A thread is at work while the process forks; the child ends with 0 if it is not disturbed.
FORK = """
import os, signal, threading, time
{imports}

inside, over = threading.Event(), threading.Event()
{before}
thread = threading.Thread(target=work)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)  # ends a child that waits
    os._exit(in_child())
status = os.waitpid(child, 0)[1]
over.set()
thread.join()
raise SystemExit(status != 0)
"""
FORKS = {
    # Of a thread that is not there, nothing would ever lift them.
    "limits": (
        """
import numpy
from threadpoolctl import threadpool_info
from kernelmaps._util.threads import limit_blas""",
        """
def counts():
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

before = counts()

def work():
    with limit_blas(1):
        inside.set()
        over.wait()

def in_child():
    with limit_blas(1):
        pass
    return counts() != before
""",
    ),
    # functools.cached_property of Python 3.11 would wait: one lock serves all instances.
    "values": (
        "from kernelmaps._util.threads import cached_property",
        """
class Fit:
    @cached_property
    def value(self):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            over.wait()
        return object()

fit = Fit()

def work():
    fit.value

def in_child():
    return Fit().value is None
""",
    ),
    # A child would wait forever for the lock of numba's compiler.
    "compiling": (
        "import numba\nimport kernelmaps.engine.table.dot  # has loops",
        """
lock = numba.core.compiler_lock.global_compiler_lock

def work():
    with lock:
        inside.set()
        time.sleep(0.5)

def in_child():
    with lock:
        return 0
""",
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("name", FORKS)
def test_a_fork_does_not_wait_for_another_thread(name):
    imports, before = FORKS[name]
    code = FORK.format(imports=imports, before=before)
    assert run(code, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2") == 0
