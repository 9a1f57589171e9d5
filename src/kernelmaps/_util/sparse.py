"""Rows from outside: sparse matrices as ordinary arrays, and what is refused before any use.

SciPy does not look at the values of `indices` and `indptr` when a matrix is made, and compiled
loops, its own included, follow them without looking. One pass over the indices makes sure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np

from .arguments import refuse_masked
from .compiling import make_read_only
from .threads import row_blocks


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy.

    SciPy's module is not imported to find out: where it is not loaded, there is none.
    """
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))


def dense(X: Any) -> np.ndarray:
    """A matrix, sparse or not, as an ordinary array."""
    return X.toarray() if is_sparse(X) else np.asarray(X)


def find_not_finite(X: Any) -> tuple[int, int] | None:
    """Row and column of a value of an array or CSR matrix that is not finite; None without any."""
    if is_sparse(X):
        finite = np.isfinite(X.data)
        position = int(np.argmin(finite)) if not finite.all() else -1
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        return None if position < 0 else (row, int(X.indices[position]))
    for rows in row_blocks(len(X), X.shape[1]) if X.dtype.kind == "f" else ():
        finite = np.isfinite(X[rows])
        if not finite.all():
            row, column = np.unravel_index(np.argmin(finite), finite.shape)
            return rows.start + int(row), int(column)
    return None


def convert_for_loops(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Values, indices and row ends of CSR rows as compiled loops take them.

    Arrays with gaps between their numbers are copied. Indices of 64 bits are, too, where 32 hold
    them: loops of their own would take far longer to compile.
    """
    largest = np.iinfo(np.int32).max
    if indptr[-1] <= largest and indices.max(initial=0) <= largest:
        indices, indptr = (np.asarray(array, np.int32) for array in (indices, indptr))
    return tuple(make_read_only(np.ascontiguousarray(array)) for array in (data, indices, indptr))


def check_sparse(X: Any, owner: str, name: str = "X") -> None:
    """Raise ValueError if a sparse matrix has indices outside of its shape, or an array a mask.

    TypeError for dictionaries and sets, which are no rows.

    Parameters
    ----------
    X : object
        Rows, in any form that is accepted.
    owner, name : str
        For messages: who was given the matrix, and as what.
    """
    if not is_sparse(X):
        refuse_masked(owner, name, X)
        if isinstance(X, Mapping | Set):
            raise TypeError(
                f"{owner}: {name} is a {type(X).__name__}, not rows. Pass an array, a sparse "
                "matrix, a data frame or nested lists."
            )
        return
    try:  # SciPy checks what a matrix is made of, and the values of indices if it is asked to
        if X.format in ("csr", "csc", "bsr"):
            if np.any(X.indptr[1:] < X.indptr[:-1]):  # SciPy skips this one if the last is 0
                raise ValueError("indptr must not descend")
            parts = X.data, X.indices, X.indptr
            type(X)(parts, shape=X.shape, copy=False).check_format(full_check=True)
        elif X.format == "coo":
            type(X)((X.data, X.coords), shape=X.shape, copy=False)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{owner}: the sparse matrix {name} of shape {tuple(X.shape)} is damaged: {error}. "
            "Build it again from rows, columns and values."
        ) from None


@contextmanager
def naming_text(owner: str, X: Any) -> Iterator[None]:
    """Name the column where a conversion to numbers, within a block, meets text."""
    try:
        yield
    except (ValueError, TypeError):
        place = _first_text(X)
        if place is None:
            raise
        row, column, value = place
        raise ValueError(
            f"{owner}: column {column!r} of X holds the text {value!r} (row {row}), and numbers "
            "are needed. Encode it (OneHotEncoder), or use AdditiveRegressor or "
            "AdditiveClassifier, which take text."
        ) from None


def _first_text(X: Any) -> tuple[int, Any, str] | None:
    """Row, column and value of the first text, column by column; None if there is none."""
    names = getattr(X, "columns", None)
    if is_sparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    try:
        values = np.asarray(X, dtype=object)
    except (ValueError, TypeError):  # lists of different lengths
        return None
    for column in range(values.shape[1] if values.ndim == 2 else 0):
        for row, value in enumerate(values[:, column]):
            if isinstance(value, str) and not _is_number(value):
                return row, column if names is None else names[column], value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
