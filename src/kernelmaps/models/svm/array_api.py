"""Scores of additive machines for rows of another array library, on their own device."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from ..._util.devices import is_tensor, multiply
from ...engine import gpu
from ...engine.apply import sums_array_api
from .model import AdditiveMachine


def scores(machine: AdditiveMachine, X: Any) -> Any:
    """Scores, one column per output, in float64 for float64 rows and in float32 for all others.

    The table of the compiled loops is summed on the device; for maps without a fixed table
    φ(X) is multiplied by the weights.
    """
    feature_map, on_codes = machine.feature_map, machine.on_codes
    X = feature_map._foreign_rows(X)
    xp, table = array_namespace(X), machine.score_table()
    if table is None:
        total = _by_columns(machine, X, xp)
    else:
        rows = feature_map.encode(X).values if on_codes else X
        check = gpu.NON_NEGATIVE if feature_map._non_negative else gpu.FINITE
        total, wrong = sums_array_api(table, rows, gpu.ANY if on_codes else check)
        if wrong and not on_codes:
            feature_map._check_foreign(X)
            feature_map._check_domain(X)
    total = total + xp.asarray(machine.offset, dtype=total.dtype, device=X.device)
    return xp.astype(total, xp.float64 if X.dtype == xp.float64 else xp.float32)


def _by_columns(machine: AdditiveMachine, X: Any, xp: Any) -> Any:
    X = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)
    Z = machine.feature_map.transform(X)
    flat = machine.weights.reshape(-1, machine.n_outputs)
    weights = xp.asarray(flat, dtype=Z.dtype, device=X.device)
    return multiply(Z, weights) if is_tensor(Z) else Z @ weights
