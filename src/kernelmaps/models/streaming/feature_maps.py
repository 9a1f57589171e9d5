"""The feature map inside a fold: none, one transformer, or one per descriptor (Algorithm 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..._util.devices import concatenate, is_tensor, multiply
from ..._util.schema import anything, array, instance, integer, many, optional, record, saved
from ..._util.sparse import dense
from ...data import Block
from ...maps.codes import Codes, codes_of
from ...stats.products import like


def times(Z: Any, matrix: np.ndarray) -> Any:
    """Z·matrix, in the precision of the features and where they are."""
    return multiply(Z, like(matrix, Z)) if is_tensor(Z) else Z @ like(matrix, Z)


def affine(Z: Any, matrix: np.ndarray, offset: np.ndarray) -> Any:
    """The same plus an offset."""
    product = times(Z, matrix)
    return product + like(offset, product)


@record
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
    map: Any = saved(optional(instance((BaseEstimator,))))
    n_components: Any = saved(anything, default="shared")
    width: int = saved(integer(1), default=0)
    axes: np.ndarray | None = saved(optional(array("f8", "width _")), default=None)

    def transform(self, X: Any, *, coded: bool = False) -> Any:
        """φ of this kernel, projected where there are axes; of rows, or of codes of its map."""
        X = X if self.columns is None else X[:, self.columns]
        if coded:
            Z = self.map.decode(X)
        else:
            Z = X if self.map is None else self.map.transform(X)
        if not (is_tensor(Z) or sp.issparse(Z)):
            Z = np.asarray(Z)  # a map with set_output may give a DataFrame
        return Z if self.axes is None else times(Z, self.axes)

    def sizes(self, shared: list[Any]) -> list[Any]:
        """PCA sizes that are asked of this kernel: those of all, unless it has its own."""
        return shared if self.n_components == "shared" else [self.n_components]

    def check_width(self, n_features: int) -> None:
        """Raise ValueError if rows of so many features do not fit, or give another width."""
        taken = n_features
        if isinstance(self.columns, slice):
            taken = len(range(n_features)[self.columns])
        elif self.columns is not None:
            taken = len(self.columns)
            if taken and not -n_features <= self.columns.min() <= self.columns.max() < n_features:
                raise ValueError(f"columns of a kernel lie outside of {n_features} features")
        feature_map = self.map
        if feature_map is not None and getattr(feature_map, "n_features_in_", taken) != taken:
            raise ValueError(f"a map takes {feature_map.n_features_in_} features, but gets {taken}")
        width = taken
        for step in self.steps:
            # What scikit-learn's scalers give has as many columns as they take.
            width = getattr(step, "_n_features_out", width)
        if width != self.width:
            raise ValueError(f"a map gives {width} columns, but {self.width} are expected")

    def width_for(self, X: Any, coded: bool) -> int:
        """Columns of φ: known to our maps, seen in the first row of others."""
        if hasattr(self.map, "spec_") and self.axes is None:
            return int(self.map._n_features_out)
        return int(self.transform(X[:1], coded=coded).shape[1])

    @property
    def steps(self) -> list[Any]:
        """The parts of the map, one after the other: none, itself, or the steps of a pipeline."""
        if self.map is None:
            return []
        steps = getattr(self.map, "steps", None)
        return [self.map] if steps is None else [step for _, step in steps]

    @property
    def tag(self) -> str:
        """Content hash: of the spec for our maps, of the pickled state for others."""
        import joblib

        spec = getattr(self.map, "spec_", None)
        map_hash = joblib.hash(self.map) if spec is None else spec.hash
        columns = None if self.columns is None else joblib.hash(self.columns)
        axes = None if self.axes is None else joblib.hash(self.axes)
        return repr((map_hash, columns, axes))


@record
class Features:
    """φ(x) = [φ_1(x), …, φ_l(x)], ready to be applied to blocks; it is all that workers get."""

    parts: list[Part] = saved(many(instance((Part,)), least=1))

    @classmethod
    def fit(cls, feature_map: Any, block: Block, owner: str, *, coded: bool = False) -> Features:
        """Fit what is not fitted yet, on the rows of `block`.

        A fitted transformer is used as it is (codes always have one, see `check_codes`); an
        unfitted one is cloned and fitted.
        """
        parts = []
        for columns, transformer, n_components in _described(feature_map, owner):
            columns = _resolved(columns, block.X.shape[1], owner)
            X = block.X if columns is None else block.X[:, columns]
            fitted = None if transformer is None else _fitted(transformer, X, block.y)
            kernel = Part(columns, fitted, n_components)
            parts.append(replace(kernel, width=kernel.width_for(block.X, coded)))
        return cls(parts)

    @property
    def several(self) -> bool:
        """Whether there is more than one kernel."""
        return len(self.parts) > 1

    @property
    def plain(self) -> bool:
        """Whether φ(x) = x."""
        return not self.several and self.parts[0].map is None and self.parts[0].columns is None

    @property
    def widths(self) -> list[int]:
        """Columns of φ of each kernel."""
        return [kernel.width for kernel in self.parts]

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
            return concatenate(blocks)
        if all(sp.issparse(block) for block in blocks):
            return sp.hstack(blocks, format="csr")
        return np.hstack([dense(block) for block in blocks])

    def decode(self, codes: Any) -> Any:
        """φ from plain codes of the one map that `check_codes` has found."""
        return self.parts[0].transform(codes, coded=True)

    @property
    def described(self) -> list[tuple[Any, Any, Any]]:
        """A `feature_map` that stands for these fitted maps."""
        return [(kernel.columns, kernel.map, kernel.n_components) for kernel in self.parts]

    def projected(self, axes: Sequence[np.ndarray]) -> Features:
        """The same maps, each followed by its own PCA (without centring: the sums do that)."""
        return Features([replace(kernel, axes=U) for kernel, U in zip(self.parts, axes)])


_OTHERWISE = (
    "; or leave feature_map out and pass a function that returns decoded chunks, lambda: "
    "((anchor_map.decode(codes[a:b]), y[a:b]) for a, b in ...)"
)


def check_codes(feature_map: Any, codes: Codes, owner: str) -> None:
    """Refuse codes unless `feature_map` is the fitted map that made them, for all columns."""
    (columns, first_map, _), *more_maps = _described(feature_map, owner)
    what = "a map of some of the columns" if columns is not None else ""
    what = f"a list of {len(more_maps) + 1} maps" if more_maps else what
    codes_of(first_map, codes, owner, what, _OTHERWISE)


def _described(feature_map: Any, owner: str) -> list[tuple[Any, Any, Any]]:
    """(columns, map, n_components) of each kernel."""
    if feature_map is None or _is_transformer(feature_map):
        return [(None, feature_map, "shared")]
    if not isinstance(feature_map, list | tuple) or not feature_map:
        raise TypeError(
            f"{owner}: feature_map must be None, a transformer, or a list of (columns, map) or "
            f"(columns, map, n_components), got {feature_map!r}"
        )
    kernels = []
    for i, item in enumerate(feature_map):
        if not isinstance(item, list | tuple) or len(item) not in (2, 3):
            raise TypeError(
                f"{owner}: feature_map[{i}] must be (columns, map) or (columns, map, "
                f"n_components), got {item!r}"
            )
        columns, transformer, n_components = (*item, "shared")[:3]
        if transformer is not None and not _is_transformer(transformer):
            raise TypeError(
                f"{owner}: feature_map[{i}] has no transformer with fit and transform: "
                f"{transformer!r}"
            )
        kernels.append((columns, transformer, n_components))
    return kernels


def _is_transformer(value: Any) -> bool:
    """Whether a value has `fit` and `transform` (a pandas Series has the latter), and no class."""
    has_methods = hasattr(value, "fit") and hasattr(value, "transform")
    return has_methods and not isinstance(value, type)


def _resolved(columns: Any, width: int, owner: str) -> Any:
    if columns is None or isinstance(columns, slice):
        return columns
    columns = np.asarray(columns)
    if columns.dtype == bool and columns.shape == (width,):
        columns = np.flatnonzero(columns)
    if columns.ndim != 1 or columns.dtype.kind not in "iu":
        raise TypeError(
            f"{owner}: columns of a kernel must be a slice, integers, or a mask of {width} "
            f"booleans, got {columns!r}"
        )
    if len(columns) and (columns.min() < -width or columns.max() >= width):
        raise ValueError(
            f"{owner}: columns of a kernel reach {columns.max()}, but X has {width} columns"
        )
    return columns


def has_unfitted(feature_map: Any, owner: str) -> bool:
    """Whether a map is to be fitted on rows."""
    maps = [transformer for _, transformer, _ in _described(feature_map, owner)]
    return any(item is not None and not _is_fitted(item) for item in maps)


def _is_fitted(transformer: Any) -> bool:
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def _fitted(transformer: Any, X: Any, y: Any) -> Any:
    if _is_fitted(transformer):
        return transformer
    return clone(transformer).fit(X) if y is None else clone(transformer).fit(X, y)
