"""The feature map inside a fold: none, one transformer, or one per descriptor (Algorithm 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..stats.sources import Block

__all__ = ["Features", "Part"]


@dataclass(frozen=True)
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

    columns: Any
    map: Any
    n_components: Any = "shared"
    width: int = 0
    axes: np.ndarray | None = None

    def transform(self, X: Any) -> Any:
        """φ of this kernel, projected where there are axes."""
        X = X if self.columns is None else X[:, self.columns]
        Z = X if self.map is None else self.map.transform(X)
        if not sp.issparse(Z):
            Z = np.asarray(Z)  # a map with set_output may give a DataFrame
        if self.axes is None:
            return Z
        kind = np.float32 if Z.dtype == np.float32 else np.float64
        return Z @ self.axes.astype(kind)

    @property
    def tag(self) -> str:
        """Content hash: of the spec for our maps, of the pickled state for others."""
        import joblib

        spec = getattr(self.map, "spec_", None)
        known = spec.hash if hasattr(spec, "hash") else joblib.hash(self.map)
        columns = None if self.columns is None else joblib.hash(self.columns)
        axes = None if self.axes is None else joblib.hash(self.axes)
        return repr((known, columns, axes))


class Features:
    """φ(x) = [φ_1(x), …, φ_l(x)], ready to be applied to blocks; it is all that workers get."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)

    @classmethod
    def fit(cls, feature_map: Any, block: Block, owner: str) -> Features:
        """Fit what is not fitted yet, on the rows of `block`.

        A fitted transformer is used as it is; an unfitted one is cloned and fitted.
        """
        parts = []
        for columns, transformer, n_components in _described(feature_map, owner):
            columns = _resolved(columns, block.X.shape[1], owner)
            X = block.X if columns is None else block.X[:, columns]
            fitted = None if transformer is None else _fitted(transformer, X, block.y)
            part = Part(columns, fitted, n_components)
            parts.append(replace(part, width=part.transform(block.X[:1]).shape[1]))
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
        return [part.width for part in self.parts]

    @property
    def tag(self) -> str:
        """Content hash of the whole."""
        return hashlib.sha256(repr([part.tag for part in self.parts]).encode()).hexdigest()

    def transform(self, X: Any) -> Any:
        """φ(X), dense unless all kernels are sparse."""
        blocks = [part.transform(X) for part in self.parts]
        if len(blocks) == 1:
            return blocks[0]
        if all(sp.issparse(block) for block in blocks):
            return sp.hstack(blocks, format="csr")
        return np.hstack([b.toarray() if sp.issparse(b) else b for b in blocks])

    def projected(self, axes: Sequence[np.ndarray]) -> Features:
        """The same maps, each followed by its own PCA (without centring: the sums do that)."""
        return Features([replace(part, axes=U) for part, U in zip(self.parts, axes)])


def _described(feature_map: Any, owner: str) -> list[tuple[Any, Any, Any]]:
    """(columns, map, n_components) of each kernel."""
    if feature_map is None or hasattr(feature_map, "transform"):
        return [(None, feature_map, "shared")]
    if not isinstance(feature_map, list | tuple) or not feature_map:
        raise TypeError(
            f"{owner}: feature_map must be None, a transformer, or a list of (columns, map) or "
            f"(columns, map, n_components), got {feature_map!r}"
        )
    found = []
    for i, item in enumerate(feature_map):
        if not isinstance(item, list | tuple) or len(item) not in (2, 3):
            raise TypeError(
                f"{owner}: feature_map[{i}] must be (columns, map) or (columns, map, "
                f"n_components), got {item!r}"
            )
        columns, transformer, n_components = (*item, "shared")[:3]
        if transformer is not None and not hasattr(transformer, "transform"):
            raise TypeError(f"{owner}: feature_map[{i}] has no transform: {transformer!r}")
        found.append((columns, transformer, n_components))
    return found


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


def _fitted(transformer: Any, X: Any, y: Any) -> Any:
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return clone(transformer).fit(X) if y is None else clone(transformer).fit(X, y)
    return transformer
