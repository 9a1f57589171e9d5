r"""Penalised splines as a feature map (Maji 2012, section 3).

B-splines Φ_1 … Φ_n of degree p on n − p intervals, and the square difference matrices

.. math:: D_1 = \begin{pmatrix} 1 \\ -1 & 1 \\ & \ddots & \ddots \\ & & -1 & 1 \end{pmatrix},
          \qquad D_2 = D_1^2, \qquad D_0 = I.

A P-spline penalises \|D_d v\|² of f = ⟨v, Φ⟩ (eq. 3).  With v = D_d^{-1} w the penalty is \|w\|²
and f = ⟨w, Ψ⟩, Ψ = D_d^{-T} Φ (eq. 4): ridge on Ψ *is* the P-spline.  With d = 1 the kernel ⟨Ψ, Ψ⟩
at the knots is 1 + (n − 1) min(x, y) for x scaled to [0, 1].

Ψ(0) = 0, which keeps sparse data sparse, is had by Ψ(x) − Ψ(0).  (Dropping the functions that do
not vanish at 0, as the paper suggests, leaves nothing near 0 for p > 1.)  As Σ_i Φ_i = 1, this is
again linear in the band: Ψ(x) − Ψ(0) = D_d^{-T} (I − Φ(0) 1^T) Φ(x).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import factorial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline

from .._util.arguments import check_choice, check_count
from .._util.compiling import interpreted
from .._util.schema import array
from .._util.sparse import dense
from ..engine import Spec
from ..engine.extent import Extent
from ..engine.piecewise import spec_of, stored_table
from ..engine.table import AFFINE, Table
from .base import DOMAIN, AdditiveMap, feature_ranges, resolve_zero

ORDERS = (0, 1, 2)


def difference_matrix(n: int, order: int) -> np.ndarray:
    """D_d = D_1^d of the paper: n × n, invertible."""
    return np.linalg.matrix_power(np.eye(n) - np.eye(n, k=-1), order)


@dataclass(eq=False, repr=False)
class SplineMap(AdditiveMap):
    """B-splines whose squared weights are a smoothness penalty.

    Parameters
    ----------
    n_bases : int, default=10
        Basis functions, and output columns, per feature; more than `degree`.
    degree : int, default=3
        Degree of the splines: 1 linear, 2 quadratic, 3 cubic, …
    order : {0, 1, 2}, default=1
        Order d of the differences that are penalised: 0 the weights themselves, 1 slopes,
        2 curvature (slow to train: the condition number grows with n_bases⁴).
    domain : "auto", "data" or (low, high), default="auto"
        Range of the knots. "data" is each feature's own range; "auto" is that, too, but for
        unsigned integers the smallest [0, 2^k − 1] that holds it, so that features share tables.
    zero_at_zero : bool or "auto", default="auto"
        Use Ψ(x) − Ψ(0), so that zeros of sparse data stay zeros. "auto": for CSR input.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        Beyond the knots the splines are continued as constants (with a warning), not at all, or
        along their end slopes.
    sparse_output : bool, default=False
        Give CSR also for dense input; for ``order=0``, where each value has degree + 1 non-zeros.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    domain_ : tuple of arrays
        Range of each feature.
    mix_ : ndarray of shape (sets, n_bases, n_bases)
        R with Ψ = R Φ, for all features or one for each set of features that share their knots.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.linspace(0, 1, 11)[:, None]
    >>> Z = km.SplineMap(n_bases=11, degree=1).fit_transform(X)
    >>> bool(np.allclose(Z @ Z.T, 1 + 10 * np.minimum(X, X.T)))
    True
    """

    n_bases: int = 10
    degree: int = 3
    _: KW_ONLY
    order: int = 1
    domain: Any = "auto"
    zero_at_zero: bool | str = "auto"
    out_of_domain: str = "clip"
    sparse_output: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended(
        {"domain_": DOMAIN, "mix_": array("f8", "sets bases bases")}
    )

    def _apply(self, X: Any, extent: Extent, out: np.ndarray | None = None) -> Any:
        if not self.sparse_output:
            return super()._apply(X, extent, out)
        if out is not None:
            raise ValueError("SplineMap: out= cannot be used with sparse_output=True.")
        self._check_domain(X)
        return _stored_band(self.spec_, X, self.n_jobs)

    def _learn(self, X: Any) -> Spec:
        n, p = self._check_parameters()
        zero = resolve_zero(self, X)
        low, high = feature_ranges(self, X, self.domain, zero)
        self.domain_ = (low, high)
        # Knots are even: those of features differ by their place and width alone.
        ends, set_of = np.unique(np.stack([low, high], 1), axis=0, return_inverse=True)
        block = _taps(n - p, p)
        mix = np.linalg.inv(difference_matrix(n, self.order)).T[None]
        mix_of = np.zeros(len(ends), np.int32)
        if zero:
            at_zero = [_basis_at(np.linspace(*two, n - p + 1), block, 0.0, n) for two in ends]
            unique, mix_of = np.unique(at_zero, axis=0, return_inverse=True)
            mix = np.stack([mix[0] @ (np.eye(n) - phi[:, None]) for phi in unique])
        self.mix_ = mix
        return self._spec(ends, np.ravel(set_of), block, np.ravel(mix_of), zero)

    def _spec(
        self,
        ends: np.ndarray,
        set_of: np.ndarray,
        block: np.ndarray,
        mix_of: np.ndarray,
        zero: bool,
    ) -> Spec:
        """The table of Ψ, and with it the band Φ that training and prediction work on."""
        n, p = self.n_bases, self.degree
        extend = self.out_of_domain == "extrapolate"
        taps = _with_ends(block) if extend else block
        first = np.clip(np.arange(n - p + 2 * extend) - extend, 0, n - p - 1).astype(np.int32)
        sparse_band = self.order == 0 and not zero
        shared, index = np.unique(mix_of, return_inverse=True)
        dense = [taps if sparse_band else _mix(taps, first, self.mix_[m], n) for m in shared]
        low, high = ends.T
        width = (high - low) / (n - p)
        table = Table.build(
            AFFINE,
            p,
            dense,
            set_of,
            origin=low - extend * width,
            resolution=1 / width,
            width=np.full(len(ends), n),
            first=[first if sparse_band else np.zeros_like(first)] * len(dense),
            clip_low=None if extend else low,
            clip_high=None if extend else high,
            shared=np.ravel(index),
            zero_at_zero=zero,
        )
        spec = spec_of(table)
        band = {
            "band_coef": taps[None],
            "band_first": first,
            "band_of": np.zeros(len(ends), np.int32),
            "mix": self.mix_,
            "mix_of": mix_of.astype(np.int32),
        }
        return Spec("piecewise", {**spec.arrays, **band}, spec.numbers)

    def _check_parameters(self) -> tuple[int, int]:
        n = check_count(self, "n_bases", self.n_bases)
        p = check_count(self, "degree", self.degree, least=1)
        if n <= p:
            raise ValueError(
                f"SplineMap: n_bases must be larger than degree, got n_bases={n} and degree={p}: "
                "splines of degree p on one interval are already p + 1 functions."
            )
        check_choice(self, "order", self.order, ORDERS)
        if self.sparse_output and (self.order != 0 or self.zero_at_zero is True):
            raise ValueError(
                "SplineMap: sparse_output=True needs order=0 without zero_at_zero=True; "
                "with other orders every column of a feature can be non-zero."
            )
        return n, p


def _taps(n_intervals: int, degree: int) -> np.ndarray:
    """coef[b, k, c]: on interval b, Φ_{b+c} = Σ_k coef[b, k, c] u^k with u in [0, 1]."""
    # Taylor's series at the left ends, where derivatives are those of the interval to the right.
    # (PPoly.from_spline calls FITPACK, which ends the process for degrees beyond 5.)
    knots = np.arange(-degree, n_intervals + degree + 1, dtype=np.float64)
    basis, starts = BSpline(knots, np.eye(n_intervals + degree), degree), np.arange(n_intervals)
    active = starts[:, None] + np.arange(degree + 1)
    coef = np.empty((n_intervals, degree + 1, degree + 1))
    for k in range(degree + 1):
        values = np.take_along_axis(basis(starts, nu=k), active, axis=1)
        coef[:, k] = values / factorial(k)
    return coef


def _with_ends(block: np.ndarray) -> np.ndarray:
    """One more interval on either side, where the basis goes on along its slope."""
    start, stop = np.zeros_like(block[0]), np.zeros_like(block[0])
    powers = np.arange(block.shape[1])[:, None]
    slope = block[0, 1]
    start[0], start[1] = block[0, 0] - slope, slope  # at u = 1 the value of the first edge
    stop[0], stop[1] = block[-1].sum(0), (powers * block[-1]).sum(0)
    return np.concatenate([start[None], block, stop[None]])


def _basis_at(edges: np.ndarray, block: np.ndarray, x: float, n: int) -> np.ndarray:
    """Φ(x), dense."""
    b = int(np.clip(np.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2))
    u = (x - edges[b]) / (edges[b + 1] - edges[b])
    phi = np.zeros(n)
    phi[b : b + block.shape[2]] = u ** np.arange(block.shape[1]) @ block[b]
    return phi


def _mix(block: np.ndarray, first: np.ndarray, mix: np.ndarray, n: int) -> np.ndarray:
    """Coefficients of R Φ, dense in the columns."""
    out = np.empty((*block.shape[:2], n))
    for b, start in enumerate(first):
        out[b] = block[b] @ mix[:, start : start + block.shape[2]].T
    return out


def _stored_band(spec: Spec, X: Any, n_jobs: int | None) -> sparse.csr_matrix:
    """CSR of the band: every value of X becomes degree + 1 stored columns."""
    from ..engine.apply import apply, stored_columns
    from ..engine.outputs import note_path, output_dtype

    X = dense(X)
    if interpreted():
        return sparse.csr_matrix(apply(spec, X))
    dtype = output_dtype(X.dtype)
    table = stored_table(spec, dtype)
    n, d = X.shape
    indptr = np.arange(n + 1, dtype=np.int64) * d
    features = np.tile(np.arange(d, dtype=np.int32), n)
    data = np.ascontiguousarray(X, dtype=dtype).ravel()
    note_path("table:band")
    return stored_columns(table, data, features, indptr, n_jobs)
