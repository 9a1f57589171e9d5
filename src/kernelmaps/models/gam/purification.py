r"""Pure pairs: what a pair's function holds of its columns alone moves to their functions.

The functions of a pair and of its two columns are not unique: where columns are correlated, a part
of :math:`f_{ab}` may be a function of a alone. The functional analysis of variance divides it as

.. math:: f_{ab} = g_a + g_b + p_{ab}, \qquad
          \operatorname{E}[p_{ab} \mid a] = \operatorname{E}[p_{ab} \mid b] = 0

over the training rows (Lengerich, Tan, Chang, Hooker and Caruana 2020): g_a and g_b are the
weighted least-squares fit of a table by its rows and columns. Both are added to the functions of
the columns for display, and the sum of the model stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rows.basis import TermBasis
from .training_rows import DesignTerm

_RIDGE = 1e-9  # in units of the mean weight: rows and columns of a table both have its constant

# Functions at the codes of a term, and where their coefficients are.
Part = tuple[np.ndarray, slice]


def main_effects(
    functions: np.ndarray, weight: np.ndarray, sides: Sequence[bool] = (True, True)
) -> tuple[np.ndarray, np.ndarray]:
    """Functions of the rows and of the columns of a table that are closest to functions of cells.

    Parameters
    ----------
    functions : ndarray of shape (n_first * n_second, n_functions)
        Values in the cells.
    weight : ndarray of shape (n_first, n_second)
        Of the cells.
    sides : sequence of two bool
        Whether there are functions of the rows, and of the columns; zero where there are none.
    """
    cells = weight[:, :, None] * functions.reshape(*weight.shape, -1)
    rhs = np.concatenate([cells.sum(axis=1), cells.sum(axis=0)])
    by_row, by_column = (np.diag(weight.sum(axis=axis)) for axis in (1, 0))
    gram = np.block([[by_row, weight], [weight.T, by_column]])
    used = np.flatnonzero(np.repeat(sides, weight.shape))
    effects = np.zeros_like(rhs)
    if len(used):
        gram = gram[np.ix_(used, used)]
        gram.flat[:: len(gram) + 1] += _RIDGE * float(np.trace(gram)) / len(gram)
        effects[used] = np.linalg.solve(gram, rhs[used])
    return effects[: len(weight)], effects[len(weight) :]


def subtract_main_effects(
    functions: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Functions of cells without functions of their rows and of their columns."""
    n_first, n_second = len(first), len(second)
    return functions - np.repeat(first, n_second, axis=0) - np.tile(second, (n_first, 1))


def purify(
    slices: Sequence[tuple[DesignTerm, slice, slice]],
) -> tuple[list[list[Part]], dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Divide the pairs of a design.

    Returns
    -------
    parts : list of list
        What the displayed function of each term consists of: its own functions (those of a large
        factor, its levels, are left out), and those that move to it from pairs.
    moved : dict
        By the position of a pair: what moves to its first and to its second column. Nothing moves
        to a column that has no term.
    """
    single = {term.columns[0]: i for i, (term, _, _) in enumerate(slices) if term.pair is None}
    parts: list[list[Part]] = [
        [(term.basis.values, span)] if isinstance(term.basis, TermBasis) else []
        for term, span, _ in slices
    ]
    moved = {}
    for i, (term, span, _) in enumerate(slices):
        if term.pair is None or not isinstance(term.basis, TermBasis):
            continue
        sides = [column in single for column in term.columns]
        effects = main_effects(term.basis.values, term.counts, sides)
        marginal_sums = term.counts.sum(axis=1), term.counts.sum(axis=0)
        total = max(float(term.counts.sum()), 1e-300)
        first, second = (e - w @ e / total for e, w in zip(effects, marginal_sums, strict=True))
        parts[i] = [(subtract_main_effects(term.basis.values, first, second), span)]
        moved[i] = first, second
        coarse = term.pair.first, term.pair.second
        for column, codes, effect in zip(term.columns, coarse, moved[i], strict=True):
            if column in single:
                parts[single[column]].append((effect[codes.of_code], span))
    return parts, moved
