"""Coded rows in memory or from a stream: losses, gradients, working least-squares problems.

The model matrix Z of a row's codes is never stored: sums over rows are sums over bins. Gram
matrices are kept while terms are added. Of rows from a stream, every evaluation is one pass over
the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._util.threads import cached_property, interruptible
from ...data import Block, Source
from ...data.dask import DaskSource, source_of_partition
from ...stats.pair_tables import add_scores, cross_products, products_by_level, right_sides
from ..losses import JointLoss, Loss
from .basis import Basis, TermBasis, coefficient_slices, count_levels, select_functions
from .normal_equations import (
    IndependentEquations,
    LevelSums,
    NormalEquations,
    WorkingProblem,
)
from .predictors import Predictors

CHUNK_ROWS = 1 << 18  # rows read at a time: tens of MB for ordinary tables


@dataclass
class GramCache:
    """ZᵀWZ of some terms, kept while others are added, for squared loss.

    Of a larger model only the products with its new terms are computed: a search for pairs in
    36,000 rows of casp_protein takes 8.5 seconds instead of 11.3.

    Attributes
    ----------
    weight : ndarray or None
        The diagonal of W.
    bases : sequence of TermBasis
        Of the terms.
    gram : ndarray
    """

    weight: np.ndarray | None = None
    bases: Sequence[Basis] = ()
    gram: np.ndarray = field(default_factory=lambda: np.zeros((1, 1)))

    def cached_blocks(
        self, bases: Sequence[Basis], weight: np.ndarray
    ) -> tuple[np.ndarray, list[bool]]:
        """ZᵀWZ of some terms with the blocks that are cached, and which terms are new.

        Blocks are those of the same array of weights: arrays are not compared.
        """
        if weight is not self.weight:
            self.bases, self.gram = (), self.gram[:1, :1]
        cached_ids = {id(basis) for basis in self.bases}
        is_new = [id(basis) not in cached_ids for basis in bases]
        cached = [basis for basis, new in zip(bases, is_new, strict=True) if not new]
        slices = coefficient_slices(bases)
        place = np.r_[0, *(span for span, new in zip(slices, is_new, strict=True) if not new)]
        gram = np.zeros((1 + sum(basis.n_functions for basis in bases),) * 2)
        gram[np.ix_(place, place)] = self.gram_of(cached)
        return gram, is_new

    def store(self, bases: Sequence[Basis], weight: np.ndarray, gram: np.ndarray) -> None:
        """Cache ZᵀWZ of some terms in the place of what there was."""
        self.weight, self.bases, self.gram = weight, tuple(bases), gram

    def has(self, bases: Sequence[Basis]) -> bool:
        """Whether the products of all these terms are cached."""
        return {id(basis) for basis in bases} <= {id(basis) for basis in self.bases}

    def gram_of(self, bases: Sequence[Basis]) -> np.ndarray | None:
        """ZᵀWZ of some terms; None if it is not cached for all of them."""
        if not self.has(bases):
            return None
        slices = dict(zip(map(id, self.bases), coefficient_slices(self.bases), strict=True))
        place = np.r_[0, *(slices[id(basis)] for basis in bases)]
        return self.gram[np.ix_(place, place)]


@dataclass(frozen=True)
class TermRows:
    """Rows in memory as the codes of terms, with targets, sample weights and offsets.

    A large factor is the last of the terms. `constraints` holds C of Cβ ≥ 0. The problem of
    squared loss takes products of terms from a `gram_cache`, which is for terms without levels.
    With several `predictors`, scores and derivatives have a column for each of them, and offsets
    are those of the first.
    """

    codes: Sequence[np.ndarray]
    bases: Sequence[Basis]
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None
    constraints: np.ndarray | None = None
    gram_cache: GramCache | None = None
    predictors: Predictors | None = None
    in_memory = True

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    @property
    def n_intercepts(self) -> int:
        """Intercepts, one for each linear predictor."""
        return 1 if self.predictors is None else self.predictors.count

    @property
    def n_functions(self) -> int:
        """Columns of Z, the intercept among them."""
        return 1 + sum(basis.n_functions for basis in self.bases)

    def evaluate(self, loss: Loss, beta: np.ndarray) -> EvaluationInMemory:
        """Evaluate the losses of all rows at some coefficients."""
        eta = self.scores(beta)
        value = float(self.weight @ loss.value(self.y, eta))
        return EvaluationInMemory(beta, value, self, loss, eta)

    def gradient(self, loss: Loss, beta: np.ndarray) -> np.ndarray:
        return self.evaluate(loss, beta).gradient()

    def squared_problem(self, mean: float | None = None) -> tuple[NormalEquations, float]:
        """The problem of squared loss, and the mean that was subtracted from the targets."""
        y = self.y - self.offset
        if mean is None:  # without it, yᵀWy − rᵀβ would cancel
            mean = float(np.average(y, weights=self.weight))
        response = self.weight * (y - mean)
        square = float(response @ (y - mean))
        return self.normal_equations(self.weight, response, square), mean

    def initial_intercept(self, loss: Loss) -> float | np.ndarray:
        return loss.initial_intercept(self.y, self.weight, self.offset)

    def estimate_parameter(self, loss: Loss, beta: np.ndarray, edf: float) -> Loss:
        return loss.estimate_parameter(self.y, self.scores(beta), self.weight, edf)

    def restrict(self, active: np.ndarray) -> TermRows:
        return replace(self, gram_cache=None, **_restrict(self, active))

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """The linear predictor η of all rows; a column for each if there are several."""
        if self.predictors is None:
            return self.offset + self._sum_terms(beta)
        columns = self.predictors.matrix(beta, self.n_functions).T
        eta = np.column_stack([self._sum_terms(np.ascontiguousarray(b)) for b in columns])
        eta[:, 0] += self.offset
        return eta

    def _sum_terms(self, beta: np.ndarray) -> np.ndarray:
        """Zβ of one predictor."""
        eta, n_levels = np.full(len(self.weight), beta[0]), self.n_levels
        codes, bases = self._dense
        dense = len(beta) - n_levels
        if self._matrix is not None:
            eta += self._matrix[:, 1:] @ beta[1:dense]
        else:
            add_scores(codes, [basis.values for basis in bases], beta[:dense], eta, self.n_jobs)
        if n_levels:
            eta += beta[dense:][self.codes[-1]]
        return eta

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv, for a column v of each predictor."""
        if self.predictors is None:
            return self._sum_rows(values)
        columns = np.ascontiguousarray(values.T)
        return self.predictors.vector(np.column_stack([self._sum_rows(v) for v in columns]))

    def _sum_rows(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv of one predictor."""
        if self._matrix is not None:
            return self._with_levels(self._matrix.T @ values, values)
        codes, bases = self._dense
        sums = right_sides(codes, [basis.values for basis in bases], values, self.n_jobs)
        return self._with_levels(sums, values)

    @cached_property
    def _matrix(self) -> np.ndarray | None:
        """Z without levels, if there are functions at the values of rows: these are few."""
        if all(basis.at_rows is None for basis in self._dense[1]):
            return None
        return self.dense_matrix()

    def dense_matrix(self, rows: Any = slice(None)) -> np.ndarray:
        """Z without levels, or some rows of it."""
        codes, bases = self._dense
        blocks = [
            basis.values[term_codes[rows]] if basis.at_rows is None else basis.at_rows[rows]
            for term_codes, basis in zip(codes, bases, strict=True)
        ]
        return np.hstack([np.ones((len(self.weight[rows]), 1)), *blocks])

    @property
    def n_levels(self) -> int:
        """Coefficients of a large factor."""
        return count_levels(self.bases)

    @property
    def _dense(self) -> tuple[Sequence[np.ndarray], Sequence[TermBasis]]:
        """Codes and bases of the terms that are not a large factor."""
        n_terms = len(self.bases) - (self.n_levels > 0)
        return self.codes[:n_terms], [b for b in self.bases[:n_terms] if isinstance(b, TermBasis)]

    def _with_levels(self, sums: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Zᵀv of all coefficients from that of the others than levels."""
        if not self.n_levels:
            return sums
        return np.concatenate([sums, np.bincount(self.codes[-1], values, self.n_levels)])

    def level_sums(self, weight: np.ndarray) -> LevelSums | None:
        """ZᵀWZ of the levels of a large factor."""
        if not self.n_levels:
            return None
        if self._matrix is not None:
            border = np.zeros((self.n_levels, self._matrix.shape[1]))
            np.add.at(border, self.codes[-1], weight[:, None] * self._matrix)
        else:
            codes, bases = self._dense
            values = [basis.values for basis in bases]
            border = products_by_level(
                self.codes[-1], self.n_levels, codes, values, weight, self.n_jobs
            )
        return LevelSums(border, border[:, 0].copy())

    def normal_equations(
        self, weight: np.ndarray, response: np.ndarray, square: float
    ) -> NormalEquations:
        """The problem with working weights W, Zᵀv on the right side, and zᵀWz."""
        gram, rhs = self.gram_and_rhs(weight, response)
        return NormalEquations(gram, rhs, square, self.total_weight, self.level_sums(weight))

    def predictor_equations(
        self, weights: dict[tuple[int, int], np.ndarray], response: np.ndarray, square: np.ndarray
    ) -> WorkingProblem:
        """The problem of several predictors with the working weights of pairs of them.

        Without weights of a pair of different predictors they are independent.
        """
        assert self.predictors is not None
        m, split = self.predictors.count, self.predictors.split(self.n_functions)
        if len(weights) == m:
            parts = []
            for k, (_, functions) in enumerate(split):
                rows = replace(self, predictors=None).restrict(functions)
                parts.append(rows.normal_equations(weights[k, k], response[:, k], float(square[k])))
            return IndependentEquations(tuple(parts), tuple(place for place, _ in split))
        gram = np.zeros((self.n_functions, m) * 2)
        for (a, b), weight in weights.items():
            gram[:, a, :, b] = self._gram(weight)
            gram[:, b, :, a] = gram[:, a, :, b].T
        gram = gram.reshape(m * self.n_functions, -1)
        if self.predictors.places is not None:
            gram = gram[np.ix_(self.predictors.places, self.predictors.places)]
        return NormalEquations(
            gram, self.adjoint(response), float(square.sum()), self.total_weight, n_intercepts=m
        )

    def _gram(self, weight: np.ndarray) -> np.ndarray:
        """ZᵀWZ, for weights of either sign."""
        if self._matrix is not None:
            return self._matrix.T @ (weight[:, None] * self._matrix)
        codes, bases = self._dense
        values = [basis.values for basis in bases]
        return cross_products(codes, values, weight, None, self.n_jobs)[0]

    def gram_and_rhs(
        self, weight: np.ndarray, response: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ZᵀWZ without levels, and Zᵀv; blocks in the Gram cache are not computed again."""
        cache, matrix = self.gram_cache, self._matrix
        if matrix is not None:
            gram, rhs = matrix.T @ (weight[:, None] * matrix), matrix.T @ response
        else:
            codes, bases = self._dense
            values = [basis.values for basis in bases]
            cached = None if cache is None else cache.cached_blocks(self.bases, weight)
            gram, rhs = cross_products(codes, values, weight, response, self.n_jobs, cached)
        if cache is not None:
            cache.store(self.bases, weight, gram)
        return gram, self._with_levels(rhs, response)


@dataclass(frozen=True)
class EvaluationInMemory:
    """Coefficients, and the linear predictors and losses of rows in memory.

    `rows` have targets, weights and offsets, `normal_equations` and `adjoint`: those of `TermRows`,
    say.
    """

    beta: np.ndarray
    value: float
    rows: Any
    loss: Loss
    eta: np.ndarray

    def working_problem(self) -> WorkingProblem:
        """The least-squares problem of a PIRLS step from here."""
        rows = self.rows
        if self.eta.ndim == 2:
            return self._problem_of_predictors()
        gradient, curvature = self.loss.derivatives(rows.y, self.eta)
        weight = rows.weight * curvature
        response = weight * (self.eta - rows.offset) - rows.weight * gradient
        positive = weight > 0
        square = float(np.sum(response[positive] ** 2 / weight[positive]))
        slopes = float(rows.weight @ self.loss.variance_slopes(rows.y, self.eta))
        problem = rows.normal_equations(weight, response, square)
        return self.loss.couple_rows(replace(problem, variance_slopes=slopes), self)

    def _problem_of_predictors(self) -> WorkingProblem:
        r"""The same of several predictors, whose weights in a row are a matrix W.

        With the gradient g of a row and its scores η without offsets, the response is Wη − g. The
        square is :math:`η^\top Wη - 2η^\top g`. The constant :math:`g^\top W^{-1}g` is left out: it
        may be larger by far than all that depends on smoothing parameters.
        """
        rows, loss, eta = self.rows, self.loss, self.eta.copy()
        assert isinstance(loss, JointLoss)
        eta[:, 0] -= rows.offset
        gradient = rows.weight[:, None] * self.loss.derivatives(rows.y, self.eta)[0]
        weights = {
            pair: rows.weight * weight for pair, weight in loss.hessian(rows.y, self.eta).items()
        }
        response = -gradient
        for (a, b), weight in weights.items():
            response[:, a] += weight * eta[:, b]
            if a != b:
                response[:, b] += weight * eta[:, a]
        square = np.sum(eta * (response - gradient), axis=0)
        return rows.predictor_equations(weights, response, square)

    def gradient(self) -> np.ndarray:
        """Derivatives of the losses by the coefficients."""
        rows = self.rows
        return rows.adjoint((rows.weight * self.loss.derivatives(rows.y, self.eta)[0].T).T)


@dataclass(frozen=True)
class EvaluationFromStream:
    """Coefficients, the sum of the losses there, and the problem of a PIRLS step."""

    beta: np.ndarray
    value: float
    problem: WorkingProblem

    def working_problem(self) -> WorkingProblem:
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
        Some rows, which the intercept to start from is that of, and the parameter of a loss.
    mean : float
        What squared loss subtracts from the targets.
    problem_from_bins : callable, optional
        The problem of squared loss for some bases, from sums over bins of an earlier pass.
    """

    fold: Callable[[Callable[[TermRows], Any]], Any]
    bases: Sequence[Basis]
    constraints: np.ndarray | None
    total_weight: float
    sample: TermRows
    mean: float
    problem_from_bins: Callable[[Sequence[Basis]], NormalEquations] | None = None
    predictors: Predictors | None = None
    in_memory = False

    @property
    def n_intercepts(self) -> int:
        """Intercepts, one for each linear predictor."""
        return 1 if self.predictors is None else self.predictors.count

    def _sum_rows(self, function: Callable[[TermRows], Any]) -> Any:
        """The sum over chunks of a function of their rows, with these bases and predictors."""
        bases, predictors = self.bases, self.predictors
        return self.fold(lambda rows: function(replace(rows, bases=bases, predictors=predictors)))

    def evaluate(self, loss: Loss, beta: np.ndarray) -> EvaluationFromStream:
        def evaluate(rows: TermRows) -> tuple[float, WorkingProblem]:
            evaluation = rows.evaluate(loss, beta)
            return evaluation.value, evaluation.working_problem()

        return EvaluationFromStream(beta, *self._sum_rows(evaluate))

    def gradient(self, loss: Loss, beta: np.ndarray) -> np.ndarray:
        return self._sum_rows(lambda rows: rows.gradient(loss, beta))

    def squared_problem(self) -> tuple[NormalEquations, float]:
        mean = self.mean
        if self.problem_from_bins is not None:
            return self.problem_from_bins(self.bases), mean
        return self._sum_rows(lambda rows: rows.squared_problem(mean)[0]), mean

    def restrict(self, active: np.ndarray) -> StreamedTermRows:
        return replace(self, **_restrict(self, active))

    def initial_intercept(self, loss: Loss) -> float | np.ndarray:
        return self.sample.initial_intercept(loss)

    def estimate_parameter(self, loss: Loss, beta: np.ndarray, edf: float) -> Loss:
        """By the sample, whose rows count as all of them."""
        scale = self.total_weight / self.sample.total_weight
        sample = replace(self.sample, bases=self.bases, weight=scale * self.sample.weight)
        return sample.estimate_parameter(loss, beta, edf)


def _restrict(rows: Any, active: np.ndarray) -> dict[str, Any]:
    """The bases, constraints and predictors of rows for some of the coefficients."""
    constraints = None if rows.constraints is None else rows.constraints[:, active]
    predictors = rows.predictors
    if predictors is not None:
        active, predictors = predictors.restrict(active)
    bases = select_functions(rows.bases, active)
    return {"bases": bases, "constraints": constraints, "predictors": predictors}


LossEvaluation = EvaluationInMemory | EvaluationFromStream
"""The losses of rows at some coefficients β; `value` is their sum, without penalties."""

SolverRows = TermRows | StreamedTermRows
"""Rows whose smoothing parameters can be estimated."""


# ---- passes over the chunks of a source ---------------------------------------------------------


@dataclass
class SumOverChunks:
    """The sum of a function's results over chunks, which are lists, tuples or things that add."""

    function: Callable[[Any], Any]
    total: Any = None

    def zero(self) -> SumOverChunks:
        return SumOverChunks(self.function)

    def update(self, chunk: Any) -> None:
        self._add(self.function(chunk))

    def merge(self, other: SumOverChunks) -> SumOverChunks:
        self._add(other.total)
        return self

    def _add(self, term: Any) -> None:
        if term is not None:  # None: the sum of a partition without rows
            self.total = term if self.total is None else _sum(self.total, term)


def _sum(total: Any, term: Any) -> Any:
    """Add two results, lists and tuples of them entry by entry."""
    if isinstance(total, list | tuple):
        return type(total)(_sum(a, b) for a, b in zip(total, term, strict=True))
    return total + term


def fold_chunks(
    source: Source, read: Callable[[Block], Any], stats: Any,
    chunks: Iterable[Block] | None = None,
) -> Any:  # fmt: skip
    """Update statistics with what `read` makes of each chunk of a source: one pass."""
    if isinstance(source, DaskSource):
        return stats.merge(source.merge_parts(_fold_partition, stats.zero(), read))
    for chunk in source.blocks(CHUNK_ROWS) if chunks is None else chunks:
        interruptible(lambda chunk=chunk: stats.update(read(chunk)))
    return stats


def _fold_partition(number: int, partition: Any, zero: Any, read: Callable[[Block], Any]) -> Any:
    stats = zero.zero()
    for chunk in source_of_partition(partition, chunk=number, frames=True).blocks(CHUNK_ROWS):
        stats.update(read(chunk))
    return stats
