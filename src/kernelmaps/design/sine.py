r"""Sines for the intersection kernel: a closed form that no cosine map in log x matches.

min(x, y) is the covariance of Brownian motion, and on [0, b] it has the expansion

.. math:: \min(x, y) = \sum_k \frac{2b}{((k - 1/2)π)^2} \sin\frac{(k - 1/2)πx}{b}
          \sin\frac{(k - 1/2)πy}{b}.

Cut at D terms the error is largest on the diagonal; weights by a linear program halve it. Unlike
cosines in log x these are exact at zero and need no smallest value.
"""

from __future__ import annotations

import numpy as np

from .slp import least_error


def sine_design(high: float, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (k − ½)π/b and the non-negative weights of least largest error."""
    order = np.arange(1, n_columns + 1) - 0.5
    # All pairs of a coarse grid, and the diagonal finely: there the error peaks.
    points = np.linspace(0, 1, max(48, 8 * n_columns) + 1)[1:]
    first, second = np.triu_indices(points.size)
    diagonal = np.linspace(0, 1, max(400, 60 * n_columns) + 1)[1:]
    x, y = np.r_[points[first], diagonal], np.r_[points[second], diagonal]
    products = np.sin(np.pi * np.outer(x, order)) * np.sin(np.pi * np.outer(y, order))
    return order * np.pi / high, least_error(products, np.minimum(x, y)) * high
