"""Codes: rows stored as one byte per value, with the hash of their map."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from .._util import storage
from .._util.devices import numpy_dtype, refuse_gpu_array, to_host
from .._util.sparse import check_sparse
from ..exceptions import FileFormatError


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
        what = "None" if feature_map is None else f"a {type(feature_map).__name__}"
        raise TypeError(
            f"{owner}: X holds codes of an AnchorMap, but feature_map is {what}. Pass the fitted "
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

    Models of this library take them in place of X. The codes are a plain array (or CSR matrix),
    which is not copied, with the hash of the map that made them, so that codes of another map are
    refused.

    Parameters
    ----------
    values : array or CSR matrix of unsigned integers, shape (n_samples, n_features)
        A look-up map's codes are bins (uint8 up to 256 anchors, uint16 beyond). An interpolating
        map's are positions in fixed point: the high byte is the left anchor, the low byte the
        weight of the right one (two bytes each beyond 256 anchors). In a CSR matrix, entries that
        are not stored have code 0, the code of x = 0.
    map_hash : str
        Hash of the spec of the map.

    Notes
    -----
    The map compares the codes with the number of its anchors when they are used, and converts wider
    integers to the type of its own codes.
    """

    def __init__(self, values: Any, map_hash: str) -> None:
        check_sparse(values, "Codes", "values")
        dtype = getattr(values, "dtype", None)
        if dtype is None or numpy_dtype(dtype).kind != "u" or len(values.shape) != 2:
            got = f"{getattr(values, 'dtype', type(values).__name__)}"
            raise ValueError(
                "Codes: values must be a matrix of unsigned integers, an array or CSR, found "
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
        """Bytes of the codes (of all three arrays of a CSR matrix)."""
        if sparse.issparse(self.values):
            parts = (self.values.data, self.values.indices, self.values.indptr)
            return sum(array.nbytes for array in parts)
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
            "codes.values the integers themselves; codes.save(path) writes them to a file."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codes to a file atomically, without pickle.

        Parameters
        ----------
        path : path
            The file.
        """
        refuse_gpu_array(
            self.values,
            "Codes.save",
            "Copy them first: Codes(values.cpu().numpy(), map_hash) of a torch tensor.",
        )
        header = {"map_hash": self.map_hash, "shape": list(self.shape)}
        if sparse.issparse(self.values):
            names = ("data", "indices", "indptr")
            arrays = {name: getattr(self.values, name) for name in names}
        else:
            arrays = {"values": to_host(self.values)}
        storage.write(path, "codes", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Codes:
        """Read codes from a file; a damaged, foreign or newer file is refused with the reason.

        Parameters
        ----------
        path : path
            A file that `save` wrote.

        Returns
        -------
        Codes
            The codes.
        """
        header, arrays = storage.read(path, "codes")
        try:
            if "values" in arrays:
                return cls(arrays["values"], header["map_hash"])
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            return cls(sparse.csr_matrix(parts, shape=tuple(header["shape"])), header["map_hash"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileFormatError(
                f"{os.fspath(path)!r} does not hold usable codes: {error!r}. Encode the data again."
            ) from error

    def __repr__(self) -> str:
        kind = "CSR " if sparse.issparse(self.values) else ""
        n, d = self.shape
        return f"Codes({n}×{d} {kind}{self.dtype}, {self.nbytes} bytes, map {self.map_hash[:12]})"
