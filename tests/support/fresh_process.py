"""Code in a process of its own, which has not imported the library yet.

What the library imports takes two seconds in a new process. Where a process can be forked, that of
the tests is, and forgets the library, but not the packages below it.
"""

import atexit
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from typing import NamedTuple, TextIO

import sklearn.base  # noqa: F401  imported here, not in every process


class Ended(NamedTuple):
    """How a process ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def run(code: str, *, fork: bool = True) -> Ended:
    """Run `code` in a process in which nothing of the library is imported.

    Code that uses OpenMP (scikit-learn's KMeans) must not be forked: threads of the parent that it
    waits for do not exist in the child.
    """
    if not fork or sys.platform != "linux":  # elsewhere system libraries forbid it
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return Ended(done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent stay there
            child = os.fork()
        if child == 0:
            _end_with(code, out, err)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0), err.seek(0)
        return Ended(status, out.read(), err.read())


def _end_with(code: str, out: TextIO, err: TextIO) -> None:
    """Run `code` and end this process, which was forked from one that tests."""
    status = 1
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = out, err
        atexit._clear()  # what is to be done at the end of the tests is their business
        _forget()
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
        atexit._run_exitfuncs()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forget() -> None:
    """Import the library anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "kernelmaps"]:
        del sys.modules[name]
