r"""Newton's method on the weights of a map: for problems that coordinate descent is slow on.

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b)

costs n·D² for D columns of ψ a step, whatever the condition: weak regularisation and smooth
penalties (D2 splines), for which the dual's diagonal says little, take it a dozen steps. At the
minimum :math:`β_i = -c_i ℓ'(y_i, f_i)` are the dual variables, which the certificate of
:mod:`.dual` then judges like those of its own.

Losses with corners are rounded off by a parabola of width μ, which shrinks from 1 to as little as
the gap asks for; their slopes, and so the duals, stay within the bounds of the loss. Losses whose
curvature changes from row to row are followed from a tenth of the cost to ten tenths, and so on:
from zero at once, rows that change sides keep the steps of a large cost short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from ..losses import Loss, make_loss, name_with
from .dual import Solution

_MOST_COLUMNS = 3000  # a step factorises a matrix of this size
_KEPT = 2**28  # bytes of ψ that are kept; more is computed again in every step
_BLOCK = 2**22  # numbers of ψ at a time
_STEPS = 200
_WIDTHS = 4.0 ** -np.arange(-1, 16)
_ROUGH = 1e-2  # what a step on the way to the full cost may still promise, of the objective


def is_feasible(n_columns: int, n_rows: int) -> bool:
    """Whether a step is affordable."""
    return n_columns <= _MOST_COLUMNS and n_rows * n_columns**2 <= 2e12


@dataclass
class Columns:
    """ψ of the rows that take part, block by block, with a column of ones for an intercept."""

    transform: Callable[[Any], Any]
    rows: Any
    n_columns: int
    fit_intercept: bool

    def __post_init__(self) -> None:
        self._block_rows = max(1, _BLOCK // max(self.n_columns, 1))
        keep = self.n_rows * self.n_columns * 8 <= _KEPT
        self._kept = list(self._computed()) if keep else None

    @property
    def n_rows(self) -> int:
        return self.rows.shape[0]  # CSR matrices have no length

    @property
    def size(self) -> int:
        return self.n_columns + self.fit_intercept

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        return iter(self._computed() if self._kept is None else self._kept)

    def _computed(self) -> Iterator[tuple[slice, np.ndarray]]:
        for begin in range(0, self.n_rows, self._block_rows):
            part = slice(begin, min(begin + self._block_rows, self.n_rows))
            block = self.transform(self.rows[part])
            block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, np.float64)
            ones = np.ones((len(block), 1)) if self.fit_intercept else np.zeros((len(block), 0))
            yield part, np.hstack([block, ones])

    def scores(self, w: np.ndarray) -> np.ndarray:
        out = np.empty(self.n_rows)
        for part, block in self:
            out[part] = block @ w
        return out

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        return sum((block.T @ values[part] for part, block in self), np.zeros(self.size))

    def system(self, slope: np.ndarray, bend: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Zᵀg and ZᵀDZ."""
        gradient, gram = np.zeros(self.size), np.zeros((self.size, self.size))
        for part, block in self:
            gradient += block.T @ slope[part]
            root = np.sqrt(bend[part])[:, None] * block
            gram += root.T @ root
        return gradient, gram


def minimise(columns: Columns, problem: Any, examples: np.ndarray, tol: float) -> Solution:
    """Minimise P for all lanes; the solution has weights [column][lane].

    The certificate is P(w, b) − D(β), with β the slopes of the losses at w, made to sum to zero
    where there is an intercept: a point that D is finite at, so that the minimum lies between.

    Parameters
    ----------
    columns : Columns
        Of the examples.
    problem : Problem
        Loss, targets and costs of all rows.
    examples : int32[m]
        Which of them take part.
    tol : float
        Relative duality gap that is wanted.
    """
    lanes, cost, y = problem.positive.size, problem.cost[examples], problem.y[examples]
    loss = make_loss(name_with(problem.loss), y, epsilon=problem.epsilon)
    primal, gap, start, intercept = np.zeros((4, lanes))
    weights, beta = np.zeros((columns.n_columns, lanes)), np.zeros((problem.y.size, lanes))
    n_iter = 0
    for lane, code in enumerate(problem.positive):
        target = np.where(y == code, 1.0, -1.0) if loss.of_labels else y
        own = Lane(columns, loss, target, cost, problem.epsilon, tol)
        start[lane] = float(cost @ own.parts(own.f, 1e-300)[0])
        own.minimise()
        weights[:, lane] = own.w[: columns.n_columns]
        intercept[lane] = own.w[-1] if columns.fit_intercept else 0.0
        beta[examples, lane] = own.beta
        primal[lane], gap[lane] = own.primal, own.gap
        n_iter = max(n_iter, own.steps)
    # Small beside the objective or, where that is next to zero (targets that the intercept alone
    # explains), beside rounding errors of where it began.
    small = bool(np.all(np.abs(gap) <= np.maximum(tol * primal, 1e-13 * start)))
    visits = n_iter * len(examples)
    return Solution(weights, intercept, beta, primal, gap, n_iter, visits, small, "primal")


class Lane:
    """One problem: Newton's method, and the certificate of where it stands."""

    def __init__(
        self, columns: Columns, loss: Loss, y: np.ndarray, cost: np.ndarray, epsilon: float,
        tol: float,
    ) -> None:  # fmt: skip
        self.columns, self.loss, self.y, self.cost = columns, loss, y, cost
        self.epsilon, self.tol, self.steps, self.gap = epsilon, tol, 0, np.inf
        self.own = np.ones(columns.size)
        self.own[columns.n_columns :] = 0.0  # the intercept is not penalised
        self.w, self.f = np.zeros(columns.size), np.zeros(len(y))

    def parts(self, f: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, first derivative and curvature by f, with corners rounded off."""
        loss, scale = self.loss.rounded(width), self.loss.scale
        slope, bend = loss.derivatives(self.y, f)
        return scale * loss.value(self.y, f), scale * slope, scale * bend

    def minimise(self) -> None:
        """Go to the minimum; losses with corners by way of ever less rounded ones."""
        corners = self.loss.has_corners
        if self.loss.curvature_varies and not corners:
            self.approach()
        scale = float(np.average(np.abs(self.y), weights=self.cost)) or 1.0
        for width in scale * _WIDTHS if corners else (1.0,):
            self.newton(width)
            self.certify(width)
            if self.gap <= 0.5 * self.tol * self.primal:
                break

    def certify(self, width: float) -> None:
        """P(w, b) and P − D(β)."""
        beta = -self.cost * self.parts(self.f, width)[1]
        self.beta = _balanced(beta) if self.columns.fit_intercept else beta
        price = float(self.cost @ self.parts(self.f, 1e-300)[0])
        self.primal = 0.5 * float(self.own @ self.w**2) + price
        other = self.columns.adjoint(self.beta)
        rules: Any = self.loss.rules
        conjugate = np.vectorize(rules.conjugate, otypes=[np.float64])
        paid = float(conjugate(self.y, self.beta, self.cost, self.epsilon).sum())
        self.gap = self.primal + 0.5 * float(self.own @ other**2) + paid

    def approach(self) -> None:
        """Near the minima of the costs divided by powers of ten, the smallest costs first."""
        cost = self.cost
        for power in range(int(np.ceil(np.log10(cost.max()))), 0, -1):
            self.cost = cost / 10.0**power
            self.newton(1.0, rough=True)
        self.cost = cost

    def newton(self, width: float, rough: bool = False) -> None:
        """Minimise the objective with the losses rounded off by `width`."""
        for _ in range(_STEPS):
            value, slope, bend = self.parts(self.f, width)
            gradient, system = self.columns.system(self.cost * slope, self.cost * bend)
            gradient += self.own * self.w
            step = _step(gradient, system, self.own)
            # The dual value is off by about |w||gradient|, the primal by the decrement.
            off = float(np.linalg.norm(gradient) * (1 + np.linalg.norm(self.w)))
            total = 0.5 * float(self.own @ self.w**2) + float(self.cost @ value)
            promised = -float(gradient @ step)
            if rough and promised <= _ROUGH * total:
                return
            if max(off, promised) <= 1e-2 * self.tol * total:
                return
            share = self.share(step, self.columns.scores(step), width)
            if share == 0:
                return
            self.steps += 1

    def share(self, step: np.ndarray, along: np.ndarray, width: float) -> float:
        """Go as far along a step as the (convex) objective falls; how far that was."""

        def slope(t: float) -> float:
            by_f = self.parts(self.f + t * along, width)[1]
            return float(self.own * (self.w + t * step) @ step + (self.cost * by_f) @ along)

        if not slope(0.0) < 0:
            return 0.0
        end = 1.0
        while slope(end) < 0 and end < 64:
            end *= 2
        if slope(end) > 0:
            end = float(brentq(slope, 0.0, end, xtol=1e-12, rtol=1e-6, maxiter=60))
        self.w, self.f = self.w + end * step, self.f + end * along
        return end


def _step(gradient: np.ndarray, system: np.ndarray, own: np.ndarray) -> np.ndarray:
    # Where no loss is curved the intercept has none either: a little keeps the step finite.
    tiny = 1e-12 * float(np.trace(system)) / len(own) + 1e-6 * (system[-1, -1] == 0)
    return -cho_solve(cho_factor(system + np.diag(own + tiny)), gradient)


def _balanced(beta: np.ndarray) -> np.ndarray:
    """Duals that sum to zero: those of the larger side shrink, which is feasible for every loss."""
    total = float(beta.sum())
    side = np.where(beta * total > 0, beta, 0.0)
    return beta - side * (total / float(side.sum())) if total and side.any() else beta
