"""Integers instead of φ(X): where each value falls in a map's table."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from ..threads import limit_threads
from .apply import note_path, output_dtype
from .compile import stored_table
from .reference import spec_of, table_of
from .spec import Spec
from .table import AFFINE, CODE, Table

__all__ = ["code_dtype", "code_spec", "encode", "fraction_bits"]

_PIECE = 2048  # values of CSR rows that one thread takes at a time


def fraction_bits(table: Table) -> int:
    """Bits of a code that say where in its bin a value lies: 0 for look-ups, 8 up to 255 bins."""
    if table.degree == 0:
        return 0
    return 8 if table.bins.max() < 256 else 16


def code_dtype(table: Table) -> np.dtype:
    """The smallest unsigned integers that hold all codes of a table."""
    # An interpolating table has one more position than bins: the right end of the last.
    last = int(table.bins.max()) - (table.degree == 0)
    return np.min_scalar_type(last << fraction_bits(table))


def encode(spec: Spec, X: Any, *, n_jobs: int | None = None) -> Any:
    """Codes of checked rows: bins, or positions b + u in units of 2^−fraction_bits.

    Parameters
    ----------
    spec : Spec
        Of the family ``piecewise``.
    X : ndarray or CSR matrix
        Checked rows.
    n_jobs : int, optional
        Threads; None means all that are available.

    Returns
    -------
    ndarray or CSR matrix of unsigned integers
        CSR only if X is, and then with the codes of the stored values.
    """
    from . import _encode_loops

    # The precision of transform, so that both put a value into the same bin.
    dtype = output_dtype(X.dtype)
    table = stored_table(spec, dtype)
    bits, codes = fraction_bits(table), code_dtype(table)
    with limit_threads(n_jobs, blas=False) as n_threads:
        if sparse.issparse(X):
            note_path("encode:csr")
            data = np.empty(len(X.data), codes)
            values = X.data if X.dtype.kind == "u" else X.data.astype(dtype, copy=False)
            arguments = (*table.arguments(), bits, _PIECE, data)
            _encode_loops.encode_stored(values, X.indices, *arguments)
            return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape, copy=False)
        note_path("encode:dense")
        X = X if X.dtype.kind == "u" else np.ascontiguousarray(X, dtype=dtype)
        out = np.empty(X.shape, codes)
        _encode_loops.encode_dense(X, *table.arguments(), bits, n_threads, out)
        return out


@lru_cache(maxsize=16)
def code_spec(spec: Spec) -> Spec:
    """The same map as a function of codes: φ(x) = code_spec(spec) applied to encode(spec, x).

    A look-up's code is the bin itself; an interpolating map's code is its position in fixed point,
    which an affine binning turns back into bin and u.
    """
    table = table_of(spec)
    unbounded = np.full(len(table.lo), np.inf)
    binning = CODE if table.degree == 0 else AFFINE
    return spec_of(
        replace(
            table,
            binning=binning,
            lo=np.zeros(len(table.lo)),
            scale=np.full(len(table.lo), 2.0 ** -fraction_bits(table)),
            low=-unbounded,
            high=unbounded,
            edges=np.zeros(0),
            edge_start=np.zeros_like(table.edge_start),
            zero=bool(table.zero and not zero_codes(spec).any()),
        )
    )


def zero_codes(spec: Spec) -> np.ndarray:
    """The code of x = 0 for each feature."""
    return encode(spec, np.zeros((1, table_of(spec).n_features)), n_jobs=1)[0]
