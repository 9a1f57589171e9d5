"""Exact kernels on rows of other array libraries: checks, and sums over features in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..blocks import row_blocks
from ..device import in_halves, is_foreign, namespace_of

FEWER_ROWS = "Pass fewer rows of X or Y at a time."

_BLOCK_BYTES = 2**28  # of terms at a time: a card has as much, and works on long arrays


def foreign_pair(owner: str, X: Any, Y: Any) -> tuple[Any, Any, Any]:
    """The functions of their library, and both sides as checked float64 rows (Y None: X)."""
    xp = namespace_of(X)
    if Y is not None and (not is_foreign(Y) or X.device != Y.device):
        place = getattr(Y, "device", "ordinary memory") if is_foreign(Y) else "ordinary memory"
        raise ValueError(
            f"the {owner} kernel: X is on {X.device}, Y is in or on {place}. Bring both to one "
            "device."
        )
    x = _checked(owner, xp, X, "X")
    y = x if Y is None else _checked(owner, xp, Y, "Y")
    check_columns(owner, x, y)
    return xp, x, y


def check_columns(owner: str, X: Any, Y: Any) -> None:
    """Refuse rows of different lengths."""
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"{owner}: X has {X.shape[1]} features but Y has {Y.shape[1]}; both must have the "
            "same columns."
        )


def _checked(owner: str, xp: Any, X: Any, name: str) -> Any:
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"the {owner} kernel: {name} must have two dimensions, found {X.shape}.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"the {owner} kernel: complex data are not supported, {name} has them.")
    X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"the {owner} kernel: {name} contains NaN or infinity.")
    return X


def sums_over_features(xp: Any, X: Any, Y: Any, term: Callable[[Any, Any], Any]) -> Any:
    """Σ_d term(x_d, y_d) for all pairs of rows, some rows at a time."""
    found = xp.empty((X.shape[0], Y.shape[0]), dtype=xp.float64, device=X.device)

    def fill(rows: slice) -> None:
        found[rows, :] = xp.sum(term(X[rows, :][:, None, :], Y[None, :, :]), axis=2)

    for block in row_blocks(X.shape[0], 8 * Y.shape[0] * X.shape[1], _BLOCK_BYTES):
        in_halves(fill, block, lambda first, second: None, "exact kernels", FEWER_ROWS)
    return found
