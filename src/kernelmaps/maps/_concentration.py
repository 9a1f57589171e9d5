r"""Error of whole rows with a probability (annfm, Theorem 1(b)), for any additive map.

The worst case of a row is the sum of the worst cases of its d features, d·B. Errors of both signs
cancel: if features are independent, the sum of errors e_1, …, e_d with |e_j| ≤ B stays near its
mean, and Bernstein's inequality says how near. With M₂ ≥ Σ E e_j², at most with probability δ

.. math:: \Bigl|\sum_j e_j - E \sum_j e_j\Bigr| > \sqrt{2 M_2 \ln(2/δ)} + \tfrac{4}{3} B \ln(2/δ),

which grows like √d. The theorem has σ² in place of M₂/d, and O(ε²) for the mean under its model of
offsets; here both are measured on n pairs of rows, with a margin for what n pairs can miss:
Hoeffding's for Σ e_j² ∈ [0, dB²] and Bernstein's for the mean. A third of 1 − p goes to each of the
three statements.
"""

from __future__ import annotations

import numpy as np


def sum_bound(errors: np.ndarray, bound: float, probability: float) -> float:
    """A bound on |Σ_j e_j| for a fresh pair of rows, with that probability.

    Parameters
    ----------
    errors : ndarray of shape (n_pairs, n_features)
        Errors of the features for independent pairs of rows.
    bound : float
        B: no error of a feature is larger.
    probability : float
        p, over the pairs that were measured and the fresh one.
    """
    n, d = errors.shape
    chances = np.log(2 * 3 / (1 - probability))
    squares = float(np.mean(np.sum(errors**2, axis=1)))
    moment = min(squares + bound**2 * np.sqrt(d * chances / (2 * n)), d * bound**2)
    spread = np.sqrt(2 * moment * chances) + 4 / 3 * bound * chances
    mean = abs(float(np.mean(np.sum(errors, axis=1))))
    missed = np.sqrt(2 * moment * chances / n) + 4 / 3 * bound * chances / n
    return float(min(mean + missed + spread, d * bound))
