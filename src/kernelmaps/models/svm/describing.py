"""The functions that an additive model is a sum of, and how much each of them matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..gam.describing import shape_functions
from ..shapes import ShapeFunction, importance_of
from .scoring import AdditiveScores
from .summary import SHARED, Summary, density_edges, summarise

_GRID = 101
_BLOCK_OF_TERMS = 2**14  # terms at a time
_FEWEST = 256  # rows that a model is described by, where there are as many


class AdditiveShapes(AdditiveScores):
    """Shape functions and importances, from a sample of the training rows or its summary."""

    _sample: Any  # of the training rows: not part of files and pickles
    _summary: Summary | None = None  # made of `_sample` when it is first asked for

    def _describe(self, X: Any, weight: np.ndarray) -> None:
        """Describe the model by a sample of the rows: densities and means of the terms."""
        rows = self._to_describe_by(X, weight)
        if rows is not None:
            self._sample, self._summary = rows, None
            means = self._mean_over_sample(lambda terms: terms)
            # In the precision of the terms, so that these and the intercept have the same sum.
            self.term_means_ = means.astype(self._precision(X)).astype(np.float64)
        intercept = self._offset + self.term_means_.sum(axis=0)
        self.intercept_ = float(intercept[0]) if isinstance(self, RegressorMixin) else intercept

    def _to_describe_by(self, X: Any, weight: np.ndarray) -> Any:
        """A sample of the rows; of a short chunk, after rows of the chunks before.

        None where a saved model, whose rows are gone, meets a chunk of one or two rows: these
        would be all that the description is about, and it stays as it is.
        """
        rows = _some_rows(X, weight)
        if not hasattr(self, "n_samples_seen_") or self.n_samples_seen_ == len(weight):
            return rows  # of `fit`, or of the first chunk
        before, counted = getattr(self, "_sample", None), np.count_nonzero(weight > 0)
        if before is None:
            return rows if counted >= SHARED else None
        alike = before.dtype == rows.dtype and sparse.issparse(before) == sparse.issparse(rows)
        missing = _FEWEST - counted
        if missing <= 0 or not alike:
            return rows
        if counted == 0:
            return before
        stacked = sparse.vstack if sparse.issparse(rows) else np.concatenate
        return stacked([before[-missing:], rows])

    @property
    def feature_importances_(self) -> np.ndarray:
        """Standard deviations of the functions over (a sample of) the training data."""
        check_is_fitted(self)
        if self._tabular:
            alone = [term for term in self.table_.terms if len(term.columns) == 1]
            return np.array([term.importance for term in alone])
        return self._seen().importances.copy()

    def _seen(self) -> Summary:
        """What is kept of the training rows."""
        if self._summary is None:
            variances = self._mean_over_sample(lambda t: (t - self.term_means_) ** 2)
            self._summary = summarise(self._sample, importance_of(variances))
        return self._summary

    def _mean_over_sample(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Mean of a function of the terms, some rows at a time."""
        means = (
            function(t).sum(axis=0, dtype=np.float64) for t in self._blocks_of_terms(self._sample)
        )
        return sum(means) / self._sample.shape[0]

    def _blocks_of_terms(self, X: Any) -> Iterator[np.ndarray]:
        """Terms of rows, as many at a time as a cache holds."""
        n_rows = max(16, _BLOCK_OF_TERMS // (X.shape[1] * self._weights.shape[2]))
        return (self._terms(X[k : k + n_rows]) for k in range(0, X.shape[0], n_rows))

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """The g_j on a grid, with the density of the data below them: one for each feature."""
        check_is_fitted(self)
        if self._tabular:
            return shape_functions(self.table_)
        if "shapes" not in self._fast:
            self._fast["shapes"] = self._shapes()
        return self._fast["shapes"]

    def _shapes(self) -> list[ShapeFunction]:
        seen = self._seen()
        low, high, dtype = seen.low, seen.high, np.dtype(seen.dtype)
        share = np.linspace(0, 1, _GRID)[:, None]
        whole = self._on_codes or dtype.kind == "u"
        grid = low + share * (high - low)
        grid = np.round(grid) if whole else grid
        terms = self._terms(grid.astype(dtype)) - self.term_means_
        names = getattr(self.feature_map_, "feature_names_in_", None)
        names = getattr(self, "feature_names_in_", names)
        shapes = []
        for j in range(grid.shape[1]):
            edges = density_edges(float(low[j]), float(high[j]))
            values = terms[:, j, 0] if terms.shape[2] == 1 else terms[:, j]
            name = f"x{j}" if names is None else str(names[j])
            points = np.unique(grid[:, j], return_index=True)[1]
            found = ShapeFunction(name, grid[points, j], values[points], edges, seen.density[j])
            shapes.append(replace(found, importance=float(seen.importances[j])))
        return shapes


def _some_rows(X: Any, weight: np.ndarray) -> Any:
    """One of every few rows of positive weight; where all weights are 0, of all rows."""
    size = np.count_nonzero(weight > 0)
    whole = size in (0, len(weight))
    size = len(weight) if whole else size
    step = max(1, -(-size // max(_FEWEST, min(2000, size // 32))))
    # One of each `step` rows, at random: every step-th may be of one kind.
    taken = np.arange(0, size, step)
    taken += np.random.default_rng(0).integers(np.minimum(step, size - taken))
    return X[taken if whole else np.flatnonzero(weight > 0)[taken]]
