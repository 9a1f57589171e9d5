"""Where nothing can be written, everything works, and one line says what that costs."""

import importlib.util

import fresh_process
import numba
import pytest
from numba.core import event

from kernelmaps._util import compiling

CODE = """
import os
import numba
import numba.core.caching as caching

os.environ.pop("NUMBA_CACHE_DIR", None)
numba.config.CACHE_DIR = ""

def refuse(self):
    raise OSError("read-only")

for name, value in vars(caching).items():  # spelled with or without an underscore
    if name.endswith(("InTreeCacheLocator", "UserWideCacheLocator")):
        value.ensure_cache_path = refuse
access = os.access
os.access = lambda path, mode, **how: not mode & os.W_OK and access(path, mode, **how)
import kernelmaps.kernels._loops  # numba looks for a folder when a function is decorated
import numpy as np
from kernelmaps.design._kmeans import optimal_splits

assert optimal_splits(np.arange(4.0), np.ones(4), 2, False)[0].tolist() == [0, 2]
"""


def test_an_unwritable_package_and_home_still_work():
    done = fresh_process.run(CODE)
    assert done.status == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("kernelmaps:")]
    assert len(said) == 1
    assert "Set NUMBA_CACHE_DIR" in said[0]


@pytest.fixture
def function(tmp_path, capfd):
    """Imports a compiled function anew and calls it: how often it was compiled, what is said."""
    source = tmp_path / "kept.py"
    source.write_text(
        "from kernelmaps._util.compiling import loop\n\n\n"
        "@loop()\ndef twice(x):\n    return 2 * x\n"
    )

    def load():
        spec = importlib.util.spec_from_file_location("kept", source)
        module = importlib.util.module_from_spec(spec)
        compiling._report_files.cache_clear()
        with event.install_recorder("numba:compile") as recorded:
            spec.loader.exec_module(module)
            assert [module.twice(1.5), module.twice(2.5)] == [3, 5]
        return len(recorded.buffer) // 2, capfd.readouterr().err

    return load


def test_code_on_disk_is_read(function):
    assert [function()[0] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"text", b"cno_such_module\nname\n."])
def test_damaged_files_are_reported_and_do_without(function, tmp_path, suffix, content):
    function()
    for path in tmp_path.rglob(f"*.{suffix}"):
        path.write_bytes(content)
    compiled, said = function()
    assert compiled >= 1
    assert said.startswith("kernelmaps: compiled code on disk cannot be read or written (")
    assert said.count("\n") == 1


def test_threads_that_meet_a_damaged_file_at_once_both_do_without(monkeypatch):
    """The second once raised the error of the file, since the first had dealt with it."""
    calls = []

    def njit(*, cache=False, **_):
        def call(x):
            calls.append(x)
            assert len(calls) > 1 or twice(1) == 2  # another thread, meanwhile
            raise EOFError

        return lambda function: call if cache else function

    monkeypatch.setattr(numba, "njit", njit)

    @compiling.loop()
    def twice(x):
        return 2 * x

    assert twice(2) == 4
    assert calls == [2, 1]


def test_errors_that_are_not_of_files_are_raised(capfd):
    @compiling.loop()
    def wrong(x):
        return x.no_such_name

    with pytest.raises(Exception, match="no_such_name"):
        wrong(1.0)
    assert capfd.readouterr().err == ""


def test_static_numbers_choose_what_is_compiled():
    @numba.njit
    def choose(kind, x):
        if len(kind) == 2:
            return x.no_such_name
        return x + len(kind)

    assert choose(compiling.static(3), 1) == 4
    assert choose(compiling.static(False), 1) == 1
    with pytest.raises(Exception, match="no_such_name"):
        choose(compiling.static(2), 1)
