"""The fitted object of a GAM: how columns are read, the terms at their codes, and the posterior.

Estimators hold it and delegate to it, files store it, and `kernelmaps predict`, the exports, plots,
reports and explanations take it. It needs NumPy alone to be loaded and to score a few rows of
numbers, and pyarrow for tables. A command that predicts few rows would otherwise spend most of its
time on imports.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..._util.arguments import argument, parameter
from ..._util.display import plain_number
from ..._util.schema import (
    SchemaError,
    array,
    boolean,
    distinct_labels,
    either,
    instance,
    integer,
    number,
    optional,
    record,
    saved,
    several,
    text,
)
from ..._util.threads import cached_property, row_blocks
from ...data.columns import Column
from ...data.dates import date_of
from ...data.table_reader import TableReader
from ...engine.apply import MAX_READABLE, apply_table
from ...exceptions import OutOfDomainWarning
from ..decision import PredictsRows
from ..losses import GAM, LOSSES, Loss, find_loss
from ..shapes import Explanation, score_name, tabulated_importance
from .codebooks import Codebook
from .functions import (
    TermFunctions,
    functions_of,
    surface_values,
    term_values,
    thin_plate_matrix,
)

_BLOCK_BYTES = 2**21  # of temporaries, which stay in a cache
# Values of functions, for all rows of a file, that are computed by NumPy: it takes 85 ns more for
# each than the compiled loop (20,000 rows of 60 columns), and loading that takes 1.1 s.
_MAX_READABLE_OF_FILE = 2**23
_NAMED_COLUMNS = 5  # in a warning
_MAX_CONDITION = 1e15  # of the equations of a surface, whose knots are no rounding errors apart
_BY_CODE = either((array("f8", "codes outputs"), array("f8", "codes second outputs")))
_POSITIONS = either((array("f8", "_", least=0, increasing=True), array("f8", "_ 2")))


@record
class FittedTerm:
    """One function, as values at codes.

    Attributes
    ----------
    name : str
        Of the column, or ``"a × b"``.
    kind : {"spline", "linear", "parametric", "category", "periodic", "pair", "surface"}
    columns : tuple of int
        One column, or two.
    values, errors : ndarray of shape (n_codes, n_outputs) or (n_first, n_second, n_outputs)
        The function at its codes, centred over the training rows, and the standard errors of the
        function that is shown (see `AdditivePredictor.pure_terms`). The codes of a surface are its
        knots, after one for rows without a coordinate.
    counts : ndarray of shape (n_codes,) or (n_first, n_second)
        Weight of the training rows with these codes.
    edf, statistic, p_value : ndarray of shape (n_outputs,)
        Effective degrees of freedom of the function that is shown; the statistic of a test of it
        against "no effect" (F where the dispersion is estimated, else χ²), and its approximate
        significance.
    smoothing : ndarray of shape (n_smoothing, n_outputs)
        Smoothing parameters: of the curvature (for many rows two, the second for the smoothest
        functions), and of the straight line.
    reference_df : ndarray of shape (n_outputs,)
        Degrees of freedom that the statistic is compared with.
    coarse : tuple of ndarray
        For pairs: the coarse code of each code, for both columns.
    main_parts : tuple of ndarray
        For pairs: what `values` holds of the first and of the second column alone, at the codes of
        these columns. It is shown as a part of their functions.
    increment_errors : ndarray of shape (n_codes - 2, n_outputs), optional
        For columns of numbers: standard errors of the differences between neighbouring bins.
    positions : tuple of ndarray
        For pairs: the means of the coarse bins of both columns, between which values are
        interpolated; a column without any has steps. For surfaces: the knots.
    linear : tuple of bool
        For pairs: whether they are linear in each column, beyond the training rows, too.
    n_functions : int
        Basis functions, of which penalties leave as much as `edf` says; 0 where not known.
    extrapolation : {"constant", "linear"}
        How the function continues beyond the training rows: "linear" for straight lines.
    period : float
        Length of the circle that a periodic curve was given; 0 for others.
    level_sd : ndarray of shape (3, n_outputs), optional
        For categories and pairs with one: standard deviation of the effects, slopes or curves of
        levels, and the ends of its interval of 95 %.
    """

    name: str = saved(text())
    kind: str = saved(
        text(("spline", "linear", "parametric", "category", "periodic", "pair", "surface"))
    )
    columns: tuple[int, ...] = saved(several(integer()))
    values: np.ndarray = saved(_BY_CODE)
    errors: np.ndarray = saved(_BY_CODE)
    counts: np.ndarray = saved(either((array("f8", "codes"), array("f8", "codes second"))))
    edf: np.ndarray = saved(array("f8", "outputs"))
    statistic: np.ndarray = saved(array("f8", "outputs"))
    p_value: np.ndarray = saved(array("f8", "outputs", low=0, high=1))
    smoothing: np.ndarray = saved(array("f8", "_ outputs", low=0, finite=False))
    reference_df: np.ndarray = saved(array("f8", "outputs", low=0))
    coarse: tuple[np.ndarray, ...] = saved(several(array("u1", "_")), default=())
    main_parts: tuple[np.ndarray, ...] = saved(several(array("f8", "_ outputs")), default=())
    increment_errors: np.ndarray | None = saved(
        optional(array("f8", "_ outputs", low=0)), default=None
    )
    positions: tuple[np.ndarray, ...] = saved(several(_POSITIONS), default=())
    linear: tuple[bool, ...] = saved(several(boolean), default=())
    n_functions: int = saved(integer(0), default=0)
    extrapolation: str = saved(text(("constant", "linear")), default="constant")
    period: float = saved(number(low=0), default=0.0)
    level_sd: np.ndarray | None = saved(optional(array("f8", "3 outputs", low=0)), default=None)

    def _check_state(self) -> None:
        where, is_pair = f"the term {self.name!r}", self.kind == "pair"
        is_surface = self.kind == "surface"
        n_columns, n_sides = 1 + (is_pair or is_surface), 2 * is_pair
        increments = self.increment_errors
        shape, knots = self.values.shape, self.positions[:1] if is_surface else ()
        valid = (
            len(self.columns) == n_columns
            and len(shape) == 2 + is_pair
            and self.errors.shape == shape
            and self.counts.shape == shape[:-1]
            and len(self.coarse) == n_sides
            and len(self.positions) in ((1,) if is_surface else (0, n_sides))
            and all(points.shape == (shape[0] - 1, 2) for points in knots)
            and [len(part) for part in self.main_parts] in ([], [*map(len, self.coarse)])
            and len(self.linear) in (0, n_sides)
            and (increments is None or n_columns == 1)
            and (increments is None or len(increments) == max(len(self.values) - 2, 0))
        )
        if not valid:
            raise SchemaError(f"{where} has parts of other columns or codes")
        if is_surface and not np.linalg.cond(thin_plate_matrix(*knots)) < _MAX_CONDITION:
            raise SchemaError(f"the knots of {where} coincide, or lie on a line")
        for size, codes in zip(shape, self.coarse):
            if codes.max() >= size:
                raise SchemaError(f"{where} has coarse codes of other cells")
        for size, nodes in zip(shape, () if is_surface else self.positions):
            if nodes.shape not in ((0,), (size - 1,)):
                raise SchemaError(f"the positions of {where} are of other cells")

    @cached_property
    def spline_coefficients(self) -> np.ndarray:
        """Coefficients of a surface in `thin_plate_functions`, by output."""
        values = np.vstack([self.values[1:], np.zeros((3, self.values.shape[1]))])
        return np.linalg.solve(thin_plate_matrix(self.positions[0]), values)

    @property
    def importance(self) -> float:
        """Standard deviation over the training rows, outputs averaged."""
        return tabulated_importance(self.values, self.counts)


@record
class LevelPosterior:
    """Effects of the levels of a large factor, given the coefficients of a posterior.

    With δ = Lξ the deviations of these coefficients, ξ of independent standard normal variables,
    the effect of level c deviates by a_cᵀQᵀξ + ε_c: few directions Q of ξ have
    nearly all of what levels and the other terms have in common, and the variances of ε hold
    the rest.

    Attributes
    ----------
    term : int
        Position of the factor among the terms.
    loadings : tuple of ndarray of float32, of shape (n_codes, n_directions)
        a, by output.
    directions : tuple of ndarray of float32, of shape (n_coefficients, n_directions)
        Q, by output.
    variances : ndarray of float32 of shape (n_outputs, n_codes)
        Of ε.
    """

    term: int = saved(integer(0))
    loadings: tuple[np.ndarray, ...] = saved(several(array("f4", "codes _"), "outputs"))
    directions: tuple[np.ndarray, ...] = saved(several(array("f4", "_ _"), "outputs"))
    variances: np.ndarray = saved(array("f4", "outputs codes", low=0))

    def _check_state(self) -> None:
        for loading, direction in zip(self.loadings, self.directions, strict=True):
            if loading.shape[1] != direction.shape[1]:
                raise SchemaError("the posterior of levels has other directions than loadings")


@record
class Posterior:
    """Functions of the terms at their codes, and the covariance of their coefficients.

    Standard errors need few digits and few of the coefficients: those with nearly all of the
    variance of a term.

    Attributes
    ----------
    bases : tuple of ndarray of float32, of shape (n_codes, n_functions)
        Of each term; of a pair, which has many codes, in half precision.
    factors : ndarray of float32 of shape (n_outputs, n (n + 1) / 2)
        Rows of the lower Cholesky factor of each output's covariance, the intercept first.
    levels : LevelPosterior, optional
        A large factor, which has no functions among the bases but those of new levels.
    new_levels : tuple of int
        Positions of the coefficients of new levels: of the effect, slope or curve of a level that
        training rows do not show, or show only together with others.
    coding : ndarray of shape (n_outputs, n_predictors), optional
        Of correlated outputs: how they are combinations of predictors. `factors` is then that of
        the coefficients of all predictors, one predictor after the other.
    """

    bases: tuple[np.ndarray, ...] = saved(several(array("f2 f4", "_ _")))
    factors: np.ndarray = saved(array("f4", "outputs packed"))
    levels: LevelPosterior | None = saved(optional(instance((LevelPosterior,))), default=None)
    new_levels: tuple[int, ...] = saved(several(integer(1)), default=())
    coding: np.ndarray | None = saved(optional(array("f8", "_ predictors")), default=None)

    def _check_state(self) -> None:
        n, levels = self.n_coefficients, self.levels
        size = n if self.coding is None else n * self.coding.shape[1]
        if self.factors.shape[1] != size * (size + 1) // 2:
            raise SchemaError("the posterior has another number of coefficients than its bases")
        if max(self.new_levels, default=0) >= n:
            raise SchemaError("the posterior has new levels that are no coefficients")
        if levels is not None and (
            levels.term >= len(self.bases)
            or len(self.bases[levels.term]) != levels.variances.shape[1]
            or len(levels.variances) != len(self.factors)
            or any(len(direction) != n for direction in levels.directions)
        ):
            raise SchemaError("the posterior of levels is of another term or other coefficients")

    @property
    def n_coefficients(self) -> int:
        return 1 + sum(basis.shape[1] for basis in self.bases)

    @property
    def n_outputs(self) -> int:
        return len(self.factors if self.coding is None else self.coding)

    @property
    def intercept_errors(self) -> np.ndarray:
        """Standard errors of the intercepts, by output."""
        return np.array([np.linalg.norm(factor[0]) for factor in self.deviations()])

    def cholesky_factors(self) -> list[np.ndarray]:
        """L of each output, with LLᵀ the covariance of the coefficients."""
        if self.coding is None:
            return self.deviations()
        return [np.linalg.qr(factor.T, mode="r").T for factor in self.deviations()]

    def deviations(self) -> list[np.ndarray]:
        """The same, of correlated outputs as combinations of the same normal variables."""
        n = self.n_coefficients * (1 if self.coding is None else self.coding.shape[1])
        factors = np.zeros((len(self.factors), n, n))
        factors[:, np.tri(n, dtype=bool)] = self.factors
        if self.coding is None:
            return list(factors)
        by_predictor = factors.reshape(self.coding.shape[1], -1, n)
        return list(np.tensordot(self.coding, by_predictor, 1))


@dataclass(frozen=True)
class TermTable:
    """Terms as functions of rows.

    Attributes
    ----------
    books, terms : tuple
    owner : str
        The estimator, for messages.
    bases : tuple of ndarray
        Functions of each term in the posterior, as in `Posterior`.
    """

    books: tuple[Codebook, ...]
    terms: tuple[FittedTerm, ...]
    owner: str
    bases: tuple[np.ndarray, ...] = ()

    @cached_property
    def functions(self) -> TermFunctions:
        """The terms as a table of the engine."""
        return functions_of(self.books, self.terms)

    def blocks(
        self, columns: Sequence[Column], max_readable: int = MAX_READABLE
    ) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Blocks of rows, and the values (n_samples, n_outputs) of each term for them.

        A block of more than `max_readable` values of functions is for the compiled loop.
        """
        table, used, missing = self.functions
        numbers = {j: self.books[j].numbers(columns[j], self.owner) for j in set(used.tolist())}
        n_radial = sum(len(t.positions[0]) for t in self.terms if t.kind == "surface")
        row_bytes = 8 * (len(used) + 2 * table.n_columns + 2 * n_radial)
        for rows in row_blocks(len(columns[0]), row_bytes, _BLOCK_BYTES):
            block = np.stack([numbers[j][rows] for j in used.tolist()], axis=1)
            values = apply_table(table, block, missing, max_readable)
            yield rows, list(term_values(self.terms, values, np))

    def values(self, columns: Sequence[Column]) -> np.ndarray:
        """Values of all terms: shape (n_samples, n_terms, n_outputs)."""
        return np.concatenate([np.stack(values, axis=1) for _, values in self.blocks(columns)])

    def sums(
        self, columns: Sequence[Column], intercept: np.ndarray, max_readable: int = MAX_READABLE
    ) -> np.ndarray:
        """Sums of all terms and an intercept: shape (n_samples, n_outputs)."""
        out = np.tile(intercept, (len(columns[0]), 1))
        for rows, values in self.blocks(columns, max_readable):
            for of_term in values:
                out[rows] += of_term
        return out

    @cached_property
    def _basis_table(self) -> TermTable:
        """The functions of the posterior in the place of outputs; terms without any left out."""
        terms = [
            replace(t, values=basis.astype(np.float64).reshape(*t.counts.shape, -1), main_parts=())
            for t, basis in zip(self.terms, self.bases, strict=True)
            if basis.shape[1]
        ]
        return TermTable(self.books, tuple(terms), self.owner)

    def design(self, columns: Sequence[Column]) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows, and the functions of the posterior for them, the intercept first."""
        table = self._basis_table
        if not table.terms:
            yield slice(0, len(columns[0])), np.ones((len(columns[0]), 1))
            return
        for rows, functions in table.blocks(columns):
            yield rows, np.hstack([np.ones((len(functions[0]), 1)), *functions])


class _MovedPart(NamedTuple):
    """What moves from the pair at a position to the term of its first or second column.

    `term` is that of the column, at the position `single`, with what moves as its values.
    """

    pair: int
    axis: int
    single: int
    term: FittedTerm


@record
class AdditivePredictor(PredictsRows):
    """How columns are read, their codebooks, the terms, intercepts, and the posterior.

    Attributes
    ----------
    reader : TableReader
    books : tuple of Codebook
        Of all columns.
    terms : tuple of FittedTerm
    intercept : ndarray of shape (n_outputs,)
    posterior : Posterior
    loss : str or Loss
        As the estimator was given it.
    classes : ndarray, optional
        Labels of a classifier.
    edits : tuple of str
        What was changed after the fit, in words.
    residual_df : float
        Residual degrees of freedom of the standard errors; infinity where the dispersion is known.
    """

    reader: TableReader = saved(instance((TableReader,)))
    books: tuple[Codebook, ...] = saved(several(instance((Codebook,)), least=1))
    terms: tuple[FittedTerm, ...] = saved(several(instance((FittedTerm,)), least=1))
    intercept: np.ndarray = saved(array("f8", "outputs"))
    posterior: Posterior = saved(instance((Posterior,)))
    loss: str | Loss = saved(either((instance((Loss,)), text())))
    classes: np.ndarray | None = saved(optional(distinct_labels), default=None)
    edits: tuple[str, ...] = saved(several(text()), default=())
    residual_df: float = saved(number(low=0, finite=False), default=np.inf)

    def _check_state(self) -> None:
        _ = self.fitted_loss  # an unknown one is refused
        if [book.name for book in self.books] != self.reader.feature_names:
            raise SchemaError("the model has other columns than its reader")
        n_outputs = len(self.fitted_loss.output_names)
        if self.classes is not None:
            n_outputs = self.fitted_loss.n_outputs(len(self.classes))
        if len(self.intercept) != n_outputs or (self.classes is not None and len(self.classes) < 2):
            raise SchemaError("the model has another number of outputs")
        for term in self.terms:
            if max(term.columns) >= len(self.books):
                raise SchemaError(f"the term {term.name!r} is of a column that is not there")
            sizes = [self.books[j].n_codes for j in term.columns]
            if term.kind == "surface" and all(self.books[j].kind == "number" for j in term.columns):
                sizes = [len(term.values)]  # of its knots
            in_term = [len(c) for c in term.coarse] if term.coarse else [len(term.values)]
            if sizes != in_term or term.values.shape[-1] != n_outputs:
                raise SchemaError(f"the term {term.name!r} does not fit its column or the outputs")
        n_codes, levels = [len(basis) for basis in self.posterior.bases], self.posterior.levels
        if n_codes != [term.counts.size for term in self.terms]:
            raise SchemaError("the posterior is of other terms")
        if self.posterior.n_outputs != n_outputs:
            raise SchemaError("the posterior is of another number of outputs")
        if levels is not None and self.terms[levels.term].kind != "category":
            raise SchemaError("the posterior has levels of a term that is no category")

    # -- what it stands for -----------------------------------------------------------------------

    @property
    def estimator(self) -> str:
        """The name of the estimator that predicts in the same way."""
        if self._is_survival:
            return "AdditiveSurvival"
        return "AdditiveRegressor" if self.classes is None else "AdditiveClassifier"

    @cached_property
    def fitted_loss(self) -> Loss:
        """The loss as an object, with the parameter that was estimated."""
        of_labels = self.classes is not None
        return find_loss(self.estimator, self.loss, of_labels, GAM, self._is_survival)

    @property
    def _is_survival(self) -> bool:
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return loss is not None and loss.has_times

    @property
    def column_counts(self) -> list[np.ndarray]:
        """Weights of the training rows by code, of each column; ones where it has no term."""
        counts = [np.ones(book.n_codes) for book in self.books]
        for term in self.terms:
            if len(term.columns) == 1:
                counts[term.columns[0]] = term.counts
        return counts

    @property
    def output_names(self) -> list[str]:
        """What scores are of: a prediction, a mean and a log scale, or classes."""
        if self.classes is None:
            return list(self.fitted_loss.output_names)
        if self.fitted_loss.is_ordered:
            return [f"above {self.classes[0]}"]
        codes = self.fitted_loss.positive_codes(len(self.classes))
        return [str(self.classes[int(code)]) for code in codes]

    @property
    def output_head(self) -> str:
        """The head of a column with `output_names`."""
        return "output" if self.classes is None else "class"

    # Under the names that the estimator has for them.
    reader_ = property(lambda self: self.reader)
    n_features_in_ = property(lambda self: len(self.reader.columns))
    _link = property(lambda self: self.fitted_loss.link)

    # -- predictions for the rows of a file -------------------------------------------------------

    def predict(self, X: Any, *, exposure: Any = None) -> np.ndarray:
        """Predict f(x), the exposure times exp(f(x)), or classes for the rows of a table."""
        predictions = self.predictions(self._scores_of_rows(X))
        if exposure is None:
            return predictions
        check_exposure_has_use(self.fitted_loss)
        return check_exposures(exposure, len(predictions)) * predictions

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """Probabilities of the classes, in the order of `classes_`, for the rows of a table."""
        _ = self.classes_  # others have no probabilities
        return lambda X: self.probabilities(self._scores_of_rows(X))

    @property
    def predict_with_scale(self) -> Callable[..., np.ndarray]:
        """Means and standard deviations (n, 2) of observations for the rows of a table."""
        if self.classes is not None or len(self.intercept) == 1:
            raise AttributeError(f"{self.estimator} has no standard deviation of each row")

        def predict(X: Any, *, exposure: Any = None) -> np.ndarray:
            if exposure is not None:
                check_exposure_has_use(self.fitted_loss)
            scores = self._scores_of_rows(X)
            return np.column_stack([self.predictions(scores), np.exp(scores[:, 1])])

        return predict

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        """The inverse of the link, or the most probable classes, of scores (n, n_outputs)."""
        if self.classes is not None:
            return self.classes[self.fitted_loss.best_codes(scores, len(self.classes))]
        return self.fitted_loss.mean(scores[:, 0])

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes from scores (n_samples, n_outputs)."""
        return self.fitted_loss.probabilities(scores)

    @cached_property
    def rows_beyond(self) -> Counter[str]:
        """Rows of tables so far with values beyond the training rows; see `count_beyond`."""
        return Counter()

    def _scores_of_rows(self, X: Any) -> np.ndarray:
        columns = self.reader.read(X, self.estimator)
        self.rows_beyond.update(self.count_beyond(columns))
        state = vars(self)  # values of functions, for all rows so far
        n_values = state.get("_n_values", 0) + len(columns[0]) * self.functions.table.n_columns
        state["_n_values"] = n_values
        return self.scores(columns, n_values if n_values <= _MAX_READABLE_OF_FILE else MAX_READABLE)

    def count_beyond(self, columns: Sequence[Column]) -> Counter[str]:
        """Numbers of rows with values beyond the range of the training rows, by column.

        Columns whose curves go on with their slopes are named as such.
        """
        counts: Counter[str] = Counter()
        periodic = {j for term in self.terms if term.kind == "periodic" for j in term.columns}
        sloped = {
            self.books[j].name
            for term in self.terms
            if term.extrapolation == "linear"
            for j in term.columns
        }
        for j in sorted({j for term in self.terms for j in term.columns} - periodic):
            if self.books[j].kind == "number" and not columns[j].is_category:
                values, (low, high) = columns[j].values, self.books[j].training_range
                name = self.books[j].name
                name = f"{name!r} (goes on with its slope)" if name in sloped else repr(name)
                counts[name] = int(np.sum((values < low) | (values > high)))
        return +counts

    # -- what it says -----------------------------------------------------------------------------

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms."""
        return [term.name for term in self.terms]

    def explain(self, x: Any, output: int | None = None) -> Explanation:
        """Explain one row of a table, as the estimator does."""
        columns = self.reader.read(x, self.estimator)
        warn_beyond(self.estimator, self.count_beyond(columns), stacklevel=2)
        return self.explain_columns(columns, output)

    def explain_columns(self, columns: Sequence[Column], output: int | None = None) -> Explanation:
        """Explain one row, by default the score of the class that is predicted."""
        if len(columns[0]) != 1:
            raise ValueError(
                f"{self.estimator}.explain takes one row, got {len(columns[0])}: X.iloc[[0]] or "
                "X[:1]."
            )
        values = self.contributions(columns)[0]
        scores = self.intercept + values.sum(axis=0)
        best = 0 if self.classes is None else int(np.argmax(scores))
        k = best if output is None else output
        names, dates = self.reader.value_names, self.reader.trends
        cells = [
            _describe_first_cell(column, names.get(column.name, {}), column.name in dates)
            for column in columns
        ]
        cells_by_term = [", ".join(cells[j] for j in term.columns) for term in self.terms]
        return Explanation(
            self.term_names_, cells_by_term, values[:, k], float(self.intercept[k]),
            float(scores[k]), self.output_names[k], self.errors(columns)[0, :, k],
            score_name(self, output=k), self.mean_of(scores, k),
        )  # fmt: skip

    def mean_of(self, scores: np.ndarray, k: int = 0) -> float | None:
        """The probability or prediction of scores, if it is another number than that of output k.

        Of ordered classes it is that of being above the lowest one.
        """
        if self.classes is not None:
            probabilities = self.probabilities(scores[None])[0]
            return float(probabilities[k] if len(scores) > 1 else 1 - probabilities[0])
        if self._link == "identity" or k > 0:
            return None
        return float(self.predictions(scores[None])[0])

    # -- scores and contributions -----------------------------------------------------------------

    def _table(self, terms: Sequence[FittedTerm]) -> TermTable:
        """Terms as functions of rows: all of the model, or any if no posterior is asked for."""
        return TermTable(self.books, tuple(terms), self.estimator, self.posterior.bases)

    @cached_property
    def _prediction_terms(self) -> TermTable:
        """The terms as predictions take them."""
        return self._table(self.terms)

    @cached_property
    def _continuing_terms(self) -> TermTable:
        """The terms, curves and pairs going on with the slopes at their ends."""
        kinds = "spline", "pair"
        return self._table(
            [replace(t, extrapolation="linear") if t.kind in kinds else t for t in self.terms]
        )

    @cached_property
    def _constant_terms(self) -> TermTable:
        """The terms, all constant beyond the training rows."""
        return self._table([replace(t, extrapolation="constant", linear=()) for t in self.terms])

    @property
    def functions(self) -> TermFunctions:
        """The terms as a table of the engine."""
        return self._prediction_terms.functions

    def scores(self, columns: Sequence[Column], max_readable: int = MAX_READABLE) -> np.ndarray:
        """Scores of rows: shape (n_samples, n_outputs)."""
        return self._prediction_terms.sums(columns, self.intercept, max_readable)

    @cached_property
    def pure_terms(self) -> tuple[FittedTerm, ...]:
        """The terms as they are shown: pairs without what they hold of single columns.

        The cells of a pair are means over their rows.
        """
        values = [term.values.copy() for term in self.terms]
        for pair, axis, single, term in self.moved_parts:
            values[single] += term.values
            coarse, n_coarse = self.terms[pair].coarse[axis], values[pair].shape[axis]
            weight = np.bincount(coarse, term.counts, n_coarse)
            sums = np.zeros((n_coarse, len(self.intercept)))
            np.add.at(sums, coarse, term.counts[:, None] * term.values)
            means = sums / np.maximum(weight, 1e-300)[:, None]
            values[pair] -= means[:, None] if axis == 0 else means
        pairs = zip(self.terms, values, strict=True)
        return tuple(replace(term, values=of_term, main_parts=()) for term, of_term in pairs)

    @cached_property
    def moved_parts(self) -> list[_MovedPart]:
        """What moves from pairs to the terms of single columns to be shown."""
        single = {t.columns[0]: at for at, t in enumerate(self.terms) if len(t.columns) == 1}
        return [
            _MovedPart(t, axis, single[column], replace(self.terms[single[column]], values=values))
            for t, term in enumerate(self.terms)
            for axis, (column, values) in enumerate(zip(term.columns, term.main_parts))
            if column in single
        ]

    def contributions(self, columns: Sequence[Column]) -> np.ndarray:
        """Values of the terms as they are shown: shape (n_samples, n_terms, n_outputs)."""
        values = self._prediction_terms.values(columns)
        if self.moved_parts:
            moved_values = self._table([moved.term for moved in self.moved_parts]).values(columns)
            for k, (pair, _, single, _) in enumerate(self.moved_parts):
                values[:, pair] -= moved_values[:, k]
                values[:, single] += moved_values[:, k]
        return values

    # -- the posterior ----------------------------------------------------------------------------

    def errors(self, columns: Sequence[Column]) -> np.ndarray:
        """Standard errors of the terms for rows, shaped as their contributions.

        Beyond the training rows they grow as those of `score_errors` do.
        """
        at_ends = [replace(t, values=t.errors, main_parts=()) for t in self._constant_terms.terms]
        variances = self._table(at_ends).values(columns) ** 2
        variances += self._term_variances(self._continuing_terms, columns)
        variances -= self._term_variances(self._constant_terms, columns)
        of_surfaces = [t for t, term in enumerate(self.terms) if term.kind == "surface"]
        if of_surfaces:  # errors at knots say little about those between them
            exact = self._term_variances(self._prediction_terms, columns)
            variances[:, of_surfaces] = exact[:, of_surfaces]
        bias = self._continuing_terms.values(columns) - self._prediction_terms.values(columns)
        return np.sqrt(np.maximum(variances, 0.0) + bias**2)

    def _term_variances(self, table: TermTable, columns: Sequence[Column]) -> np.ndarray:
        """Posterior variances of the sums of each term and the intercept, without new data."""
        factors = self.posterior.cholesky_factors()
        ends = np.cumsum([1, *(basis.shape[1] for basis in self.posterior.bases)]).tolist()
        variances = np.empty((len(columns[0]), len(self.terms), len(factors)))
        for rows, design in table.design(columns):
            for t, (first, last) in enumerate(pairwise(ends)):
                used = [0, *range(first, last)]
                for k, factor in enumerate(factors):
                    variances[rows, t, k] = np.sum((design[:, used] @ factor[used]) ** 2, axis=1)
        return variances

    def surface_at(self, t: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and standard errors (n, n_outputs) of a surface at points."""
        term, bases = self.terms[t], self.posterior.bases
        functions = surface_values(replace(term, values=bases[t].astype(np.float64)), points)
        first = 1 + sum(basis.shape[1] for basis in bases[:t])
        used = [0, *range(first, first + functions.shape[1])]
        design = np.hstack([np.ones((len(points), 1)), functions])
        factors = self.posterior.cholesky_factors()
        errors = [np.linalg.norm(design @ factor[used], axis=1) for factor in factors]
        return surface_values(term, points), np.stack(errors, axis=1)

    def score_errors(self, columns: Sequence[Column], as_fitted: bool = False) -> np.ndarray:
        r"""Standard errors of the scores of rows: shape (n_samples, n_outputs).

        At a distance d from the end of a curve, the function is taken to go on with the slope s
        that it has there, and the prediction to have its value at the end. So the error is
        :math:`\sqrt{\operatorname{Var}(f + sd) + (\hat s d)^2}`, without the second part where
        the prediction goes on, too.

        With `as_fitted` errors are those of the fit: a curve ends as predictions do, and a level
        without a code counts as the mean that the fit has for it.
        """
        factors, levels = self.posterior.cholesky_factors(), self.posterior.levels
        errors = np.empty((len(columns[0]), len(factors)))
        for rows, k, deviations in self.score_deviations(columns, factors, as_fitted):
            with np.errstate(over="ignore"):
                errors[rows, k] = np.linalg.norm(deviations, axis=1)
        if levels is not None:
            errors = np.sqrt(errors**2 + levels.variances[:, self._level_codes(columns)].T)
        return errors if as_fitted else np.hypot(errors, self._missed_by_ends(columns))

    def score_deviations(
        self, columns: Sequence[Column], factors: Sequence[np.ndarray], as_fitted: bool = False
    ) -> Iterator[tuple[slice, int, np.ndarray]]:
        """Blocks of rows, outputs, and zᵀL of these rows, for factors L of the posterior."""
        levels, codes = self.posterior.levels, self._level_codes(columns)
        table = self._prediction_terms if as_fitted else self._continuing_terms
        for rows, design in table.design(columns):
            design[:, [*self.posterior.new_levels] if as_fitted else []] = 0.0
            for k, factor in enumerate(factors):
                deviations = design @ factor
                if levels is not None:
                    loadings = levels.loadings[k][codes[rows]].astype(np.float64)
                    deviations += loadings @ levels.directions[k].T
                yield rows, k, deviations

    def _missed_by_ends(self, columns: Sequence[Column]) -> np.ndarray:
        """What the slopes of curves that predictions end would add beyond the training rows."""
        return self._continuing_terms.sums(columns, self.intercept) - self.scores(columns)

    def score_draws(
        self, columns: Sequence[Column], n_draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Scores of rows for coefficients from the posterior: (n_draws, n_samples, n_outputs).

        They have the standard errors of `score_errors`.
        """
        levels, codes = self.posterior.levels, self._level_codes(columns)
        factors = self.posterior.deviations()
        draws = np.tile(self.scores(columns), (n_draws, 1, 1))
        normal = [rng.normal(size=(factor.shape[1], n_draws)) for factor in factors]
        if self.posterior.coding is not None:
            normal = normal[:1] * len(factors)
        draws += rng.normal(size=(n_draws, 1, len(factors))) * self._missed_by_ends(columns)
        for rows, k, deviations in self.score_deviations(columns, factors):
            draws[:, rows, k] += (deviations @ normal[k]).T
        if levels is not None:
            present, inverse = np.unique(codes, return_inverse=True)
            for k in range(len(factors)):
                deviations = np.sqrt(levels.variances[k, present])
                draws[:, :, k] += (deviations * rng.normal(size=(n_draws, len(present))))[
                    :, inverse
                ]
        return draws

    def _level_codes(self, columns: Sequence[Column]) -> np.ndarray:
        """Codes of the levels of a large factor; none without one."""
        if self.posterior.levels is None:
            return np.zeros(0, np.int64)
        column = self.terms[self.posterior.levels.term].columns[0]
        return self.books[column].category_codes(columns[column], self.estimator)

    def model_matrix(self, columns: Sequence[Column]) -> np.ndarray:
        """Functions of the posterior for rows, the intercept first: one column each."""
        return np.concatenate([design for _, design in self._prediction_terms.design(columns)])

    def function_covariance(self, columns: Sequence[Column]) -> np.ndarray:
        """Covariance over rows of the functions of the posterior, without the intercept.

        It is taken about the means of the first block: a function may hardly vary over these rows,
        and be large.
        """
        gram = shift = 0.0
        for _, design in self._prediction_terms.design(columns):
            if np.ndim(shift) == 0:
                shift = np.r_[0.0, design[:, 1:].mean(axis=0)]
            gram = gram + (design - shift).T @ (design - shift)
        gram = np.asarray(gram) / len(columns[0])
        return gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:])


def _describe_first_cell(column: Column, names: Mapping[float, str], is_date: bool) -> str:
    """The first cell of a column as text: a level, a date, a number, or the name that it has."""
    if column.is_category:
        return column.levels[column.codes[0]] if column.codes[0] >= 0 else "missing"
    value = column.values[0]
    if np.isnan(value):
        return "missing"
    return date_of(value) if is_date else names.get(value // 1, plain_number(value))


# -- losses and exposures, for estimators, too ----------------------------------------------------


def check_exposures(
    exposure: np.ndarray, n_rows: int, place: Callable[[int], str] = "row {}".format
) -> np.ndarray:
    """Exposures, which must be positive; `place` says where a row is, for messages."""
    exposure = np.asarray(exposure, dtype=np.float64)
    good = np.isfinite(exposure) & (exposure > 0)
    if len(exposure) != n_rows or not good.all():
        row = int(np.argmin(good))
        where = f", got {len(exposure)}" if good.all() else f"; {place(row)} has {exposure[row]:g}"
        raise ValueError(
            f"AdditiveRegressor: exposure (numbers of trials, say) must hold {n_rows} positive "
            f"numbers, one for each row{where}."
        )
    return exposure


def check_exposure_has_use(loss: Loss) -> None:
    """Raise ValueError if predictions with this loss are not multiples of an exposure."""
    if not loss.takes_exposure:
        usable = [argument("loss", name) for name, kind in LOSSES.items() if kind.takes_exposure]
        raise ValueError(
            f"AdditiveRegressor: {parameter('exposure')} is for {', '.join(usable)}, whose "
            f"predictions are multiples of it; this model has the link {loss.link!r}."
        )


def warn_without_exposure(model: Any, call: str, *values: Any) -> None:
    """Warn if a model was fitted with exposures or offsets, and a call has none."""
    if getattr(model, "_exposed", False) and all(item is None for item in values):
        had = "an offset" if model._of_labels else "an exposure or an offset"
        problem = f"{call}: the model was fitted with {had}, and none is given: pass"
        warnings.warn(f"{problem} exposure= or offset=.", UserWarning, stacklevel=3)


def warn_beyond(owner: str, counts: Mapping[str, int], stacklevel: int) -> None:
    """Warn of values beyond the range of the training rows; `counts` are rows by column."""
    if not counts:
        return
    columns = [f"{name} in {n} row{'s' * (n > 1)}" for name, n in counts.items()]
    if len(columns) > _NAMED_COLUMNS:
        columns[_NAMED_COLUMNS:] = [f"{len(columns) - _NAMED_COLUMNS} other columns"]
    warnings.warn(
        f"{owner}: values beyond the range of the training rows: {', '.join(columns)}. Other "
        "curves are constant there, and standard errors grow with the distance.",
        OutOfDomainWarning,
        stacklevel=stacklevel + 1,
    )
