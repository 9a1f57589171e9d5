r"""Screening of terms: which functions a model of many columns should get.

A term outside of the active set has a smoothing parameter at its upper bound, and no gradient leads
back from there. With :math:`g_i` the derivatives of the losses by its coefficients and w the sum of
the working weights, which is their curvature in a natural basis, its penalised REML criterion alone
is, relative to the model without it,

.. math:: 2ℓ(ρ) - 2\log p(ρ)
          = \sum_i \Bigl(\log(1 + w/d_i) - \frac{g_i^2}{φ(w + d_i)}\Bigr) - 2\log p(ρ),
          \qquad d_i = e^ρ s_i.

The term enters if the smallest value on a grid is negative enough.
"""

from __future__ import annotations

import numpy as np

from .reml import Penalties

# Standard deviations of a term's function, in standard errors of a linear effect: from what is
# hardly visible to what nothing hides.
_DEVIATIONS = np.geomspace(0.1, 300.0, 25)
_MIN_GAIN = 1.0  # of log-likelihood: what a parameter gains by chance, about


def entering_smoothing(
    penalties: Penalties, rho: np.ndarray, gradient: np.ndarray, working_weight: float,
    total_weight: float, dispersion: float,
) -> np.ndarray:  # fmt: skip
    """ρ with the best value on the grid for the terms that gain by it, as it was for the others."""
    prior = penalties.prior
    assert prior is not None
    rate, weight = prior.rate(total_weight, working_weight), prior.range_weight(total_weight)
    best, best_rho = np.full(penalties.count, -2 * _MIN_GAIN), rho.copy()
    for deviation in _DEVIATIONS:
        trial = prior.offset + np.log(working_weight) - 2 * np.log(deviation)
        diagonal = np.maximum(penalties.diagonal(trial), 1e-300)
        explained = gradient**2 / (dispersion * (working_weight + diagonal))
        changes = np.log1p(working_weight / diagonal) - explained
        prior_term = weight * np.log1p(deviation) + rate * deviation / np.sqrt(working_weight)
        value = penalties.sum_by_group(changes) + 2 * prior_term
        better = value < best
        best[better], best_rho[better] = value[better], trial[better]
    return best_rho
