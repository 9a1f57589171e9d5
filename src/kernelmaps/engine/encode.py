"""Encoding of rows: the bin of each value instead of φ(X)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._util.compiling import is_interpreted, make_read_only
from .._util.devices import namespace_of
from .._util.threads import run_in_threads
from . import gpu
from .outputs import note_path, output_dtype
from .piecewise import spec_of, stored_table, table_of
from .reference import positions, real_rows
from .spec import Spec, check_width
from .table import AFFINE, CODE, EDGES, Table
from .table.layout import TOP, code_bins

_GRAIN = 2**15  # values that are worth a thread
_MAX_READABLE = 2**16  # values up to which the readable form is faster than loading a loop


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


def encode(spec: Spec, X: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
    """Codes of rows: bins, or positions b + u in units of 2^−fraction_bits.

    Parameters
    ----------
    spec : Spec
        Of the family ``piecewise``.
    X : ndarray
        Rows. Finite: for rows that are not known to be, there is `encode_within`.
    n_jobs : int, optional
        Threads; None means all that are available.

    Returns
    -------
    ndarray of unsigned integers
        The codes.
    """
    return encode_within(spec, X, -np.inf, np.inf, n_jobs=n_jobs)[0]


def encode_within(
    spec: Spec,
    X: Any,
    lower: Any,
    upper: Any,
    *,
    n_jobs: int | None = None,
) -> tuple[Any, bool]:
    """Codes of dense rows, and whether all values were in [lower, upper] of their features.

    NaN is in no range, so that rows need no other look than this; their codes mean nothing then.
    Rows of other array libraries have theirs on their own device.
    """
    check_width(spec, X.shape[1])
    if not isinstance(X, np.ndarray):
        return _encode_array_api(spec, X, lower, upper)
    look_up = spec.numbers["binning"] == EDGES and spec.numbers["degree"] == 0
    if is_interpreted() or (look_up and X.size <= _MAX_READABLE):
        # Bins are found by comparisons, which are exact in both forms.
        rows = X.astype(output_dtype(X.dtype), copy=False)
        codes, inside = _encode_by_formula(spec, rows, lower, upper)
        return codes.astype(code_dtype(table_of(spec))), inside
    note_path("encode:dense")
    # The precision of transform, so that both put a value into the same bin.
    table = stored_table(spec, output_dtype(X.dtype))
    out = np.empty(X.shape, code_dtype(table))
    return out, encode_into(table, X, (lower, upper), fraction_bits(table), out, n_jobs)


def encode_into(
    table: Table, X: np.ndarray, ends: tuple, bits: int, out: np.ndarray, n_jobs: int | None
) -> bool:
    """Positions of dense rows in bins, in units of 2^−bits; whether all were between the ends."""
    from .table.encode import TILE, encode_dense
    from .table.locate import locations_for

    dtype, d = output_dtype(X.dtype), X.shape[1]
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype.kind == "u" else dtype)
    bins, encoding = code_bins(table), _encoding(table, ends, d, bits)
    x, codes = make_read_only(X.reshape(-1)), out.reshape(-1)
    inside = run_in_threads(
        lambda begin, end: encode_dense(bins, encoding, x, locations_for(TILE), begin, end, codes),
        X.shape[0],
        n_jobs,
        max(1, _GRAIN // max(1, d)),
    )
    return all(inside)


def _encode_by_formula(spec: Spec, X: Any, lower: Any, upper: Any) -> tuple[Any, bool]:
    """Codes as numbers, and whether all values were in range, for floats of any library."""
    note_path("encode:reference")
    xp, table = namespace_of(X), stored_table(spec, np.dtype(np.float64))
    put = partial(xp.asarray, dtype=X.dtype, device=getattr(X, "device", None))
    low, high = (put(np.array(end)) for end in (lower, upper))
    without_nan = xp.where(xp.isnan(X), xp.zeros_like(X), X)
    bins = code_bins(table)
    codes, u = positions(bins, xp.astype(without_nan, xp.float64), xp)
    if table.degree > 0:
        last = xp.asarray(bins.integers[TOP] + 1.0, device=getattr(X, "device", None))
        t = xp.minimum(xp.maximum(xp.astype(codes, xp.float64) + u, 0 * last), last)
        codes = xp.floor(t * 2.0 ** fraction_bits(table) + 0.5)
    return codes, bool(xp.all((low <= X) & (high >= X)))


def _encode_array_api(spec: Spec, X: Any, lower: Any, upper: Any) -> tuple[Any, bool]:
    """Codes of another library's rows: by the kernel on a GPU, else by the readable form."""
    xp = namespace_of(X)
    X = real_rows(X, xp)
    dtype = np.dtype(np.float64 if X.dtype == xp.float64 else np.float32)
    table = stored_table(spec, dtype)
    if not gpu.usable_for(X):
        codes, inside = _encode_by_formula(spec, X, lower, upper)
        return xp.astype(codes, getattr(xp, code_dtype(table).name)), inside
    note_path("encode:gpu")
    encoding = _encoding(table, (lower, upper), X.shape[1])
    return gpu.encode(table, encoding.ends, encoding.unit, X, code_dtype(table))


def _encoding(table: Table, ends: Any, d: int, bits: int | None = None) -> Any:
    """How rows are encoded: with the fraction of the table's own codes, or another one."""
    from .table.encode import Encoding

    bits = fraction_bits(table) if bits is None else bits
    # Rounded as the rows are.
    ends = np.stack([np.broadcast_to(end, d).astype(table.coef.dtype) for end in ends])
    return Encoding(2.0**bits, ends.astype(np.float64))


@lru_cache(maxsize=16)
def code_spec(spec: Spec) -> Spec:
    """Return the same map as a function of codes: φ(x) = code_spec(spec) of encode(spec, x).

    A look-up's code is the bin itself; an interpolating map's code is its position in fixed point,
    which an affine binning turns back into bin and u.

    Parameters
    ----------
    spec : Spec
        A map that stores a table, as anchors do.

    Returns
    -------
    Spec
        The map of codes.
    """
    table = table_of(spec)
    unbounded = np.full(len(table.origin), np.inf)
    binning = CODE if table.degree == 0 else AFFINE
    return spec_of(
        replace(
            table,
            binning=binning,
            origin=np.zeros(len(table.origin)),
            resolution=np.full(len(table.origin), 2.0 ** -fraction_bits(table)),
            clip_low=-unbounded,
            clip_high=unbounded,
            edges=np.zeros(0),
            edge_start=np.zeros_like(table.edge_start),
            zero_at_zero=False,  # of the code 0
        )
    )
