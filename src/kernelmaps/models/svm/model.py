"""The fitted model of additive support vector machines: a sum of one-dimensional functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..._util.schema import State, array, boolean, instance, number
from ..._util.threads import cached_property, resolve_threads, row_blocks
from ...engine import Spec
from ...engine.extent import EXACT_SIZES
from ...engine.families import CURVES
from ...engine.outputs import check_loop
from ...engine.piecewise import table_of
from ...engine.table import Table
from ...engine.tabulated import has_table, n_columns
from ...maps.base import AdditiveMap
from ..shapes import importance_of
from .fitted_map import FittedMap
from .problem import MOST_LANES, SMALL, precision_of
from .score_table import range_of_curves, summed
from .training_summary import Summary, summarise

_BLOCK_OF_TERMS = 2**14  # terms at a time


class AdditiveMachine:
    """A trained linear model on an additive map: f(x) = offset + Σ_j ⟨w_j, ψ_j(x_j)⟩.

    It takes rows that are checked and in the form of the loops, and knows nothing of labels.

    Attributes
    ----------
    feature_map : AdditiveMap
        The fitted map.
    on_codes : bool
        Whether rows are codes of the map instead of values.
    weights : ndarray of shape (n_features, n_bases, n_outputs)
        In the columns of the map's bands.
    offset : ndarray of shape (n_outputs,)
        The intercept of the training.
    tol : float
        Tolerance of the training: it says which precision scores have.
    term_means : ndarray of shape (n_features, n_outputs)
        Means of the terms over a sample of the training rows.
    feature_names : ndarray or None
        Names of the columns.
    sample : array, CSR or None
        Rows that describe the model. They are not part of files and pickles, which hold
        `summary` instead.
    """

    _state: ClassVar[State] = State(
        required={
            "feature_map": instance((AdditiveMap,)),
            "on_codes": boolean,
            "weights": array("f8 f4", "features bases outputs"),
            "offset": array("f8", "outputs"),
            "tol": number(above=0),
            "term_means": array("f8", "features outputs"),
            "summary": instance((Summary,)),
        },
        attributes={"summary": "_summary", "term_means": "_term_means"},
    )
    # What an instance that was read from a file has, too.
    sample: Any = None
    feature_names: Any = None
    # Computed from `sample` when they are first needed.
    _term_means: np.ndarray | None = None
    _summary: Summary | None = None

    def __init__(
        self, fitted: FittedMap, weights: np.ndarray, offset: np.ndarray, tol: float,
        feature_names: Any = None,
    ) -> None:  # fmt: skip
        self.feature_map, self.on_codes = fitted.feature_map, fitted.on_codes
        self.weights, self.offset, self.tol = weights, offset, tol
        self.feature_names = feature_names

    @cached_property
    def fitted(self) -> FittedMap:
        """The map and the kind of rows."""
        return FittedMap(self.feature_map, self.on_codes)

    @cached_property
    def _cache(self) -> dict[Any, Any]:
        """Tables of the last predictions."""
        return {}

    @property
    def n_outputs(self) -> int:
        """Columns of scores."""
        return self.weights.shape[2]

    @property
    def term_means(self) -> np.ndarray:
        """Means of the terms over a sample of the training rows, [feature][output]."""
        if self._term_means is None:
            means = self._mean_over_sample(lambda terms: terms)
            # In the precision of the terms, so that these and the intercept have the same sum.
            self._term_means = means.astype(self.precision(self.sample)).astype(np.float64)
        return self._term_means

    @property
    def intercept(self) -> np.ndarray:
        """The offset with the means of the terms."""
        return self.offset + self.term_means.sum(axis=0)

    # -- what is saved ----------------------------------------------------------------------------

    def _saved(self) -> dict[str, Any]:
        self.summary, self.term_means  # noqa: B018 - computed now, from the sample
        return self._state.of(self)

    def __getstate__(self) -> dict[str, Any]:
        """The entries of a file, and the names of the columns: no rows."""
        saved = {self._state.attribute(name): value for name, value in self._saved().items()}
        return {**saved, "feature_names": self.feature_names}

    def _check_state(self) -> None:
        """Raise ValueError if entries that were loaded contradict each other."""
        fitted, shape = self.fitted, self.weights.shape
        if fitted.feature_map.n_features_in_ != shape[0]:
            raise ValueError("feature_map has another number of features than weights")
        if shape[1] != fitted.n_bases:
            raise ValueError(f"weights of shape {shape} do not fit the map")
        if len(self.summary.low) != shape[0]:
            raise ValueError("summary has another number of features")
        ends, (smallest, largest) = np.abs([self.summary.low, self.summary.high]), EXACT_SIZES
        if ((ends > 0) & (ends < smallest)).any() or (ends > largest).any():
            raise ValueError("summary reaches beyond the sizes for which maps are exact")
        if max(np.abs(a).max() for a in (self.weights, self.offset, self.term_means)) > largest:
            raise ValueError("weights, offset or term_means overflow in a sum")
        if self.on_codes and not hasattr(fitted.feature_map, "check_codes"):
            raise ValueError("on_codes is true, but feature_map has no codes")
        if not has_table(fitted.feature_map.spec_):
            raise ValueError("no table follows the curves of feature_map")

    # -- scores -----------------------------------------------------------------------------------

    def check(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        # The map saw an array; the names that the model saw are for its messages. A model of an
        # array leaves those that were read from a file.
        if self.feature_names is not None and not self.on_codes:
            self.feature_map._known_names = self.feature_names
        self.fitted.check(rows)

    def precision(self, X: Any) -> type:
        """Type of the scores of rows."""
        return precision_of(X, self.tol)

    def scores(self, X: Any, n_jobs: int | None = None, *, validate: bool = False) -> np.ndarray:
        """Scores of rows, one column per output.

        With `validate` the values have not been checked: the loops over its tables notice
        what is not finite or outside the domain on their way, and only then they are searched.
        """
        from .prediction import sums

        terms, feature_map = self.tabulated_terms(X), self.feature_map
        # Values outside the domain are clipped, with one warning; others may be refused.
        silent = feature_map.out_of_domain == "clip" and getattr(feature_map, "_warned", False)
        silent &= not feature_map._non_negative
        if validate and (terms is None or not (silent or self._notices(X))):
            self.check(X)
            validate = False
        if terms is None:
            return self.trained_scores(X, n_jobs=n_jobs)
        out = np.zeros((X.shape[0], self.n_outputs), np.float64)
        beyond = sums(terms, X, out, n_jobs)
        if validate and beyond != 0 and not (silent and np.isfinite(beyond)):
            self.check(X)
        return (out + self.offset).astype(self.precision(X), copy=False)

    def trained_scores(
        self, X: Any, some_rows: np.ndarray | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Scores in the form of the training, for which nothing has to be compiled first."""
        count = X.shape[0] if some_rows is None else len(some_rows)
        out = np.zeros((count, 1, self.n_outputs), self.precision(X))
        out = self._evaluate(X, out, some_rows, n_jobs)[:, 0]
        return (out + self.offset).astype(self.precision(X), copy=False)

    def terms(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Terms of rows, [row][feature][output], their means included."""
        shape = (X.shape[0], self.weights.shape[0], self.n_outputs)
        return self._evaluate(X, np.zeros(shape, self.precision(X)), None, n_jobs)

    def centred_terms(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Terms of rows with mean zero over the sample of the training rows."""
        terms = self.terms(X, n_jobs)
        terms -= self.term_means.astype(terms.dtype)
        return terms

    def tabulated_terms(self, X: Any) -> Any:
        """The model as polynomials for rows like these; None if the basis has to be evaluated."""
        from .prediction import tabulated_terms

        key = ("terms", X.dtype)
        if key not in self._cache:
            table, precision = self.score_table(), np.dtype(self.precision(X))
            terms = None if table is None else tabulated_terms(table, X.dtype, precision)
            self._cache[key] = terms
        return self._cache[key]

    def _notices(self, X: Any) -> bool:
        """Whether the loops over tables see all values that have to be spoken of.

        They look up codes blindly, and bins of look-up maps have no outer ends.
        """
        fitted = self.feature_map
        if self.on_codes or (fitted.domain_ is None and not fitted._non_negative):
            return True
        low, high = (0.0, np.inf) if fitted.domain_ is None else fitted.domain_
        if X.dtype.kind == "u":
            return bool(np.max(low) <= 0 and np.min(high) >= np.iinfo(X.dtype).max)
        if fitted.out_of_domain == "extrapolate" and not fitted._non_negative:
            return True
        if "ends" not in self._cache:
            table = table_of(self.fitted.spec)
            ends = table.clip_low[table.set_of], table.clip_high[table.set_of]
            self._cache["ends"] = bool(np.all(ends[0] >= low) and np.all(ends[1] <= high))
        return self._cache["ends"]

    def _evaluate(
        self, X: Any, out: np.ndarray, some_rows: np.ndarray | None, n_jobs: int | None
    ) -> np.ndarray:
        """Scores [row][0][output] or terms [row][feature][output] of (some) rows."""
        from ...engine.table.update import RowWork
        from ..rows.map_tables import rows_of, workspace_for
        from ..solvers._dual_loops import evaluate
        from ..solvers.dual import in_blocks

        rows, no_norms = rows_of(X), np.zeros(0)
        examples = np.arange(X.shape[0]) if some_rows is None else some_rows
        examples = np.ascontiguousarray(examples, np.int64)
        groups = [(outputs, self._basis_tables(X, outputs)) for outputs in self._groups()]
        for d in (len(self.weights), *(basis.bands.table.n_features for _, basis in groups)):
            shape = (len(examples), d if out.shape[1] > 1 else 1, groups[-1][0].stop)
            check_loop(X, d, out, shape)
        placed = [self._placed(tables, outputs) for outputs, tables in groups]
        direct = len(groups) == 1  # the loop writes there

        def some(begin: int, end: int) -> None:
            for (outputs, tables), weights in zip(groups, placed, strict=True):
                count, workspace = outputs.stop - outputs.start, workspace_for(tables, rows)
                shape = (end - begin, out.shape[1], count)
                scores = out[begin:end] if direct else np.zeros(shape, out.dtype)
                work = RowWork(tables.basis.finder, scored=weights)
                evaluate(work, rows, workspace, examples[begin:end], no_norms, scores)
                if not direct:
                    out[begin:end, :, outputs] = scores

        def work(begin: int, end: int) -> None:
            for block in row_blocks(end - begin, 0 if direct else 8 * out.shape[1] * MOST_LANES):
                some(begin + block.start, begin + block.stop)

        size = X.size * out.shape[-1] * len(out) // max(1, X.shape[0])
        in_blocks(resolve_threads(n_jobs) if size > SMALL else 1, len(out), work)
        return out

    def _groups(self) -> list[slice]:
        """Outputs whose weights are the lanes of one vector."""
        count = self.n_outputs
        return [slice(k, min(k + MOST_LANES, count)) for k in range(0, count, MOST_LANES)]

    def _basis_tables(self, X: Any, outputs: slice) -> Any:
        from ..rows.map_tables import basis_tables, lanes_for

        precision, lanes = self.precision(X), lanes_for(outputs.stop - outputs.start)
        key = (X.dtype, sparse.issparse(X), precision, lanes)
        if not self.fitted.has_fixed_table or key not in self._cache:
            self._cache[key] = basis_tables(self.fitted.spec, X, precision, lanes, all_codes=True)
        return self._cache[key]

    def _placed(self, tables: Any, outputs: slice) -> Any:
        """The weights of some outputs as the loops take them."""
        from ...engine.table.update import weights_of
        from ..rows.map_tables import pack_weights

        key = ("weights", tables.basis.values.coef.dtype, tables.lanes, outputs.start)
        if key not in self._cache or self._cache[key][0] is not tables:
            basis, w = tables.basis, pack_weights(tables, self.weights[:, :, outputs])
            self._cache[key] = (tables, weights_of(basis, basis.values, tables.lanes, w))
        return self._cache[key][1]

    # -- description ------------------------------------------------------------------------------

    def describe(self, sample: Any) -> None:
        """Describe the machine by a sample of the training rows."""
        self.sample, self._summary, self._term_means = sample, None, None

    def describe_like(self, other: AdditiveMachine) -> None:
        """Take over the description of another machine on the same map."""
        self.sample, self._summary = other.sample, other._summary
        self._term_means = other.term_means

    @property
    def summary(self) -> Summary:
        """Ranges, densities and importances: what is saved of the training rows."""
        if self._summary is None:
            variances = self._mean_over_sample(lambda t: (t - self.term_means) ** 2)
            self._summary = summarise(self.sample, importance_of(variances))
        return self._summary

    def _mean_over_sample(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Mean of a function of the terms, some rows at a time."""
        sums = (
            function(t).sum(axis=0, dtype=np.float64) for t in self._blocks_of_terms(self.sample)
        )
        return sum(sums) / self.sample.shape[0]

    def _blocks_of_terms(self, X: Any) -> Iterator[np.ndarray]:
        """Terms of rows, as many at a time as a cache holds."""
        n_rows = max(16, _BLOCK_OF_TERMS // (X.shape[1] * self.n_outputs))
        return (self.terms(X[k : k + n_rows]) for k in range(0, X.shape[0], n_rows))

    # -- tables for exports -----------------------------------------------------------------------

    def terms_table(self) -> tuple[Table, np.ndarray]:
        """One table whose columns are the outputs, to be summed over the features; the offset."""
        if self.on_codes:
            raise ValueError(
                "the model was fitted on codes, which have no table of values: fit it on values "
                "to export it."
            )
        table = self._summed_table(range_of_curves(self.summary))
        return table, np.asarray(self.offset, dtype=np.float64)

    def _summed_table(self, rows: np.ndarray) -> Table:
        """The table of the scores, for values in the range of some rows."""
        from ..rows.map_bands import bands_of

        return summed(bands_of(self.fitted.spec, rows, np.dtype(np.float64)).table, self.weights)

    def curve_terms(self) -> tuple[Spec, np.ndarray, np.ndarray] | None:
        """Spec, weights [feature][column][output] and offset of a machine over a map of curves.

        Curves go on for ever and tables of them do not: an export writes the formula and the
        weights. None for machines over tables.
        """
        spec = self.fitted.spec
        if self.on_codes or spec.family not in CURVES:
            return None
        weights = np.asarray(self.weights, dtype=np.float64)[:, : n_columns(spec, 1)]
        return spec, weights, np.asarray(self.offset, dtype=np.float64)

    def score_table(self) -> Table | None:
        """The table of the scores in float64; None for maps that have no table of their own."""
        if not self.fitted.has_fixed_table:
            return None
        if "table" not in self._cache:
            self._cache["table"] = self._summed_table(np.zeros((1, self.weights.shape[0])))
        return self._cache["table"]
