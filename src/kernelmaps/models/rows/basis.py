"""The functions of a term at the codes of its column, with their penalties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class TermBasis:
    """Functions at codes, and the penalties of their coefficients.

    Attributes
    ----------
    values : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
        Diagonal of the penalty matrix.
    smoothing_index : ndarray of int of shape (n_functions,)
        Which smoothing parameter each coefficient has, not decreasing.
    has_null_space : bool
        Whether the last smoothing parameter is that of the penalty's null space: a straight line,
        the indicators of missing values and of jumps, the contrast of two levels.
    at_rows : ndarray of shape (n_samples, n_functions), optional
        The functions at the values of the rows in memory, where these are not the values that their
        codes stand for.
    """

    values: np.ndarray
    penalty: np.ndarray
    smoothing_index: np.ndarray
    has_null_space: bool = False
    at_rows: np.ndarray | None = None

    @property
    def n_functions(self) -> int:
        return self.values.shape[1]

    @property
    def variance(self) -> np.ndarray:
        """Mean square over the rows of each function, with the variance that its penalty allows.

        Functions of natural bases have a mean square of one.
        """
        return 1 / np.maximum(self.penalty, 1e-300)

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """The term at its codes."""
        return self.values @ coefficients

    @property
    def n_smoothing(self) -> int:
        """Number of smoothing parameters."""
        return int(self.smoothing_index.max(initial=-1)) + 1

    def smoothest(self, max_functions: int) -> TermBasis:
        """The functions with the smallest penalties, those of the null space among them."""
        if self.n_functions <= max_functions:
            return self
        order = np.argsort(np.where(self.smoothing_index > 0, 0.0, self.penalty), kind="stable")
        return self.select(np.sort(order[:max_functions]))

    def with_two_smoothing_parameters(self, n_smoothest: int) -> TermBasis:
        """A smoothing parameter of their own for the smoothest functions of a curve.

        So a curve may rise steeply in one place and be smooth in the others, which one smoothing
        parameter for the curve does not allow.
        """
        rank = int(np.count_nonzero(self.smoothing_index == 0))  # functions of the range space
        if self.n_functions == rank or rank <= n_smoothest:
            return self
        sizes = [rank - n_smoothest, n_smoothest, self.n_functions - rank]
        order = np.r_[n_smoothest:rank, :n_smoothest, rank : self.n_functions]
        return replace(self.select(order), smoothing_index=np.repeat([0, 1, 2], sizes))

    def select(self, functions: np.ndarray) -> TermBasis:
        """Some of the functions."""
        return TermBasis(
            self.values[:, functions], self.penalty[functions], self.smoothing_index[functions],
            self.has_null_space, None if self.at_rows is None else self.at_rows[:, functions],
        )  # fmt: skip


@dataclass(frozen=True)
class LevelBasis:
    """Indicators of all codes of a large factor, with a ridge penalty: random intercepts.

    They are not centred, so that their Gram matrix is diagonal and the levels can be eliminated
    (:mod:`..solvers.levels`). The effect of a code that no row has is zero, the mean of the levels.

    Attributes
    ----------
    counts : ndarray of shape (n_codes,)
        Weight of the rows with each code.
    """

    counts: np.ndarray
    n_smoothing = 1
    has_null_space = False

    @property
    def n_functions(self) -> int:
        return len(self.counts)

    @property
    def penalty(self) -> np.ndarray:
        """The same for each level: a smoothing parameter of n weighs as much as its mean rows."""
        return np.full(len(self.counts), 1 / max(np.count_nonzero(self.counts), 1))

    @property
    def smoothing_index(self) -> np.ndarray:
        return np.zeros(len(self.counts), np.int64)

    @property
    def variance(self) -> np.ndarray:
        """Mean square over the rows of each function, with the variance that its penalty allows."""
        return self.counts / max(float(self.counts.sum()), 1e-300) / self.penalty

    def evaluate(self, coefficients: np.ndarray) -> np.ndarray:
        """The term at its codes."""
        return coefficients

    def select(self, functions: np.ndarray) -> LevelBasis:
        """Levels stay together."""
        return self


Basis = TermBasis | LevelBasis


def count_levels(bases: Sequence[Basis]) -> int:
    """Coefficients of a large factor, which is the last of the terms if there is one."""
    return bases[-1].n_functions if len(bases) and isinstance(bases[-1], LevelBasis) else 0


def coefficient_slices(bases: Iterable[Basis]) -> list[slice]:
    """Where the coefficients of each term are; coefficient 0 is the intercept."""
    ends = np.cumsum([1, *(basis.n_functions for basis in bases)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def select_functions(bases: Sequence[Basis], active: np.ndarray) -> list[Basis]:
    """The functions of terms whose coefficients are in `active`, which is sorted."""
    starts = np.cumsum([1, *(basis.n_functions for basis in bases)])
    ends = np.searchsorted(active, starts).tolist()
    return [
        basis if end - begin == basis.n_functions else basis.select(active[begin:end] - start)
        for basis, start, (begin, end) in zip(bases, starts[:-1], pairwise(ends), strict=True)
    ]
