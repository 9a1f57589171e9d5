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
*differences* of k-sparse vectors (the paper's eq. 9 has k), and σ_p is that of the kernel in m
dimensions, where the features live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import ceil, comb
from typing import Any

import numpy as np
from scipy import fft, sparse
from sklearn.utils import check_array

from .. import kernels
from .._util.arguments import check_count, check_number, generator, is_number
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
    refuse_gpu_array(X, "effective_sparsity", "Pass a sample of the rows as NumPy.")
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
    else:
        images = dense(X).reshape(-1, *shape)
        axes = tuple(range(1, images.ndim))
        if basis == "dct":
            images = fft.dctn(images, norm="ortho", axes=axes)
        elif basis == "haar":
            for axis in axes:
                images = np.moveaxis(haar(np.moveaxis(images, axis, -1)), -1, axis)
        rows = _coefficients(images.reshape(len(images), -1), energy)
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
        features, and says nothing about any projection: measure instead (`choose`).
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
    covering: float = 3.0,
) -> RequiredFeatures:
    """Number of random features that keep an error below a bound, by Theorems 1 and 2.

    Parameters
    ----------
    epsilon : float
        Largest error allowed over all pairs of points.
    probability : float
        q, the probability that the error is larger.
    sparsity : float
        k: coefficients of a data point that are not zero, in any orthonormal basis if the kernel
        is isotropic (Corollary 1).
    dim : int
        d, the number of features.
    diameter : float
        Largest distance of two data points.
    kernel : str or StationaryKernel
        Its spectrum must have a second moment, which excludes the Laplacian and Matérn with
        ν ≤ 1. A kernel that you wrote defines it by a method ``second_moment(d)``.
    covering : float
        c: a ball of radius R in z dimensions takes at most (c R/r)^z balls of radius r ≤ R. 3 is
        what volumes prove; 2 is the constant of the paper, 4 that of Rahimi and Recht.

    Returns
    -------
    RequiredFeatures
        Numbers of columns and of measurements.

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
    _check(epsilon, probability, sparsity, dim, diameter, covering)
    epsilon, probability, sparsity = float(epsilon), float(probability), float(sparsity)
    dim, diameter, covering = int(dim), float(diameter), float(covering)
    # A kernel of a user's own is taken as it is, though it may be a function as well.
    is_kernel = hasattr(kernel, "second_moment") and not isinstance(kernel, type)
    kernel = kernel if is_kernel else kernels.get(kernel)
    z = min(2.0 * sparsity, float(dim))
    moment = second_moment(kernel, dim)
    M = _sparse_features(epsilon, probability, z, dim, diameter, moment, covering)
    M_ambient = _rahimi_recht(epsilon, probability, dim, diameter, moment)
    if not (getattr(kernel, "isotropic", False) and hasattr(kernel, "signature")):
        return RequiredFeatures(M, M_ambient, None, None, False)
    m = _measurements(epsilon, probability / 2, z, dim, diameter, kernel)
    grown = np.sqrt(max(1.0, dim / m)) * diameter
    inner = second_moment(kernel, m)
    M_compressive = _rahimi_recht(epsilon / 2, probability / 2, m, grown, inner)
    return RequiredFeatures(M, M_ambient, m, M_compressive, m <= dim)


def _sparse_features(
    epsilon: float, q: float, z: float, d: int, diameter: float, moment: float, covering: float
) -> int:
    base = 2 * covering * np.e * d * np.sqrt(moment) * diameter / (z * epsilon)
    return ceil(
        4 * (z + 2) / epsilon**2 * (np.log(3 / q) + 2 * z / (z + 2) * np.log(max(base, 1.0)))
    )


def _rahimi_recht(epsilon: float, q: float, d: int, diameter: float, moment: float) -> int:
    """2⁸ (σ_p diam/ε)² exp(−M ε²/(4(d + 2))) ≤ q."""
    chances = 2.0**8 * moment * (diameter / epsilon) ** 2 / q
    return ceil(4 * (d + 2) / epsilon**2 * np.log(max(chances, np.e)))


def _measurements(epsilon: float, q: float, z: float, d: int, diameter: float, kernel: Any) -> int:
    """Theorem 3 for z-sparse differences with δ = ε/(2 diam L), δ < 1."""
    delta = min(epsilon / (2 * diameter * lipschitz(kernel, diameter)), 1.0)
    return _isometry_measurements(delta, q, z, d)


def _isometry_measurements(delta: float, q: float, k: float, d: int) -> int:
    exponent = np.log(2 / q) + k * np.log(12 / delta) + k * np.log(np.e * d / k)
    return ceil(exponent / (delta**2 / 16 - delta**3 / 48))


def required_measurements(delta: float, probability: float, *, sparsity: float, dim: int) -> int:
    r"""Number of random measurements that keep lengths of sparse vectors, by Theorem 3.

    A random projection A of m rows (orthoprojector times √(d/m), or sub-Gaussian) has
    (1 − δ)‖x‖² ≤ ‖Ax‖² ≤ (1 + δ)‖x‖² for all k-sparse x with probability at least 1 − q if

    .. math:: 2 \Bigl(\frac{12}{δ}\Bigr)^{k} \Bigl(\frac{ed}{k}\Bigr)^{k}
              e^{-(δ^2/16 - δ^3/48) m} ≤ q

    (Chang et al. 2016, eq. 9; Baraniuk and others 2008). Differences of k-sparse vectors are
    2k-sparse: ask for twice the sparsity where distances shall be kept.

    Parameters
    ----------
    delta : float in (0, 1]
        δ, the isometry constant.
    probability : float
        q, the probability that the projection fails.
    sparsity : float
        k, the coefficients that are not zero.
    dim : int
        d, the number of features.

    Returns
    -------
    int
        m. It may exceed d, where the theorem says nothing: measure instead
        (`measured_isometry`).

    Examples
    --------
    >>> import kernelmaps as km
    >>> km.required_measurements(0.9, 0.1, sparsity=5, dim=784) > 784
    True
    """
    owner = "required_measurements"
    check_number(owner, "delta", delta, "in (0, 1]", lambda value: 0 < value <= 1)
    check_number(owner, "probability", probability, "in (0, 1]", lambda q: 0 < q <= 1)
    check_number(owner, "dim", dim, "an integer, at least 1", lambda d: d >= 1 and d == int(d))
    words = f"above 0, and at most dim = {dim}"
    check_number(owner, "sparsity", sparsity, words, lambda k: 0 < k <= dim)
    return _isometry_measurements(float(delta), float(probability), float(sparsity), int(dim))


@dataclass(frozen=True)
class Isometry:
    """How much a matrix changes the lengths of sparse vectors.

    Attributes
    ----------
    delta : float
        Largest | ‖Ax‖²/‖x‖² − 1 | of the k-sparse x that were tried.
    lower, upper : float
        Smallest and largest ‖Ax‖²/‖x‖².
    sparsity : int
        k.
    exact : bool
        Whether all supports were tried: `delta` is then the restricted isometry constant, else no
        more than a lower bound of it.
    """

    delta: float
    lower: float
    upper: float
    sparsity: int
    exact: bool


def measured_isometry(
    matrix: Any, sparsity: int, *, n_supports: int = 2000, random_state: Any = 0
) -> Isometry:
    """Measure the restricted isometry constant of a matrix.

    The extremes of ‖Ax‖²/‖x‖² over vectors with a given support are the squared extreme singular
    values of its columns. All supports are tried where there are at most `n_supports` of them; else
    random ones, and those that exchanging single columns improves.

    Parameters
    ----------
    matrix : array of shape (m, d)
        A; of a fitted map without a matrix, ``feature_map.transform(np.eye(d)).T``.
    sparsity : int
        k.
    n_supports : int
        Supports to try.
    random_state : int, RandomState, Generator or None
        Seed of the supports.

    Returns
    -------
    Isometry
        The constant, or the largest value found.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> km.measured_isometry(np.eye(6), 3).delta
    0.0
    """
    A = check_array(matrix, dtype=np.float64, input_name="matrix")
    k = check_count("measured_isometry", "sparsity", sparsity)
    tries = check_count("measured_isometry", "n_supports", n_supports)
    d = A.shape[1]
    if k > d:
        raise ValueError(f"measured_isometry: sparsity={k}, but the matrix has {d} columns.")
    rng, gram = generator(random_state), A.T @ A
    exact = comb(d, k) <= tries
    if exact:
        supports = np.array(list(combinations(range(d), k)))
    else:
        supports = np.argpartition(rng.random((tries // 2 + 1, d)), k - 1, axis=1)[:, :k]
    lower, upper = _extremes(gram, supports)
    if not exact:
        for sign, best in ((-1, int(np.argmin(lower))), (1, int(np.argmax(upper)))):
            more = _exchanged(gram, supports[best], sign, tries // 4 + 1, rng)
            lower, upper = np.append(lower, more[0]), np.append(upper, more[1])
    low, high = float(lower.min()), float(upper.max())
    return Isometry(max(1 - low, high - 1, 0.0), low, high, k, exact)


def _extremes(gram: np.ndarray, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest eigenvalue of the Gram matrix of each support."""
    values = [np.linalg.eigvalsh(gram[np.ix_(support, support)])[[0, -1]] for support in supports]
    return np.array(values)[:, 0], np.array(values)[:, 1]


def _exchanged(
    gram: np.ndarray, support: np.ndarray, sign: int, tries: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Extremes of a support after exchanges of one column that lower (−1) or raise (1) them."""
    support, extremes = support.copy(), _extremes(gram, support[None, :])
    outside = np.setdiff1d(np.arange(len(gram)), support)
    for _ in range(tries if len(outside) else 0):
        out, into = rng.integers(len(support)), rng.integers(len(outside))
        changed = support.copy()
        changed[out] = outside[into]
        candidate = _extremes(gram, changed[None, :])
        if sign * (candidate[sign > 0][0] - extremes[sign > 0][0]) > 0:
            outside[into], support, extremes = support[out], changed, candidate
    return float(extremes[0][0]), float(extremes[1][0])


def second_moment(kernel: Any, d: int) -> float:
    """σ_p² = E‖ω‖² in d dimensions: d times minus the curvature of the signature at 0."""
    method = getattr(kernel, "second_moment", None)
    if method is None or method(d) == np.inf:
        raise ValueError(
            f"required_features: the spectrum of {kernel!r} has no (known) second moment, which "
            "the theorems need. Use gaussian, cauchy or matern with nu > 1, or give your kernel a "
            "method second_moment(d)."
        )
    moment = float(method(d))
    if not 0 < moment < np.inf:
        raise ValueError(
            f"required_features: second_moment({d}) of {kernel!r} must be positive and finite, "
            f"got {moment!r}."
        )
    return moment


def lipschitz(kernel: Any, diameter: float) -> float:
    """Largest slope of f on [0, diameter].

    f'(r) = −E ω sin(ωr) is at most r E ω², and next to that for small r. Else from differences on
    two fine grids: equal steps for the first hundred lengths 1/√(E ω²), equal ratios beyond.
    """
    moment = second_moment(kernel, 1)
    length = moment**-0.5
    if diameter < 1e-3 * length:
        return diameter * moment
    middle = min(diameter, 100 * length)
    grids = np.linspace(0, middle, 20001), np.geomspace(middle, diameter, 20001)
    distance = np.unique(np.concatenate(grids))
    return float(np.max(np.abs(np.diff(kernel.signature(distance))) / np.diff(distance)))


def _check(
    epsilon: float, probability: float, sparsity: float, dim: int, diameter: float, covering: float
) -> None:
    conditions: dict[str, tuple[Any, str, Callable[[Any], bool]]] = {
        "epsilon": (epsilon, "positive, and no less than 1e-50", lambda e: 1e-50 < e < np.inf),
        "probability": (probability, "in (0, 1]", lambda q: 0 < q <= 1),
        "dim": (dim, "an integer, at least 1", lambda d: 1 <= d < 1e18 and d == int(d)),
        "sparsity": (sparsity, f"between 0 and dim = {dim}", lambda k: 0 < k <= dim),
        "diameter": (diameter, "positive, and below 1e100", lambda r: 0 < r < 1e100),
        "covering": (covering, "at least 1", lambda c: 1 <= c < 1e100),
    }
    for name, (value, words, holds) in conditions.items():
        if not is_number(value):
            raise TypeError(f"required_features: {name} must be a number, got {value!r}.")
        check_number("required_features", name, value, words, holds)
