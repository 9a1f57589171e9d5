"""The fitted additive predictor: codes of columns, terms, and their sum for rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..._util.schema import (
    SchemaError,
    anything,
    array,
    either,
    instance,
    integer,
    optional,
    record,
    saved,
    text,
)
from ..._util.threads import cached_property, row_blocks
from ...data.columns import Column
from ...engine.apply import MAX_READABLE, apply_table
from ..shapes import tabulated_importance
from .codebooks import Codebook
from .functions import STRAIGHT, TermFunctions, functions_of, term_values
from .posterior import LevelPosterior, Posterior

_BLOCK_BYTES = 2**21  # of temporaries, which stay in a cache
_BY_CODE = either((array("f8", "codes outputs"), array("f8", "codes second outputs")))


@record
class FittedTerm:
    """One function, as values at codes.

    Attributes
    ----------
    name : str
        Of the column, or ``"a × b"``.
    kind : {"spline", "linear", "parametric", "category", "periodic", "pair"}
    columns : tuple of int
        One column, or two.
    values, errors : ndarray of shape (n_codes, n_outputs) or (n_first, n_second, n_outputs)
        The function at its codes, centred over the training rows, and the standard errors of the
        function that is shown (see `AdditivePredictor.pure_terms`).
    counts : ndarray of shape (n_codes,) or (n_first, n_second)
        Weight of the training rows with these codes.
    edf, statistic, p_value : ndarray of shape (n_outputs,)
        Effective degrees of freedom of the function that is shown; the statistic of a test of it
        against "no effect" (F where the dispersion is estimated, else χ²), and its approximate
        significance.
    smoothing : ndarray of shape (n_smoothing, n_outputs)
        Smoothing parameters: of the curvature (for many rows two, the second for the smoothest
        functions), and of the straight line.
    coarse : tuple of ndarray
        For pairs: the coarse code of each code, for both columns.
    reference_df : ndarray of shape (n_outputs,), optional
        Degrees of freedom that the statistic is compared with.
    main_parts : tuple of ndarray
        For pairs: what `values` holds of the first and of the second column alone, at the codes of
        these columns. It is shown as a part of their functions.
    increment_errors : ndarray of shape (n_codes - 2, n_outputs), optional
        For columns of numbers: standard errors of the differences between neighbouring bins.
    positions : tuple of ndarray
        For pairs: the means of the coarse bins of both columns, between which values are
        interpolated; a column without any has steps.
    linear : tuple of bool
        For pairs: whether they are linear in each column, beyond the training rows, too.
    n_functions : int
        Basis functions, of which penalties leave as much as `edf` says; 0 where not known.
    extrapolation : {"constant", "linear"}
        How a curve continues beyond the training rows; lines always continue.
    """

    name: str = saved(text())
    kind: str = saved(text(("spline", "linear", "parametric", "category", "periodic", "pair")))
    columns: tuple[int, ...] = saved(anything)
    values: np.ndarray = saved(_BY_CODE)
    errors: np.ndarray = saved(_BY_CODE)
    counts: np.ndarray = saved(either((array("f8", "codes"), array("f8", "codes second"))))
    edf: np.ndarray = saved(array("f8", "outputs"))
    statistic: np.ndarray = saved(array("f8", "outputs"))
    p_value: np.ndarray = saved(array("f8", "outputs", low=0, high=1))
    smoothing: np.ndarray = saved(array("f8", "_ outputs", low=0, finite=False))
    coarse: tuple[np.ndarray, ...] = saved(anything, default=())
    reference_df: np.ndarray | None = saved(optional(array("f8", "outputs", low=0)), default=None)
    main_parts: tuple[np.ndarray, ...] = saved(anything, default=())
    increment_errors: np.ndarray | None = saved(
        optional(array("f8", "_ outputs", low=0)), default=None
    )
    positions: tuple[np.ndarray, ...] = saved(anything, default=())
    linear: tuple[bool, ...] = saved(anything, default=())
    n_functions: int = saved(integer(0), default=0)
    extrapolation: str = saved(text(("constant", "linear")), default="constant")

    def _check_state(self) -> None:
        n_columns = len(self.columns) if isinstance(self.columns, tuple) else 0
        pair = n_columns == 2
        valid = n_columns in (1, 2) and all(isinstance(j, int) and j >= 0 for j in self.columns)
        if not valid or (self.kind == "pair") != pair or self.values.ndim != 1 + n_columns:
            raise SchemaError(f"the term {self.name!r} has other columns than its values")
        if self.errors.shape != self.values.shape or self.counts.shape != self.values.shape[:-1]:
            raise SchemaError(f"the term {self.name!r} has counts or errors of other codes")
        if self.increment_errors is not None and (
            pair or len(self.increment_errors) != max(len(self.values) - 2, 0)
        ):
            raise SchemaError(f"the term {self.name!r} has errors of other increments")
        if len(self.coarse) != (2 if pair else 0):
            raise SchemaError(f"the term {self.name!r} lacks its coarse codes")
        for axis, codes in enumerate(self.coarse):
            array("u1", "_", high=self.values.shape[axis] - 1)(codes, f"the term {self.name!r}", {})
        if self.positions and (not pair or len(self.positions) != 2):
            raise SchemaError(f"the term {self.name!r} has positions of other columns")
        for axis, nodes in enumerate(self.positions):
            array("f8", "_", least=0)(nodes, f"the term {self.name!r}", {})
            if len(nodes) not in (0, self.values.shape[axis] - 1) or (np.diff(nodes) <= 0).any():
                raise SchemaError(f"the positions of the term {self.name!r} are not in order")
        if self.linear and not (
            pair and len(self.linear) == 2 and all(isinstance(side, bool) for side in self.linear)
        ):
            raise SchemaError(f"the term {self.name!r} is linear in other columns")
        if self.main_parts and (not pair or len(self.main_parts) != 2):
            raise SchemaError(f"the term {self.name!r} has parts of other columns")
        for axis, main_effect in enumerate(self.main_parts):
            shape = f"{len(self.coarse[axis])} {self.values.shape[-1]}"
            array("f8", shape)(main_effect, f"the term {self.name!r}", {})

    @property
    def continues(self) -> bool:
        """Whether the function goes on along a straight line beyond the training rows."""
        return self.kind in STRAIGHT or self.extrapolation == "linear"

    @property
    def importance(self) -> float:
        """Standard deviation over the training rows, outputs averaged."""
        return tabulated_importance(self.values, self.counts)


@dataclass(frozen=True)
class LevelDeviations:
    """The posterior of a large factor for rows with these codes; see `LevelPosterior`."""

    posterior: LevelPosterior
    codes: np.ndarray

    def shared(self, output: int, rows: slice) -> np.ndarray:
        """Coefficients of ξ: what the levels have in common with the other terms."""
        loadings, directions = self.posterior.loadings[output], self.posterior.directions[output]
        return loadings[self.codes[rows]].astype(np.float64) @ directions.T

    def variances(self, output: int, rows: slice) -> np.ndarray:
        """Variances of ε."""
        return self.posterior.variances[output, self.codes[rows]]


@dataclass(frozen=True)
class _MovedPart:
    """What moves from the pair at a position to the term of its first or second column.

    `term` is that of the column, at the position `single`, with what moves as its values.
    """

    pair: int
    axis: int
    single: int
    term: FittedTerm
    coarse: np.ndarray


@record
class AdditivePredictor:
    """Codebooks of all columns, the terms, an intercept for each output, and the posterior."""

    books: tuple[Codebook, ...] = saved(anything)
    terms: tuple[FittedTerm, ...] = saved(anything)
    intercept: np.ndarray = saved(array("f8", "outputs"))
    posterior: Posterior = saved(instance((Posterior,)))

    @classmethod
    def deferred(
        cls, books: tuple[Codebook, ...], functions: tuple[FittedTerm, ...], intercept: np.ndarray,
        infer: Callable[[], tuple[tuple[FittedTerm, ...], Posterior]],
    ) -> AdditivePredictor:  # fmt: skip
        """A predictor that computes the terms and the posterior when they are first asked for.

        Parameters
        ----------
        books, intercept
            As in the constructor.
        functions : tuple of FittedTerm
            The terms without standard errors and tests, which predictions take.
        infer : callable
            Returns the terms and the posterior.
        """
        predictor = cls.__new__(cls)
        vars(predictor).update(books=books, intercept=intercept)
        vars(predictor).update(_functions=functions, _infer=infer)
        return predictor

    def __getattr__(self, name: str) -> Any:
        state = vars(self)
        infer = state.get("_infer")
        if name in ("terms", "posterior") and infer is not None:
            terms, posterior = infer()
            state.update(terms=terms, posterior=posterior)
            state.pop("_infer", None)
            state.pop("_functions", None)
        if name not in state:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return state[name]

    def _saved(self) -> dict[str, Any]:
        """What a file holds."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def _predicting_terms(self) -> tuple[FittedTerm, ...]:
        """The terms, with or without standard errors and tests."""
        return vars(self).get("_functions") or self.terms

    def _check_state(self) -> None:
        for items, kind in ((self.books, Codebook), (self.terms, FittedTerm)):
            valid = isinstance(items, tuple) and all(isinstance(item, kind) for item in items)
            if not valid or not items:
                raise SchemaError(f"the model must hold a tuple of {kind.__name__}")
        for term in self.terms:
            if max(term.columns) >= len(self.books):
                raise SchemaError(f"the term {term.name!r} is of a column that is not there")
            sizes = [self.books[j].n_codes for j in term.columns]
            in_term = [len(c) for c in term.coarse] if term.coarse else [len(term.values)]
            if sizes != in_term or term.values.shape[-1] != len(self.intercept):
                raise SchemaError(f"the term {term.name!r} does not fit its column or the outputs")
        n_codes = [basis.shape[0] for basis in self.posterior.bases]
        if n_codes != [term.counts.size for term in self.terms]:
            raise SchemaError("the posterior is of other terms")
        if len(self.posterior.factors) != len(self.intercept):
            raise SchemaError("the posterior is of another number of outputs")
        levels = self.posterior.levels
        if levels is not None and (
            levels.term >= len(self.terms) or self.terms[levels.term].kind != "category"
        ):
            raise SchemaError("the posterior has levels of a term that is no category")

    @cached_property
    def functions(self) -> TermFunctions:
        """The terms as a table of the engine."""
        return functions_of(self.books, self._predicting_terms)

    @cached_property
    def pure_terms(self) -> tuple[FittedTerm, ...]:
        """The terms as they are shown: pairs without what they hold of single columns.

        The cells of a pair are means over their rows.
        """
        values = [term.values.copy() for term in self.terms]
        for moved in self._moved_parts:
            values[moved.single] += moved.term.values
            coarse, n_coarse = moved.coarse, values[moved.pair].shape[moved.axis]
            weight = np.bincount(coarse, moved.term.counts, n_coarse)
            sums = np.zeros((n_coarse, len(self.intercept)))
            np.add.at(sums, coarse, moved.term.counts[:, None] * moved.term.values)
            means = sums / np.maximum(weight, 1e-300)[:, None]
            values[moved.pair] -= means[:, None] if moved.axis == 0 else means
        pairs = zip(self.terms, values, strict=True)
        return tuple(replace(term, values=of_term, main_parts=()) for term, of_term in pairs)

    @cached_property
    def _moved_parts(self) -> list[_MovedPart]:
        """What moves from pairs to the terms of single columns to be shown."""
        single = {term.columns[0]: t for t, term in enumerate(self.terms) if not term.coarse}
        return [
            _MovedPart(t, axis, single[column], replace(self.terms[single[column]], values=values),
                       term.coarse[axis])
            for t, term in enumerate(self.terms)
            for axis, (column, values) in enumerate(zip(term.columns, term.main_parts))
            if column in single
        ]  # fmt: skip

    @cached_property
    def _error_predictor(self) -> AdditivePredictor:
        """The standard errors in the place of the terms; straight lines no longer go on."""
        terms = (replace(t, values=t.errors, main_parts=()) for t in self._ended.terms)
        return replace(self, terms=tuple(terms))

    @cached_property
    def _ended(self) -> AdditivePredictor:
        """The same with terms that are all constant beyond the training rows."""
        kinds = dict.fromkeys(STRAIGHT, "spline")
        terms = (
            replace(t, kind=kinds.get(t.kind, t.kind), extrapolation="constant", linear=())
            for t in self.terms
        )
        return replace(self, terms=tuple(terms))

    @cached_property
    def _continued(self) -> AdditivePredictor:
        """The same with curves that all go on with the slopes at their ends."""
        terms = (
            replace(t, extrapolation="linear") if t.kind in ("spline", "pair") else t
            for t in self.terms
        )
        return replace(self, terms=tuple(terms))

    def count_beyond(self, columns: Sequence[Column]) -> Counter[str]:
        """Numbers of rows with values beyond the range of the training rows, by column."""
        counts: Counter[str] = Counter()
        terms = self._predicting_terms
        periodic = {j for term in terms if term.kind == "periodic" for j in term.columns}
        for j in sorted({j for term in terms for j in term.columns} - periodic):
            if self.books[j].kind == "number" and not columns[j].is_category:
                values, (low, high) = columns[j].values, self.books[j].training_range
                counts[self.books[j].name] = int(np.sum((values < low) | (values > high)))
        return +counts

    def contributions(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Values of the terms as they are shown: shape (n_samples, n_terms, n_outputs)."""
        values = self._fitted_contributions(columns, owner)
        if self._moved_parts:
            moved_terms = replace(self, terms=tuple(moved.term for moved in self._moved_parts))
            contributions = moved_terms._fitted_contributions(columns, owner)
            for k, moved in enumerate(self._moved_parts):
                values[:, moved.pair] -= contributions[:, k]
                values[:, moved.single] += contributions[:, k]
        return values

    def _fitted_contributions(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """The same as they were fitted."""
        values = np.empty((len(columns[0]), len(self.terms), len(self.intercept)))
        for rows, function_values in self._blocks(columns, owner):
            for t, contribution in enumerate(term_values(self.terms, function_values, np)):
                values[rows, t] = contribution
        return values

    def errors(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Standard errors of the terms for rows, shaped as their contributions.

        Beyond the training rows they grow as those of `score_errors` do.
        """
        errors = self._error_predictor._fitted_contributions(columns, owner)
        growth = self._continued._term_variances(columns, owner)
        growth -= self._ended._term_variances(columns, owner)
        bias = self._continued._fitted_contributions(columns, owner)
        bias -= self._fitted_contributions(columns, owner)
        return np.sqrt(np.maximum(errors**2 + growth, 0.0) + bias**2)

    def _term_variances(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Posterior variances of the sums of each term and the intercept, without new data."""
        factors = self._posterior_factors()
        ends = np.cumsum([1, *(basis.shape[1] for basis in self.posterior.bases)]).tolist()
        variances = np.empty((len(columns[0]), len(self.terms), len(factors)))
        for rows, design in self._posterior_design(columns, owner):
            for t, (first, last) in enumerate(pairwise(ends)):
                used = [0, *range(first, last)]
                for k, factor in enumerate(factors):
                    variances[rows, t, k] = np.sum((design[:, used] @ factor[used]) ** 2, axis=1)
        return variances

    def score_errors(
        self, columns: Sequence[Column], owner: str, as_fitted: bool = False
    ) -> np.ndarray:
        r"""Standard errors of the scores of rows: shape (n_samples, n_outputs).

        At a distance d from the end of a curve, the function is taken to go on with the slope s
        that it has there, and the prediction to have its value at the end. So the error is
        :math:`\sqrt{\operatorname{Var}(f + sd) + (\hat s d)^2}`, without the second part where
        the prediction goes on, too.

        With `as_fitted` errors are those of the fit: a curve ends as predictions do, and a level
        without a code counts as the mean that the fit has for it.
        """
        factors, levels = self._posterior_factors(), self._level_deviations(columns, owner)
        left_out = list(self.posterior.new_levels) if as_fitted else []
        errors, source = np.empty((len(columns[0]), len(factors))), self._continued
        if as_fitted:
            source = self
        for rows, design in source._posterior_design(columns, owner):
            design[:, left_out] = 0.0
            for k, factor in enumerate(factors):
                deviations = design @ factor
                if levels is not None:
                    deviations += levels.shared(k, rows)
                with np.errstate(over="ignore"):
                    errors[rows, k] = np.linalg.norm(deviations, axis=1)
                if levels is not None:
                    errors[rows, k] = np.sqrt(errors[rows, k] ** 2 + levels.variances(k, rows))
        return errors if as_fitted else np.hypot(errors, self._continuation(columns, owner))

    def _continuation(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """What the slopes of curves that predictions end would add beyond the training rows."""
        return self._continued.scores(columns, owner) - self.scores(columns, owner)

    def score_draws(
        self, columns: Sequence[Column], owner: str, n_draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Scores of rows for coefficients from the posterior: (n_draws, n_samples, n_outputs).

        They have the standard errors of `score_errors`.
        """
        factors, levels = self._posterior_factors(), self._level_deviations(columns, owner)
        draws = np.tile(self.scores(columns, owner), (n_draws, 1, 1))
        normal = [rng.normal(size=(len(factor), n_draws)) for factor in factors]
        draws += rng.normal(size=(n_draws, 1, len(factors))) * self._continuation(columns, owner)
        for rows, design in self._continued._posterior_design(columns, owner):
            for k, (factor, drawn) in enumerate(zip(factors, normal, strict=True)):
                draws[:, rows, k] += (design @ (factor @ drawn)).T
                if levels is not None:
                    draws[:, rows, k] += (levels.shared(k, rows) @ drawn).T
        if levels is not None:
            present, inverse = np.unique(levels.codes, return_inverse=True)
            for k in range(len(factors)):
                deviations = np.sqrt(levels.posterior.variances[k, present])
                draws[:, :, k] += (deviations * rng.normal(size=(n_draws, len(present))))[
                    :, inverse
                ]
        return draws

    def _level_deviations(self, columns: Sequence[Column], owner: str) -> LevelDeviations | None:
        """How the effects of a large factor deviate, for rows."""
        levels = self.posterior.levels
        if levels is None:
            return None
        column = self.terms[levels.term].columns[0]
        return LevelDeviations(levels, self.books[column].category_codes(columns[column], owner))

    def model_matrix(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Functions of the posterior for rows, the intercept first: one column each."""
        blocks = [design for _, design in self._posterior_design(columns, owner)]
        return np.concatenate(blocks)

    def function_covariance(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Covariance over rows of the functions of the posterior, without the intercept."""
        gram = sum(design.T @ design for _, design in self._posterior_design(columns, owner))
        gram = np.asarray(gram) / len(columns[0])
        return gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:])

    def _posterior_factors(self) -> list[np.ndarray]:
        """L of each output, with LLᵀ the covariance of the coefficients."""
        return [self.posterior.factor(k) for k in range(len(self.intercept))]

    def _posterior_design(
        self, columns: Sequence[Column], owner: str
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows, and the functions of the posterior for them, the intercept first."""
        predictor = self._basis_predictor
        if not predictor.terms:
            yield slice(0, len(columns[0])), np.ones((len(columns[0]), 1))
            return
        for rows, function_values in predictor._blocks(columns, owner):
            functions = term_values(predictor.terms, function_values, np)
            yield rows, np.hstack([np.ones((len(function_values), 1)), *functions])

    @cached_property
    def _basis_predictor(self) -> AdditivePredictor:
        """The functions of the posterior in the place of outputs; terms without any left out."""
        terms = []
        for term, basis in zip(self.terms, self.posterior.bases, strict=True):
            if basis.shape[1]:
                values = basis.astype(np.float64).reshape(*term.counts.shape, -1)
                terms.append(replace(term, values=values, main_parts=()))
        return replace(self, terms=tuple(terms))

    def scores(
        self, columns: Sequence[Column], owner: str, max_readable: int = MAX_READABLE
    ) -> np.ndarray:
        """Scores of rows: shape (n_samples, n_outputs).

        A block of more than `max_readable` values of functions is for the compiled loop.
        """
        scores = np.tile(self.intercept, (len(columns[0]), 1))
        terms = self._predicting_terms
        for rows, function_values in self._blocks(columns, owner, max_readable):
            for contribution in term_values(terms, function_values, np):
                scores[rows] += contribution
        return scores

    def _blocks(
        self, columns: Sequence[Column], owner: str, max_readable: int = MAX_READABLE
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows, and the values of all functions for them."""
        table, used, missing = self.functions
        numbers = {j: self.books[j].numbers(columns[j], owner) for j in set(used.tolist())}
        row_bytes = 8 * (len(used) + 2 * table.n_columns)
        for rows in row_blocks(len(columns[0]), row_bytes, _BLOCK_BYTES):
            block = np.stack([numbers[j][rows] for j in used.tolist()], axis=1)
            yield rows, apply_table(table, block, missing, max_readable)
