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


def minimum_in_cone(beta: np.ndarray, inverse: np.ndarray, cone: np.ndarray | None) -> np.ndarray:
    """The minimum under Cβ ≥ 0 from the free minimum `beta`; see the module's docstring."""
    if cone is None or not (cone @ beta < 0).any():
        return beta
    factor = cholesky(inverse, lower=True)
    start = solve_triangular(factor, beta, lower=True)
    normals = (cone @ factor).T
    multipliers, _ = nnls(normals, -start, maxiter=50 * len(cone))
    return factor @ (normals @ multipliers + start)
