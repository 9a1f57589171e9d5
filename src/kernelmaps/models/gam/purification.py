r"""Pure pairs: what a pair's function holds of its columns alone moves to their functions.

The functions of a pair and of its two columns are not unique: where columns are correlated, a part
of :math:`f_{ab}` may be a function of a alone. The functional analysis of variance divides it as

.. math:: f_{ab} = g_a + g_b + p_{ab}, \qquad
          \operatorname{E}[p_{ab} \mid a] = \operatorname{E}[p_{ab} \mid b] = 0

over the joint distribution of the columns (Hooker 2007; Lengerich, Tan, Chang, Hooker and Caruana
2020). Both g are added to the functions of the columns for display, and the sum of the model stays
what it is.

The joint distribution is known from the training rows only: given a, the values of p are those of
random b, independent from row to row. So g is estimated as any additive model is, by a penalised
regression of :math:`f_{ab}` on the functions that the columns' own terms have, with smoothing
parameters by REML. Means of :math:`f_{ab}` over the rows of each value of a, which are the
unpenalised estimate, are rough: they follow the chance that decides which b these rows have. What
the functions of a term cannot hold stays in the pair. With :math:`B` the functions of both columns,
:math:`S_λ` their penalties and :math:`f_{ab} = Fβ`,

.. math:: g = B\hat γ, \qquad \hat γ = Pβ, \qquad P = V B^\top F, \qquad
          V = (B^\top B + S_λ)^{-1},

a linear function of the pair's coefficients. The covariance of :math:`\hat γ`, about the g of the
population, is that of :math:`Pβ` and one that comes from the sample of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..rows.basis import LevelBasis, TermBasis
from ..rows.normal_equations import NormalEquations
from ..solvers.pirls import PIRLS, PenalisedFit
from ..solvers.reml import Penalties, estimate_smoothing
from .bases import category_basis, empty_basis
from .pairs import CoarseCodes
from .training_rows import DesignTerm

Slices = Sequence[tuple[DesignTerm, slice, slice]]


def subtract_main_effects(
    functions: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Functions of cells without functions of their rows and of their columns."""
    n_first, n_second = len(rows), len(columns)
    return functions - np.repeat(rows, n_second, axis=0) - np.tile(columns, (n_first, 1))


class Side(NamedTuple):
    """The functions of one of a pair's columns that a part of the pair may move to.

    Attributes
    ----------
    term : int
        Position of the column's term; −1 if it has none, and no functions.
    basis : TermBasis
        The functions, with their penalties, at the codes of the column.
    coarse : ndarray of shape (n_coarse_codes, n_functions)
        Their means over the rows of each of the pair's codes.
    gram : ndarray of shape (n_functions, n_functions)
        Their products over the rows.
    """

    term: int
    basis: TermBasis
    coarse: np.ndarray
    gram: np.ndarray

    @classmethod
    def from_codes(
        cls, slices: Slices, position: int, codes: CoarseCodes, weight: np.ndarray
    ) -> Side:
        """That of a column, whose coarse codes have these weights."""
        if position < 0:
            basis = empty_basis(len(codes.of_code))
            return cls(-1, basis, np.zeros((codes.size, 0)), np.zeros((0, 0)))
        term = slices[position][0]
        if isinstance(term.basis, LevelBasis):  # the levels that the pair distinguishes
            levels = category_basis(weight)
            gram = levels.values.T @ (weight[:, None] * levels.values)
            basis = replace(levels, values=levels.values[codes.of_code])
            return cls(position, basis, levels.values, gram)
        values, counts = term.basis.values, term.counts[:, None]
        # Means of the functions over the rows of each coarse code.
        coarse = codes.sum_rows(counts * values) / np.maximum(codes.sum_rows(counts), 1e-300)
        return cls(position, term.basis, coarse, values.T @ (counts * values))


DisplayedPart = tuple[np.ndarray, slice]
"""What a displayed function has of the coefficients at a slice, by the codes of the term."""


@dataclass(frozen=True)
class Projection:
    """How the function of a pair is divided, in one output.

    Attributes
    ----------
    sides : tuple of two Side
    to_main : two ndarray of shape (n_functions of the side, n_functions of the pair)
        P: coefficients of what moves to each column, from those of the pair.
    deviations : two ndarray of shape (n_functions of the side, …)
        C of both sides one upon the other, with CCᵀ the covariance of the coefficients of what
        moves that comes from the sample of rows.
    """

    sides: tuple[Side, Side]
    to_main: Sequence[np.ndarray]
    deviations: Sequence[np.ndarray]

    @classmethod
    def from_term(cls, term: DesignTerm, sides: tuple[Side, Side], beta: np.ndarray) -> Projection:
        """That of a pair with some coefficients; `sides` are its columns."""
        assert isinstance(term.basis, TermBasis)
        weight, functions = term.counts, term.basis.values
        cells = weight[:, :, None] * functions.reshape(*weight.shape, -1)
        products = [side.coarse.T @ cells.sum(axis=1 - k) for k, side in enumerate(sides)]
        to_main, deviations = _regression(
            sides, weight, np.concatenate(products), (functions @ beta).reshape(weight.shape), beta
        )
        split = [len(sides[0].gram)]
        return cls(sides, np.split(to_main, split), np.split(deviations, split))

    def move(self, axis: int, beta: np.ndarray) -> np.ndarray:
        """What moves to a column at its codes, for coefficients of the pair."""
        return self.sides[axis].basis.values @ (self.to_main[axis] @ beta)

    def evaluate_cells(self, moved: Sequence[np.ndarray]) -> np.ndarray:
        """Minus the functions of the sides with some coefficients, in the cells of the pair."""
        rows, columns = (side.coarse @ part for side, part in zip(self.sides, moved, strict=True))
        no_functions = np.zeros((len(rows) * len(columns), 1))
        return subtract_main_effects(no_functions, rows, columns)

    def moved_edf(
        self, axis: int, slices: Slices, pair: slice, fit: PenalisedFit, penalty: np.ndarray
    ) -> float:
        r"""Effective degrees of freedom that move to a column.

        In the coordinates :math:`(γ_a, β_{ab})`, :math:`γ_a = β_a + Pβ_{ab}`, the diagonal blocks
        of the matrix :math:`I - V \mathrm{diag}(d)/φ`, whose traces are the degrees of freedom,
        differ by :math:`-P V_{ab,a} \mathrm{diag}(d_a)/φ`: their sum stays. Coefficients that the
        fit has left out are left out here, too.
        """
        term = self.sides[axis].term
        if term < 0 or isinstance(slices[term][0].basis, LevelBasis):
            return 0.0
        main = slices[term][1]
        main_index, pair_index = fit.active_in(main), fit.active_in(pair)
        main_part, pair_part = fit.active[main_index], fit.active[pair_index]
        response = -fit.covariance[np.ix_(pair_index, main_index)] * penalty[main_part]
        active = np.ix_(main_part - main.start, pair_part - pair.start)
        return float(np.sum(self.to_main[axis][active] * response.T) / fit.dispersion)


def _regression(
    sides: tuple[Side, Side], weight: np.ndarray, products: np.ndarray, values: np.ndarray,
    beta: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""P and C of `Projection`, both sides one upon the other.

    `weight` and `values` are those of the cells, `products` are :math:`B^\top F`, and `beta` are
    coefficients of the pair. With the variance of p free to change from cell to cell,

    .. math:: CC^\top = V (B^\top \mathrm{diag}(p^2) B + σ^2 S_λ) V

    (White 1980; the second part is what the penalty leaves out).
    """
    total, square = float(weight.sum()), float(np.sum(weight * values**2))
    if not (square > 0 and len(products)):
        return np.zeros_like(products), np.zeros((len(products), 0))
    n_first = len(sides[0].gram)
    gram = np.zeros((1 + len(products),) * 2)
    gram[0, 0] = total  # of the intercept: centred functions have no products with it
    gram[1:, 1:] = _cell_products(sides, weight)
    gram[1 : 1 + n_first, 1 : 1 + n_first] = sides[0].gram
    gram[1 + n_first :, 1 + n_first :] = sides[1].gram
    problem = NormalEquations(gram, np.append(0.0, products @ beta), square, total)
    penalties = Penalties.from_bases([side.basis for side in sides])
    start = np.full(penalties.count, np.log(total))
    fit = estimate_smoothing(problem, penalties, start, tol=PIRLS.squared_tol)
    inverse = fit.inverse.dense[1:, 1:]
    to_main = inverse @ products
    moved = np.split(to_main @ beta, [n_first])
    rows, columns = (side.coarse @ part for side, part in zip(sides, moved, strict=True))
    pure = values - rows[:, None] - columns
    spread = _cell_products(sides, weight * pure**2)
    spread.flat[:: len(spread) + 1] += fit.dispersion * penalties.diagonal(fit.rho)[1:]
    variances, axes = np.linalg.eigh(spread)
    return to_main, inverse @ (axes * np.sqrt(np.maximum(variances, 0.0)))


def _cell_products(sides: tuple[Side, Side], weight: np.ndarray) -> np.ndarray:
    """Products of the functions of both sides over cells with some weights."""
    rows, columns = (side.coarse for side in sides)
    row_sums, column_sums = weight.sum(axis=1)[:, None], weight.sum(axis=0)[:, None]
    products = rows.T @ weight @ columns
    return np.block(
        [[rows.T @ (row_sums * rows), products], [products.T, columns.T @ (column_sums * columns)]]
    )


def pair_sides(slices: Slices) -> dict[int, tuple[Side, Side]]:
    """The columns of pairs, by the positions of the pairs."""
    single = {term.columns[0]: i for i, (term, _, _) in enumerate(slices) if len(term.columns) == 1}
    sides = {}
    for i, (term, _, _) in enumerate(slices):
        if term.pair is not None:
            row_side, column_side = (
                Side.from_codes(
                    slices, single.get(column, -1), codes, term.counts.sum(axis=1 - axis)
                )
                for axis, (column, codes) in enumerate(
                    zip(term.columns, term.pair.coarse, strict=True)
                )
            )
            sides[i] = row_side, column_side
    return sides


def displayed_parts(
    i: int, slices: Slices, projections: Mapping[int, Projection]
) -> tuple[list[DisplayedPart], list[np.ndarray]]:
    """What the displayed function of a term consists of, in one output.

    Parts are those of the term itself, and those that move to it from pairs. Of a large factor,
    whose levels are no functions, they are the latter. Deviations come from the sample of rows, at
    the codes of the term, one column for each.
    """
    term, span, _ = slices[i]
    if i in projections and isinstance(term.basis, TermBasis):
        pair = projections[i]  # without what moves, which has deviations from the sample of rows
        pure = term.basis.values + pair.evaluate_cells(pair.to_main)
        return [(pure, span)], [pair.evaluate_cells(pair.deviations)]
    parts: list[DisplayedPart] = []
    deviations = []
    if isinstance(term.basis, TermBasis):
        parts.append((term.basis.values, span))
    for k, pair in projections.items():
        for side, to_main, deviation in zip(pair.sides, pair.to_main, pair.deviations, strict=True):
            if side.term == i:
                parts.append((side.basis.values @ to_main, slices[k][1]))
                deviations.append(side.basis.values @ deviation)
    return parts, deviations
