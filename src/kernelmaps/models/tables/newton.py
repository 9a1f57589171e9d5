r"""Penalised fits of coded columns: one pass for squared loss, one a Newton step for the others.

.. math:: \min_β \sum_i c_i\,ℓ(y_i, o_i + z_i^\top β) + ½ β^\top \mathrm{diag}(d) β,

:math:`z_i` the row of ``[1, B_1[c_i1], B_2[c_i2], …]`` and o an offset. While the strengths in d
are still to be chosen, each step chooses them anew for its working least-squares problem
(performance iteration, Gu 1992); once they rest, the steps go on to the minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...stats import cross_products
from ...threads import in_threads
from .bases import Basis
from .constraints import nearest
from .likelihoods import Likelihood, Squared
from .reml import Penalties, Sums, WorkingFit, choose_strengths, solve_with

__all__ = ["CodedRows", "PenalisedFit", "fit_rows", "penalties_of"]

_SETTLE = 15  # steps after which strengths stay: performance iteration may cycle
_INNER = 3  # steps on the strengths for each step on the weights
_FINE, _ROUGH = 5e-3, 0.5  # derivatives of the restricted log-likelihood that are small enough
_BLOCK = 16384  # rows whose scores stay in cache while all terms add to them


@dataclass(frozen=True)
class CodedRows:
    """Rows as codes of terms, with targets, weights and offsets."""

    codes: Sequence[np.ndarray]
    bases: Sequence[Basis]
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None
    cone: np.ndarray | None = None  # rows C of constraints Cβ ≥ 0

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """The scores of all rows."""
        from ...stats import _pair_loops

        start = np.cumsum([1, *(basis.n_functions for basis in self.bases)])
        used = [
            (codes, basis.values @ beta[start[j] : start[j + 1]])
            for j, (codes, basis) in enumerate(zip(self.codes, self.bases, strict=True))
        ]
        out = self.offset + beta[0]

        def work(begin: int, end: int) -> None:
            for at in range(begin, end, _BLOCK):
                rows = slice(at, min(at + _BLOCK, end))
                for codes, values in used:
                    _pair_loops.gather(codes[rows], values, out[rows])

        in_threads(work, len(out), self.n_jobs, grain=_BLOCK)
        return out

    def allowed(self, found: WorkingFit) -> np.ndarray:
        """The minimum of a working problem among the weights that constraints allow."""
        if self.cone is None or not len(self.cone):
            return found.weights
        return nearest(found.weights, found.inverse, self.cone)

    def sums(self, weight: np.ndarray, product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bases = [basis.values for basis in self.bases]
        return cross_products(self.codes, bases, weight, product, self.n_jobs)


@dataclass(frozen=True)
class PenalisedFit:
    """Weights, strengths and the posterior of a fit.

    Attributes
    ----------
    weights : ndarray
        β, the intercept first.
    covariance : ndarray
        Posterior covariance of β.
    rho : ndarray
        Logarithms of the strengths.
    edf : ndarray
        Effective degrees of freedom of each weight.
    dispersion, objective, criterion : float
        φ, the penalised loss, and the restricted likelihood's negative logarithm.
    n_iter : int
        Steps, each one pass over the rows.
    converged : bool
    """

    weights: np.ndarray
    covariance: np.ndarray
    rho: np.ndarray
    edf: np.ndarray
    dispersion: float
    objective: float
    criterion: float
    n_iter: int
    converged: bool


def penalties_of(bases: Sequence[Basis]) -> Penalties:
    """Penalties of all terms' weights, after an intercept without one."""
    scale, group, count = [np.zeros(1)], [np.full(1, -1)], 0
    for basis in bases:
        scale.append(basis.penalty)
        group.append(basis.group + count)
        count += int(basis.group.max(initial=-1)) + 1
    return Penalties(np.concatenate(scale), np.concatenate(group).astype(np.int64), count)


def _from_sums(
    found: WorkingFit, sums: Sums, penalties: Penalties, weights: np.ndarray, middle: float
) -> PenalisedFit:
    """A squared-loss fit whose targets were shifted by `middle`."""
    system = sums.gram @ weights + penalties.diagonal(found.rho) * weights
    value = 0.5 * (sums.square - 2 * sums.right @ weights + weights @ system)
    weights = weights.copy()
    weights[0] += middle
    return _finished(found, penalties, value, 1, weights)


def fit_rows(
    rows: CodedRows,
    loss: Likelihood,
    rho: np.ndarray,
    fixed: np.ndarray | None = None,
    tol: float = 1e-7,
    max_iter: int = 100,
    rough: bool = False,
) -> PenalisedFit:
    """Fit rows with strengths that are chosen, or `fixed`.

    Parameters
    ----------
    rows : CodedRows
    loss : Likelihood
    rho : ndarray
        Logarithms of the strengths to start from.
    fixed : ndarray of bool, optional
        Which of them stay.
    tol : float
        The objective's relative change at the end.
    max_iter : int
        Most steps.
    rough : bool
        Whether strengths and weights are needed only to rank what is missing.
    """
    penalties, count = penalties_of(rows.bases), float(rows.weight.sum())
    if isinstance(loss, Squared):
        y = rows.y - rows.offset
        middle = float(np.average(y, weights=rows.weight))  # yᵀWy − rᵀβ would cancel
        product = rows.weight * (y - middle)
        square = float(product @ (y - middle))
        sums = Sums(*rows.sums(rows.weight, product), square, count)
        found = choose_strengths(sums, penalties, rho, fixed=fixed, tol=_ROUGH if rough else _FINE)
        return _from_sums(found, sums, penalties, rows.allowed(found), middle)
    beta = np.zeros(len(penalties.scale))
    beta[0] = loss.start(rows.y, rows.weight, rows.offset)
    eta, value, n_iter, converged = rows.scores(beta), np.inf, 0, False
    last: list[np.ndarray] = []
    settled = fixed is not None and bool(fixed.all())
    # Newton's last steps square the error, so that the end costs little; a majorant's do not.
    tol = 1e-4 if rough else (tol if loss.majorised else min(tol, 1e-10))
    for n_iter in range(1, max_iter + 1):
        sums, resting = _working(rows, loss, eta, count), settled
        if resting:
            found = solve_with(sums, penalties, rho, loss.dispersion)
        else:
            found = choose_strengths(sums, penalties, rho, loss.dispersion, fixed, _INNER)
            moved = float(np.max(np.abs(_seen(found.rho, rho)), initial=0.0))
            settled = n_iter >= _SETTLE or (n_iter > 3 and moved < 0.05)
            # Rounded, so that rounding errors that many steps have amplified end here; a tenth in
            # the logarithm of a strength means nothing.
            kept = np.zeros(len(rho), bool) if fixed is None else fixed
            rho = np.where(kept, rho, np.round(found.rho, 1)) if settled else found.rho
        diagonal, wanted = penalties.diagonal(rho), rows.allowed(found)
        before = _objective(rows, loss, eta, beta, diagonal)
        beta, eta, value = _damped(rows, loss, beta, eta, wanted, diagonal, before)
        if resting and loss.majorised and rows.cone is None:
            last = [*last[-2:], beta]
            beta, eta, value, last = _ahead(rows, loss, last, eta, value, diagonal)
        converged = (resting or rough) and before - value <= tol * (1 + abs(value))
        if converged:
            break
    return _finished(found, penalties, value, n_iter, beta, converged)


def _seen(rho: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Changes of strengths; those of terms that are shrunk away, or not at all, do not count."""
    return np.clip(rho, -10, 30) - np.clip(before, -10, 30)


def _working(rows: CodedRows, loss: Likelihood, eta: np.ndarray, count: float) -> Sums:
    slope, bend = loss.derivatives(rows.y, eta)
    weight = rows.weight * bend
    product = weight * (eta - rows.offset) - rows.weight * slope
    seen = weight > 0
    square = float(np.sum(product[seen] ** 2 / weight[seen]))
    return Sums(*rows.sums(weight, product), square, count)


def _objective(
    rows: CodedRows, loss: Likelihood, eta: np.ndarray, beta: np.ndarray, diagonal: np.ndarray
) -> float:
    return float(rows.weight @ loss.value(rows.y, eta) + 0.5 * diagonal @ beta**2)


def _damped(
    rows: CodedRows, loss: Likelihood, beta: np.ndarray, eta: np.ndarray, wanted: np.ndarray,
    diagonal: np.ndarray, before: float,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """The longest of ever shorter steps towards `wanted` that does not raise the objective."""
    target, share = rows.scores(wanted), 1.0
    for _ in range(30):
        trial, scores = beta + share * (wanted - beta), eta + share * (target - eta)
        value = _objective(rows, loss, scores, trial, diagonal)
        if np.isfinite(value) and value <= before + 1e-12 * abs(before):
            return trial, scores, value
        share *= 0.5
    return beta, eta, before


def _ahead(
    rows: CodedRows, loss: Likelihood, last: list[np.ndarray], eta: np.ndarray, value: float,
    diagonal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, list[np.ndarray]]:  # fmt: skip
    """Extrapolate three majorised steps (SQUAREM, Varadhan and Roland 2008) where that is lower."""
    beta = last[-1]
    if len(last) < 3:
        return beta, eta, value, last
    step = last[1] - last[0]
    bend = (last[2] - last[1]) - step
    length = float(np.linalg.norm(step) / max(float(np.linalg.norm(bend)), 1e-300))
    length = min(length, 1e4)
    while length > 1:  # a pass over the codes each, much cheaper than one over their pairs
        trial = last[0] + 2 * length * step + length**2 * bend
        scores = rows.scores(trial)
        found = _objective(rows, loss, scores, trial, diagonal)
        if np.isfinite(found) and found < value:
            return trial, scores, found, [trial]
        length /= 4
    return beta, eta, value, [beta]


def _finished(
    found: WorkingFit, penalties: Penalties, value: float, n_iter: int,
    beta: np.ndarray, converged: bool = True,
) -> PenalisedFit:  # fmt: skip
    diagonal = penalties.diagonal(found.rho)
    edf = 1 - diagonal * np.diag(found.inverse)
    return PenalisedFit(
        beta, found.inverse * found.dispersion, found.rho, edf,
        found.dispersion, float(value), found.criterion, n_iter, converged,
    )  # fmt: skip
