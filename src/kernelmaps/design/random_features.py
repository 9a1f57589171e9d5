r"""Number of random features that Theorems 1 and 2 of Chang et al. 2016 require; sparsity of data.

All counts M are of *frequencies* of the paired form: its estimate is a mean of cos ωᵀ(x − y) in
[−1, 1], which the proofs assume (the sum of eq. 2 has twice the range, and depends on x + y, too).
Its output has 2M columns.

**Theorem 1** (k-sparse data, z = 2k, proof in appendix A). With a net of (c·diam/r)^z balls on each
of the (d over z) ≤ (ed/z)^z subspaces, Hoeffding's inequality at the centres and Markov's for the
Lipschitz constant, E L² ≤ σ_p², minimised over r:

.. math:: P(\sup |\text{error}| > ε) ≤ 3 \Bigl(\frac{2c\, e d\, σ_p\, \text{diam}}{z ε}
          \Bigr)^{2z/(z+2)} \exp\Bigl(-\frac{M ε^2}{4 (z + 2)}\Bigr).

c = 3 is proved: balls of radius r/2 around a maximal set of points r apart do not overlap and lie
in a ball of radius R + r/2, so that there are at most ((R + r/2)/(r/2))^z ≤ (3R/r)^z of them. The
paper takes c = 2, and its last lines lose a factor (2 and even 1 where 2c = 4 follows). σ_p² =
E‖ω‖² is the second moment of the spectrum.

**Theorem 2** (orthoprojection to m dimensions first), in two halves of ε and of q each:

.. math:: 2 \Bigl(\frac{12}{δ}\Bigr)^{z} \Bigl(\frac{ed}{z}\Bigr)^{z}
          e^{-(δ^2/16 - δ^3/48) m} ≤ q/2, \qquad
          2^{10} \frac{d}{m} \Bigl(\frac{σ_p\, \text{diam}}{ε}\Bigr)^2
          e^{-M ε^2 / (16 (m + 2))} ≤ q/2,

δ = ε/(2 diam L), L the Lipschitz constant of f(‖x − y‖). z = 2k, as the isometry is needed for
*differences* of k-sparse vectors (the paper's eqs. 6 and 9 have k), and σ_p is that of the kernel
in m dimensions, where the features live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy import fft, sparse
from sklearn.utils import check_array

from .. import kernels
from .._util.arguments import argument_error, check_number
from .._util.devices import refuse_gpu_array
from .._util.sparse import check_sparse, dense
from .._util.threads import power_of_two

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
    rows: np.ndarray = field(repr=False)
    basis: str | None
    energy: float


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
    if not (basis is None or isinstance(basis, str)) or basis not in BASES:
        raise argument_error("effective_sparsity", "basis", basis, f"one of {BASES}")
    check_number("effective_sparsity", "energy", energy, "in (0, 1]", lambda e: 0 < e <= 1)
    refuse_gpu_array(X, "effective_sparsity", "Pass a sample of the rows as NumPy.")
    check_sparse(X, "effective_sparsity")
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    shape = (X.shape[1],) if shape is None else tuple(np.atleast_1d(shape).tolist())
    if np.prod(shape) != X.shape[1] or min(shape) < 1:
        raise ValueError(
            f"effective_sparsity: shape {shape} has {np.prod(shape)} entries, rows {X.shape[1]}."
        )
    values: Any = dense(X).reshape(-1, *shape) if basis or not sparse.issparse(X) else None
    if values is None:
        X = X if X.has_canonical_format else X.copy()
        X.sum_duplicates()
        values = (X.data[a:b] for a, b in pairwise(X.indptr))
    elif basis == "dct":
        values = fft.dctn(values, norm="ortho", axes=range(1, values.ndim))
    elif basis == "haar":
        for axis in range(1, values.ndim):
            values = np.moveaxis(haar(np.moveaxis(values, axis, -1)), -1, axis)
    rows = np.array([_count_coefficients(row.ravel(), energy) for row in values])
    return Sparsity(float(rows.mean()), int(rows.max()), rows, basis, float(energy))


def _count_coefficients(values: np.ndarray, energy: float) -> int:
    """The least number of entries whose squares hold a share of the energy."""
    largest = np.abs(values).max(initial=0)
    if largest == 0:
        return 0
    held = np.cumsum(np.sort((values / largest) ** 2)[::-1])  # neither over- nor underflow
    return int(np.searchsorted(held, held[-1] * min(energy, 1 - 1e-14))) + 1


def haar(signals: np.ndarray) -> np.ndarray:
    """Orthonormal Haar transform along the last axis, padded with zeros to a power of two."""
    length = power_of_two(signals.shape[-1])
    padding = [(0, 0)] * (signals.ndim - 1) + [(0, length - signals.shape[-1])]
    averages, details = np.pad(signals, padding), []
    while averages.shape[-1] > 1:
        even, odd = averages[..., ::2], averages[..., 1::2]
        details.append((even - odd) / np.sqrt(2))
        averages = (even + odd) / np.sqrt(2)
    return np.concatenate([averages, *details[::-1]], axis=-1)


@dataclass(frozen=True)
class RequiredFeatures:
    """Sizes that a guarantee requires, in frequencies of two output columns each.

    Attributes
    ----------
    M : int
        Theorem 1: features of k-sparse data.
    M_ambient : int
        Rahimi and Recht's bound, which does not know of sparsity (k with 2k = d).
    m, M_compressive : int or None
        Theorem 2: measurements, and features of them. None if the kernel is not isotropic, or is a
        user's own without a ``signature(distance)``.
    feasible : bool
        Whether m is at most d. If not, the theorem asks for more measurements than there are
        features, and says nothing about any projection: measure the error instead
        (`kernel_error`).
    """

    M: int
    M_ambient: int
    m: int | None
    M_compressive: int | None
    feasible: bool


def required_features(
    epsilon: float,
    probability: float,
    *,
    sparsity: float,
    dim: int,
    diameter: float,
    kernel: Any = "gaussian",
) -> RequiredFeatures:
    """Numbers of random features and of measurements that keep an error below a bound.

    Parameters
    ----------
    epsilon : float
        Largest error allowed over all pairs of points.
    probability : float
        q, the probability that the error is larger.
    sparsity : float
        k: coefficients of a data point that are not zero, in any orthonormal basis if the kernel
        is isotropic (Corollary 1); see `effective_sparsity`.
    dim : int
        d, the number of features.
    diameter : float
        Largest distance of two data points.
    kernel : str or StationaryKernel
        Its spectrum must have a second moment, which excludes the Laplacian and Matérn with
        ν ≤ 1. A kernel that you wrote defines it by a method ``second_moment(d)``.

    Returns
    -------
    RequiredFeatures
        Sizes by Theorem 1 (features of the data) and Theorem 2 (measurements, and their features).

    Examples
    --------
    >>> import kernelmaps as km
    >>> kernel = km.kernels.Gaussian(10.0)
    >>> sizes = km.required_features(
    ...     0.1, 0.1, sparsity=10, dim=784, diameter=20.0, kernel=kernel
    ... )
    >>> round(sizes.M, -4), sizes.feasible
    (230000, False)
    """
    requirements: list[tuple[str, Any, str, Callable[[float], bool]]] = [
        ("epsilon", epsilon, "above 1e-50", lambda e: 1e-50 < e < np.inf),
        ("probability", probability, "in (0, 1]", lambda q: 0 < q <= 1),
        ("dim", dim, "an integer, at least 1", lambda d: 1 <= d < 1e18 and d == int(d)),
        ("sparsity", sparsity, f"between 0 and dim = {dim}", lambda k: 0 < k <= dim),
        ("diameter", diameter, "positive, and below 1e100", lambda r: 0 < r < 1e100),
    ]
    for name, value, words, holds in requirements:
        check_number("required_features", name, value, words, holds)
    # A kernel of a user's own is taken as it is, though it may be a function as well.
    is_kernel = hasattr(kernel, "second_moment") and not isinstance(kernel, type)
    kernel = kernel if is_kernel else kernels.get(kernel)
    d, z, q = int(dim), min(2.0 * sparsity, float(dim)), float(probability)

    def count_ambient(epsilon: float, q: float, d: int, diameter: float) -> int:
        """The least M with 2⁸ (σ_p diam/ε)² exp(−M ε²/(4(d + 2))) ≤ q."""
        odds = 2.0**8 * _second_moment(kernel, d) * (diameter / epsilon) ** 2 / q
        return ceil(4 * (d + 2) / epsilon**2 * np.log(max(odds, np.e)))

    base = 6 * np.e * d * np.sqrt(_second_moment(kernel, d)) * diameter / (z * epsilon)
    exponent = np.log(3 / q) + 2 * z / (z + 2) * np.log(max(base, 1.0))
    M = ceil(4 * (z + 2) / epsilon**2 * exponent)
    M_ambient = count_ambient(epsilon, q, d, diameter)
    if not (getattr(kernel, "isotropic", False) and hasattr(kernel, "signature")):
        return RequiredFeatures(M, M_ambient, None, None, False)
    # L, the largest slope of f: |f'(r)| = |E ω sin(ωr)| is at most r E ω², and next to that for
    # small r. Else from differences: equal steps for a hundred lengths, equal ratios beyond.
    moment = _second_moment(kernel, 1)
    lipschitz, length = diameter * moment, moment**-0.5
    if diameter >= 1e-3 * length:
        middle = min(diameter, 100 * length)
        grids = np.linspace(0, middle, 20001), np.geomspace(middle, diameter, 20001)
        distance = np.unique(np.concatenate(grids))
        slopes = np.diff(kernel.signature(distance)) / np.diff(distance)
        lipschitz = float(np.max(np.abs(slopes)))
    delta = min(epsilon / (2 * diameter * lipschitz), 1.0)
    exponent = np.log(4 / q) + z * np.log(12 / delta) + z * np.log(np.e * d / z)
    m = ceil(exponent / (delta**2 / 16 - delta**3 / 48))
    longest = np.sqrt(max(1.0, d / m)) * diameter  # ‖Px‖² ≤ (d/m)‖x‖²
    M_compressive = count_ambient(epsilon / 2, q / 2, m, longest)
    return RequiredFeatures(M, M_ambient, m, M_compressive, m <= d)


def _second_moment(kernel: Any, d: int) -> float:
    """σ_p² = E‖ω‖² in d dimensions: d times minus the curvature of the signature at 0."""
    moment = float(getattr(kernel, "second_moment", lambda d: np.inf)(d))
    if not 0 < moment < np.inf:
        raise ValueError(
            f"required_features: the spectrum of {kernel!r} has no (known) second moment above 0 "
            f"(second_moment({d}) is {moment!r}), which the theorems need. Use gaussian, cauchy or "
            "matern with nu > 1, or give your kernel a method second_moment(d)."
        )
    return moment
