r"""Quadratic problems under linear inequalities, for monotone and convex terms.

The minimum :math:`\hat β` of a penalised least-squares problem with the inverse
:math:`V = LL^\top` of its matrix becomes, under :math:`Cβ ≥ 0`,

.. math:: \min_β ½ (β - \hat β)^\top V^{-1} (β - \hat β), \quad Cβ ≥ 0
          \quad ⇔ \quad \min_{μ ≥ 0} ½ \|(CL)^\top μ + L^{-1} \hat β\|^2,
          \quad β = L\,\big((CL)^\top μ + L^{-1} \hat β\big),

a non-negative least-squares problem, whose solution is exact.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from .linear_systems import Covariance


def constrained_minimum(
    beta: np.ndarray, inverse: Covariance, constraints: np.ndarray | None
) -> np.ndarray:
    """The minimum under Cβ ≥ 0 from the free minimum `beta`; see the module's docstring.

    Levels of a large factor, which have no constraints, take the values that are best beside the
    other coefficients.
    """
    if constraints is None:
        return beta
    n = len(inverse.dense)
    free, theta = beta[:n], beta[n:]
    if not (constraints @ free < 0).any():
        return beta
    factor = cholesky(inverse.dense, lower=True)
    start = solve_triangular(factor, free, lower=True)
    normals = (constraints @ factor).T
    multipliers, _ = nnls(normals, -start, maxiter=50 * len(constraints))
    constrained = factor @ (normals @ multipliers + start)
    if inverse.levels is None:
        return constrained
    return np.concatenate([constrained, theta - inverse.levels.means(constrained - free)])
