"""The first fit of a process compiles few functions, each for one kind of arguments."""

import subprocess
import sys
from pathlib import Path

import pytest

FIT = """
import sys
import numpy as np
import kernelmaps as km

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (1000, 4))
y = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=1000)
km.AdditiveRegressor(interactions=1 if "pairs" in sys.argv else None).fit(X, y)
"""


def compiled_variants(folder: Path, *options: str) -> list[str]:
    """Functions that a fit keeps on disk, once for each kind of arguments."""
    subprocess.run(
        [sys.executable, "-c", FIT, *options],
        env={"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    return sorted(path.name.split("-")[0] for path in folder.rglob("*.nbc"))


@pytest.mark.parametrize("options", [(), ("pairs",)], ids=["columns", "pairs"])
def test_a_first_fit_compiles_few_functions(options, tmp_path):
    # Compiling takes nearly all of its time, a fifth to a second for each function.
    columns = ["_loops.eliminate", "_pair_loops.add_codes"]
    pairs = ["_pair_loops.add_pairs", "_pair_loops.add_rows", "_pair_loops.gather_codes"]
    allowed = [*columns, *(pairs if options else [])]
    variants = compiled_variants(tmp_path, *options)
    assert set(columns) <= set(variants) <= set(allowed)
    assert len(variants) == len(set(variants))
