"""Base class of kernels: Gram matrix, diagonal and induced distance.

Rows of other array libraries are checked here, too, and summed over features in blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .._util.devices import is_foreign, memory_named, namespace_of, run_in_halves
from .._util.sparse import check_sparse, naming_text
from .._util.threads import row_blocks

FEWER_ROWS = "Pass fewer rows of X or Y at a time."

_BLOCK_BYTES = 2**28  # of terms at a time: a GPU has as much, and works on long arrays


def check_columns(owner: str, X: Any, Y: Any) -> None:
    """Refuse rows of different lengths."""
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"{owner}: X has {X.shape[1]} features but Y has {Y.shape[1]}; they must be the same."
        )


def _check_array_api(owner: str, xp: Any, X: Any, name: str) -> Any:
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"the {owner} kernel: {name} must have two dimensions, found {X.shape}.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"the {owner} kernel: complex data are not supported, {name} has them.")
    X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"the {owner} kernel: {name} contains NaN or infinity.")
    return X


def sums_over_features(xp: Any, X: Any, Y: Any, term: Callable[[Any, Any], Any]) -> Any:
    """Σ_d term(x_d, y_d) for all pairs of rows, some rows at a time.

    Rows without a number (of a graph that is recorded) are taken at once.
    """
    if X.shape[0] < 0:
        return xp.sum(term(X[:, None, :], Y[None, :, :]), axis=2)
    sums = xp.empty((X.shape[0], Y.shape[0]), dtype=xp.float64, device=X.device)

    def fill(rows: slice) -> None:
        sums[rows, :] = xp.sum(term(X[rows, :][:, None, :], Y[None, :, :]), axis=2)

    for block in row_blocks(X.shape[0], 8 * Y.shape[0] * X.shape[1], _BLOCK_BYTES):
        run_in_halves(fill, block, lambda first, second: None, "exact kernels", FEWER_ROWS)
    return sums


Rows = Any  # a 2-D array-like or a CSR matrix


class Kernel(ABC):
    """Base class of kernels: positive-definite functions of two rows.

    Attributes
    ----------
    name : str
        The name that `kernelmaps.kernels.get` and the command line know it by.
    """

    name: str
    parameter_name: ClassVar[str | None] = None  # of its one free number

    def with_parameter(self, value: float) -> Self:
        """Return the kernel with another value of its one free number.

        On the command line it follows the name: ``gaussian:0.5``.

        Parameters
        ----------
        value : float
            The number.

        Returns
        -------
        Kernel
            The changed kernel.
        """
        if self.parameter_name is None:
            raise TypeError(f"the kernel {self.name!r} has no parameter to set.")
        return replace(self, **{self.parameter_name: value})  # type: ignore[type-var]

    def __call__(self, X: Rows, Y: Rows | None = None, *, n_jobs: int | None = None) -> np.ndarray:
        """Gram matrix K[i, j] = k(X[i], Y[j]); exactly symmetric when Y is None.

        Parameters
        ----------
        X, Y : array-like or sparse matrix of shape (n, d), (m, d)
            float32 input gives a float32 matrix, everything else float64. CSR is never densified.
            Arrays of other libraries (torch, CuPy) have theirs on their own device.
        n_jobs : int, optional
            Threads, as in scikit-learn; None means all that are available.
        """
        if is_foreign(X):
            return self._evaluate_array_api(self._gram_array_api, X, Y)
        X, Y = self._check_sides(X, Y)
        return self._gram(X, Y, n_jobs)

    def diag(self, X: Rows) -> np.ndarray:
        """Compute k(x, x) for each row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The diagonal of the Gram matrix.
        """
        if is_foreign(X):
            return self._evaluate_array_api(lambda xp, X, Y: self._diag_array_api(xp, X), X, None)
        return self._diag(self._check_sides(X)[0])

    def squared_distance(
        self, X: Rows, Y: Rows | None = None, *, n_jobs: int | None = None
    ) -> np.ndarray:
        """Compute ‖φ(x) − φ(y)‖² = k(x, x) + k(y, y) − 2 k(x, y), never negative.

        Parameters
        ----------
        X, Y : array-like or CSR matrix
            Rows; Y None means all pairs of X.
        n_jobs : int, optional
            Threads; by default all that the process may use.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Squared distances.
        """
        if is_foreign(X):
            return self._evaluate_array_api(self._distance_array_api, X, Y)
        X, Y = self._check_sides(X, Y)
        distance = self._squared_distance(X, Y, n_jobs)
        if Y is None:
            np.fill_diagonal(distance, 0)
        return distance

    def _squared_distance(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        """From the Gram matrix in float64: for near rows, little is left of the difference.

        Kernels that know a form without a difference have their own.
        """
        wide = X.astype(np.float64, copy=False)
        other = None if Y is None else Y.astype(np.float64, copy=False)
        distance = self._gram(wide, other, n_jobs)
        distance *= -2
        diag_x, diag_y = self._diag(wide), self._diag(wide if Y is None else other)
        for rows in row_blocks(len(diag_x), distance.itemsize * len(diag_y)):
            # The sum of both diagonals first: addition in this order keeps exact symmetry.
            distance[rows] += diag_x[rows, None] + diag_y
        np.maximum(distance, 0, out=distance)
        return distance.astype(X.dtype, copy=False)

    def _evaluate_array_api(self, form: Callable[[Any, Any, Any], Any], X: Any, Y: Any) -> Any:
        """A form in float64 on the rows' own device, in the rows' precision."""
        xp = namespace_of(X)
        if Y is not None and (not is_foreign(Y) or X.device != Y.device):
            place = getattr(Y, "device", "ordinary memory") if is_foreign(Y) else "ordinary memory"
            raise ValueError(
                f"the {self.name} kernel: X is on {X.device}, Y is in or on {place}. Bring both to "
                "one device."
            )
        x = _check_array_api(self.name, xp, X, "X")
        y = x if Y is None else _check_array_api(self.name, xp, Y, "Y")
        check_columns(self.name, x, y)
        self._check_both(x, None if Y is None else y)
        single = xp.result_type(X.dtype, X.dtype if Y is None else Y.dtype) == xp.float32
        with memory_named(f"the {self.name} kernel", FEWER_ROWS):
            return xp.astype(form(xp, x, y), xp.float32 if single else xp.float64)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        """Gram matrix of float64 rows of another library."""
        raise TypeError(
            f"the {self.name} kernel runs on the processor, and has no form for arrays of "
            f"{type(X).__module__}. Pass rows in ordinary memory, as X.cpu().numpy() is."
        )

    def _diag_array_api(self, xp: Any, X: Any) -> Any:
        """Diagonal for float64 rows of another library."""
        parts = [
            self._gram_array_api(xp, X[i : i + 1, :], X[i : i + 1, :]) for i in range(X.shape[0])
        ]
        return xp.concat([xp.reshape(part, (-1,)) for part in parts])

    def _distance_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        """‖φ(x) − φ(y)‖² for float64 rows of another library."""
        diag_x = self._diag_array_api(xp, X)
        diag_y = diag_x if Y is X else self._diag_array_api(xp, Y)
        distance = diag_x[:, None] + diag_y[None, :] - 2 * self._gram_array_api(xp, X, Y)
        return xp.maximum(distance, xp.zeros_like(distance))

    def _check_sides(self, X: Rows, Y: Rows | None = None) -> tuple[Rows, Rows | None]:
        """Both sides, brought to one precision and one storage."""
        X = check_rows(self.name, X, "X")
        if Y is not None:
            Y = check_rows(self.name, Y, "Y")
            check_columns(self.name, X, Y)
            if sparse.issparse(X) != sparse.issparse(Y):
                X, Y = sparse.csr_matrix(X), sparse.csr_matrix(Y)
            dtype = np.result_type(X.dtype, Y.dtype)
            X, Y = X.astype(dtype, copy=False), Y.astype(dtype, copy=False)
        self._check_both(X, Y)
        return X, Y

    def _check_both(self, X: Any, Y: Any) -> None:
        for name, rows in (("X", X), ("Y", Y)):
            if rows is not None:
                self._check_values(rows, name)

    def _check_values(self, X: Any, name: str) -> None:  # noqa: B027 - most refuse nothing
        """Refuse values that the kernel is not defined for; by default there are none."""

    @abstractmethod
    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        """Gram matrix of checked rows; Y None means Y = X."""

    @abstractmethod
    def _diag(self, X: Rows) -> np.ndarray:
        """Diagonal for checked rows."""


class UnitDiagonal(Kernel):
    """A kernel with k(x, x) = 1."""

    def _diag(self, X: Rows) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)

    def _diag_array_api(self, xp: Any, X: Any) -> Any:
        return xp.ones(X.shape[0], dtype=X.dtype, device=X.device)


def check_rows(owner: str, X: Rows, name: str) -> Rows:
    """A float32 or float64 C-ordered array, or a CSR matrix with sorted, summed entries."""
    check_sparse(X, owner, name)
    with naming_text(owner, X):
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            input_name=name,
            estimator=owner,
        )
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
