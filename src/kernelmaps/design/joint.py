r"""Designs of two or three coordinates: what they approximate, spec, summary and certificate.

*Between grid points.* For a positive-definite k, |∂_i²k(λ)| ≤ −∂_i²k(0), and |∂_i²k̂| ≤ Σ α(ω^i)².
A function deviates from its multilinear interpolation on a cell of sides h_i by at most
Σ_i h_i²/8 max|∂_i²|, and that interpolation is largest in a corner, so that

.. math:: \sup |k - \hat k| \le \max_{\text{grid}} |k - \hat k|
          + \sum_i \tfrac{h_i^2}{8}\big(-\partial_i^2 k(0) + \textstyle\sum α (ω^i)^2\big).

A product of signatures with a kink at zero has it on cell faces only; there the curvature along an
axis is that of the one-dimensional signature, as in :mod:`~kernelmaps.design.certify`.

*Local optimality.* In several variables the error of a best approximation need not alternate; the
criterion of Kolmogorov takes its place: no first-order change of frequencies and weights lowers the
error on the set where it is largest. That is what the Taylor program decides.

*Any map.* The rank bound of :mod:`~kernelmaps.design.bounds` on a grid of points of the domain.

Cosines of several coordinates on grids of lags, for joint designs.

On a product grid of lags a sum of cosines needs no cosine per grid point: with E_i[a, j] =
exp(iω_j^i λ_a^i) a projection (Chum 2015, eq. 19) is Re Π_i E_i, a modulation (eq. 20) is
Π_i Re E_i, and the sum over j is a product of two matrices. So are all its derivatives: a step of
a descent costs N·m multiplications on N lags and m frequencies, and 4 Σ N_i m sines and cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter

from .._util.threads import cached_property
from ..engine import Spec, apply
from ..kernels import StationaryKernel, get
from .bounds import gram_bound
from .certify import Proof, curvature, number_words
from .problem import Cosines, feature_kernel, has_kink, short_way
from .result import DesignedMapping

_MOST_LAGS = 2_000_000  # of the grid between whose points the error is bounded


def reflections(frequencies: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Projections whose sum is that of modulations: Π cos(a_i) is the mean of cos(Σ ± a_i)."""
    vectors, shares = [], []
    for frequency, weight in zip(frequencies, weights, strict=True):
        first = int(np.argmax(frequency != 0))  # the first coordinate that is not zero
        flips = [(1, -1) if w and i != first else (1,) for i, w in enumerate(frequency)]
        signs = np.array(list(product(*flips)))
        vectors.append(signs * frequency)
        shares.append(np.full(len(signs), weight / len(signs)))
    return np.concatenate(vectors), np.concatenate(shares)


@dataclass(frozen=True, eq=False, kw_only=True)
class JointDesign(DesignedMapping):
    """A cosine map of two or three coordinates.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    form : str
        "projection" or "modulation".
    method : str
        How it was designed.
    domain : tuple of (low, high)
        Range of each coordinate.
    periods : tuple of float or None
        Period of each axis.
    frequencies : ndarray of shape (m, n)
    weights : ndarray of shape (m,)
    n_columns : int
        Columns of the map.
    max_error : float
        Largest error over the domain, on the grid of the certificate.
    rms : float
        Root mean square error over pairs of evenly spread points of the domain.
    certificate : DesignCertificate
        What is proved about it.
    """

    form: str
    periods: Periods

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of all coordinates; infinite for periodic ones."""
        low, high = np.array(self.domain, dtype=np.float64).T
        free = [period is not None for period in self.periods]
        return np.where(free, -np.inf, low), np.where(free, np.inf, high)

    def projections(self) -> tuple[np.ndarray, np.ndarray]:
        """Write the signature as a sum of projections: Π cos(a_i) is the mean of cos(Σ ± a_i).

        Returns
        -------
        frequencies, weights : ndarray
            Frequencies of the projections and their weights.
        """
        if self.form == "projection":
            return self.frequencies, self.weights
        return reflections(self.frequencies, self.weights)

    def make_spec(self, *, clip: bool = True) -> Spec:
        """Make the spec of the map: √α cos(ωᵀx) and √α sin(ωᵀx), one column for ω = 0.

        A modulation is applied as its projections, which span the same columns.

        Parameters
        ----------
        clip : bool
            Clip rows to the domain; otherwise the cosines continue beyond it. Periodic axes are
            never clipped.

        Returns
        -------
        Spec
            The fitted map as arrays.
        """
        frequencies, weights = self.projections()
        zero = ~np.any(frequencies != 0, axis=1)
        matrix = np.vstack([frequencies, frequencies[~zero]])
        phases = np.r_[np.zeros(zero.size), np.full(int(np.sum(~zero)), -np.pi / 2)]
        arrays = {
            "matrix": np.ascontiguousarray(matrix.T),
            "phases": phases,
            "amplitudes": np.sqrt(np.r_[weights, weights[~zero]]),
        }
        if clip:
            arrays["lower"], arrays["upper"] = self.ends
        return Spec("fourier", arrays, {"operator": "matrix", "paired": False, "scale": 1.0})

    def transform(self, X: Any) -> np.ndarray:
        """Compute φ(X) without clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_dimensions)
            Rows of coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The columns of the map.
        """
        X = np.asarray(X)
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        return apply(self.make_spec(clip=False), np.ascontiguousarray(X, dtype=dtype))

    def __call__(self, x: Any) -> np.ndarray:
        return self.transform(x)

    def summary(self) -> str:
        """Describe the design and its certificate in words.

        Returns
        -------
        str
            Several lines of text.
        """
        facts = [f"max error {number_words(self.max_error)}"]
        if self.certificate.locally_optimal:
            facts.append("no first-order improvement exists")
        axes = " x ".join(
            f"[{low:.4g}, {high:.4g}]" + ("" if period is None else f" of period {period:.4g}")
            for (low, high), period in zip(self.domain, self.periods, strict=True)
        )
        head = f"{self.kernel}, {self.n_columns} columns ({self.method}) on {axes}"
        return self._describe(head, facts)

    def __repr__(self) -> str:
        return (
            f"JointDesign({self.kernel}, {len(self.domain)} coordinates, {self.n_columns} columns, "
            f"{self.form}, max_error={self.max_error:.4g})"
        )


def bound_everywhere(
    problem: JointProblem, cosines: Cosines, is_product: bool
) -> tuple[Proof, float]:
    """Error on a grid so dense that the bound is within two percent of it, if memory allows.

    Returns what is known of the error between the points, too, and its root mean square over
    pairs of points.
    """
    (frequencies, weights), spans, n = cosines, problem.spans, problem.spans.size
    curvatures: list[float] = []
    proved, kink = True, False
    for axis, omega in enumerate(frequencies.T):
        flat = along_axis(problem.signature, axis, n)
        bound, sure, _ = curvature(flat, spans[axis])
        kinked = has_kink(flat, spans[axis])
        kink |= kinked
        proved &= sure and (is_product or not kinked)
        curvatures.append(bound + float(weights @ omega**2))
    error = max(problem.max_error(cosines), 1e-12)
    steps = np.maximum(
        spans * np.sqrt(n * np.array(curvatures) / (8 * 0.02 * error)), 2 * problem.steps
    )
    halves = 2 ** (n - 1) if problem.form == "projection" else 1
    steps *= min(1.0, (_MOST_LAGS / (halves * np.prod(steps))) ** (1 / n))
    counts = np.ceil(steps).astype(int) + 1
    axes = lag_axes(spans, counts, problem.form)
    lags = product_grid(axes)
    miss = problem.signature(lags) - BoxWaves(axes, frequencies, problem.form).sum(weights)
    largest = float(np.max(np.abs(miss)))
    gap = float(np.sum((spans / (counts - 1)) ** 2 / 8 * curvatures))
    reason = "kinks on cell faces" if kink else "|∂²k| is largest at 0"
    words = f"grid of {lags.shape[0]} lags, cells and {reason}"
    bound = largest + gap if proved else np.inf
    return Proof(bound, largest, words), _rms(problem, lags, miss)


def along_axis(signature: Callable, axis: int, axes: int) -> Callable[[np.ndarray], np.ndarray]:
    """The signature along one axis, the other lags zero."""

    def one(lag: np.ndarray) -> np.ndarray:
        vector = np.zeros((*np.shape(lag), axes))
        vector[..., axis] = lag
        return signature(vector)

    return one


def _rms(problem: JointProblem, lags: np.ndarray, miss: np.ndarray) -> float:
    """Lags of two even points have the density Π(1 − |λ_i|/M_i), constant on periodic axes."""
    share = np.where(problem.moving, 1 - np.abs(lags) / problem.spans, 1.0)
    density = np.prod(share, axis=1)
    return float(np.sqrt(np.sum(density * miss**2) / np.sum(density)))


def lower_bound(problem: JointProblem, n_columns: int) -> float:
    """The rank bound on about 5D/2 points of the domain: no map of D columns is below it."""
    n = problem.spans.size
    per_axis = max(8 if n == 2 else 5, int(np.ceil((2.5 * n_columns) ** (1 / n))))
    places = 0.5 - 0.5 * np.cos(np.pi * np.arange(per_axis) / (per_axis - 1))
    gram = evaluate_gram(problem.signature, problem.spans, problem.periods, places)
    return gram_bound(gram, np.ones_like(gram), n_columns, [np.ones(len(gram))], steps=60)[0]


def evaluate_gram(
    signature: Callable, spans: np.ndarray, periods: Periods, places: np.ndarray
) -> np.ndarray:
    """Gram matrix on a grid of the domain: places in [0, 1] of each axis, even along a period."""
    even = np.arange(places.size) / places.size
    axes = tuple(
        span * places if period is None else period * even
        for span, period in zip(spans, periods, strict=True)
    )
    points = product_grid(axes)
    lags = points[:, None, :] - points[None, :, :]
    for axis, period in enumerate(periods):
        if period is not None:
            lags[..., axis] = short_way(lags[..., axis], period)
    return signature(lags)


@dataclass(frozen=True)
class Target:
    """The joint signature, one-dimensional ones along the axes, and whether it is their product."""

    name: str
    joint: Callable[[np.ndarray], np.ndarray]
    marginals: list[Callable]
    is_product: bool
    trusted: bool  # positive definite for sure


def resolve_signatures(kernel: Any, axes: int) -> Target:
    """What is to be approximated."""
    if isinstance(kernel, list | tuple):
        if len(kernel) != axes:
            raise ValueError(f"design_joint_map: {len(kernel)} kernels for {axes} axes.")
        parts = [feature_kernel(item) for item in kernel]
        single: list[Any] = [factor.signature for factor in parts]

        def product_of(lag: np.ndarray) -> np.ndarray:
            return np.prod([f(np.abs(lag[..., i])) for i, f in enumerate(single)], axis=0)

        is_trusted = all(isinstance(item, str | StationaryKernel) for item in kernel)
        return Target(
            " x ".join(factor.name for factor in parts), product_of, single, True, is_trusted
        )
    if callable(kernel) and not hasattr(kernel, "signature") and not isinstance(kernel, type):
        joint, is_product, trusted = kernel, False, False
        name = getattr(kernel, "__name__", "signature")
    else:
        kernel = get(kernel)
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(f"design_joint_map: {kernel!r} is not stationary.")
        name, is_product, trusted = kernel.name, not kernel.isotropic, True

        def joint(lag: np.ndarray) -> np.ndarray:
            if is_product:
                return np.prod(kernel.signature(lag), axis=-1)
            return kernel.signature(np.sqrt(np.sum(lag**2, axis=-1)))

    different = 1 if trusted else axes  # one and the same along every axis
    single = [along_axis(joint, axis, axes) for axis in range(different)]
    return Target(name, joint, single * (axes // different), is_product, trusted)


def is_symmetric(signature: Callable, spans: np.ndarray) -> bool:
    """Whether k(±λ^1, …, ±λ^n) is the same for all signs, on a small grid."""
    lags = product_grid(lag_axes(spans, 6, "modulation"))
    values = signature(lags)
    if values.shape != lags.shape[:1] or not np.all(np.isfinite(values)):
        raise ValueError(
            "design_joint_map: a user's signature must map lags (..., n) to finite values of shape "
            f"(...,); it gave shape {np.shape(values)} for {lags.shape}."
        )
    flips = product((1.0, -1.0), repeat=spans.size - 1)
    worst = max(float(np.max(np.abs(signature(lags * (1.0, *f)) - values))) for f in flips)
    return worst <= 1e-9 * float(np.max(np.abs(values)))


Axes = tuple[np.ndarray, ...]
Periods = tuple[float | None, ...]  # of each axis


def lag_axes(spans: np.ndarray, steps: np.ndarray | int, form: str) -> Axes:
    """Axes of Π[0, M_i] for modulations, of Π[−M_i, M_i] × [0, M_n] for projections.

    `steps` points lie on [0, M_i], zero among them: a signature may have a kink there.
    """
    axes = [np.linspace(0, span, int(n)) for span, n in np.broadcast(spans, steps)]
    if form == "projection":
        axes[:-1] = [np.linspace(-axis[-1], axis[-1], 2 * axis.size - 1) for axis in axes[:-1]]
    return tuple(axes)


def product_grid(axes: Axes) -> np.ndarray:
    """All points of a product of axes, the last one running fastest, shape (N, n)."""
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


class BoxWaves:
    """Σ_j α_j atom_j on a product grid, and its derivatives.

    Parameters
    ----------
    axes : tuple of ndarray
        The grid.
    frequencies : ndarray of shape (m, n)
    form : {"projection", "modulation"}
    """

    def __init__(self, axes: Axes, frequencies: np.ndarray, form: str) -> None:
        self.factors, self.derivatives = [], []
        for axis, omega in zip(axes, frequencies.T, strict=True):
            angle = np.multiply.outer(axis, omega)
            if form == "projection":
                wave = np.empty(angle.shape, complex)
                np.cos(angle, out=wave.real)
                np.sin(angle, out=wave.imag)
                derivative = (1j * axis)[:, None] * wave
            else:
                wave, derivative = np.cos(angle), -axis[:, None] * np.sin(angle)
            self.factors.append(wave)
            self.derivatives.append(derivative)

    def _lead(self, moved: int = -1) -> np.ndarray:
        """Products over all axes but the last, one of them differentiated, shape (N', m)."""
        factors = [
            self.derivatives[i] if i == moved else f for i, f in enumerate(self.factors[:-1])
        ]
        return reduce(lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]), factors)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        """Values on the grid, flat."""
        lead, last = self._lead() * weights, self.factors[-1]
        # Of complex waves the real part, from parts side by side: one product of real matrices.
        return (lead.view(float) @ last.conj().view(float).T).ravel()

    def weighted_sums(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_λ values(λ) atom_j(λ), and its derivatives in ω_j, shapes (m,) and (m, n)."""
        table = values.reshape(-1, self.factors[-1].shape[0])
        lead, far = self._lead(), _times(table, self.factors[-1])
        sums = np.sum(lead * far, axis=0).real
        moved = [
            np.sum(self._lead(axis) * far, axis=0).real for axis in range(len(self.factors) - 1)
        ]
        moved.append(np.sum(lead * _times(table, self.derivatives[-1]), axis=0).real)
        return sums, np.stack(moved, axis=1)


def _times(table: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """The product of a real matrix with waves that may be complex, which stays real inside."""
    return (table @ waves.view(float)).view(waves.dtype)


class LagGrid(NamedTuple):
    """A product grid of lags, and the signature on it."""

    axes: Axes
    lags: np.ndarray
    target: np.ndarray


@dataclass(frozen=True, eq=False)
class JointProblem:
    """A signature on Π[−M_i, M_i], its form of approximation and its evaluation sets.

    Parameters
    ----------
    signature : callable
        k(λ) of lags (..., n).
    spans : ndarray of shape (n,)
        M_i; half a period on periodic axes.
    periods : tuple of float or None
        Period of each axis.
    form : {"projection", "modulation"}
        Eq. (19) or (20).
    steps : int
        Points on [0, M_i] for descents; `fine` has four times as many.
    """

    signature: Callable[[np.ndarray], np.ndarray]
    spans: np.ndarray
    periods: Periods
    form: str
    steps: int
    norm = "max"

    @property
    def span(self) -> float:
        """What frequencies are measured by: the largest M_i."""
        return float(np.max(self.spans))

    @property
    def scale(self) -> float:
        """The error of the zero map."""
        return float(np.max(np.abs(self.coarse.target)))

    @cached_property
    def coarse(self) -> LagGrid:
        """Lags for optimisation."""
        return self._grid(self.steps)

    @cached_property
    def fine(self) -> LagGrid:
        """Lags on which designs are compared."""
        return self._grid(4 * self.steps + 1)

    def _grid(self, steps: int) -> LagGrid:
        axes = lag_axes(self.spans, steps, self.form)
        lags = product_grid(axes)
        return LagGrid(axes, lags, self.signature(lags))

    @property
    def moving(self) -> np.ndarray:
        """Axes whose frequencies may move."""
        return np.array([period is None for period in self.periods])

    def atoms(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """cos(ωᵀλ) or Π cos(ω^i λ^i), shape (N, m)."""
        if self.form == "projection":
            return np.cos(lags @ frequencies.T)
        return np.prod(np.cos(lags[:, None, :] * frequencies), axis=2)

    def derivatives(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Derivatives of the atoms in each coordinate of ω, shape (N, m, n)."""
        if self.form == "projection":
            return -np.sin(lags @ frequencies.T)[:, :, None] * lags[:, None, :]
        angles = lags[:, None, :] * frequencies
        cosines, sines = np.cos(angles), np.sin(angles)
        out = np.empty(angles.shape)
        for axis in range(angles.shape[2]):
            other_cosines = np.prod(np.delete(cosines, axis, axis=2), axis=2)
            out[:, :, axis] = -lags[:, None, axis] * sines[:, :, axis] * other_cosines
        return out

    def columns(self, frequencies: np.ndarray) -> np.ndarray:
        """D_ω of each frequency vector (eq. 21)."""
        nonzero = np.sum(frequencies != 0, axis=1)
        return np.where(nonzero > 0, 2, 1) if self.form == "projection" else 2**nonzero

    def weight(self, lags: np.ndarray) -> np.ndarray:
        """Every lag counts alike."""
        return np.ones(len(lags))

    def residual(self, lags: np.ndarray, cosines: Cosines) -> np.ndarray:
        """k − k̂ at any lags."""
        return self.signature(lags) - self.atoms(lags, cosines[0]) @ cosines[1]

    def fine_residual(self, cosines: Cosines) -> np.ndarray:
        """k − k̂ on the fine grid."""
        waves = BoxWaves(self.fine.axes, cosines[0], self.form)
        return self.fine.target - waves.sum(cosines[1])

    def peaks(self, cosines: Cosines) -> np.ndarray:
        """Lags of the fine grid where |error| is not below that of any neighbour."""
        size = np.abs(self.fine_residual(cosines))
        table = size.reshape([axis.size for axis in self.fine.axes])
        return self.fine.lags[(maximum_filter(table, 3, mode="nearest") == table).ravel()]

    def max_error(self, cosines: Cosines) -> float:
        """Largest error on the fine grid."""
        return float(np.max(np.abs(self.fine_residual(cosines))))

    def coarse_lags(self, n_frequencies: int) -> np.ndarray:
        """Lags of every linear program."""
        return self.coarse.lags[:: max(1, len(self.coarse.lags) // 200)]

    def free(self, frequencies: np.ndarray) -> np.ndarray:
        """Coordinates that may move: a zero one stays, as moving it costs columns."""
        return (frequencies != 0) & self.moving
