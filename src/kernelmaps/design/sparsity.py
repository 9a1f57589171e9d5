"""Sparsity of data in a basis, for the theorems on compressive random features."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import fft, sparse
from sklearn.utils import check_array

from ..arguments import check_number
from ..device import refuse_card
from ..sparse_rows import check_sparse

BASES = (None, "dct", "haar")


@dataclass(frozen=True, eq=False)
class Sparsity:
    """Number of coefficients that rows need in a basis.

    Attributes
    ----------
    mean, maximum : float, int
        Over the rows.
    rows : ndarray of int
        For each row: the least number of coefficients that hold the stated energy.
    basis : str or None
    energy : float
    """

    mean: float
    maximum: int
    rows: np.ndarray
    basis: str | None
    energy: float

    def __repr__(self) -> str:
        return (
            f"Sparsity(mean={self.mean:.1f}, maximum={self.maximum}, basis={self.basis!r}, "
            f"energy={self.energy:g})"
        )


def effective_sparsity(
    X: Any,
    basis: str | None = None,
    *,
    energy: float = 0.99,
    shape: tuple[int, ...] | None = None,
) -> Sparsity:
    """Smallest number of coefficients in an orthonormal basis that have the energy of a row.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    basis : {None, "dct", "haar"}
        None counts the entries themselves. "haar" pads each axis to a power of two with zeros.
    energy : float in (0, 1]
        Share of ‖x‖² that the coefficients must have; 1 counts all that are not zero (up to
        rounding).
    shape : tuple of int, optional
        Rows are images (or signals with more axes) of this shape: the transform is taken along
        every axis. None: rows are signals of one axis.

    Returns
    -------
    Sparsity
        The number for each row, its mean and its maximum.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.cos(np.pi * 3 * (np.arange(64) + 0.5) / 64)[None, :]  # one cosine of the DCT
    >>> km.effective_sparsity(X).mean, km.effective_sparsity(X, "dct").mean
    (53.0, 1.0)
    """
    check_basis("effective_sparsity: basis", basis)
    check_number("effective_sparsity", "energy", energy, "in (0, 1]", lambda e: 0 < e <= 1)
    refuse_card(X, "effective_sparsity", "Pass a sample of the rows as NumPy.")
    check_sparse(X, "effective_sparsity")
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    shape = (X.shape[1],) if shape is None else tuple(np.atleast_1d(shape).tolist())
    if np.prod(shape) != X.shape[1] or min(shape) < 1:
        raise ValueError(
            f"effective_sparsity: shape {shape} has {np.prod(shape)} entries, rows {X.shape[1]}."
        )
    if basis is None and sparse.issparse(X):
        X = X if X.has_canonical_format else X.copy()
        X.sum_duplicates()
        stored = (X.data[a:b][None, :] for a, b in pairwise(X.indptr))
        rows = np.array([_coefficients(values, energy)[0] for values in stored])
        return Sparsity(float(rows.mean()), int(rows.max()), rows, basis, float(energy))
    X = X.toarray() if sparse.issparse(X) else X
    images = X.reshape(len(X), *shape)
    axes = tuple(range(1, images.ndim))
    if basis == "dct":
        images = fft.dctn(images, norm="ortho", axes=axes)
    elif basis == "haar":
        for axis in axes:
            images = np.moveaxis(haar(np.moveaxis(images, axis, -1)), -1, axis)
    rows = _coefficients(images.reshape(len(X), -1), energy)
    return Sparsity(float(rows.mean()), int(rows.max()), rows, basis, float(energy))


def _coefficients(values: np.ndarray, energy: float) -> np.ndarray:
    """For each row the least number of entries whose squares hold a share of the energy."""
    largest = np.abs(values).max(axis=1, initial=0, keepdims=True)
    shares = values / np.where(largest > 0, largest, 1)  # squares neither over- nor underflow
    held = np.cumsum(-np.sort(-(shares**2), axis=1), axis=1)
    needed = held[:, -1:] * min(energy, 1 - 1e-14)
    return np.where(largest[:, 0] > 0, (held < needed).sum(axis=1) + 1, 0)


def check_basis(argument: str, basis: Any) -> None:
    """A basis that is known, or an error that begins with the argument's name."""
    if not (basis is None or isinstance(basis, str)) or basis not in BASES:
        raise ValueError(f"{argument} must be one of {BASES}, got {basis!r}.")


def haar(signals: np.ndarray) -> np.ndarray:
    """Orthonormal Haar transform along the last axis, padded with zeros to a power of two."""
    length = 1 << max(0, signals.shape[-1] - 1).bit_length()
    padding = [(0, 0)] * (signals.ndim - 1) + [(0, length - signals.shape[-1])]
    rest, details = np.pad(signals, padding), []
    while rest.shape[-1] > 1:
        even, odd = rest[..., ::2], rest[..., 1::2]
        details.append((even - odd) / np.sqrt(2))
        rest = (even + odd) / np.sqrt(2)
    return np.concatenate([rest, *details[::-1]], axis=-1)
