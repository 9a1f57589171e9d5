"""The fitted model of additive support vector machines: a sum of one-dimensional functions.

Estimators hold an `AdditiveMachine`, files store it, and `kernelmaps predict` reads nothing else;
exports, plots, reports and explanations take it, too. NumPy alone is needed to load it and to score
a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..._util import schema
from ..._util.compiling import is_interpreted, make_read_only
from ..._util.sparse import dense, is_sparse
from ..._util.threads import cached_property, run_in_threads
from ...data.columns import reorder_columns
from ...engine import Spec, apply, code_spec, extent
from ...engine.apply import sums_array_api
from ...engine.families import CURVES
from ...engine.outputs import check_loop
from ...engine.piecewise import spec_of
from ...engine.reference import tabulate_codes
from ...engine.saved_map import SavedMap
from ...engine.table import CODE, Table
from ...engine.tabulated import has_table, n_columns, zero_at_zero
from ..decision import (
    PredictsRows,
    best_labels,
    class_pairs,
    class_probabilities,
    count_votes,
    sigmoid,
)
from ..rows.map_basis import make_basis
from ..shapes import Explanation, ShapeFunction, importance_of, score_name

MOST_LANES = 16  # classes whose weights are the lanes of one vector
SMALL = 2_000_000  # values to look up below which threads do not pay
_EXACT = 1e-5  # tolerances below which float32 is not exact enough
_BLOCK_OF_TERMS = 2**14  # terms at a time
# Rows times features times outputs, for which NumPy takes 2 seconds (0.11 µs each): compiled loops
# take about as long to be imported.
MOST_READABLE = 2**24
_GRID = 101  # points of a shape function
_FEWEST = 256  # rows that a model is described by, where there are as many
_DENSITY_BINS = 24  # of the histogram below a curve
_BEYOND = 16.0  # how far tables of curves reach beyond the values seen
_CODE_BYTES = 2**21  # of values at every code of an integer type: a second-level cache
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

    def dense_unless_sparse_helps(self, rows: Any) -> Any:
        """Sparse rows as dense ones, where the map does not take 0 to 0."""
        return rows.toarray() if is_sparse(rows) and not zero_at_zero(self.spec) else rows

    def block(self, X: Any) -> Any:
        """One block of values, checked."""
        return self.dense_unless_sparse_helps(self.check_values(X))

    def check_values(self, X: Any) -> Any:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        rows, extent = self.feature_map._check_rows(X, reset=False)
        self.feature_map._check_domain(rows, extent.columns)
        return rows


@schema.record
class Summary:
    """What is kept of a sample of the training rows: files and pickles hold no rows.

    Attributes
    ----------
    domain : tuple of arrays (low, high) of shape (n_features,)
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

    domain: tuple[np.ndarray, np.ndarray] = schema.saved(
        schema.pair(schema.array("f8", "features"))
    )
    density: np.ndarray = schema.saved(
        schema.array("f8", f"features {_DENSITY_BINS}", low=0, high=1)
    )
    term_means: np.ndarray = schema.saved(schema.array("f8", "features outputs"))
    importances: np.ndarray = schema.saved(schema.array("f8 f4", "features", low=0))
    least: float = schema.saved(schema.number(low=0))
    dtype: str = schema.saved(schema.text(("float64", "float32", "uint8", "uint16", "uint32")))


def _fitted_map(value: Any, where: str, lengths: Any) -> None:
    """The check of the map of a machine."""
    if not isinstance(value, SavedMap) and not hasattr(value, "_columns_per_feature"):
        raise schema.SchemaError(f"{where} must be an AdditiveMap, found a {type(value).__name__}")


@schema.record
class AdditiveMachine(PredictsRows):
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
    outputs : {"numbers", "classes", "pairs"}
        What the outputs stand for.
    classes : ndarray or None
        Labels, of a classifier.
    log_odds : bool
        Whether the sigmoid of a score is a probability.
    feature_names : ndarray or None
        Names of the columns.
    summary : Summary
        What is kept of the training rows: files and pickles hold no row. None while C is chosen.
    """

    feature_map: Any = schema.saved(_fitted_map)
    on_codes: bool = schema.saved(schema.boolean)
    weights: np.ndarray = schema.saved(schema.array("f8 f4", "features bases outputs"))
    offset: np.ndarray = schema.saved(schema.array("f8", "outputs"))
    tol: float = schema.saved(schema.number(above=0))
    summary: Summary = schema.saved(schema.instance((Summary,)))
    outputs: str = schema.saved(schema.text(("numbers", "classes", "pairs")), default="numbers")
    classes: np.ndarray | None = schema.saved(schema.optional(schema.labels), default=None)
    log_odds: bool = schema.saved(schema.boolean, default=False)
    feature_names: Any = schema.saved(schema.optional(schema.names), default=None)

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

    def _check_state(self) -> None:
        """Raise ValueError if entries that were loaded contradict each other."""
        n_features, n_bases, n_outputs = self.weights.shape
        feature_map, means, (smallest, largest) = (
            self.feature_map, self.summary.term_means, extent.EXACT_SIZES
        )  # fmt: skip
        ends = np.abs(self.summary.domain)
        largest_sum = max(np.abs(a).max() for a in (self.weights, self.offset, means))
        n_classes = 0 if self.classes is None else len(self.classes)
        expected = {
            "numbers": 1 if not n_classes else -1,
            "classes": n_classes if n_classes > 2 else n_classes - 1,
            "pairs": n_classes * (n_classes - 1) // 2,
        }
        light = isinstance(feature_map, SavedMap)
        for wrong, problem in (
            (feature_map.n_features_in_ != n_features, "weights do not fit feature_map's features"),
            (means.shape != (n_features, n_outputs), "summary has other features or outputs"),
            (((ends > 0) & (ends < smallest)).any() or ends.max() > largest,
             "summary reaches beyond the sizes for which maps are exact"),
            (largest_sum > largest, "weights, offset or term_means overflow in a sum"),
            (not has_table(feature_map.spec_), "no table follows the curves of feature_map"),
            (n_outputs != expected[self.outputs], "the machine has another number of outputs"),
            (light and (self.on_codes or self.outputs not in ("numbers", "classes")),
             "scores of codes and pairs are for the estimator"),
            (not light and n_bases != self.fitted.n_bases, "weights do not fit feature_map"),
            (self.on_codes and not hasattr(feature_map, "check_codes"), "feature_map has no codes"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(problem)

    # -- predictions of rows of a file, without the estimator --------------------------------------

    # The name of the estimator that predicts in the same way, and what else estimators have.
    estimator = property(lambda self: "AdditiveSVR" if self.classes is None else "AdditiveSVC")
    n_features_in_ = property(lambda self: len(self.weights))
    feature_names_in_ = property(lambda self: self.feature_names)
    feature_map_ = property(lambda self: self.feature_map)
    _link = property(lambda self: "logit" if self.log_odds else "identity")
    _pairwise = property(lambda self: self.outputs == "pairs")

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers, or the classes with the highest scores, for an array of rows."""
        scores = self._scores_of_rows(X)
        return scores[:, 0] if self.classes is None else best_labels(self, scores)

    @property
    def predict_proba(self) -> Any:
        """A function that predicts probabilities of the classes for an array of rows."""
        if not self.log_odds or self._pairwise:
            raise AttributeError("the scores are no log odds of classes")
        return lambda X: class_probabilities(sigmoid(self._scores_of_rows(X)))

    def _scores_of_rows(self, X: Any) -> np.ndarray:
        """Scores by NumPy alone; of many rows, by loops, whose import takes as long as NumPy."""
        X = self._checked_rows(X)
        if self.on_codes or X.size * self.n_outputs > MOST_READABLE:
            scores = self.scores(X)
        else:
            scores = sums_array_api(self._table_for(X), X)[0] + self.offset
        return self.class_scores(scores)

    def class_scores(self, scores: np.ndarray) -> np.ndarray:
        """The scores of the classes from those of outputs: of pairs, their votes."""
        if not self._pairwise:
            return scores
        assert self.classes is not None
        return count_votes(scores, len(self.classes))

    def _checked_rows(self, X: Any) -> np.ndarray:
        """An array or a frame of rows as loops take them."""
        X = self._native_rows(X)
        self.check(X)
        return self.feature_map.encode(X).values if self.on_codes else X

    # -- scores -----------------------------------------------------------------------------------

    def check(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        # The map saw an array; the names that the model saw are for its messages. A model of an
        # array leaves those that were read from a file.
        if self.on_codes:
            return
        if isinstance(self.feature_map, SavedMap):
            self.feature_map.check(rows)
            return
        if self.feature_names is not None:
            self.feature_map._known_names = self.feature_names
        self.fitted.check_values(rows)

    def precision(self, X: Any) -> type:
        """Type of the scores of rows."""
        return precision_of(X, self.tol)

    def scores(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Scores of checked rows, one column per output.

        A model whose map has a table is one itself, of the sums over a feature's columns: a value
        takes one polynomial per output. Of other maps, the terms are added up.
        """
        out, table = np.zeros((X.shape[0], self.n_outputs)), self._summed_table(X)
        if table is None:
            step = max(1, _BLOCK_OF_TERMS // self.weights.size)
            for k in range(0, X.shape[0], step):
                out[k : k + step] = self.terms(X[k : k + step], n_jobs).sum(axis=1)
        else:
            add_sums(table, X, out, n_jobs)
        return (out + self.offset).astype(self.precision(X), copy=False)

    def foreign_scores(self, X: Any) -> Any:
        """Scores of rows of another array library, on their own device.

        In float64 for float64 rows and in float32 for all others. The table is summed on the
        device; for maps without a fixed table φ(X) is multiplied by the weights.
        """
        from ..._util.devices import is_tensor, multiply, namespace_of
        from ...engine import gpu

        feature_map = self.feature_map
        X = feature_map._foreign_rows(X)
        xp, table = namespace_of(X), self.score_table
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

    def terms(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Terms of checked rows, [row][feature][output], their means included."""
        n, d = X.shape[0], len(self.weights)
        check_loop(X, d, X, X.shape)
        precision, table = self.precision(X), self.score_table
        if not self.on_codes:
            X = X.astype(precision, copy=False)
        if table is not None:
            if "spec" not in self._cache:
                self._cache["spec"] = spec_of(table)
            values = dense(apply(self._cache["spec"], X, n_jobs=n_jobs))
            return values.reshape(n, d, -1).astype(precision, copy=False)
        columns = dense(apply(self.fitted.spec, X, n_jobs=n_jobs)).reshape(n, d, -1)
        weights = self.weights[:, : columns.shape[2]].astype(columns.dtype)
        return np.matmul(columns.transpose(1, 0, 2), weights).transpose(1, 0, 2)

    def _summed_table(self, X: Any) -> Any:
        """The model as polynomials for loops over rows like these, or None.

        Integers look the values themselves up, where these fit the caches.
        """
        from ...engine.table.dot import sum_table

        table, precision = self.score_table, np.dtype(self.precision(X))
        if table is None or is_interpreted():
            return None
        key = (X.dtype, precision)
        if key not in self._cache:
            codes = 1 << 8 * X.dtype.itemsize
            n_bytes = codes * X.shape[1] * self.n_outputs * 4
            if X.dtype.kind == "u" and table.binning != CODE and n_bytes <= _CODE_BYTES:
                table = tabulate_codes(table, codes, np.dtype(np.float64))
            self._cache[key] = sum_table(table, precision)
        return self._cache[key]

    # -- description ------------------------------------------------------------------------------

    @classmethod
    def from_fit(cls, sample: Any, **parts: Any) -> AdditiveMachine:
        """A machine that describes some training rows when its summary is first asked for."""
        machine = cls(summary=None, **parts)  # type: ignore[arg-type]
        del machine.__dict__["summary"]
        machine.__dict__["_sample"] = sample
        return machine

    def __getattr__(self, name: str) -> Any:
        """The summary, where it was not computed yet."""
        sample = self.__dict__.get("_sample")
        if name != "summary" or sample is None:
            raise AttributeError(f"AdditiveMachine has no {name!r}")
        summary = self.__dict__.setdefault("summary", self._describe(sample))
        self.__dict__.pop("_sample", None)
        return summary

    def _saved(self) -> dict[str, Any]:
        """The entries of a file, with the summary."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def _describe(self, sample: Any) -> Summary:
        """Ranges, densities, means and spreads of the terms over rows."""
        n = sample.shape[0]
        n_rows = max(16, _BLOCK_OF_TERMS // (sample.shape[1] * self.n_outputs))
        blocks = [slice(k, k + n_rows) for k in range(0, n, n_rows)]
        sums = (self.terms(sample[rows]).sum(axis=0, dtype=np.float64) for rows in blocks)
        # In the precision of the terms, so that these and the intercept have the same sum.
        means = (sum(sums) / n).astype(self.precision(sample)).astype(np.float64)
        squares = (((self.terms(sample[rows]) - means) ** 2).sum(axis=0) for rows in blocks)
        stored = sample.data if is_sparse(sample) else sample
        rows = sample.toarray() if is_sparse(sample) else sample
        ends = np.float64([rows.min(axis=0), rows.max(axis=0)])
        low, high = np.where(np.abs(ends) < extent.EXACT_SIZES[0], 0.0, ends)
        counts = [
            np.histogram(rows[:, j], _density_edges(float(a), float(b)))[0]
            for j, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        magnitudes = np.abs(stored[stored != 0].astype(np.float64))
        return Summary(
            domain=(low, high),
            density=np.array(counts) / n,
            term_means=means,
            importances=importance_of(sum(squares) / n),
            least=float(magnitudes.min()) if magnitudes.size else 0.0,
            dtype=str(rows.dtype),
        )

    @property
    def term_names_(self) -> list[str]:
        """Names of the features."""
        of_map = getattr(self.feature_map, "feature_names_in_", None)
        columns = of_map if self.feature_names is None else self.feature_names
        default = [f"x{j}" for j in range(self.n_features_in_)]
        return default if columns is None else [str(name) for name in columns]

    def centred_terms(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Terms of checked rows, [row][feature][output], less their means."""
        terms = self.terms(X, n_jobs)
        return terms - self.summary.term_means.astype(terms.dtype)

    def explain(self, x: Any, output: int | None = None) -> Explanation:
        """Explain one row of an array or a frame, as the estimator does."""
        return self.explain_terms(self.centred_terms(self._checked_rows(x)), x, output)

    def explain_terms(self, terms: np.ndarray, x: Any, output: int | None = None) -> Explanation:
        """Explain a row by its centred terms, by default the score of the predicted class."""
        if len(terms) != 1:
            raise ValueError(
                f"{self.estimator}.explain takes one row, got {len(terms)}: X.iloc[[0]] or X[:1]."
            )
        of_outputs = np.asarray(terms[0], dtype=np.float64).reshape(-1, self.n_outputs)
        if output is None:
            output = self._output_to_explain(self.intercept + of_outputs.sum(axis=0))
        values, intercept = of_outputs[:, output], float(self.intercept[output])
        shown = [f"{float(value):.6g}" for value in np.asarray(reorder_columns(self, x))[0]]
        return Explanation(
            self.term_names_, shown, values, intercept, intercept + values.sum(),
            self.output_names[output], scale=score_name(self, output=output),
        )  # fmt: skip

    def _output_to_explain(self, scores: np.ndarray) -> int:
        """The highest score; of pairs, the closest one that the predicted class won."""
        if not self._pairwise or self.classes is None:
            return int(np.argmax(scores))
        winner = int(np.argmax(self.class_scores(scores[None])[0]))
        # Of scores that speak for this class.
        sign = (class_pairs(len(self.classes)) == winner) @ [-1, 1]
        margin = np.where((sign != 0) & (sign * scores >= 0), np.abs(scores), np.inf)
        return int(np.argmin(margin))

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """The g_j on a grid, with the density of the data below them: one for each feature."""
        summary = self.summary
        (low, high), dtype = summary.domain, np.dtype(summary.dtype)
        grid = low + np.linspace(0, 1, _GRID)[:, None] * (high - low)
        grid = np.round(grid) if self.on_codes or dtype.kind == "u" else grid
        terms = self.terms(grid.astype(dtype)) - summary.term_means
        shapes = []
        for j, name in enumerate(self.term_names_):
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
        (low, _), largest = summary.domain, float(np.abs(summary.domain).max())
        least, largest = (summary.least / _BEYOND, largest * _BEYOND) if largest > 0 else (1.0, 1.0)
        ends = np.array([[-largest if low.min() < 0 else least], [largest], [least]])
        table = self._table_for(np.tile(ends, (1, len(low))))
        return table, np.asarray(self.offset, dtype=np.float64)

    def _table_for(self, rows: np.ndarray) -> Table:
        """The table of the scores, for values in the range of some rows."""
        bands = make_basis(self.fitted.spec, rows, np.dtype(np.float64)).table
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

    @cached_property
    def score_table(self) -> Table | None:
        """The table of the scores in float64; None for maps that have no table of their own.

        One table serves all rows of splines and look-ups; those of curves go by ranges.
        """
        if "mix" not in self.fitted.spec.arrays and self.fitted.spec.family != "piecewise":
            return None
        return self._table_for(np.zeros((1, len(self.weights))))


def _density_edges(low: float, high: float) -> np.ndarray:
    """Ends of the bins of a density; a constant, or nearly, gets a range around it."""
    from ...maps.base import differ, range_of_constant

    if not differ(low, high):
        half = range_of_constant(low, high) / 2
        low, high = low - half, high + half
    return np.linspace(low, high, _DENSITY_BINS + 1)


def sample_rows(X: Any, weight: np.ndarray) -> Any:
    """Rows that describe a machine: one of every few rows of positive weight."""
    size = np.count_nonzero(weight > 0)
    take_all = size in (0, len(weight))
    size = len(weight) if take_all else size
    step = max(1, -(-size // max(_FEWEST, min(2000, size // 32))))
    # One of each `step` rows, at random: every step-th may be of one kind.
    positions = np.arange(0, size, step)
    positions += np.random.default_rng(0).integers(np.minimum(step, size - positions))
    return X[positions if take_all else np.flatnonzero(weight > 0)[positions]]


def sum_weighted(bands: Table, weights: np.ndarray) -> Table:
    r"""The table of Σ_c w_c Φ_c: of weights [feature][basis][output], in float64.

    A model's term is :math:`g_d(x) = \sum_c w_{dc} Φ_{dc}(x)`, and every Φ is a local polynomial
    on bins. On each bin the weighted sum is again a polynomial: the model is a table whose columns
    are its outputs, to be summed over the features.
    """
    sets, edges = bands.set_of, None
    # A band that begins at the last columns may reach beyond them.
    padded = np.pad(np.float64(weights), ((0, 0), (0, int(bands.band.max())), (0, 0)))
    coef = []
    for w, s in zip(padded, sets, strict=True):
        of_band, begin = bands.polynomials(s), int(bands.first_start[s])
        first = bands.first[begin : begin + len(of_band)]
        coef.append(of_band @ w[first[:, None] + np.arange(of_band.shape[2])])
    if len(bands.edges):
        ends = bands.edge_start + bands.bins + 1
        edges = [bands.edges[bands.edge_start[s] : ends[s]] for s in sets]
    return Table.build(
        bands.binning,
        bands.degree,
        coef,
        np.arange(bands.n_features),
        origin=bands.origin[sets],
        resolution=bands.resolution[sets],
        edges=edges,
        clip_low=bands.clip_low[sets],
        clip_high=bands.clip_high[sets],
        signed=bands.signed,
        zero_at_zero=bands.zero_at_zero,
    )


def add_sums(table: Any, X: Any, out: np.ndarray, n_jobs: int | None = None) -> None:
    """Add the sums of a table over the features to `out`."""
    from ...engine.table.dot import BLOCK, TILE, SumWorkspace, dot_dense, dot_stored
    from ...engine.table.locate import locations_for, stored_rows

    check_loop(X, table.features, out, (X.shape[0], table.outputs))
    grain = max(1, _GRAIN // (X.shape[1] * out.shape[1]))
    flat, stored = out.reshape(-1), is_sparse(X)
    rows = stored_rows(X.data, X.indices, X.indptr) if stored else make_read_only(X.reshape(-1))
    loop = dot_stored if stored else dot_dense

    def work(begin: int, end: int) -> None:
        sums = np.zeros(table.values.n_columns, table.values.coef.dtype)
        loop(table, rows, SumWorkspace(locations_for(TILE), sums), begin, end, flat)

    # Every part of dense rows reads the whole table once for each of its blocks.
    run_in_threads(work, X.shape[0], n_jobs, grain, 1 if stored else BLOCK)
