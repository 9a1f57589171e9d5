r"""Conformal correction of prediction intervals by rows that the model was not fitted on.

With ends :math:`l(x), u(x)` of an interval and n further rows, the corrected interval is

.. math:: [\, l - Q(l_i - y_i),\; u + Q(y_i - u_i) \,],

Q the k-th smallest of the numbers of these rows, :math:`k = ⌈(n + 1)(1 - α/2)⌉`. If new rows are
drawn as these were, it covers a new observation with a probability of at least 1 − α, whatever the
model (Romano, Patterson and Candès 2019, theorem 2). It corrects intervals that are too wide, too.
"""

from __future__ import annotations

import numpy as np


def conformal_interval(
    interval: np.ndarray, of_calibration: np.ndarray, y: np.ndarray, level: float, owner: str
) -> np.ndarray:
    """Correct intervals (n_samples, 2) by those of other rows and their targets."""
    n, tail = len(y), (1 - level) / 2
    rank = int(np.ceil((n + 1) * (1 - tail) - 1e-9))
    if rank > n:
        raise ValueError(
            f"{owner}: {n} rows of calibration are too few for a level of {level:g}: pass "
            f"{int(np.ceil(1 / tail - 1e-9)) - 1} or more."
        )
    below, above = of_calibration[:, 0] - y, y - of_calibration[:, 1]
    lower = interval[:, 0] - np.partition(below, rank - 1)[rank - 1]
    upper = interval[:, 1] + np.partition(above, rank - 1)[rank - 1]
    return np.column_stack([np.minimum(lower, upper), np.maximum(lower, upper)])
