"""The first fit of a process compiles few functions, each for one kind of arguments."""

from pathlib import Path

from fresh_process import run

# Lists what is on disk after a fit of columns, and after one of a pair besides.
FITS = """
from pathlib import Path
import numba
numba.config.CACHE_DIR = {folder!r}  # before the loops of the library are made
import numpy as np
import kernelmaps as km

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (1000, 4))
y = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=1000)
for interactions in (None, 1):
    km.AdditiveRegressor(interactions=interactions).fit(X, y)
    print(*(path.name.split("-")[0] for path in Path({folder!r}).rglob("*.nbc")))
"""


def compiled_variants(folder: Path) -> list[list[str]]:
    """Functions that the fits keep on disk, once for each kind of arguments."""
    done = run(FITS.format(folder=str(folder)))
    assert done.status == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_first_fit_compiles_few_functions(tmp_path):
    # Compiling takes nearly all of its time, a fifth to a second for each function.
    columns = {"_pair_loops.add_codes"}
    pairs = {"_pair_loops.add_pairs", "_pair_loops.add_rows"}
    of_columns, of_both = compiled_variants(tmp_path)
    assert sorted(of_columns) == sorted(columns)
    assert columns <= set(of_both) <= columns | pairs
    assert len(of_both) == len(set(of_both))
