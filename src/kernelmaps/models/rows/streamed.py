"""Coded rows from a stream: every evaluation is one pass over the chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..losses import Loss
from .basis import Basis, select_functions
from .in_memory import TermRows
from .protocol import NormalEquations

Fold = Callable[[Callable[[TermRows], Any]], Any]


@dataclass(frozen=True)
class EvaluationFromStream:
    """Coefficients, the sum of the losses there, and the problem of a PIRLS step."""

    beta: np.ndarray
    value: float
    problem: NormalEquations

    def working_problem(self) -> NormalEquations:
        return self.problem

    def gradient(self) -> np.ndarray:
        return self.problem.product(self.beta) - self.problem.rhs


@dataclass(frozen=True)
class StreamedTermRows:
    """Rows that are read anew for each evaluation, with some terms.

    Attributes
    ----------
    fold : callable
        The sum over all chunks of a function of their rows: one pass.
    bases, constraints
        As in `TermRows`.
    total_weight : float
        Sum of the sample weights.
    sample : TermRows
        Some rows, which the intercept to start from is that of.
    mean : float
        What squared loss subtracts from the targets.
    problem_from_bins : callable, optional
        The problem of squared loss for some bases, from sums over bins of an earlier pass.
    """

    fold: Fold
    bases: Sequence[Basis]
    constraints: np.ndarray | None
    total_weight: float
    sample: TermRows
    mean: float
    problem_from_bins: Callable[[Sequence[Basis]], NormalEquations] | None = None
    in_memory = False

    def at(self, loss: Loss, beta: np.ndarray) -> EvaluationFromStream:
        return EvaluationFromStream(beta, *self.fold(partial(_evaluate, self.bases, loss, beta)))

    def gradient(self, loss: Loss, beta: np.ndarray) -> np.ndarray:
        return self.fold(partial(_gradient, self.bases, loss, beta))

    def squared_problem(self) -> tuple[NormalEquations, float]:
        if self.problem_from_bins is not None:
            return self.problem_from_bins(self.bases), self.mean
        return self.fold(partial(_squared_problem, self.bases, self.mean)), self.mean

    def restricted(self, active: np.ndarray) -> StreamedTermRows:
        constraints = None if self.constraints is None else self.constraints[:, active]
        return replace(self, bases=select_functions(self.bases, active), constraints=constraints)

    def initial_intercept(self, loss: Loss) -> float:
        return self.sample.initial_intercept(loss)


def _evaluate(
    bases: Sequence[Basis], loss: Loss, beta: np.ndarray, rows: TermRows
) -> tuple[float, NormalEquations]:
    evaluation = replace(rows, bases=bases).at(loss, beta)
    return evaluation.value, evaluation.working_problem()


def _gradient(bases: Sequence[Basis], loss: Loss, beta: np.ndarray, rows: TermRows) -> np.ndarray:
    return replace(rows, bases=bases).gradient(loss, beta)


def _squared_problem(bases: Sequence[Basis], mean: float, rows: TermRows) -> NormalEquations:
    return replace(rows, bases=bases).squared_problem(mean)[0]
