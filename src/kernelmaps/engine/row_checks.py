"""What maps say of the values of rows, which they refuse or clip to their domain.

Maps and the models that are loaded only to predict say it in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .extent import ColumnRange, leaves_domain

OUT_OF_DOMAIN: tuple[str, ...] = ("clip", "raise", "extrapolate")
"""What may be done with values outside a fitted domain."""

_NAMED_COLUMNS = 5  # names of columns that a message shows


def not_finite_message(owner: str, value: float, row: int, column: int) -> str:
    """The message about a value that is NaN or infinite."""
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    return (
        f"Input X contains {what} (row {row}, column {column}): {owner} does not "
        "accept missing values encoded as NaN, nor infinite ones. Impute or drop them first."
    )


def negative_message(owner: str, low: float, has_signed: bool) -> str:
    """The message about negative values of a map for x >= 0, which may have a setting `signed`."""
    remedy = " or set signed=True (odd extension)" if has_signed else ""
    return (
        f"Negative values in data passed to {owner}: X goes down to "
        f"{low:g}, but the map is defined for x >= 0. Shift or clip the data{remedy}."
    )


def outside_domain(
    owner: str,
    data_range: ColumnRange,
    domain: ColumnRange,
    policy: str,
    names: Sequence[str] | None,
) -> str | None:
    """The warning if columns leave the fitted domain, or None; the policy "raise" raises it.

    `domain` has one range, or one for each column; without `names`, columns have numbers.
    """
    n_columns = len(data_range[0])
    lower, upper = (np.broadcast_to(end, n_columns) for end in domain)
    outside = leaves_domain(data_range, (lower, upper), policy)
    if not outside.any():
        return None
    labels = [column_label(names, j) for j in np.flatnonzero(outside)]
    worst = int(np.argmax(outside))
    listed = ", ".join(labels[:_NAMED_COLUMNS]) + (", …" if len(labels) > _NAMED_COLUMNS else "")
    more = f" ({listed})" if labels[1:] else ""
    message = (
        f"{owner}: {len(labels)} of {n_columns} columns have values outside the "
        f"fitted domain{more}; column {labels[0]} reaches [{data_range[0][worst]:g}, "
        f"{data_range[1][worst]:g}] in these rows, fitted [{lower[worst]:g}, {upper[worst]:g}]."
    )
    if policy == "raise":
        raise ValueError(
            f"{message} Fit on data that cover the range, or use out_of_domain='clip'."
        )
    return f"{message} They are clipped to it."


def column_label(names: Sequence[str] | None, j: int) -> str:
    """A column in messages: its name in quotes, or its number."""
    return str(j) if names is None else repr(str(names[j]))
