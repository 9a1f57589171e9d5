"""The demonstration as a command: nothing is compiled yet when it is somebody's first."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from .._util.compiling import provide_cache
from .._util.threads import available_threads

_JOINT = "from kernelmaps.evaluation.demo import compile_maps; compile_maps(joint=True)"


def demonstrate(budget: float | None = None) -> Any:
    """Compare every map on the bundled digits.

    The compiler uses one processor. Where there are two, a second process compiles one half of the
    loops, before anything is measured. If it fails, they are compiled here.

    Parameters
    ----------
    budget : float, optional
        Seconds of measuring; by default all methods finish.

    Returns
    -------
    Comparison
    """
    other = _other_process() if available_threads() > 1 else None
    from ..evaluation import demo  # takes seconds to import, as in the other process

    if other is not None:
        try:
            demo.compile_maps(joint=False)
            other.wait()
        finally:
            other.kill()
    return demo.run_demo(budget=budget)


def _other_process() -> subprocess.Popen[bytes] | None:
    """A process that compiles the joint maps, or None where there cannot be one."""
    provide_cache()  # a folder that both processes use
    silent = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _JOINT], stdin=silent, stdout=silent, stderr=silent
        )
    except OSError:
        return None
