r"""Prediction by tables of per-feature polynomials: its cost does not depend on the basis.

:func:`.terms.terms_table` turns a trained model into one table of local polynomials; here it gets
the layout of the loops, for the kind of rows at hand: float64 polynomials for float64 rows,
float32 for all others, and for integers, where these fit the caches, the values themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._util.compiling import interpreted
from ..._util.threads import in_threads
from ...engine.outputs import check_loop
from ...engine.reference import at_codes
from ...engine.table import CODE, Table
from ...engine.table.dot import (
    BLOCK,
    SummedTable,
    dot_dense,
    dot_stored,
    sum_workspace,
    summed_table,
)
from ...engine.table.locate import stored_rows

_CODE_BYTES = 2**21  # of values at every code of an integer type: a second-level cache
_MOST_BYTES = 2**25  # of polynomials: beyond, the band of the basis is read instead
_GRAIN = 2**17  # values times outputs that are worth a thread


@dataclass(frozen=True)
class Terms:
    """A model's table, and the same as the loops take it."""

    table: SummedTable
    for_loops: Any


def tabulated_terms(table: Table, rows: np.dtype, dtype: np.dtype) -> Terms | None:
    """A model's table for rows of one kind; None if its band is to be read instead.

    That is where it is cheaper, and where nothing is compiled: the loop over bands is plain.
    """
    if interpreted():
        return None
    outputs, d = int(table.width[0]), table.n_features
    codes = 1 << 8 * rows.itemsize
    if rows.kind == "u" and table.binning != CODE and codes * d * outputs * 4 <= _CODE_BYTES:
        table = at_codes(table, codes, np.dtype(np.float64))
    elif table.coef.size * dtype.itemsize > _MOST_BYTES:
        return None
    summed = summed_table(table, dtype, centred=True)
    return Terms(summed, summed.for_loops())


def sums(terms: Terms, X: Any, out: np.ndarray, n_jobs: int | None) -> float:
    """Add the outputs of all rows to `out`; how far values were from the domain, in all.

    Zero if none was outside; not finite if one is not finite.
    """
    check_loop(X, terms.table.features, out, (X.shape[0], terms.table.outputs))
    grain = max(1, _GRAIN // (X.shape[1] * out.shape[1]))
    flat, stored = out.reshape(-1), sparse.issparse(X)
    rows = stored_rows(X.data, X.indices, X.indptr) if stored else X.reshape(-1)

    def work(begin: int, end: int) -> float:
        workspace, loop = (
            sum_workspace(terms.table, end - begin),
            dot_stored if stored else dot_dense,
        )
        return float(loop(terms.for_loops, rows, workspace, begin, end, flat))

    # Every part of dense rows reads the whole table once for each of its blocks.
    return sum(in_threads(work, X.shape[0], n_jobs, grain, 1 if stored else BLOCK))
