r"""Shift-invariant kernels k(x, y) = κ(x − y): Gaussian, Laplacian, Cauchy, Matérn.

By Bochner's theorem :math:`κ(δ) = E_ω \cos(ω^\top δ)`; random Fourier features draw ω from that
distribution. Gaussian and Matérn kernels depend on ‖x − y‖₂ alone (`isotropic`); the Laplacian
exp(−‖x − y‖₁/s) and the Cauchy kernel Π_d 1/(1 + (x_d − y_d)²/s²) are products over features.

Their length scales may come from the rows: :func:`fit_length`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse, special, stats
from scipy.spatial.distance import pdist
from sklearn.metrics import pairwise_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._util.arguments import check_number, check_positive
from .._util.devices import namespace_of
from .._util.sparse import dense
from .._util.threads import evenly_spaced, limit_threads, row_blocks
from ..exceptions import KernelScaleWarning
from .additive import compiled_sums
from .base import Kernel, Rows, UnitDiagonal, sums_over_features


class StationaryKernel(UnitDiagonal):
    """Base class of kernels of the difference x − y, with k(x, x) = 1.

    A subclass gives the one-dimensional `signature` and `frequencies`, which turns uniform random
    numbers into frequencies; Monte Carlo and quasi-Monte Carlo sampling then come for free. All
    other facts about a kernel have defaults and are stated here, too, so that a new kernel is one
    class and one line of `kernelmaps.kernels.register`.

    Attributes
    ----------
    isotropic : bool
        Whether it is a function of ‖x − y‖₂; otherwise it is a product over features.
    parameter_name : str
        The field that holds the length scale.
    metric : str
        Distance of rows that the length scale is compared with.
    """

    isotropic: ClassVar[bool] = False
    parameter_name: ClassVar[str] = "scale"
    metric: ClassVar[str] = "euclidean"

    def __post_init__(self) -> None:
        # A kernel from outside may have no length.
        check_positive(self, self.parameter_name, getattr(self, self.parameter_name, 1.0))

    @abstractmethod
    def signature(self, delta: np.ndarray) -> np.ndarray:
        """Evaluate κ(δ) for one feature; for isotropic kernels also κ(‖δ‖₂) for several.

        Parameters
        ----------
        delta : array-like
            Differences, or their norms.

        Returns
        -------
        ndarray
            Kernel values.
        """

    @abstractmethod
    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        """Transform uniform numbers into frequencies of the spectral distribution.

        Parameters
        ----------
        uniforms : ndarray of shape (n, n_uniforms(d))
            Numbers in (0, 1).
        d : int
            Number of features.

        Returns
        -------
        ndarray of shape (n, d)
            Frequencies.
        """

    def n_uniforms(self, d: int) -> int:
        """Return how many uniform numbers one frequency needs.

        Parameters
        ----------
        d : int
            Number of features.

        Returns
        -------
        int
            Columns that `frequencies` takes.
        """
        return d

    def sample_frequencies(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent frequencies from the spectral distribution.

        Parameters
        ----------
        n : int
            Number of frequencies.
        d : int
            Number of features.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n, d)
            Frequencies.
        """
        # Away from 0, where quantile functions are infinite.
        uniforms = np.maximum(rng.random((n, self.n_uniforms(d))), 2.0**-54)
        return self.frequencies(uniforms, d)

    def radius_quantile(self, probability: np.ndarray, d: int) -> np.ndarray:
        """Quantile of ‖ω‖₂, for orthogonal features of isotropic kernels.

        Parameters
        ----------
        probability : ndarray
            Probabilities in (0, 1).
        d : int
            Number of features.

        Returns
        -------
        ndarray
            Quantiles.
        """
        raise TypeError(
            f"{self!r} is not isotropic: its frequencies have no radial distribution. "
            "Use Gaussian or Matern here."
        )

    @property
    def length(self) -> float:
        """The length scale."""
        return float(getattr(self, self.parameter_name))

    def length_at(self, distance: float) -> float:
        """Return the length scale for rows at a typical distance from each other.

        Parameters
        ----------
        distance : float
            The distance, in the `metric` of the kernel.

        Returns
        -------
        float
            The length scale.
        """
        return distance

    def second_moment(self, d: int) -> float:
        """Return E‖ω‖²; infinite where it does not exist or is not known.

        Parameters
        ----------
        d : int
            Number of features.

        Returns
        -------
        float
            The second moment of the spectrum.
        """
        return np.inf

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        """Product over features of the signature, or κ of the distance.

        Products with a faster form have their own.
        """
        other = X if Y is None else Y
        if not self.isotropic:
            out = np.ones((X.shape[0], other.shape[0]))
            for j in range(X.shape[1]):
                pair = (dense(rows[:, [j]]).astype(np.float64).ravel() for rows in (X, other))
                out *= self.signature(np.subtract.outer(*pair))
            return out.astype(X.dtype, copy=False)
        out = np.empty((X.shape[0], other.shape[0]), dtype=X.dtype)
        length = getattr(self, self.parameter_name, 1.0)
        centre = _centre(other)
        reduced = _scale_rows(other, centre, length)
        with limit_threads(n_jobs):
            for rows in row_blocks(X.shape[0], 16 * other.shape[0]):
                squared = _squared_distances(_scale_rows(X[rows], centre, length), reduced)
                out[rows] = self._evaluate_squares(squared)
        return (out + out.T) / 2 if Y is None else out

    def _evaluate_squares(self, squared: np.ndarray) -> np.ndarray:
        """Values at squared distances in units of the length; the array may be overwritten."""
        return self.signature(getattr(self, self.parameter_name, 1.0) * np.sqrt(squared))

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        """Product over features of the signature, or κ of the distance."""
        if self.isotropic:
            squared = sums_over_features(xp, X, Y, lambda x, y: (x - y) ** 2)
            return self.signature(xp.sqrt(squared))
        return xp.exp(sums_over_features(xp, X, Y, lambda x, y: xp.log(self.signature(x - y))))


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """Gaussian kernel exp(−‖x − y‖² / (2 σ²)), with frequencies ω ~ N(0, σ⁻² I).

    Parameters
    ----------
    sigma : float
        Length scale σ > 0.
    """

    sigma: float = 1.0
    name = "gaussian"
    parameter_name = "sigma"
    isotropic = True

    def signature(self, delta: np.ndarray) -> np.ndarray:
        xp, delta = float_differences(delta)
        return xp.exp(-0.5 * (delta / self.sigma) ** 2)

    def _evaluate_squares(self, squared: np.ndarray) -> np.ndarray:
        squared *= -0.5
        return np.exp(squared, out=squared)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        return special.ndtri(uniforms) / self.sigma

    def radius_quantile(self, probability: np.ndarray, d: int) -> np.ndarray:
        return np.sqrt(stats.chi2.ppf(probability, d)) / self.sigma

    def second_moment(self, d: int) -> float:
        return d / self.sigma**2


_LARGEST_ORDER = 40.0  # of Bessel functions, which lose their range beyond


@dataclass(frozen=True)
class Matern(StationaryKernel):
    """Matérn kernel of smoothness ν; ν = 1/2 is exp(−‖x − y‖/s), ν → ∞ the Gaussian.

    Frequencies follow a multivariate t distribution with 2ν degrees of freedom: a Gaussian vector
    over the root of an independent χ²_{2ν}/2ν.

    Parameters
    ----------
    nu : float
        Smoothness ν, above 0 and at most 40.
    scale : float
        Length scale s > 0.
    """

    nu: float = 1.5
    scale: float = 1.0
    name = "matern"
    isotropic = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(
            self, "nu", self.nu, f"above 0 and at most {_LARGEST_ORDER:g} (use Gaussian beyond)",
            lambda nu: 0 < nu <= _LARGEST_ORDER,
        )  # fmt: skip

    def signature(self, delta: np.ndarray) -> np.ndarray:
        xp, delta = float_differences(delta)
        z = (2 * self.nu) ** 0.5 * xp.abs(delta) / self.scale
        if self.nu == 0.5:
            return xp.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * xp.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z * z / 3) * xp.exp(-z)
        if xp is not np:
            raise TypeError(
                f"the matern kernel with nu={self.nu:g} runs on the processor; on a device nu can "
                "be 0.5, 1.5 or 2.5. Pass rows in ordinary memory: X.cpu().numpy() of a tensor."
            )
        z = np.minimum(z, 1e100)  # nothing is left long before, and squares stay finite
        safe = np.where(z > 0, z, 1.0)
        log = (1 - self.nu) * np.log(2) - special.gammaln(self.nu) + self.nu * np.log(safe)
        bessel = special.kve(self.nu, safe)
        value = np.exp(log - safe) * np.where(np.isfinite(bessel), bessel, 0)
        # Not finite: z is next to 0, or so large that nothing is left.
        return np.where((z < 1) & ((z == 0) | ~np.isfinite(bessel)), 1.0, value)

    def n_uniforms(self, d: int) -> int:
        return d + 1

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        mixing = stats.chi2.ppf(uniforms[:, d], 2 * self.nu) / (2 * self.nu)
        return special.ndtri(uniforms[:, :d]) / (self.scale * np.sqrt(mixing)[:, None])

    def radius_quantile(self, probability: np.ndarray, d: int) -> np.ndarray:
        return np.sqrt(d * stats.f.ppf(probability, d, 2 * self.nu)) / self.scale

    def second_moment(self, d: int) -> float:
        return d * self.nu / ((self.nu - 1) * self.scale**2) if self.nu > 1 else np.inf


@dataclass(frozen=True)
class Laplacian(StationaryKernel):
    """Laplacian kernel exp(−‖x − y‖₁ / s), as in scikit-learn, with ω_d ~ Cauchy(1/s).

    Parameters
    ----------
    scale : float
        Length scale s > 0.
    """

    scale: float = 1.0
    name = "laplacian"
    metric = "cityblock"

    def signature(self, delta: np.ndarray) -> np.ndarray:
        xp, delta = float_differences(delta)
        return xp.exp(-xp.abs(delta) / self.scale)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return xp.exp(-sums_over_features(xp, X, Y, lambda x, y: xp.abs(x - y)) / self.scale)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        return np.tan(np.pi * (uniforms - 0.5)) / self.scale

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        distance = compiled_sums(3, 0.0, X, Y, n_jobs)  # _loops.ABSOLUTE
        distance /= -self.scale
        return np.exp(distance, out=distance)


@dataclass(frozen=True)
class Cauchy(StationaryKernel):
    """Cauchy kernel Π_d 1 / (1 + (x_d − y_d)² / s²).

    Each ω_d has the Laplace density s/2 e^{−s|ω|}.

    Parameters
    ----------
    scale : float
        Length scale s > 0.
    """

    scale: float = 1.0
    name = "cauchy"

    def length_at(self, distance: float) -> float:
        # With many features the product is close to exp(−‖x − y‖²/s²): the Gaussian of s = √2 σ.
        return float(np.sqrt(2) * distance)

    def signature(self, delta: np.ndarray) -> np.ndarray:
        _, delta = float_differences(delta)
        return 1 / (1 + (delta / self.scale) ** 2)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        centred = uniforms - 0.5
        return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / self.scale

    def second_moment(self, d: int) -> float:
        return 2 * d / self.scale**2

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        log = compiled_sums(4, 1 / self.scale, X, Y, n_jobs)  # _loops.LOG_CAUCHY
        np.negative(log, out=log)
        return np.exp(log, out=log)


def float_differences(delta: Any) -> tuple[Any, Any]:
    """Differences in float64, and the functions of their library."""
    xp = namespace_of(delta)
    return xp, xp.asarray(delta, dtype=xp.float64)


def _squared_distances(X: Rows, Y: Rows) -> np.ndarray:
    """‖x − y‖² by a matrix product, and by differences where the product has no digits left.

    ‖x‖² + ‖y‖² − 2⟨x, y⟩ is off by ~ε(‖x‖² + ‖y‖²); for (nearly) equal rows that is all there is,
    and kernels with a kink at 0 see its square root. Nothing is left of squares beyond the range.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norms, y_norms = row_norms(X, squared=True)[:, None], row_norms(Y, squared=True)
        squared = safe_sparse_dot(X, -2 * Y.T, dense_output=True)
        squared += norms
        squared += y_norms
        largest = norms.max(initial=0.0) + y_norms.max(initial=0.0)  # half of any square, or more
        floor = 1e-7 * largest
        if squared.min(initial=np.inf) >= floor and 2 * largest < np.inf:
            return squared
        i, j = np.divmod(np.flatnonzero(~((squared >= floor) & (squared < np.inf))), len(y_norms))
        few_digits = ~(
            (squared[i, j] >= 1e-7 * (norms[i, 0] + y_norms[j])) & (squared[i, j] < np.inf)
        )
        i, j = i[few_digits], j[few_digits]
        for pairs in row_blocks(len(i), 3 * 8 * X.shape[1]):
            difference = X[i[pairs]] - Y[j[pairs]]
            squared[i[pairs], j[pairs]] = row_norms(difference, squared=True)
    return squared


def _centre(X: Rows) -> np.ndarray | float:
    """Where the rows lie; distances from there have more digits than those from 0."""
    if sparse.issparse(X):
        return 0.0  # of sparse rows, most values are there
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0, dtype=np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def _scale_rows(X: Rows, centre: np.ndarray | float, length: float) -> Rows:
    """Rows about the centre, in units of the length scale.

    What then leaves the range of numbers when squared is far beyond the reach of the kernel, or
    no distance at all.
    """
    return (X.astype(np.float64) - centre) / length


_MEDIAN_ROWS = 1000  # sampled for the median distance: half a million pairs
_CHECKED_ROWS = 100  # sampled for the warning
_FLAT = 1e-3  # kernel values closer than this to 0 (or to 1) are no different from it to a model


def fit_length(
    owner: str, kernel: StationaryKernel, rule: Any, X: Any, rng: np.random.Generator
) -> Any:
    """The kernel with a length scale from a number or from the rows.

    The rule "auto" is the median distance m of (at most 1000) rows: σ = m for the Gaussian and
    Matérn kernels, s = √2 m for Cauchy's, and s = m with distances ‖x − y‖₁ for the Laplacian. It
    is the best single rule on sixteen tables (`benchmarks/bandwidths.py`). Where all rows are
    equal, it leaves the kernel as it is.

    Parameters
    ----------
    owner : str
        Name of the estimator, for errors.
    kernel : StationaryKernel
        Any length scale; it is replaced.
    rule : float or "auto"
        The length scale, or how to find it.
    X : array or CSR matrix of shape (n, d)
        Rows.
    rng : Generator
        Chooses the rows whose distances are looked at.
    """
    if isinstance(rule, str) and rule == "auto":
        length = kernel.length_at(median_distance(X, kernel.metric, rng))
        return kernel.with_parameter(length) if 0 < length < np.inf else kernel
    check_positive(owner, "sigma", rule, "a positive number or 'auto'")
    return kernel.with_parameter(float(rule))


def median_distance(X: Any, metric: str, rng: np.random.Generator) -> float:
    """Median distance of (at most 1000) rows; 0 for a single row."""
    n = X.shape[0]
    rows = np.sort(rng.permutation(n)[:_MEDIAN_ROWS])
    if n < 2:
        return 0.0
    sample = X[rows].astype(np.float64)
    if not sparse.issparse(sample):  # by differences: those of equal rows are 0
        return float(np.median(pdist(sample, metric)))
    distances = pairwise_distances(sample, metric=metric)
    if metric == "euclidean":  # from products: what is left of equal rows is rounding
        lengths = np.sqrt(np.asarray(sample.multiply(sample).sum(axis=1)).ravel())
        distances[distances < 1e-7 * np.maximum(lengths, lengths[:, None])] = 0
    return float(np.median(distances[np.triu_indices(len(rows), 1)]))


def warn_if_degenerate(owner: str, kernel: Kernel, X: Any, advice: str) -> None:
    """Warn if the kernel is (nearly) 1 for all pairs of rows, or 0 for all: nothing can be learned.

    (At most) 100 rows at even distances are looked at, and 1 % of their pairs may differ: equal
    rows have the value 1 whatever the length scale. The kernel must have k(x, x) = 1; `advice` is
    the last sentence of the warning.
    """
    n = X.shape[0]
    if n < 10 or not callable(kernel):
        return
    rows = X[evenly_spaced(n, _CHECKED_ROWS)]
    pairs = np.asarray(kernel(rows))[np.triu_indices(rows.shape[0], 1)]
    low, high = np.quantile(pairs, [0.01, 0.99])
    if high < _FLAT:
        values, cause = "0 for nearly all pairs of different rows", "narrow"
    elif low > 1 - _FLAT:
        values, cause = "1 for nearly all pairs of rows", "wide"
    else:
        return
    warnings.warn(
        f"{owner}: {kernel!r} is {values} (99 % of the pairs of {rows.shape[0]} rows), so that no "
        f"model can learn from it: the kernel is too {cause} for these data. {advice}",
        KernelScaleWarning,
        stacklevel=5,
    )
