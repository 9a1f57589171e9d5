r"""Statistics of a fitted GAM as a whole: deviance, log-likelihood, AIC and the REML score.

The REML score is −log of the restricted likelihood in Laplace's approximation (Wood 2011), exact
for squared error. With H the Hessian of the losses, d the penalties and p coefficients (the
intercept and those of parametric terms) without one,

.. math:: -\ell(β) + \frac{1}{2φ} β^\top \mathrm{diag}(d) β
          + ½ \log\Big|\frac{H + \mathrm{diag}(d)}{φ}\Big| - ½ \sum_i \log\frac{d_i}{φ}
          - \frac{p}{2} \log 2π .

Where the dispersion φ is estimated, :math:`-\ell` is that of a normal distribution with half the
deviance in the place of squares (the extended quasi-likelihood).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..losses import Loss, LossTotals
from ..solvers.pirls import PenalisedFit
from ..solvers.reml import Penalties, is_penalised
from .fitting import FittedDesign


class FitStatistics(NamedTuple):
    """Of all outputs together.

    `corrected_edf` are the degrees of freedom with those that the estimation of the smoothing
    parameters uses (`edf2` in mgcv).
    """

    deviance: float
    null_deviance: float
    log_likelihood: float
    aic: float
    reml: float
    corrected_edf: float


def fit_statistics(model: FittedDesign, losses: Sequence[Loss]) -> FitStatistics:
    """Statistics of a model, without another pass over the rows."""
    penalties = Penalties.of_bases(model.design.bases)
    residual = null = log_likelihood = parameters = reml = edf = 0.0
    for loss, fit, totals in zip(losses, model.fits, model.design.totals, strict=True):
        penalty = penalties.diagonal(fit.rho)
        value = fit.objective - 0.5 * float(penalty @ fit.beta**2)  # without penalties
        residual += value - totals.saturated
        null += totals.null - totals.saturated
        log_likelihood += loss.log_likelihood(value, totals, fit.dispersion)
        parameters += float(fit.edf.sum()) + loss.has_scale
        reml += _reml_score(loss, fit, totals, value, penalty)
        edf += float(fit.edf.sum()) + fit.smoothing_edf
    aic = 2 * (parameters - log_likelihood)
    return FitStatistics(
        2 * float(residual), 2 * float(null), float(log_likelihood), float(aic), float(reml), edf
    )


def _reml_score(
    loss: Loss, fit: PenalisedFit, totals: LossTotals, value: float, penalty: np.ndarray
) -> float:
    logdet = fit.posterior.logdet()  # of the active coefficients
    active = penalty[fit.active]
    # Not the logarithm of the ratio: the dispersion of constant targets is next to nothing.
    penalised = is_penalised(active)
    prior = (np.log(active[penalised]) - np.log(fit.dispersion)).sum()
    if loss.estimates_dispersion:
        scale = 0.5 * totals.weight * np.log(2 * np.pi * fit.dispersion)
        minus_likelihood = (value - totals.saturated) / fit.dispersion + scale
    else:
        minus_likelihood = -loss.log_likelihood(value, totals, fit.dispersion)
    shrinkage = 0.5 * float(penalty @ fit.beta**2) / fit.dispersion
    flat = np.count_nonzero(~penalised) * np.log(2 * np.pi)
    return float(minus_likelihood + shrinkage - 0.5 * (logdet + prior + flat))
