"""What the machine itself can do, measured in the same run as everything else.

A ratio against a peer says who is faster; only the machine's own limits say how much is left.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from kernelmaps._util.threads import available_threads

PLAIN = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""Environment that holds numba to what every processor of the kind has: 128-bit vectors."""


def is_plain() -> bool:
    """Whether this process is held to plain instructions."""
    return all(os.environ.get(name) == value for name, value in PLAIN.items())


def is_arm() -> bool:
    """Whether the processor is an ARM one: its vectors have 128 bits, its results a folder."""
    return platform.machine().lower() in ("aarch64", "arm64")


def held_to_fewer_threads() -> list[str]:
    """Variables that give the libraries of the peers fewer threads than ours."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    given = {name: os.environ.get(name, "") for name in names}
    return [n for n, v in given.items() if v.isdecimal() and int(v) < available_threads()]


def best_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Least wall time of `run` over some repeats: everything but the least is disturbance."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def _in_threads(work: Callable[[slice], object], length: int, n_threads: int) -> None:
    """Run `work` on equal parts of range(length); NumPy drops the GIL in copies and fills."""
    edges = np.linspace(0, length, n_threads + 1).astype(int)
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda k: work(slice(edges[k], edges[k + 1])), range(n_threads)))


def limits(megabytes: int = 256) -> dict[str, float]:
    """Measure memory bandwidths (bytes/s) and matrix product rates (flop/s), all threads.

    ``copy`` counts bytes read plus bytes written, ``write`` fills memory that is already there,
    and ``fresh_write`` allocates it first, as a transform with a new output must: the operating
    system then zeroes every page once more.
    """
    n_threads = available_threads()
    length = megabytes * 2**20 // 8
    source, target = np.ones(length), np.ones(length)

    def copy(part: slice) -> None:
        target[part] = source[part]

    def write(array: np.ndarray) -> None:
        # The C library's own fill: it streams past the caches, as fast as anything can write.
        def fill(part: slice) -> None:
            size = 8 * int(part.stop - part.start)
            ctypes.memset(array.ctypes.data + 8 * int(part.start), 1, size)

        _in_threads(fill, length, n_threads)

    result = {
        "copy": 16 * length / best_seconds(lambda: _in_threads(copy, length, n_threads)),
        "write": 8 * length / best_seconds(lambda: write(target)),
        "fresh_write": 8 * length / best_seconds(lambda: write(np.empty(length))),
    }
    for name, dtype in (("sgemm", np.float32), ("dgemm", np.float64)):
        n = 2000
        a, out = np.ones((n, n), dtype), np.empty((n, n), dtype)
        result[name] = 2 * n**3 / best_seconds(lambda a=a, out=out: np.matmul(a, a, out=out))
    return result


def description() -> dict[str, str | int | float]:
    """Kind of machine, its load, versions: enough to judge figures, nothing that names it."""
    import numba
    import scipy
    import sklearn

    import kernelmaps

    return {
        "processor": _processor(),
        "threads": available_threads(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "kernelmaps": kernelmaps.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    from llvmlite.binding import get_host_cpu_name  # ARM's kernels give numbers, no names

    return f"{get_host_cpu_name()} ({platform.machine()})"
