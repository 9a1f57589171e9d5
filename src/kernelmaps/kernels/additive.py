"""Additive kernels: k(x, y) = Σ_d c(x_d, y_d) for a scalar kernel c.

Additive kernels with a scalar kernel of its own for each feature (Wang et al. 2015, eq. 1).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from .._util.compiling import is_interpreted, make_read_only
from .._util.devices import is_foreign, namespace_of
from .._util.threads import BLOCK_BYTES, row_blocks, run_in_threads
from .base import Kernel, Rows, sums_over_features

Component = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A scalar kernel c(x, y), elementwise with broadcasting."""


class AdditiveKernel(Kernel):
    """Base class of kernels that are a sum over features of a scalar kernel."""

    _code: int | None = None  # scalar rule of the compiled loop; None: `component` on blocks
    _parameter: float = 0.0

    @abstractmethod
    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Evaluate the scalar kernel c(x, y), elementwise with broadcasting.

        Parameters
        ----------
        x, y : array-like
            Values of one feature.

        Returns
        -------
        ndarray
            Kernel values.
        """

    def feature(self, d: int) -> AdditiveKernel:
        """Return the kernel of one feature.

        Parameters
        ----------
        d : int
            The feature.

        Returns
        -------
        AdditiveKernel
            This kernel, unless features have different ones.
        """
        return self

    @property
    def non_negative(self) -> bool:
        """Whether the kernel is defined for values >= 0 only."""
        return False

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        if self._code is None or is_interpreted():
            return _component_sums(self.component, X, Y, n_jobs)
        return compiled_sums(self._code, self._parameter, X, Y, n_jobs)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return sums_over_features(xp, X, Y, self.component)

    def _diag_array_api(self, xp: Any, X: Any) -> Any:
        return xp.sum(self.component(X, X), axis=1)

    def _diag(self, X: Rows) -> np.ndarray:
        if sparse.issparse(X):
            at_zero = float(self.component(np.zeros(1), np.zeros(1))[0])
            values = np.asarray(self.component(X.data, X.data)) - at_zero
            filled = sparse.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
            total = np.asarray(filled.sum(axis=1)).ravel() + X.shape[1] * at_zero
        else:
            total = np.empty(X.shape[0])
            for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
                block = X[rows]
                total[rows] = np.asarray(self.component(block, block)).sum(axis=1)
        return total.astype(X.dtype, copy=False)


class Linear(AdditiveKernel):
    """⟨x, y⟩: what projections approximate."""

    name = "linear"

    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x * y if is_foreign(x) else np.multiply(x, y)


class Additive(AdditiveKernel):
    """Additive kernel of a scalar Mercer kernel that the user provides.

    Parameters
    ----------
    component : callable
        ``component(x, y)`` on arrays, elementwise with broadcasting. It must be symmetric and
        positive semi-definite.
    name : str, optional
        For messages and column names.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps.kernels import Additive
    >>> k = Additive(lambda x, y: np.minimum(x, y) ** 2, name="squared minimum")
    >>> k([[1.0, 2.0]], [[3.0, 1.0]])
    array([[2.]])
    """

    def __init__(self, component: Component, name: str | None = None) -> None:
        if not callable(component):
            raise TypeError(f"Additive needs a function of two arrays, got {component!r}.")
        self._component = component
        self.name = name or getattr(component, "__name__", "additive").replace("<lambda>", "custom")

    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        xp = namespace_of(x)
        x, y = xp.asarray(x), xp.asarray(y)
        expected = np.broadcast_shapes(x.shape, y.shape)
        try:
            value = xp.asarray(self._component(x, y))
            problem = "" if value.shape == expected else f"returned shape {value.shape}"
        except (TypeError, ValueError) as error:
            problem = f"failed ({error})"
        if problem:
            raise ValueError(
                f"Additive({self.name}): component(x, y) {problem} for inputs that broadcast to "
                f"{expected}. It must work elementwise on arrays, as numpy.vectorize makes it."
            )
        return value

    def __repr__(self) -> str:
        return f"Additive({self.name})"


def compiled_sums(
    code: int, parameter: float, X: Rows, Y: Rows | None, n_jobs: int | None
) -> np.ndarray:
    """Σ_d c(x_d, y_d) by the compiled loop, dense or CSR, with no temporary beyond a row each."""
    from . import _loops

    symmetric, Y = Y is None, X if Y is None else Y
    out = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
    if sparse.issparse(X):
        # One loop, in float64, serves all rules.
        rule = _loops.make_rule(code, parameter, np.dtype(np.float64))._replace(logarithmic=())
        x, y = _loops.pack_csr(X), _loops.pack_csr(Y)
        terms = tuple(_loops.csr_terms(rule, rows) for rows in (x, y))
        sum_rows = partial(_loops.csr_sums, rule, x, y, terms, symmetric, out)
        run_in_threads(sum_rows, out.shape[0], n_jobs)
    else:
        tiles = -(-out.shape[0] // _loops.TILE) * -(-out.shape[1] // _loops.TILE)
        terms = tuple(_row_terms(rows, code == _loops.JENSEN_SHANNON) for rows in (X, Y))
        rule = _loops.make_rule(code, parameter, X.dtype)
        x, y = make_read_only(X), make_read_only(Y)
        sum_rows = partial(_loops.dense_sums, rule, x, y, terms, symmetric, out)
        run_in_threads(sum_rows, tiles, n_jobs)
    return out


def _row_terms(X: np.ndarray, entropies: bool) -> np.ndarray:
    """What a row contributes to every sum by itself.

    Jensen-Shannon: −½ Σ x log2 x (the loop adds ½ (x+y) log2(x+y)); nothing for all others.
    """
    total = np.zeros(X.shape[0])
    for rows in row_blocks(X.shape[0], 24 * X.shape[1]) if entropies else ():
        x = X[rows].astype(np.float64)
        total[rows] = (-0.5 * x * np.log2(np.where(x > 0, x, 1))).sum(axis=1)
    return total


def _component_sums(
    component: Component, X: Rows, Y: Rows | None, n_jobs: int | None
) -> np.ndarray:
    """Σ_d component(x_d, y_d), feature by feature on bounded blocks, rows shared among threads.

    On CSR input only stored values are evaluated against each other:
    Σ c(x, y) = Σ_{x,y≠0} [c(x, y) − c(x, 0) − c(0, y) + c(0, 0)] + Σ_x [c(x, 0) − c(0, 0)]
    + Σ_y [c(0, y) − c(0, 0)] + d c(0, 0), exact for every component.
    """
    symmetric, Y = Y is None, X if Y is None else Y
    total = np.zeros((X.shape[0], Y.shape[0]))
    add = _add_sparse if sparse.issparse(X) else _add_dense

    def part(begin: int, end: int) -> None:
        add(component, X[begin:end], Y, total[begin:end])

    # NumPy's functions leave the interpreter to others while they work on long arrays.
    run_in_threads(part, X.shape[0], n_jobs, max(1, 20_000 // max(1, Y.shape[0])))
    if symmetric:
        total = (total + total.T) / 2  # a user's component may round differently in x and y
    return total.astype(X.dtype, copy=False)


def _add_dense(component: Component, X: np.ndarray, Y: np.ndarray, total: np.ndarray) -> None:
    for rows in row_blocks(X.shape[0], 8 * Y.shape[0], BLOCK_BYTES // 4):
        for d in range(X.shape[1]):
            x, y = np.float64(X[rows, d, None]), np.float64(Y[None, :, d])
            total[rows] += component(x, y)


def _add_sparse(component: Component, X: Rows, Y: Rows, total: np.ndarray) -> None:
    zero = np.zeros(1)
    at_zero = float(np.asarray(component(zero, zero))[0])
    left, right = X.tocsc().astype(np.float64), Y.tocsc().astype(np.float64)
    alone_x, alone_y = np.zeros(X.shape[0]), np.zeros(Y.shape[0])
    for d in range(X.shape[1]):
        (i, x), (j, y) = _column(left, d), _column(right, d)
        x_only, y_only = component(x, zero) - at_zero, component(zero, y) - at_zero
        alone_x[i] += x_only
        alone_y[j] += y_only
        for rows in row_blocks(len(x), 8 * max(1, len(y)), BLOCK_BYTES // 4):
            both = component(x[rows, None], y[None, :]) - at_zero
            total[i[rows, None], j] += both - x_only[rows, None] - y_only
    total += alone_x[:, None] + alone_y[None, :] + X.shape[1] * at_zero


def _column(X: sparse.csc_matrix, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and values that are stored of a column."""
    stored = slice(X.indptr[d], X.indptr[d + 1])
    return X.indices[stored], X.data[stored]


@dataclass(frozen=True)
class PerFeature(AdditiveKernel):
    """The kernel k(x, y) = Σ_d c_d(x_d, y_d), with a scalar kernel for each feature.

    Parameters
    ----------
    kernels : sequence of AdditiveKernel
        The kernel of each feature. ``kernels.get(["chi2", "intersection"])`` makes it from names
        and functions.

    Examples
    --------
    >>> from kernelmaps import kernels
    >>> kernels.get(["intersection", "hellinger"])([[1.0, 4.0]], [[3.0, 9.0]])
    array([[7.]])
    """

    kernels: tuple[AdditiveKernel, ...]
    name = "per_feature"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        for d, kernel in enumerate(self.kernels):
            if not isinstance(kernel, AdditiveKernel) or isinstance(kernel, PerFeature):
                raise TypeError(
                    f"PerFeature: the kernel of feature {d} must be an additive one (chi2, "
                    f"intersection, …, or a function c(x, y) of numbers), got {kernel!r}."
                )
        if not self.kernels:
            raise ValueError("PerFeature: there must be at least one kernel, for one feature.")

    def feature(self, d: int) -> AdditiveKernel:
        return self.kernels[d]

    @property
    def non_negative(self) -> bool:
        return all(kernel.non_negative for kernel in self.kernels)

    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Evaluate the scalar kernels; the last axis of x and y is that of the features.

        Parameters
        ----------
        x, y : array-like of shape (..., n_features)
            Values of all features.

        Returns
        -------
        ndarray of shape (..., n_features)
            Kernel values.
        """
        xp = namespace_of(x)
        terms = [k.component(x[..., d], y[..., d]) for d, k in enumerate(self.kernels)]
        return xp.stack(terms, axis=-1)

    def clipping_bound(self, limit: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """Bound what clipping changes, feature by feature.

        Parameters
        ----------
        limit, largest : ndarray of shape (n_features,)
            Values above `limit` are clipped to it; none is larger than `largest`.

        Returns
        -------
        ndarray of shape (n_features,)
            The bounds; 0 where nothing is clipped.
        """
        kernels: tuple[Any, ...] = self.kernels  # of which those of certified maps know a bound
        ends = zip(kernels, np.asarray(limit), np.asarray(largest), strict=True)
        return np.array([float(kernel.clipping_bound(*pair)) for kernel, *pair in ends])

    def groups(self) -> list[tuple[AdditiveKernel, np.ndarray]]:
        """Return the different kernels, each with the features that have it.

        Returns
        -------
        list of (AdditiveKernel, ndarray of int)
            In the order of their first features.
        """
        columns: dict[AdditiveKernel, list[int]] = {}
        for d, kernel in enumerate(self.kernels):
            columns.setdefault(kernel, []).append(d)
        return [(kernel, np.array(features)) for kernel, features in columns.items()]

    def check_width(self, n_features: int, owner: str) -> None:
        """Raise ValueError if there are more or fewer features than kernels.

        Parameters
        ----------
        n_features : int
            Features of the rows.
        owner : str
            Who asks, for the message.
        """
        if n_features != len(self.kernels):
            raise ValueError(
                f"{owner}: there are kernels for {len(self.kernels)} features, but X has "
                f"{n_features}. Give one kernel for each column."
            )

    def _check_values(self, X: Any, name: str) -> None:
        self.check_width(X.shape[1], "PerFeature")
        for kernel, columns in self.groups():
            more = " …" if len(columns) > 5 else ""
            where = f"columns {columns[:5].tolist()}{more} of {name}"
            kernel._check_values(_take(X, columns), where)

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        parts = (
            kernel._gram(_take(X, columns), None if Y is None else _take(Y, columns), n_jobs)
            for kernel, columns in self.groups()
        )
        return sum(parts, start=np.zeros((), dtype=X.dtype))

    def _diag(self, X: Rows) -> np.ndarray:
        parts = (kernel._diag(_take(X, columns)) for kernel, columns in self.groups())
        return sum(parts, start=np.zeros((), dtype=X.dtype))


def _take(X: Any, columns: np.ndarray) -> Any:
    """Some columns of rows, where the rows are."""
    if is_foreign(X):
        xp = namespace_of(X)
        return xp.take(X, xp.asarray(columns, device=X.device), axis=1)
    selected = X[:, columns]
    return np.ascontiguousarray(selected) if isinstance(selected, np.ndarray) else selected
