"""The fitted model of additive support vector machines: a sum of one-dimensional functions.

Estimators hold an `AdditiveMachine`, files store it, and `kernelmaps predict` reads nothing else:
NumPy alone is needed to load it and to score a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._util.compiling import interpreted
from ..._util.schema import (
    SchemaError,
    State,
    array,
    boolean,
    labels,
    names,
    number,
    optional,
    record,
    saved,
    text,
)
from ..._util.sparse import is_sparse
from ..._util.threads import cached_property, in_threads, resolve_threads, row_blocks
from ...engine import Spec, code_spec
from ...engine.apply import sums_array_api
from ...engine.extent import EXACT_SIZES
from ...engine.families import CURVES
from ...engine.outputs import check_loop
from ...engine.piecewise import table_of
from ...engine.reference import at_codes
from ...engine.table import CODE, Table
from ...engine.tabulated import has_table, n_columns, zero_at_zero
from ..one_against_one import decided
from ..probabilities import class_probabilities, sigmoid
from ..rows.map_bands import bands_of
from ..saved_map import MOST_VALUES, EstimatorNeeded, SavedMap
from ..shapes import ShapeFunction, importance_of

if TYPE_CHECKING:
    from ...engine.table.dot import SummedTable

MOST_LANES = 16  # classes whose weights are the lanes of one vector
SMALL = 2_000_000  # values to look up below which threads do not pay
_EXACT = 1e-5  # tolerances below which float32 is not exact enough
_BLOCK_OF_TERMS = 2**14  # terms at a time
_GRID = 101  # points of a shape function
_FEWEST = 256  # rows that a model is described by, where there are as many
_DENSITY_BINS = 24  # of the histogram below a curve
_BEYOND = 16.0  # how far tables of curves reach beyond the values seen
_CODE_BYTES = 2**21  # of values at every code of an integer type: a second-level cache
_MOST_BYTES = 2**25  # of polynomials: beyond, the band of the basis is read instead
_GRAIN = 2**17  # values times outputs that are worth a thread


def precision_of(X: Any, tol: float) -> type:
    """float32 where the data are no finer and the tolerance does not ask for more."""
    return np.float64 if X.dtype == np.float64 or tol < _EXACT else np.float32


@dataclass(frozen=True)
class FittedMap:
    """A fitted map, and whether rows are its codes instead of values."""

    feature_map: Any
    on_codes: bool = False

    @cached_property
    def spec(self) -> Spec:
        """The map of the rows: of values, or of codes."""
        spec = self.feature_map.spec_
        return code_spec(spec) if self.on_codes else spec

    @property
    def n_columns(self) -> int:
        """Columns of ψ, of all features together."""
        return sum(self.feature_map._columns_per_feature())

    @property
    def n_bases(self) -> int:
        """Columns of the feature that has the most."""
        return max(self.feature_map._columns_per_feature())

    @property
    def has_fixed_table(self) -> bool:
        """Whether one table serves all rows (splines, look-ups); tables of curves go by ranges."""
        return "mix" in self.spec.arrays or self.spec.family == "piecewise"

    def dense_unless_sparse_helps(self, rows: Any) -> Any:
        """Sparse rows as dense ones, where the map does not take 0 to 0."""
        return rows.toarray() if is_sparse(rows) and not zero_at_zero(self.spec) else rows

    def check(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        if not self.on_codes:
            self._check_values(rows)

    def block(self, X: Any) -> Any:
        """One block of values, checked."""
        return self.dense_unless_sparse_helps(self._check_values(X))

    def _check_values(self, X: Any) -> Any:
        rows, extent = self.feature_map._check_rows(X, reset=False)
        self.feature_map._check_domain(rows, extent.columns)
        return rows


@record
class Summary:
    """What is kept of a sample of the training rows: files and pickles hold no rows.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,)
        Range of each feature.
    density : ndarray of shape (n_features, 24)
        Shares of the sample in uniform bins over the range.
    term_means : ndarray of shape (n_features, n_outputs)
        Means of the terms.
    importances : ndarray of shape (n_features,)
        Standard deviations of the terms, classes averaged.
    least : float
        Smallest magnitude that is not zero (0 if there is none).
    dtype : str
        Type of the rows.
    """

    low: np.ndarray = saved(array("f8", "features"))
    high: np.ndarray = saved(array("f8", "features"))
    density: np.ndarray = saved(array("f8", f"features {_DENSITY_BINS}", low=0, high=1))
    term_means: np.ndarray = saved(array("f8", "features outputs"))
    importances: np.ndarray = saved(array("f8 f4", "features", low=0))
    least: float = saved(number(low=0))
    dtype: str = saved(text(("float64", "float32", "uint8", "uint16", "uint32")))

    def _check_state(self) -> None:
        if np.any(self.low > self.high):
            raise SchemaError("Summary: 'low' is above 'high'")


def _fitted_map(value: Any, where: str, lengths: Any) -> None:
    """The check of the map of a machine."""
    if not isinstance(value, SavedMap) and not hasattr(value, "_columns_per_feature"):
        raise SchemaError(f"{where} must be an AdditiveMap, found a {type(value).__name__}")


def _summary(value: Any, where: str, lengths: Any) -> None:
    if not isinstance(value, Summary):
        raise SchemaError(f"{where} must be a Summary, found a {type(value).__name__}")


@dataclass(frozen=True, eq=False)
class AdditiveMachine:
    """A trained linear model on an additive map: f(x) = offset + Σ_j ⟨w_j, ψ_j(x_j)⟩.

    Attributes
    ----------
    feature_map : AdditiveMap or SavedMap
        The fitted map; of a file that is read to predict, what it says of values.
    on_codes : bool
        Whether rows are codes of the map instead of values.
    weights : ndarray of shape (n_features, n_bases, n_outputs)
        In the columns of the map's bands.
    offset : ndarray of shape (n_outputs,)
        The intercept of the training.
    tol : float
        Tolerance of the training: it says which precision scores have.
    outputs : {"numbers", "classes", "pairs", "labels"}
        What the outputs stand for.
    classes : ndarray or None
        Labels, of a classifier.
    log_odds : bool
        Whether the sigmoid of a score is a probability.
    feature_names : ndarray or None
        Names of the columns.
    sample : array, CSR or None
        Rows that describe the model; files and pickles hold `summary` instead.
    """

    feature_map: Any
    on_codes: bool
    weights: np.ndarray
    offset: np.ndarray
    tol: float
    outputs: str = "numbers"
    classes: np.ndarray | None = None
    log_odds: bool = False
    feature_names: Any = None
    sample: Any = None

    _state: ClassVar[State] = State(
        required={
            "feature_map": _fitted_map,
            "on_codes": boolean,
            "weights": array("f8 f4", "features bases outputs"),
            "offset": array("f8", "outputs"),
            "tol": number(above=0),
            "outputs": text(("numbers", "classes", "pairs", "labels")),
            "classes": optional(labels),
            "log_odds": boolean,
            "feature_names": optional(names),
            "summary": _summary,
        }
    )

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
    def intercept(self) -> np.ndarray:
        """The offset with the means of the terms."""
        return self.offset + self.summary.term_means.sum(axis=0)

    # -- what is saved ----------------------------------------------------------------------------

    def _saved(self) -> dict[str, Any]:
        self.summary  # noqa: B018 - computed now, from the sample
        return self._state.of(self)

    def __getstate__(self) -> dict[str, Any]:
        """The entries of a file: no rows."""
        return self._saved()

    def _check_state(self) -> None:
        """Raise ValueError if entries that were loaded contradict each other."""
        n_features, n_bases, n_outputs = self.weights.shape
        feature_map, largest = self.feature_map, EXACT_SIZES[1]
        if feature_map.n_features_in_ != n_features:
            raise ValueError("feature_map has another number of features than weights")
        means = self.summary.term_means
        if means.shape != (n_features, n_outputs):
            raise ValueError("summary has another number of features or outputs")
        ends = np.abs([self.summary.low, self.summary.high])
        if ((ends > 0) & (ends < EXACT_SIZES[0])).any() or (ends > largest).any():
            raise ValueError("summary reaches beyond the sizes for which maps are exact")
        if max(np.abs(a).max() for a in (self.weights, self.offset, means)) > largest:
            raise ValueError("weights, offset or term_means overflow in a sum")
        if not has_table(feature_map.spec_):
            raise ValueError("no table follows the curves of feature_map")
        if (self.outputs != "numbers") != (self.classes is not None):
            raise ValueError("classes are for outputs that stand for them")
        if self.classes is not None:
            n_classes = len(self.classes)
            counts = {"classes": 1 if n_classes == 2 else n_classes, "labels": n_classes}
            expected = counts.get(self.outputs, n_classes * (n_classes - 1) // 2)
        else:
            expected = 1
        if n_outputs != expected:
            raise ValueError("the machine has another number of outputs")
        if isinstance(feature_map, SavedMap):
            if self.on_codes or self.outputs not in ("numbers", "classes"):
                raise ValueError("scores of codes, pairs and labels are for the estimator")
        elif n_bases != self.fitted.n_bases:
            raise ValueError(f"weights of shape {self.weights.shape} do not fit the map")
        elif self.on_codes and not hasattr(feature_map, "check_codes"):
            raise ValueError("on_codes is true, but feature_map has no codes")

    # -- predictions of a few rows, by NumPy alone ------------------------------------------------

    @property
    def estimator(self) -> str:
        """The name of the estimator that predicts in the same way."""
        return "AdditiveSVR" if self.classes is None else "AdditiveSVC"

    @property
    def n_features_in_(self) -> int:
        """Columns of rows."""
        return len(self.weights)

    @property
    def classes_(self) -> np.ndarray:
        """Labels, of a classifier."""
        if self.classes is None:
            raise AttributeError("a machine of numbers has no classes")
        return self.classes

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns."""
        if self.feature_names is None:
            raise AttributeError("the columns had no names")
        return self.feature_names

    @property
    def saved_maps(self) -> list[SavedMap]:
        """The map."""
        return [self.feature_map]

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers, or the classes with the highest scores, for an array of rows."""
        scores = self._readable_scores(X)
        if self.classes is None:
            return scores[:, 0]
        return self.classes[decided(scores, len(self.classes))]

    @property
    def predict_proba(self) -> Any:
        """A function that predicts probabilities of the classes for an array of rows."""
        if not self.log_odds:
            raise AttributeError("the scores are no log odds")
        return lambda X: class_probabilities(sigmoid(self._readable_scores(X)))

    def _readable_scores(self, X: Any) -> np.ndarray:
        """Scores by NumPy; what that is slow for, or the map has to look at, is refused."""
        if getattr(X, "dtype", np.dtype(float)).kind == "i":
            X = X.astype(np.float64)  # as maps do
        if (
            type(X) is not np.ndarray
            or X.dtype != np.float64
            or X.shape[1:] != (len(self.weights),)
        ):
            raise EstimatorNeeded
        if not 0 < X.size * self.n_outputs <= MOST_VALUES:
            raise EstimatorNeeded
        self.feature_map.check(X)
        return sums_array_api(self._table_for(X), X)[0] + self.offset

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
        from ...engine.table.dot import OUTSIDE

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
        found = add_sums(terms, X, out, n_jobs)
        if validate and (found > OUTSIDE if silent else found):
            self.check(X)
        return (out + self.offset).astype(self.precision(X), copy=False)

    def foreign_scores(self, X: Any) -> Any:
        """Scores of rows of another array library, on their own device.

        In float64 for float64 rows and in float32 for all others. The table is summed on the
        device; for maps without a fixed table φ(X) is multiplied by the weights.
        """
        from array_api_compat import array_namespace

        from ..._util.devices import is_tensor, multiply
        from ...engine import gpu

        feature_map = self.feature_map
        X = feature_map._foreign_rows(X)
        xp, table = array_namespace(X), self.score_table()
        if table is None:
            rows = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)
            Z, flat = feature_map.transform(rows), self.weights.reshape(-1, self.n_outputs)
            weights = xp.asarray(flat, dtype=Z.dtype, device=X.device)
            total = multiply(Z, weights) if is_tensor(Z) else Z @ weights
        else:
            rows = feature_map.encode(X).values if self.on_codes else X
            check = gpu.NON_NEGATIVE if feature_map._non_negative else gpu.FINITE
            total, wrong = sums_array_api(table, rows, gpu.ANY if self.on_codes else check)
            if wrong and not self.on_codes:
                feature_map._check_foreign(X)
                feature_map._check_domain(X)
        total = total + xp.asarray(self.offset, dtype=total.dtype, device=X.device)
        return xp.astype(total, xp.float64 if X.dtype == xp.float64 else xp.float32)

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
        terms -= self.summary.term_means.astype(terms.dtype)
        return terms

    def tabulated_terms(self, X: Any) -> Any:
        """The model as polynomials for rows like these; None if the basis has to be evaluated."""
        key = ("terms", X.dtype)
        if key not in self._cache:
            table, precision = self.score_table(), np.dtype(self.precision(X))
            terms = None if table is None else tabulate_terms(table, X.dtype, precision)
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
                work = RowWork(tables.basis.bins, scored=weights)
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
        key = (X.dtype, is_sparse(X), precision, lanes)
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

    @cached_property
    def summary(self) -> Summary:
        """Ranges, densities, means and spreads of the terms: what is saved of the training rows."""
        n = self.sample.shape[0]
        sums = (terms.sum(axis=0, dtype=np.float64) for terms in self._blocks_of_terms())
        # In the precision of the terms, so that these and the intercept have the same sum.
        means = (sum(sums) / n).astype(self.precision(self.sample)).astype(np.float64)
        squares = (((terms - means) ** 2).sum(axis=0) for terms in self._blocks_of_terms())
        stored = self.sample.data if is_sparse(self.sample) else self.sample
        rows = self.sample.toarray() if is_sparse(self.sample) else self.sample
        ends = np.float64([rows.min(axis=0), rows.max(axis=0)])
        low, high = np.where(np.abs(ends) < EXACT_SIZES[0], 0.0, ends)
        counts = [
            np.histogram(rows[:, j], _density_edges(float(a), float(b)))[0]
            for j, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        magnitudes = np.abs(stored[stored != 0].astype(np.float64))
        return Summary(
            low=low,
            high=high,
            density=np.array(counts) / n,
            term_means=means,
            importances=importance_of(sum(squares) / n),
            least=float(magnitudes.min()) if magnitudes.size else 0.0,
            dtype=str(rows.dtype),
        )

    def _blocks_of_terms(self) -> Iterator[np.ndarray]:
        """Terms of the sample, as many rows at a time as a cache holds."""
        X = self.sample
        n_rows = max(16, _BLOCK_OF_TERMS // (X.shape[1] * self.n_outputs))
        return (self.terms(X[k : k + n_rows]) for k in range(0, X.shape[0], n_rows))

    def shape_functions(self, feature_names: list[str]) -> list[ShapeFunction]:
        """The g_j on a grid, with the density of the data below them: one for each feature."""
        key = ("shapes", *feature_names)
        if key not in self._cache:
            self._cache[key] = self._shape_functions(feature_names)
        return self._cache[key]

    def _shape_functions(self, feature_names: list[str]) -> list[ShapeFunction]:
        summary = self.summary
        low, high, dtype = summary.low, summary.high, np.dtype(summary.dtype)
        grid = low + np.linspace(0, 1, _GRID)[:, None] * (high - low)
        grid = np.round(grid) if self.on_codes or dtype.kind == "u" else grid
        terms = self.terms(grid.astype(dtype)) - summary.term_means
        shapes = []
        for j, name in enumerate(feature_names):
            points = np.unique(grid[:, j], return_index=True)[1]
            values = terms[:, j, 0] if terms.shape[2] == 1 else terms[:, j]
            shape = ShapeFunction(
                name,
                grid[points, j],
                values[points],
                _density_edges(float(low[j]), float(high[j])),
                summary.density[j],
                importance=float(summary.importances[j]),
            )
            shapes.append(shape)
        return shapes

    # -- tables for predictions and exports -------------------------------------------------------

    def terms_table(self) -> tuple[Table, np.ndarray]:
        """One table whose columns are the outputs, to be summed over the features; the offset."""
        if self.on_codes:
            raise ValueError(
                "the model was fitted on codes, which have no table of values: fit it on values "
                "to export it."
            )
        summary = self.summary
        most = float(np.maximum(np.abs(summary.low), np.abs(summary.high)).max())
        least, most = (summary.least / _BEYOND, most * _BEYOND) if most > 0 else (1.0, 1.0)
        ends = np.array([[-most if summary.low.min() < 0 else least], [most], [least]])
        table = self._table_for(np.tile(ends, (1, len(summary.low))))
        return table, np.asarray(self.offset, dtype=np.float64)

    def _table_for(self, rows: np.ndarray) -> Table:
        """The table of the scores, for values in the range of some rows."""
        bands = bands_of(self.fitted.spec, rows, np.dtype(np.float64)).table
        return sum_weighted(bands, self.weights)

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
            self._cache["table"] = self._table_for(np.zeros((1, self.weights.shape[0])))
        return self._cache["table"]


def _density_edges(low: float, high: float) -> np.ndarray:
    """Ends of the bins of a density; a constant, or nearly, gets a range around it."""
    from ...maps.base import differ, range_of_constant

    if not differ(low, high):
        half = range_of_constant(low, high) / 2
        low, high = low - half, high + half
    return np.linspace(low, high, _DENSITY_BINS + 1)


def sample_rows(X: Any, weight: np.ndarray, before: AdditiveMachine | None = None) -> Any:
    """Rows that describe a machine: one of every few rows of positive weight.

    A short chunk is completed by rows of the machine `before` it. None where that machine was
    saved, so that its rows are gone: its description is better than that of a few rows.
    """
    size = n_counted = np.count_nonzero(weight > 0)
    take_all = size in (0, len(weight))
    size = len(weight) if take_all else size
    step = max(1, -(-size // max(_FEWEST, min(2000, size // 32))))
    # One of each `step` rows, at random: every step-th may be of one kind.
    taken = np.arange(0, size, step)
    taken += np.random.default_rng(0).integers(np.minimum(step, size - taken))
    rows = X[taken if take_all else np.flatnonzero(weight > 0)[taken]]
    missing = _FEWEST - n_counted
    if before is None or missing <= 0 or before.sample is None:
        return None if before is not None and missing > 0 else rows
    earlier = before.sample
    if earlier.dtype != rows.dtype or is_sparse(earlier) != is_sparse(rows):
        return rows
    if n_counted == 0:
        return earlier
    if not is_sparse(rows):
        return np.concatenate([earlier[-missing:], rows])
    from scipy.sparse import vstack

    return vstack([earlier[-missing:], rows], format="csr")


def sum_weighted(bands: Table, weights: np.ndarray) -> Table:
    r"""The table of Σ_c w_c Φ_c: of weights [feature][basis][output], in float64.

    A model's term is :math:`g_d(x) = \sum_c w_{dc} Φ_{dc}(x)`, and every Φ is a local polynomial
    on bins. On each bin the weighted sum is again a polynomial: the model is a table whose columns
    are its outputs, to be summed over the features.
    """
    weights = np.asarray(weights, dtype=np.float64)
    sets, n_outputs = bands.set_of, weights.shape[2]
    edges = None
    if len(bands.edges):
        ends = bands.edge_start + bands.bins + 1
        edges = [bands.edges[bands.edge_start[s] : ends[s]] for s in sets]
    return Table.build(
        bands.binning,
        bands.degree,
        _coefficients(bands, weights),
        np.arange(bands.n_features),
        origin=bands.origin[sets],
        resolution=bands.resolution[sets],
        edges=edges,
        clip_low=bands.clip_low[sets],
        clip_high=bands.clip_high[sets],
        width=np.full(bands.n_features, n_outputs),
        signed=bands.signed,
        zero_at_zero=bands.zero_at_zero,
    )


def _coefficients(bands: Table, weights: np.ndarray) -> list[np.ndarray]:
    """Coefficients (bins, degree + 1, outputs) of each feature.

    Features that share their polynomials are summed together: for uniform knots these are all.
    """
    shape = np.stack([bands.coef_start, bands.first_start, bands.bins, bands.band], axis=1)
    kinds, kind_of = np.unique(shape[bands.set_of], axis=0, return_inverse=True)
    out: list[Any] = [None] * bands.n_features
    for k, (start, begin, bins, band) in enumerate(kinds.tolist()):
        powers = bands.degree + 1
        coef = bands.coef[start : start + bins * powers * band].reshape(bins, powers, band)
        columns = bands.first[begin : begin + bins].astype(np.int64)[:, None] + np.arange(band)
        inside = columns < weights.shape[1]
        features = np.flatnonzero(np.ravel(kind_of) == k)
        local = weights[features][:, np.where(inside, columns, 0)] * inside[..., None]
        for d, sums in zip(features, np.matmul(coef, local), strict=True):
            out[d] = sums
    return out


def tabulate_terms(table: Table, rows: np.dtype, dtype: np.dtype) -> SummedTable | None:
    """A model's table in the layout of the loops for rows of one kind: float64 or float32
    polynomials, or for integers, where these fit the caches, the values themselves.

    None if its band is to be read instead: where that is cheaper, and where nothing is compiled.
    """
    from ...engine.table.dot import summed_table

    if interpreted():
        return None
    outputs, d = int(table.width[0]), table.n_features
    codes = 1 << 8 * rows.itemsize
    if rows.kind == "u" and table.binning != CODE and codes * d * outputs * 4 <= _CODE_BYTES:
        table = at_codes(table, codes, np.dtype(np.float64))
    elif table.coef.size * dtype.itemsize > _MOST_BYTES:
        return None
    return summed_table(table, dtype)


def add_sums(terms: SummedTable, X: Any, out: np.ndarray, n_jobs: int | None) -> int:
    """Add the outputs of all rows to `out`; INSIDE, or OUTSIDE or NOT_FINITE if a value was."""
    from ...engine.table.dot import BLOCK, dot_dense, dot_stored, sum_workspace
    from ...engine.table.locate import stored_rows

    check_loop(X, terms.features, out, (X.shape[0], terms.outputs))
    grain = max(1, _GRAIN // (X.shape[1] * out.shape[1]))
    flat, stored = out.reshape(-1), is_sparse(X)
    rows = stored_rows(X.data, X.indices, X.indptr) if stored else X.reshape(-1)
    loop = dot_stored if stored else dot_dense

    def work(begin: int, end: int) -> int:
        return loop(terms, rows, sum_workspace(terms), begin, end, flat)

    # Every part of dense rows reads the whole table once for each of its blocks.
    return max(in_threads(work, X.shape[0], n_jobs, grain, 1 if stored else BLOCK))
