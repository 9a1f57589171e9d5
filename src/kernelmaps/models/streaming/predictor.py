"""Features of maps, and the fitted object of linear models on them.

Estimators delegate to it, and `kernelmaps predict`, ONNX, plots and reports take it. NumPy alone is
needed to load it from a file, where a `SavedMap` stands for a map, and to score a few rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._util import devices, schema
from ..._util.devices import cast_like, is_tensor
from ..._util.lazy import scipy
from ..._util.schema import array, instance, integer, optional, saved, text
from ..._util.sparse import dense, find_not_finite, is_sparse
from ...engine.extent import describe_not_finite
from ...engine.saved_map import transformer
from ..decision import PredictsRows, best_labels


def multiply_rows(Z: Any, matrix: np.ndarray, offset: np.ndarray | None = None) -> Any:
    """Z·matrix + offset, in the precision of the features and where they are."""
    product = (
        devices.multiply(Z, cast_like(matrix, Z)) if is_tensor(Z) else Z @ cast_like(matrix, Z)
    )
    return product if offset is None else product + cast_like(offset, product)


@schema.record
class Part:
    """One kernel: which columns it sees, its fitted map, its columns of φ.

    Attributes
    ----------
    columns : slice, ndarray or None
        Of the input; None for all.
    map : transformer or None
        Fitted; None for the columns themselves.
    n_components : int, float, None or "shared"
        Size of its own PCA; "shared" stands for the estimator's.
    width : int
        Columns of φ.
    axes : ndarray of shape (width, q), optional
        PCA of this kernel, applied inside the map in the second pass of Algorithm 4.
    """

    columns: Any = saved(optional(instance((slice,)), array("i8 i4", "_")))
    map: Any = saved(optional(transformer))
    n_components: Any = saved(schema.anything, default="shared")
    width: int = saved(integer(1), default=0)
    axes: np.ndarray | None = saved(optional(array("f8", "width _")), default=None)

    def transform(self, X: Any) -> Any:
        """φ of this kernel, projected where there are axes."""
        X = X if self.columns is None else X[:, self.columns]
        Z = X if self.map is None else self.map.transform(X)
        if not (is_tensor(Z) or is_sparse(Z)):
            Z = np.asarray(Z)  # a map with set_output may give a DataFrame
        return Z if self.axes is None else multiply_rows(Z, self.axes)

    def sizes(self, shared: list[Any]) -> list[Any]:
        """PCA sizes that are asked of this kernel: those of all, unless it has its own."""
        return shared if self.n_components == "shared" else [self.n_components]

    @property
    def tag(self) -> str:
        """Content hash: of the spec for our maps, of the pickled state for others."""
        import joblib

        spec = getattr(self.map, "spec_", None)
        map_hash = joblib.hash(self.map) if spec is None else spec.hash
        other_hashes = (None if v is None else joblib.hash(v) for v in (self.columns, self.axes))
        return repr((map_hash, *other_hashes))


@schema.record
class Features:
    """φ(x) = [φ_1(x), …, φ_l(x)], ready to be applied to blocks; it is all that workers get."""

    parts: list[Part] = saved(schema.many(instance((Part,)), least=1))

    @property
    def several(self) -> bool:
        """Whether there is more than one kernel."""
        return len(self.parts) > 1

    @property
    def widths(self) -> list[int]:
        """Columns of φ of each kernel."""
        return [kernel.width for kernel in self.parts]

    @property
    def maps(self) -> Any:
        """The fitted map, or the list of those of several kernels."""
        maps = [kernel.map for kernel in self.parts]
        return maps if self.several else maps[0]

    @property
    def kernel_of_feature(self) -> np.ndarray:
        """The kernel of each column of φ."""
        return np.repeat(np.arange(len(self.parts)), self.widths)

    @property
    def tag(self) -> str:
        """Content hash of the whole."""
        return hashlib.sha256(repr([kernel.tag for kernel in self.parts]).encode()).hexdigest()

    def transform(self, X: Any) -> Any:
        """φ(X), dense unless all kernels are sparse."""
        blocks = [kernel.transform(X) for kernel in self.parts]
        if len(blocks) == 1:
            return blocks[0]
        if is_tensor(blocks[0]):
            return devices.join(blocks, 1)
        if all(is_sparse(block) for block in blocks):
            return scipy.sparse.hstack(blocks, format="csr")
        return np.hstack([dense(block) for block in blocks])

    def project(self, axes: Sequence[np.ndarray]) -> Features:
        """The same maps, each followed by its own PCA (without centring: the sums do that)."""
        return Features([replace(kernel, axes=U) for kernel, U in zip(self.parts, axes)])


@schema.record
class LinearSolution:
    """Coefficients of a linear model, and the settings that cross-validation chose."""

    coef: np.ndarray = saved(array("f8", "targets features"))
    intercept: np.ndarray = saved(array("f8", "targets"))
    alpha: float = saved(schema.number(low=0))
    n_components: Any = saved(schema.anything, default=None)
    cv_results: dict[str, Any] | None = saved(optional(schema.anything), default=None)
    n_iter: int = saved(integer(1), default=1)


@schema.record
class LinearPredictor(PredictsRows):
    """A linear model on maps.

    Attributes
    ----------
    estimator : str
        The name of the estimator that predicts in the same way.
    features : Features
    solution : LinearSolution
        Of the targets, 0 and 1 for classes.
    n_features_in_, y_ndim : int
        Columns of rows, and dimensions of the targets.
    classes : ndarray or None
        Labels, of a classifier.
    multi_class : {"ovr", "ovo"}
    feature_names_in_ : ndarray or None
        Names of the columns.
    """

    estimator: str = saved(text())
    features: Features = saved(instance((Features,)))
    solution: LinearSolution = saved(instance((LinearSolution,)))
    n_features_in_: int = saved(integer(1))
    y_ndim: int = saved(integer(1, 2))
    classes: np.ndarray | None = saved(optional(schema.labels), default=None)
    multi_class: str = saved(text(("ovr", "ovo")), default="ovr")
    feature_names_in_: Any = saved(optional(schema.names), default=None)

    _fitted_maps = property(lambda self: self.features)

    def _check_state(self) -> None:
        # Older files have no classes, and votes of pairs are for the estimator.
        n_classes = 0 if self.classes is None else len(self.classes)
        expected = len(self.solution.coef) if self.estimator.endswith("Classifier") else 0
        if n_classes != expected or self._pairwise:
            raise ValueError("the classes do not fit the model")

    @property
    def _pairwise(self) -> bool:
        """Whether outputs are pairs of classes."""
        return self.multi_class == "ovo" and self.classes is not None and len(self.classes) > 2

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """β and the intercept of each output; of classes, for targets −1 and 1."""
        coef, intercept = self.solution.coef, self.solution.intercept
        if self.classes is None:
            return coef, intercept
        begin = int(len(self.classes) == 2)  # two classes have one output
        return 2.0 * coef[begin:], 2.0 * intercept[begin:] - 1.0

    def scores(self, Z: Any) -> Any:
        """The outputs of rows of features, in their precision and where they are."""
        coef, intercept = self.weights
        return multiply_rows(Z, coef.T, intercept)

    def predictions(self, scores: Any) -> Any:
        """Numbers, or the classes of the highest scores."""
        if self.classes is not None:
            return best_labels(self, scores)
        return scores[:, 0] if self.y_ndim == 1 else scores

    # Under the names that the estimator has for them.
    feature_map_ = property(lambda self: self.features.maps)
    coef_ = property(lambda self: self.weights[0])

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers or classes for an array of rows."""
        return self.predictions(self._scores_of_rows(X))

    def _scores_of_rows(self, X: Any) -> np.ndarray:
        X = self._native_rows(X)
        place = find_not_finite(X)
        if place is not None:
            raise ValueError(describe_not_finite(self.estimator, X[place], *place))
        return self.scores(self.features.transform(X))
