"""Scores of additive models for rows of another array library, on their own device."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ...device import is_tensor, multiply
from ...engine import gpu
from ...engine.apply import sums_elsewhere
from ...engine.table import Table
from .basis import bands_of
from .terms import summed


def scores(model: Any, X: Any) -> Any:
    """Scores, one column per output, in float64 for float64 rows and in float32 for all others.

    The table of the compiled loops is summed on the device; for maps that have no table of their
    own, φ(X) is multiplied by the weights.
    """
    if model._tabular:
        raise TypeError(
            f"{type(model).__name__} of a table takes rows in ordinary memory, not an array of "
            f"{type(X).__module__}. Pass a frame, or X.cpu().numpy() of a torch tensor."
        )
    fitted = model.feature_map_
    X = fitted._foreign_rows(X)
    xp, table = array_namespace(X), score_table(model)
    if table is None:
        found = _by_columns(model, X, xp)
    else:
        rows = fitted.encode(X).values if model._on_codes else X
        check = gpu.NON_NEGATIVE if fitted._non_negative else gpu.FINITE
        found, wrong = sums_elsewhere(table, rows, gpu.ANY if model._on_codes else check)
        if wrong and not model._on_codes:
            fitted._check_foreign(X)
            fitted._check_domain(X)
    found = found + xp.asarray(model._offset, dtype=found.dtype, device=X.device)
    return xp.astype(found, xp.float64 if X.dtype == xp.float64 else xp.float32)


def score_table(model: Any) -> Table | None:
    """The table of the scores; None for maps that have none of their own."""
    spec = model._spec
    if "mix" not in spec.arrays and spec.family != "piecewise":
        return None
    if "elsewhere" not in model._fast:
        bands = bands_of(spec, np.zeros((1, model.n_features_in_)), np.dtype(np.float64))
        model._fast["elsewhere"] = summed(bands.table, model._weights)
    return model._fast["elsewhere"]


def _by_columns(model: Any, X: Any, xp: Any) -> Any:
    X = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)
    Z = model.feature_map_.transform(X)
    flat = model._weights.reshape(-1, model._weights.shape[2])
    weights = xp.asarray(flat, dtype=Z.dtype, device=X.device)
    return multiply(Z, weights) if is_tensor(Z) else Z @ weights
