"""Codes: rows stored as one byte per value, with the hash of their map."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from .._util.devices import numpy_dtype


def refuse_plain_codes(X: Any, owner: str) -> None:
    """Refuse plain unsigned integers where a model was fitted on codes: they may be pixels."""
    kind = getattr(X, "dtype", None)
    if getattr(kind, "kind", "f") == "u":
        raise ValueError(
            f"{owner} was fitted on codes, and X is plain {kind}: nothing tells codes from "
            "values. Pass what feature_map_.encode gives (for codes from elsewhere, "
            "Codes(X, feature_map_.spec_.hash)), or the values as floats."
        )


def codes_of(feature_map: Any, codes: Codes, owner: str) -> Any:
    """The plain codes, if `feature_map` is the fitted map that made them.

    Parameters
    ----------
    feature_map : Any
        What the user has given.
    codes : Codes
    owner : str
        The estimator, for messages.
    """
    if not hasattr(feature_map, "check_codes"):
        kind = "None" if feature_map is None else f"a {type(feature_map).__name__}"
        raise TypeError(
            f"{owner}: X holds codes of an AnchorMap, but feature_map is {kind}. Pass the fitted "
            f"AnchorMap that encoded them as feature_map."
        )
    try:
        return feature_map.check_codes(codes)
    except NotFittedError:
        raise NotFittedError(
            f"{owner}: X holds codes, so that feature_map must be the fitted AnchorMap that "
            "encoded them (it is not fitted, or a clone that lost its fit: in a search or "
            f"cross-validation pass sklearn.frozen.FrozenEstimator(feature_map))."
        ) from None
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from error


class Codes:
    """Rows of a data set as codes of an anchor map.

    Models of this library take them in place of X. The codes are a plain array, which is not
    copied, with the hash of the map that made them, so that codes of another map are refused.

    Parameters
    ----------
    values : array of unsigned integers, shape (n_samples, n_features)
        A look-up map's codes are bins (uint8 up to 256 anchors, uint16 beyond). An interpolating
        map's are positions in fixed point: the high byte is the left anchor, the low byte the
        weight of the right one (two bytes each beyond 256 anchors).
    map_hash : str
        Hash of the spec of the map.

    Notes
    -----
    The map compares the codes with the number of its anchors when they are used, and converts wider
    integers to the type of its own codes. ``numpy.save(path, codes.values)`` writes them to a file,
    and ``Codes(numpy.load(path), feature_map.spec_.hash)`` takes them from there.
    """

    def __init__(self, values: Any, map_hash: str) -> None:
        dtype = getattr(values, "dtype", None)
        is_array = dtype is not None and not sparse.issparse(values)
        if not is_array or numpy_dtype(dtype).kind != "u" or len(values.shape) != 2:
            got = f"{getattr(values, 'dtype', type(values).__name__)}"
            raise ValueError(
                "Codes: values must be a dense matrix of unsigned integers, found "
                f"{got} of shape {getattr(values, 'shape', None)}. Use the encode method of a "
                "fitted AnchorMap."
            )
        if not isinstance(map_hash, str):
            raise TypeError(f"Codes: map_hash must be the hash of a spec, found {map_hash!r}.")
        self.values, self.map_hash = values, map_hash

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of features."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the codes: unsigned integers."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the codes."""
        n, d = self.shape
        return int(n * d * numpy_dtype(self.dtype).itemsize)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Codes:
        """Some of the rows: a slice, a mask or indices (as scikit-learn's splitters pass them)."""
        rows = rows[0] if isinstance(rows, tuple) and rows[1:] == (Ellipsis,) else rows
        if isinstance(rows, tuple | int | np.integer):
            raise IndexError(
                f"Codes are indexed by rows (a slice, a mask or indices), not {rows!r}."
            )
        return Codes(self.values[rows], self.map_hash)

    __iter__ = None  # nor row by row

    def __array__(self, *arguments: Any, **keywords: Any) -> np.ndarray:
        raise TypeError(
            "Codes are not numeric: the map's decode(codes) gives features, and "
            "codes.values the integers themselves."
        )

    def __repr__(self) -> str:
        n, d = self.shape
        return f"Codes({n}×{d} {self.dtype}, {self.nbytes} bytes, map {self.map_hash[:12]})"
