"""Where nothing can be written, everything works, and one line says what that costs."""

import importlib.util
import os

import fresh_process

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
print(os.environ["NUMBA_CACHE_DIR"])
"""


def test_an_unwritable_package_and_home_still_work():
    done = fresh_process.run(CODE)
    assert done.status == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("kernelmaps:")]
    assert len(said) == 1
    assert "Set NUMBA_CACHE_DIR" in said[0]
    folder = done.stdout.strip()
    assert "kernelmaps-numba-" in folder
    assert not os.path.exists(folder)  # gone with its process


def test_a_folder_that_is_given_or_writable_is_left_alone(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv(compiling.VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiling, "_writable", lambda folder: False)
    compiling.provide_cache()
    assert os.environ[compiling.VARIABLE] == str(tmp_path)
    monkeypatch.delenv(compiling.VARIABLE)
    monkeypatch.setattr(compiling, "_writable", lambda folder: "__pycache__" in folder)
    compiling.provide_cache()
    assert compiling.VARIABLE not in os.environ
    assert capsys.readouterr().err == ""


def test_writable_looks_at_the_nearest_folder_that_exists(tmp_path, monkeypatch):
    assert compiling._writable(str(tmp_path / "a" / "b"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not compiling._writable(str(tmp_path / "a"))


def test_code_kept_by_another_state_of_the_library_is_not_read(monkeypatch, tmp_path):
    source = tmp_path / "kept.py"
    source.write_text(
        "from kernelmaps._util.compiling import njit\n\n\n"
        "@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    )

    def read_from_disk():
        spec = importlib.util.spec_from_file_location("kept", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.twice(1.5) == 3
        return sum(module.twice.stats.cache_hits.values())

    assert [read_from_disk(), read_from_disk()] == [0, 1]
    monkeypatch.setattr(compiling, "_helpers_stamp", lambda: "a helper has changed")
    assert [read_from_disk(), read_from_disk()] == [0, 1]


def test_rules_of_losses_are_part_of_compiled_loops():
    """They stand in another file than the loops, whose code is kept on disk."""
    stamp = compiling._helpers_stamp.__wrapped__()
    assert {"losses.py", "locate.py", "polynomials.py"} <= {s.split(":")[0] for s in stamp.split()}
