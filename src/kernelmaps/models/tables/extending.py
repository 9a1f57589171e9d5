r"""Terms that join a fit: their strengths are chosen given those of the terms before them.

With the weights divided into old and new ones, and the strengths of the old ones held, the
restricted likelihood of the strengths of the new ones is that of the smaller problem

.. math:: S = G_{nn} - G_{no} A^{-1} G_{on}, \qquad s = r_n - G_{no} A^{-1} r_o,
          \qquad p = q - r_o^\top A^{-1} r_o, \qquad A = G_{oo} + \mathrm{diag}(d_o),

up to :math:`\log|A|`, which is constant: new strengths cost inverses of the size of the new terms.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ...threads import limit_blas
from .likelihoods import Likelihood, Squared
from .newton import (
    PenalisedFit,
    Rows,
    allowed,
    blas_threads,
    finished_roughly,
    newton_step,
    penalties_of,
)
from .reml import Penalties, Sums, choose_strengths, factor_of

_MOST, _ALL = 20, 1  # steps on new strengths, and then on those of all terms
_ROUGH = 0.5  # derivative of the restricted log-likelihood that is small enough


def extend_rows(
    rows: Rows, loss: Likelihood, rho: np.ndarray, held: np.ndarray, fixed: np.ndarray,
    beta: np.ndarray,
) -> PenalisedFit:  # fmt: skip
    """Fit rows roughly, from the weights of a fit without some terms.

    Parameters
    ----------
    rows : Rows
    loss : Likelihood
    rho : ndarray
        Logarithms of the strengths to start from.
    held, fixed : ndarray of bool
        Which of them stay while those of new terms are chosen, and which stay for good.
    beta : ndarray
        Weights to start from.
    """
    every = penalties_of(rows.bases)
    kept = _in_use(every, rho, held, rows.total)
    rows, penalties = rows.only(kept), every.only(kept)
    with limit_blas(blas_threads(len(kept))):
        if isinstance(loss, Squared):
            sums, middle = rows.squared()
            rho = strengths_given(sums, penalties, rho, held, loss.dispersion)
            found = choose_strengths(sums, penalties, rho, loss.dispersion, fixed, _ALL, _ROUGH)
            weights = allowed(rows, found)
            weights[0] += middle
            return finished_roughly(found, every, kept, weights, rows.total)
        here, dispersion = rows.at(loss, beta[kept]), loss.dispersion
        sums = here.sums()
        rho = strengths_given(sums, penalties, rho, held, dispersion)
        found = choose_strengths(sums, penalties, rho, dispersion, fixed, _ALL, _ROUGH)
        here = newton_step(rows, loss, here, found, penalties)
    return finished_roughly(found, every, kept, here.beta, rows.total)


def strengths_given(
    sums: Sums, penalties: Penalties, rho: np.ndarray, held: np.ndarray, dispersion: float | None
) -> np.ndarray:
    """Choose the strengths that are not `held`; see the module's docstring."""
    if held.all():
        return rho
    new = np.append(~held, False)[penalties.group]  # the last for group −1
    old, new = np.flatnonzero(~new), np.flatnonzero(new)
    factor = factor_of(sums.gram[np.ix_(old, old)], penalties.diagonal(rho)[old])
    border = np.column_stack([sums.gram[np.ix_(old, new)], sums.right[old]])
    solved = lapack.dtrtrs(factor, border, lower=1)[0]
    cross, seen = solved[:, :-1], solved[:, -1]
    left = Sums(
        sums.gram[np.ix_(new, new)] - cross.T @ cross, sums.right[new] - seen @ cross,
        sums.square - float(seen @ seen), sums.rows,
    )  # fmt: skip
    place = np.cumsum(~held) - 1
    few = Penalties(penalties.scale[new], place[penalties.group[new]], int(place[-1]) + 1)
    found = choose_strengths(left, few, rho[~held], dispersion, None, _MOST, _ROUGH)
    out = rho.copy()
    out[~held] = found.rho
    return out


def _in_use(penalties: Penalties, rho: np.ndarray, held: np.ndarray, total: float) -> np.ndarray:
    """All weights of new terms, and those of the others of which strengths leave something."""
    new = np.append(~held, False)[penalties.group]
    new[penalties.within_reach(rho, total)] = True
    return np.flatnonzero(new)
