"""Ridge regression as Bayesian regression: what the sums say about the spread of predictions.

With targets y = b + wᵀz + ε, ε ~ N(0, σ²), a prior w ~ N(0, (σ²/α) I) and a flat one for b, the
posterior of f(z) = b + wᵀz is normal. Its mean is the ridge prediction, and its variance is

    σ² g(z),   g(z) = 1/W + (z − z̄)ᵀ (A + αI)⁻¹ (z − z̄),   A = Σ w (z − z̄)(z − z̄)ᵀ.

This is Gaussian-process regression with the kernel ⟨φ(x), φ(y)⟩ σ²/α plus a constant. g(z_i) times
the weight of row i is its leverage h_i, and leaving row i out gives (Sherman–Morrison)

    y_i − f₋ᵢ(z_i) = (y_i − f(z_i)) / (1 − h_i),   g₋ᵢ(z_i) = g(z_i) / (1 − h_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._util.devices import concatenate, is_tensor
from ...stats.products import as_columns, like
from ..solvers.quadratic import inverse_root, squared_errors
from .feature_maps import affine
from .linear import ProjectedStats

# Fewer residual degrees of freedom say nothing about the noise. Without a penalty there is a whole
# number of them. Where a table has more columns than rows, the evidence may be largest for the
# smallest α, which fits all rows: of 560 tables of 2 to 20 rows, 150 left less than 0.01, and 30
# between 0.01 and 1.
LEAST_RESIDUAL_DF = 0.5


@dataclass(frozen=True)
class RidgePosterior:
    """The posterior of a ridge model, apart from its mean.

    Attributes
    ----------
    root : ndarray of shape (D, k)
        U R with R Rᵀ = (A + αI)⁻¹ in the coordinates Uᵀz of the model.
    offset : ndarray of shape (k,)
        z̄ᵀ U R.
    weight : float
        W.
    rss : ndarray of shape (t,)
        Σ w (y − f(z))², of each target.
    residual_df : float
        Residual degrees of freedom, W − 1 − tr A(A + αI)⁻¹.
    alpha : float
        α.
    """

    root: np.ndarray
    offset: np.ndarray
    weight: float
    rss: np.ndarray
    residual_df: float
    alpha: float

    @classmethod
    def of(
        cls, at: ProjectedStats, columns: np.ndarray, alpha: float, W: np.ndarray
    ) -> RidgePosterior:
        """The posterior from the sums; W of shape (t, k) are the weights on `columns`."""
        stats = at.total
        R = inverse_root(stats, columns, alpha, at.diagonal)
        trace = np.count_nonzero(R.any(axis=0)) - alpha * (R**2).sum()
        root = R if at.back is None else at.back[:, columns] @ R
        offset = stats.mean[columns] @ R
        # A perfect fit leaves the rounding of the scatter of the targets.
        rounding = np.finfo(np.float64).eps * stats.y_scatter()
        rss = np.maximum(squared_errors(W, columns, stats, stats), rounding)
        return cls(root, offset, stats.weight, rss, stats.weight - 1.0 - float(trace), alpha)

    def noise_variance(self, owner: str) -> np.ndarray:
        """σ² of each target, RSS over the residual degrees of freedom.

        It maximises the evidence, together with its α, where α is that of largest evidence
        (MacKay's fixed point); for other α it is the usual unbiased estimate of linear smoothers.
        """
        if not self.residual_df > LEAST_RESIDUAL_DF:
            raise ValueError(
                f"{owner}: the model has as many degrees of freedom as rows (with "
                f"alpha={self.alpha:.3g}), and nothing is left to estimate the noise from. Give a "
                "larger alpha as a number, or more rows"
            )
        return self.rss / self.residual_df

    def spread(self, Z: Any) -> Any:
        """g(z) of each row of features, as one column, where they are."""
        P = affine(Z, self.root, -self.offset)
        return (P * P).sum(axis=1)[:, None] + 1.0 / self.weight

    def with_means(self, Z: Any, coef: np.ndarray, intercept: np.ndarray) -> Any:
        """The predictions of all targets, and g(z) as a last column."""
        means, spread = affine(Z, coef.T, intercept), self.spread(Z)
        return concatenate([means, spread]) if is_tensor(means) else np.hstack([means, spread])


def deviations(variance: np.ndarray, spread: Any) -> Any:
    """√variance of each target times √spread of each row, where the rows are."""
    return like(np.sqrt(variance), spread) * spread**0.5


def conformal_quantile(scores: Any, level: float, n_targets: int, owner: str) -> np.ndarray:
    """The ⌈(m + 1) level⌉-th smallest of m scores, of each target (split conformal prediction).

    The score of a new exchangeable row has each rank among m + 1 with the same probability, hence
    it is at most this one with a probability of at least `level`.
    """
    scores = np.sort(as_columns(scores), axis=0)
    m = len(scores)
    if scores.shape[1] != n_targets or not (np.isfinite(scores) & (scores >= 0)).all():
        raise ValueError(
            f"{owner}: conformity_scores must be finite numbers >= 0, with {n_targets} column(s), "
            f"got shape {scores.shape} and values from {np.min(scores, initial=np.inf):.3g} to "
            f"{np.max(scores, initial=-np.inf):.3g}"
        )
    # Rounding must not raise an exact product such as 20 · 0.95 to the next integer.
    rank = int(np.ceil((m + 1) * level * (1 - 1e-12)))
    if rank > m:
        raise ValueError(
            f"{owner}: {m} conformity scores are too few for level={level:g}: it takes "
            f"{int(np.ceil(level / (1 - level)))}"
        )
    return scores[rank - 1]
