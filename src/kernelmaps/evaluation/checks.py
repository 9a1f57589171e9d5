"""Checks of a table before anything is computed: IDs, copies of the target, one class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from ..device import refuse_card
from ..exceptions import SuspectColumnWarning
from ..sparse_rows import check_sparse

_MIN_ROWS = 20  # fewer different whole numbers may be chance


def feature_names_of(X: Any, names: Sequence[str] | None = None) -> list[str] | None:
    """Names of the columns, as given or as the frame has them."""
    if names is not None:
        return [str(name) for name in names]
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def checked_rows(X: Any, owner: str, **options: Any) -> Any:
    """Rows in ordinary memory as an array or CSR; damaged ones and those on a card are refused."""
    refuse_card(X, f"kernelmaps.{owner}", "Pass a sample of the rows as NumPy.")
    check_sparse(X, owner)
    options = {"dtype": "numeric"} | options
    return check_array(X, accept_sparse="csr", input_name="X", estimator=owner, **options)


def check_targets(y: np.ndarray | None, task: str, owner: str) -> None:
    """Refuse targets with a single value: there is nothing to tell apart."""
    if y is None or len(y) == 0:
        return
    first = y[0]
    if not (y == first).all():
        return
    what = "the same class" if task == "classification" else "the same target"
    shown = repr(first.item() if hasattr(first, "item") else first)
    raise ValueError(
        f"{owner}: all {len(y)} rows have {what} {shown}, so that there is nothing to predict. "
        "Check the name of the target column."
    )


def suspect_columns(
    X: Any, y: np.ndarray | None = None, names: Sequence[str] | None = None, owner: str = ""
) -> list[str]:
    """Sentences about columns that are probably not features: IDs, and copies of the target.

    An ID is a column of whole numbers, all different, that grow (or fall) from row to row, or that
    are consecutive numbers in any order. Sparse data are not looked at. An `owner` warns of them.
    """
    n = X.shape[0]
    if sparse.issparse(X) or n < _MIN_ROWS or X.dtype.kind not in "iuf":
        return []
    found = []
    numeric = y is not None and y.dtype.kind in "iuf"
    for j in range(X.shape[1]):
        column = X[:, j]
        named = f"column {names[j]!r}" if names else f"column {j}"
        if _is_id(column):
            found.append(
                f"{named} looks like an ID: its {n} whole numbers are all different and in "
                "sequence. Leave it out unless it is a feature."
            )
        elif numeric and (column == y).all():
            found.append(f"{named} is equal to the target. Leave it out.")
    if found and owner:
        warnings.warn(f"{owner}: {' '.join(found)}", SuspectColumnWarning, stacklevel=4)
    return found


def _is_id(column: np.ndarray) -> bool:
    if column.dtype.kind == "f" and (column != np.round(column)).any():
        return False
    rising = column[1:] > column[:-1]
    if rising.all() or not (rising | (column[1:] == column[:-1])).any():
        return True
    if float(column.max()) - float(column.min()) + 1 != len(column):
        return False
    return len(np.unique(column)) == len(column)
