"""The error of a map against its kernel, over pairs of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import kernels
from .._util.devices import is_foreign, namespace_of
from .._util.sparse import check_sparse, dense
from .._util.threads import row_blocks


@dataclass(frozen=True)
class KernelError:
    """Difference E = ⟨φ(x), φ(y)⟩ − k(x, y) over pairs of rows.

    Attributes
    ----------
    max : float
        Largest ``|E|``.
    rms : float
        Root of the mean of E².
    relative : float
        ‖E‖_F / ‖K‖_F.
    bias : float
        Mean of E: negative where a map loses mass.
    n_pairs : int
        Number of pairs.
    size : float
        Root mean square of the kernel values.
    parts : mapping of str to KernelError
        For maps of two stages: "additive", the error of the first stage alone (more
        random features do not reduce it), and "random", what the second stage adds; for each
        pair, E is their sum. Empty for all other maps.
    """

    max: float
    rms: float
    relative: float
    bias: float
    n_pairs: int
    parts: Mapping[str, KernelError] = field(default_factory=dict, hash=False)
    size: float = 0.0

    @property
    def max_relative(self) -> float:
        """Largest error in units of the kernel's size."""
        return self.max / self.size if self.size else float(self.max > 0)

    def __str__(self) -> str:
        text = (
            f"max {self.max:.3g}, rms {self.rms:.3g}, relative {self.relative:.3g}, "
            f"bias {self.bias:+.3g} over {self.n_pairs} pairs"
        )
        shares = ", ".join(
            f"{name} stage {stage_error.rms:.3g}" for name, stage_error in self.parts.items()
        )
        return f"{text} (rms of the {shares})" if shares else text


def kernel_error(map: Any, X: Any, Y: Any = None, *, kernel: Any = None) -> KernelError:
    """Compare a map's inner products with its exact kernel.

    Parameters
    ----------
    map : FeatureMap or transformer
        A fitted map; an unfitted one is fitted to X (on a copy).
    X, Y : array-like or sparse matrix
        Rows whose pairs are compared; Y None means all pairs of X. Rows of other array libraries
        are compared on their own device.
    kernel : str or Kernel, optional
        The exact kernel; by default the map's `kernel_`. Transformers of other libraries need it.

    Returns
    -------
    KernelError
        Memory stays bounded: Gram matrices are formed block by block.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.ones(10), size=50)
    >>> km.kernel_error(km.DesignedMap("chi2", 7), X).max < 1e-3
    True
    """
    try:
        check_is_fitted(map)
    except NotFittedError:
        map = clone(map).fit(X)
    truth = _kernel_of(map, kernel)
    left = _rows(map.transform(X))
    right = left if Y is None else _rows(map.transform(Y))
    X, Y, symmetric = _rows(X), _rows(X if Y is None else Y), Y is None
    stage = getattr(map, "stage_kernel_", None)
    names = ("whole", "additive", "random") if stage is not None else ("whole",)
    sums = {name: _ErrorSums() for name in names}
    for rows, columns, times in _pairs(X.shape[0], Y.shape[0], symmetric):
        x, y = X[rows, :], None if symmetric and columns == rows else Y[columns, :]
        exact = _wide(truth(x, y))
        approximate = _product(left[rows, :], right[columns, :])
        sums["whole"].add(approximate - exact, exact, times)
        if stage is not None:
            between = _wide(stage(x, y))
            sums["additive"].add(between - exact, exact, times)
            sums["random"].add(approximate - between, exact, times)
    return sums["whole"].result({name: sums[name].result() for name in names[1:]})


def _pairs(n_rows: int, n_columns: int, symmetric: bool) -> Iterator[tuple[slice, slice, int]]:
    """Blocks of all pairs, and how often each counts: both orders of two rows are one pair."""
    for rows in row_blocks(n_rows, 5 * 8 * n_columns):
        if not symmetric:
            yield rows, slice(0, n_columns), 1
            continue
        yield rows, rows, 1
        if rows.stop < n_columns:
            yield rows, slice(rows.stop, n_columns), 2


class _ErrorSums:
    """What the figures of a KernelError are computed from, block by block."""

    def __init__(self) -> None:
        self.largest = self.total = self.squares = self.exact_squares = 0.0
        self.pairs = 0

    def add(self, error: np.ndarray, exact: np.ndarray, times: int = 1) -> None:
        xp = namespace_of(error)
        self.largest = max(self.largest, float(xp.max(xp.abs(error))) if error.shape[0] else 0.0)
        self.total += times * float(xp.sum(error))
        self.squares += times * float(xp.sum(error**2))
        self.exact_squares += times * float(xp.sum(exact**2))
        self.pairs += times * error.shape[0] * error.shape[1]

    def result(self, parts: Mapping[str, KernelError] | None = None) -> KernelError:
        rms, size = (float(np.sqrt(s / self.pairs)) for s in (self.squares, self.exact_squares))
        relative = rms / size if size else float(rms > 0)
        bias = self.total / self.pairs
        return KernelError(self.largest, rms, relative, bias, self.pairs, parts or {}, size)


def _kernel_of(map: Any, kernel: Any) -> kernels.Kernel:
    if kernel is not None:
        return kernels.get(kernel)
    if not hasattr(map, "kernel_"):
        raise TypeError(
            f"kernel_error: {type(map).__name__} does not say which kernel it approximates; "
            "pass kernel=."
        )
    return map.kernel_


def _rows(X: Any) -> Any:
    """CSR or NumPy: rows, or features that `set_output` made a frame."""
    if is_foreign(X):
        return X
    check_sparse(X, "kernel_error")
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _product(left: Any, right: Any) -> np.ndarray:
    if is_foreign(left):
        return _wide(left) @ _wide(right).T
    return np.asarray(dense(left @ right.T), dtype=np.float64)


def _wide(values: Any) -> Any:
    """Numbers in float64, in their own library."""
    xp = namespace_of(values)
    return xp.asarray(values, dtype=xp.float64)
