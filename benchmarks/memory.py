"""Peak memory of one call, measured in a process of its own.

``python -m benchmarks.memory module:function`` calls the function, which prepares everything (data,
warm caches) and returns the call to be measured; its peak is what the process needs beyond what it
held before. The operating system's account sees every allocation, also those of compiled code,
which tracemalloc does not.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent


def resident_bytes() -> int:
    """Bytes of this process in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Most bytes of this process in memory since `reset_peak`."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Forget the peak so far (Linux: code 5 of clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measure(prepare: Callable[[], Callable[[], object]]) -> dict[str, int]:
    """Prepare, then run the call that came back; return bytes of its result and beyond it."""
    call = prepare()
    gc.collect()
    reset_peak()
    before = resident_bytes()
    result = call()
    peak = peak_bytes() - before
    # Memory that lay free before may serve the result: nothing is then taken beyond it.
    temporary = max(0, peak - n_bytes(result))
    return {"peak": peak, "output": n_bytes(result), "temporary": temporary}


def n_bytes(result: object) -> int:
    """Bytes of an array or a CSR matrix."""
    parts = [getattr(result, name, None) for name in ("data", "indices", "indptr")]
    if any(part is None for part in parts):
        return int(getattr(result, "nbytes", 0))
    return sum(int(part.nbytes) for part in parts)  # type: ignore[union-attr]


def in_subprocess(target: str) -> dict[str, int]:
    """Measure ``module:function`` in a fresh Python."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{target} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    print(json.dumps(measure(getattr(importlib.import_module(module), name))))
