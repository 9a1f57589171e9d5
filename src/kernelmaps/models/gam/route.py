"""The side of the additive estimators that fits tables: columns as they come, strengths chosen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ...data.frames import (
    Column,
    check_names,
    column_position,
    is_frame,
    is_mixed,
    read_columns,
)
from ...data.opening import has_text
from ...data.sources import Source
from ...schema import SchemaError, State, anything, array, instance, integer, names
from ..losses import Loss, for_tables_alone
from ..parameters import AdditiveParameters
from ..shapes import PairFunction
from .constraints import resolve_constraints
from .describing import pair_functions
from .fitting import Request, fit_table, hold_rows
from .held import HeldRows
from .model import TableModel
from .sampling import RowChecks, Sample, take_sample
from .streamed import Coder, StreamedRows, TableRows, one_against_rest, tally
from .summary import Explanation, Summary, summarise
from .terms import pair_positions, resolve_terms

_ASKS = ("terms", "interactions", "constraints", "smoothing", "categorical_features")
_AUTO_PAIRS = 40
TABLE_STATE = State(
    required={
        "table_": instance((TableModel,)),
        "n_features_in_": integer(1),
        "intercept_": anything,
        "edf_": array("f8", "outputs"),
        "dispersion_": array("f8", "outputs"),
        "n_rows": integer(1),
    },
    allowed={
        "feature_names_in_": names,
        "objective_": array("f8", "outputs", finite=False),
        "n_iter_": integer(),
    },
    private=True,
)
"""What a model of a table saves."""
_OF_A_MAP = (
    "_weights", "_offset", "_sample", "_spec", "_fast", "_C", "_centre", "dual_coef_",
    "duality_gap_", "feature_map_", "term_means_", "n_visits_",
    "solver_",
)  # fmt: skip


def fits_chunks(model: Any) -> bool:
    """Whether a model has `partial_fit`: not where its parameters ask for a table."""
    asked = model._asks_for_table()
    if asked and model.feature_map is None:
        raise AttributeError(
            f"{type(model).__name__} has no partial_fit with {', '.join(asked)}: the terms of a "
            "table are fitted from all rows. Use fit, or pass a feature_map and C."
        )
    return True


class TableRoute(AdditiveParameters):
    """Fits an additive estimator to the columns of a table.

    The route is taken where a parameter asks for it (``smoothing="auto"``, ``C=None``, terms,
    interactions, constraints, categorical features, a loss that only it has), or where X is a
    frame with categories or missing values, and ``feature_map`` is None.
    """

    table_: TableModel
    # Of the estimator that this is a part of:
    intercept_: Any
    eval_terms: Any
    n_features_in_: Any
    _n_outputs: Any
    _of_labels: bool  # whether targets are labels or numbers

    def _asks_for_table(self) -> list[str]:
        asked = [name for name in _ASKS if getattr(self, name) is not None]
        asked += ["C=None"] if self.C is None else []
        alone = for_tables_alone(self.loss, self._of_labels)
        return asked + ([f"loss={self.loss!r}"] if alone else [])

    def _takes_table(self, X: Any) -> bool:
        """Whether X is fitted column by column; see the class."""
        asked = self._asks_for_table()
        if asked and self.feature_map is not None:
            raise ValueError(
                f"{type(self).__name__}: {', '.join(asked)} is for tables, whose terms take the "
                "place of a feature_map. Leave feature_map at None, or the other out."
            )
        if asked and not self.fit_intercept:
            raise ValueError(
                f"{type(self).__name__}: the terms of a table are centred and need an intercept; "
                "leave fit_intercept at True."
            )
        taken = bool(asked) or (self.feature_map is None and (is_mixed(X) or has_text(X)))
        if taken and self.C not in (None, 1.0):
            raise ValueError(
                f"{type(self).__name__}: C={self.C!r} has no meaning for the terms of a table. Set "
                "smoothing to 'auto', to a number, or to numbers by column; or pass a feature_map."
            )
        return taken

    @property
    def _tabular(self) -> bool:
        return hasattr(self, "table_")

    def _forget_map(self) -> None:
        """Discard what a fit through a map has left."""
        for name in _OF_A_MAP:
            if name in vars(self):
                delattr(self, name)

    # -- rows -----------------------------------------------------------------------------------

    def _columns(self, X: Any, *, reset: bool) -> list[Column]:
        """The columns of X, checked against those of fit."""
        name = type(self).__name__
        if is_frame(X):
            check_names(X, name)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"{name}: X has {X.shape[0]} rows and {X.shape[1]} columns.")
        else:
            X = self._array(X, reset)
        if reset:
            chosen = self.categorical_features
        else:
            chosen = [j for j, book in enumerate(self.table_.books) if book.kind == "category"]
        return read_columns(X, name, chosen, getattr(self, "feature_names_in_", None))

    def _array(self, X: Any, reset: bool) -> np.ndarray:
        raw = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
        words = getattr(raw.dtype, "kind", "f") in "OUS" and _has_words(raw)
        kind = object if words else "numeric"
        return validate_data(
            self, X, reset=reset, dtype=kind, ensure_all_finite="allow-nan" if not words else False
        )

    # -- fitting --------------------------------------------------------------------------------

    def _request(self, names: list[str]) -> Request:
        owner = type(self).__name__
        terms, pairs = resolve_terms(self.terms, names, owner)
        more, search = self._pairs(names)
        pairs = list(dict.fromkeys([*pairs, *more]))
        if not (terms or pairs):
            raise ValueError(
                f"{owner}: terms leaves out all {len(names)} columns. Keep one, or a pair."
            )
        return Request(
            terms, pairs, search, self._strengths(names),
            resolve_constraints(self.constraints, names, owner), min(float(self.tol), 1e-6),
            int(self.max_iter), self.n_jobs, owner,
        )  # fmt: skip

    def _pairs(self, names: list[str]) -> tuple[list[tuple[int, int]], int]:
        """Pairs that are asked for, and how many to look for."""
        given, owner = self.interactions, type(self).__name__
        if given is None or given is False:
            return [], 0
        if isinstance(given, list | tuple):
            return [pair_positions(item, names, owner, "interactions") for item in given], 0
        if isinstance(given, str) and given == "auto":
            return [], _AUTO_PAIRS
        if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 0:
            return [], int(given)
        raise ValueError(
            f"{owner}: interactions must be 'auto', a number of pairs, or a list of pairs of "
            f"columns, got {given!r}."
        )

    def _strengths(self, names: list[str]) -> Any:
        """Fixed strengths: of all terms, by column, or None where they are chosen."""
        given, owner = self.smoothing, type(self).__name__
        if given is None or (isinstance(given, str) and given == "auto"):
            return None
        if isinstance(given, dict):
            by_column = {
                column_position(key, names, owner, "smoothing"): v for key, v in given.items()
            }
            return {j: self._strength(v) for j, v in by_column.items() if v != "auto"}
        return self._strength(given)

    def _strength(self, value: Any) -> float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and 0 < value < np.inf):
            raise ValueError(
                f"{type(self).__name__}: smoothing must be 'auto', a positive number (a strength "
                "of s holds as much against the data as s rows), or numbers by column, got "
                f"{value!r}."
            )
        return float(value)

    def _fit_columns(
        self, columns: Sequence[Column], targets: Sequence[np.ndarray],
        losses: Sequence[Loss], weight: np.ndarray, offset: np.ndarray,
    ) -> None:  # fmt: skip
        """Fit all outputs to rows in memory, and keep the model."""
        request = self._request([column.name for column in columns])
        rows = hold_rows(columns, targets, weight, offset, request)
        self._fit_coded(rows, losses, request, int(np.count_nonzero(weight)))

    def _fit_coded(
        self, rows: TableRows, losses: Sequence[Loss], request: Request, n_rows: int
    ) -> None:
        """Fit all outputs and keep the model."""
        model, fits = fit_table(rows, losses, request)
        self._forget_map()
        self.table_ = model
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.objective_ = np.array([fit.objective for fit in fits])
        self.dispersion_ = np.array([fit.dispersion for fit in fits])
        self.edf_ = np.array([fit.edf.sum() for fit in fits])
        self._n_rows = n_rows
        if not all(fit.converged for fit in fits):
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} steps: raise "
                "max_iter=.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _sampled(self, source: Source) -> Sample:
        """A sample of a source; names and number of the columns are kept."""
        sample = take_sample(source, self.categorical_features, type(self).__name__)
        self.n_features_in_ = len(sample.columns)
        if sample.named:
            self.feature_names_in_ = np.array(sample.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return sample

    def _fit_source(
        self, source: Source, sample: Sample, checks: RowChecks,
        losses: Sequence[Loss], outputs: Sequence[float] = (),
    ) -> HeldRows:  # fmt: skip
        """Fit all outputs to a source, pass by pass, and keep the model; the rows of the sample."""
        owner, request = type(self).__name__, self._request(sample.names)
        checked = zip(*(checks(chunk) for chunk in sample.chunks), strict=True)
        y, weight, offset = (np.concatenate(own) for own in checked)
        held = hold_rows(sample.columns, one_against_rest(y, outputs), weight, offset, request)
        names = tuple(sample.names) if sample.named else ()
        n_jobs = self.n_jobs if source.parts is None else 1  # Dask has tasks in threads
        coder = Coder(held.books, owner, checks, tuple(outputs), names, n_jobs)
        first = tally(source, coder, losses, held)
        if not first.sums[0].weight > 0:
            raise ValueError(f"{owner}: all sample weights are zero.")
        rows = StreamedRows(source, coder, first, held)
        self._fit_coded(rows, losses, request, first.sums[0].count)
        return held

    # -- what a fitted table says ---------------------------------------------------------------

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms, in the order of `eval_terms`."""
        check_is_fitted(self)
        if self._tabular:
            return [term.name for term in self.table_.terms]
        default = [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", default)]

    def _check_table(self) -> None:
        """Raise SchemaError if what was loaded does not fit together."""
        if len(self.table_.books) != self.n_features_in_:
            raise SchemaError("the table has another number of columns")
        if len(self.table_.intercept) != self._n_outputs():
            raise SchemaError("the table has another number of outputs")

    @property
    def pair_functions_(self) -> list[PairFunction]:
        """What pairs of columns add beyond their own functions, one heat map each."""
        check_is_fitted(self)
        return pair_functions(self.table_) if self._tabular else []

    def _output_names(self) -> list[str]:
        classes = getattr(self, "classes_", None)
        if classes is None:
            return ["prediction"]
        return [str(label) for label in (classes if len(classes) > 2 else classes[1:])]

    def summary(self) -> Summary:
        """Summarise the terms: degrees of freedom, range of effect, approximate significance.

        Returns
        -------
        Summary
            Prints as text; notebooks show it as HTML.
        """
        check_is_fitted(self)
        if not self._tabular:
            raise ValueError(
                f"{type(self).__name__}.summary: the model was fitted through a feature_map, whose "
                "weights have no strengths of their own. Fit it with smoothing='auto'."
            )
        facts = {
            "loss": self.loss,
            "rows": self._n_rows,
            "degrees of freedom": ", ".join(f"{value:.1f}" for value in self.edf_),
            "dispersion": ", ".join(f"{value:.4g}" for value in self.dispersion_),
        }
        return summarise(type(self).__name__, self.table_, facts, self._output_names())

    def explain(self, x: Any, output: int | None = None) -> Explanation:
        """Explain one row: what each term adds to its score.

        Parameters
        ----------
        x : one row
            A table or array of one row.
        output : int, optional
            For more than two classes: which one's score, by default that of the predicted class.
            One against one: which pair's, by default the closest one that the predicted class won.

        Returns
        -------
        Explanation
            Prints as text; `plot` draws it as bars.
        """
        check_is_fitted(self)
        terms = np.asarray(self.eval_terms(x), dtype=np.float64)
        if len(terms) != 1:
            raise ValueError(
                f"{type(self).__name__}.explain takes one row, got {len(terms)}: X.iloc[[0]] or "
                "X[:1]."
            )
        intercepts = np.ravel(self.intercept_)
        if output is None:
            output = self._telling(intercepts + terms[0].sum(axis=0))
        values = terms[0] if terms.ndim == 2 else terms[0][:, output]
        intercept = float(intercepts[output])
        label, score, errors = self._output_names()[output], intercept + values.sum(), None
        if self._tabular:
            columns = self._columns(x, reset=False)
            said = [_in_words(column) for column in columns]
            shown = [", ".join(said[j] for j in term.columns) for term in self.table_.terms]
            errors = self.table_.errors(columns, type(self).__name__)[0, :, output]
        else:
            row = x.iloc[0] if hasattr(x, "iloc") else np.asarray(x)[0]
            shown = [f"{float(value):.6g}" for value in row]
        return Explanation(self.term_names_, shown, values, intercept, score, label, errors)

    def _telling(self, scores: np.ndarray) -> int:
        """The output that explains a prediction best, from the scores of all."""
        return int(np.argmax(scores))


def _has_words(raw: Any) -> bool:
    """Whether an array of objects holds text among its first rows."""
    if raw.dtype.kind in "US":
        return True
    head = np.asarray(raw).ravel()
    return any(isinstance(item, str) or item is None for item in head.tolist())


def _in_words(column: Column) -> str:
    if column.is_category:
        return column.levels[column.codes[0]] if column.codes[0] >= 0 else "missing"
    value = column.values[0]
    return "missing" if np.isnan(value) else f"{value:.6g}"
