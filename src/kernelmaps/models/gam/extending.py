r"""Terms that join a fit: their strengths are chosen given those of the terms before them.

With the weights divided into old and new ones, and the strengths of the old ones held, the
restricted likelihood of the strengths of the new ones is that of the smaller problem

.. math:: S = G_{nn} - G_{no} A^{-1} G_{on}, \qquad s = r_n - G_{no} A^{-1} r_o,
          \qquad p = q - r_o^\top A^{-1} r_o, \qquad A = G_{oo} + \mathrm{diag}(d_o),

up to :math:`\log|A|`, which is constant: new strengths cost inverses of the size of the new terms,
and the weights of all terms follow from these and from the factor of A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...threads import limit_blas
from ..losses import Loss, Squared
from .constraints import nearest
from .newton import (
    CodedRows,
    PenalisedFit,
    Rows,
    among_all,
    blas_threads,
    chords,
    penalties_of,
    rough_step,
)
from .reml import Penalties, Sums, WorkingFit, choose_strengths, factor_of

_CLOSE = 1e-6  # change of the objective, as a share of it, at the end of steps towards a minimum
_MOST, _ROUGH = 20, 1.0  # steps on new strengths, and the derivative that is small enough


@dataclass(frozen=True)
class Start:
    """What is known before terms join.

    Attributes
    ----------
    rho : ndarray
        Logarithms of the strengths; of new terms, where to begin.
    held : ndarray of bool
        Which of them stay.
    beta, edf : ndarray
        Weights and their degrees of freedom; zero for new terms.
    """

    rho: np.ndarray
    held: np.ndarray
    beta: np.ndarray
    edf: np.ndarray


def extend_rows(rows: Rows, loss: Loss, start: Start) -> PenalisedFit:
    """Fit rows roughly: without a covariance, the degrees of freedom of old terms as they were."""
    every = penalties_of(rows.bases)
    kept = _in_use(every, start, rows.total)
    penalties, cone = every.only(kept), None if rows.cone is None else rows.cone[:, kept]
    given = penalties, start.rho, start.held, loss.dispersion, cone
    with limit_blas(blas_threads(len(kept))):
        if isinstance(loss, Squared):
            sums, middle = rows.squared()
            found = joined(sums.only(kept), *given)
            weights = found.weights.copy()
            weights[0] += middle
        else:
            few = rows.only(kept)
            here: Any = few.at(loss, start.beta[kept])
            memory = rows.memory if isinstance(rows, CodedRows) else None
            sums = here.sums() if memory is None else here.sums(rows).only(kept)
            found = joined(sums, *given)
            diagonal = penalties.diagonal(found.rho)
            weights = rough_step(few, loss, here, found.weights, found.solve, diagonal).beta
    edf, none = start.edf.copy(), np.zeros((0, 0))
    edf[kept[found.border.new]] = found.edf(penalties)
    return PenalisedFit(
        among_all(weights, kept, len(every.scale)), none, none, found.rho, edf,
        found.found.dispersion, np.nan, 1, True,
    )  # fmt: skip


def approach(
    rows: Rows, loss: Loss, rho: np.ndarray, beta: np.ndarray, gram: np.ndarray
) -> np.ndarray:
    """Weights near the minimum for some strengths, by steps with a curvature that is known.

    `gram` is about ZᵀWZ of these rows.
    """
    if loss.majorizer_share or rows.cone is not None:
        return beta
    every = penalties_of(rows.bases)
    kept = every.within_reach(rho, rows.total)
    few, diagonal = rows.only(kept), every.only(kept).diagonal(rho)
    with limit_blas(blas_threads(len(kept))):
        factor = factor_of(gram[np.ix_(kept, kept)], diagonal)

        def solve(right: np.ndarray) -> np.ndarray:
            return lapack.dpotrs(factor, right, lower=1)[0]

        here = few.at(loss, beta[kept])
        here, _, _ = chords(few, loss, here, solve, diagonal, _CLOSE, patient=True)
    return among_all(here.beta, kept, len(every.scale))


@dataclass(frozen=True)
class Border:
    """New weights at the border of a system whose strengths are known; see the module's docstring.

    Attributes
    ----------
    old, new : ndarray of int
        Places of the weights.
    factor, cross, seen : ndarray
        L with LLᵀ = A, L⁻¹G_on and L⁻¹r_o.
    """

    old: np.ndarray
    new: np.ndarray
    factor: np.ndarray
    cross: np.ndarray
    seen: np.ndarray

    @classmethod
    def of(cls, sums: Sums, diagonal: np.ndarray, new: np.ndarray) -> Border:
        """With a mask of the new weights."""
        old, new = np.flatnonzero(~new), np.flatnonzero(new)
        if not len(old):
            return cls(old, new, np.zeros((0, 0)), np.zeros((0, len(new))), np.zeros(0))
        factor = factor_of(sums.gram[np.ix_(old, old)], diagonal[old])
        border = np.column_stack([sums.gram[np.ix_(old, new)], sums.right[old]])
        solved = lapack.dtrtrs(factor, border, lower=1)[0]
        return cls(old, new, factor, solved[:, :-1], solved[:, -1])

    def left(self, sums: Sums) -> Sums:
        """S, s and p."""
        return Sums(
            sums.gram[np.ix_(self.new, self.new)] - self.cross.T @ self.cross,
            sums.right[self.new] - self.seen @ self.cross,
            sums.square - float(self.seen @ self.seen), sums.rows,
        )  # fmt: skip

    def with_old(self, own: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """All weights from the new ones, and from L⁻¹ times the right sides of the others."""
        out = np.empty(len(self.old) + len(self.new))
        out[self.new] = own
        if len(self.old):
            left = seen - self.cross @ own
            out[self.old] = lapack.dtrtrs(self.factor, left, lower=1, trans=1)[0]
        return out

    def solve(self, inverse: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector, from the same of S."""
        seen = right[self.old]
        if len(seen):
            seen = lapack.dtrtrs(self.factor, seen, lower=1)[0]
        return self.with_old(inverse @ (right[self.new] - seen @ self.cross), seen)


@dataclass(frozen=True)
class Joined:
    """The minimum of a working problem: weights, strengths, and what is known of the new ones."""

    border: Border
    found: WorkingFit
    weights: np.ndarray
    rho: np.ndarray

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector."""
        return self.border.solve(self.found.inverse, right)

    def edf(self, penalties: Penalties) -> np.ndarray:
        """Degrees of freedom of the new weights."""
        own = penalties.diagonal(self.rho)[self.border.new]
        return 1 - own * np.diag(self.found.inverse)


def joined(
    sums: Sums, penalties: Penalties, rho: np.ndarray, held: np.ndarray,
    dispersion: float | None, cone: np.ndarray | None = None,
) -> Joined:  # fmt: skip
    """Choose the strengths that are not `held`; constraints need an inverse of all weights."""
    new = np.append(~held, False)[penalties.group]  # the last for group −1
    if cone is not None or not new.any():
        new[:] = True
    border = Border.of(sums, penalties.diagonal(rho), new)
    groups = np.unique(penalties.group[new & (penalties.group >= 0)])
    place = np.full(penalties.count + 1, -1)
    place[groups] = np.arange(len(groups))
    few = Penalties(penalties.scale[new], place[penalties.group[new]], len(groups))
    found = choose_strengths(
        border.left(sums), few, rho[groups], dispersion, held[groups], _MOST, _ROUGH
    )
    out = rho.copy()
    out[groups] = found.rho
    weights = border.with_old(found.weights, border.seen)
    if cone is not None:
        weights = nearest(weights, found.inverse, cone)
    return Joined(border, found, weights, out)


def _in_use(penalties: Penalties, start: Start, total: float) -> np.ndarray:
    """All weights of new terms, and those of the others of which strengths leave something."""
    new = np.append(~start.held, False)[penalties.group]
    new[penalties.within_reach(start.rho, total)] = True
    return np.flatnonzero(new)
