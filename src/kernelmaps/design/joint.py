r"""Cosine maps of two and three dimensions (Chum 2015, section 6).

*Projection* (eq. 19): k̂(λ) = Σ α cos(ωᵀλ), two columns per frequency vector. *Modulation* (eq. 20):
k̂(λ) = Σ α Π_i cos(ω^i λ^i), with D_ω = Π D_{ω^i} columns: 2^m for m non-zero coordinates. A
modulation is the sum of the projections on all reflections (±ω^1, …, ±ω^n), at the same number of
columns; projections are more general, modulations are symmetric by construction and smaller to
optimise.

Frequencies come from products of one-dimensional designs (eq. 21). Linear programs select, then the
continuous extension moves them: p-norms by L-BFGS to reach the valley, sequential linear programs
with a trust region, as in one dimension, to its ground. A frequency of a periodic
axis is a harmonic and stays, and so does a zero coordinate: moving it would cost columns.

On a product grid of lags a sum of cosines needs no cosine per grid point: with E_i[a, j] =
exp(iω_j^i λ_a^i) a projection (Chum 2015, eq. 19) is Re Π_i E_i, a modulation (eq. 20) is
Π_i Re E_i, and the sum over j is a product of two matrices. So are all its derivatives: a step of
a descent costs N·m multiplications on N lags and m frequencies, and 4 Σ N_i m sines and cosines.

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

*Any map.* The rank bound of :mod:`~kernelmaps.design.rank_tables` on a grid of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.optimize import nnls

from .._util import storage
from .._util.arguments import argument_error, check_count
from .._util.display import track
from .._util.threads import cached_property, limit_blas
from ..engine import Spec, apply
from ..kernels import StationaryKernel, get
from . import cosines as cosine_designs
from .approximation import (
    CosineProblem,
    Cosines,
    feature_kernel,
    has_kink,
    lag_kernel,
    refuse_indefinite,
)
from .certify import Proof, curvature, make_certificate, number_words
from .rank_tables import gram_bound
from .result import DesignedMapping, Entry, load_or_solve

Axes = tuple[np.ndarray, ...]
Periods = tuple[float | None, ...]  # of each axis
_MOST_LAGS = 2_000_000  # of the grid between whose points the error is bounded


def reflections(frequencies: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Projections whose sum is that of modulations: Π cos(a_i) is the mean of cos(Σ ± a_i)."""
    vectors, shares = [], []
    for frequency, weight in zip(frequencies, weights, strict=True):
        leading = int(np.argmax(frequency != 0))  # the first coordinate that is not zero
        flips = [(1, -1) if w and i != leading else (1,) for i, w in enumerate(frequency)]
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

    def __call__(self, x: Any) -> np.ndarray:
        """φ of rows of coordinates, not clipped, in float32 or float64."""
        x = np.asarray(x)
        dtype = x.dtype if x.dtype in (np.float32, np.float64) else np.float64
        return apply(self.make_spec(clip=False), np.ascontiguousarray(x, dtype=dtype))

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
        flat = restrict_to_axis(problem.signature, axis, n)
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


def restrict_to_axis(signature: Callable, axis: int, axes: int) -> Callable:
    """The signature along one axis, the other lags zero."""

    def restricted_signature(lag: np.ndarray) -> np.ndarray:
        vector = np.zeros((*np.shape(lag), axes))
        vector[..., axis] = lag
        return signature(vector)

    return restricted_signature


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
            within = np.mod(lags[..., axis], period)  # the short way round a period
            lags[..., axis] = np.minimum(within, period - within)
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
    single = [restrict_to_axis(joint, axis, axes) for axis in range(different)]
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


@lru_cache(maxsize=32)
def _axis_design(signature: Callable, span: float, period: float | None, size: int) -> Cosines:
    """The design of one axis: both forms, their disturbed selections and equal axes share it."""
    flat = CosineProblem(lag_kernel("axis", signature), span)
    return (
        cosine_designs.harmonic_design(flat, size)
        if period
        else cosine_designs.refined_design(flat, size)
    )


def _refit_weights(
    problem: JointProblem, pool: np.ndarray, weights: np.ndarray, n_columns: int
) -> Cosines:
    """The largest that fit, with least-squares weights: a start for the continuous extension."""
    selected = pool[cosine_designs.largest_that_fit(weights, problem.columns(pool), n_columns)]
    return selected, nnls(problem.atoms(problem.coarse.lags, selected), problem.coarse.target)[0]


def _lp_weights(problem: JointProblem, pool: np.ndarray) -> list[np.ndarray]:
    """Weights of least D̄ + γC for a few γ, on a thinned grid."""
    steps = 13 if problem.spans.size == 2 else 7
    grid = product_grid(lag_axes(problem.spans, steps, problem.form))
    atoms, target = problem.atoms(grid, pool), problem.signature(grid)
    prices = [problem.columns(pool) / gamma for gamma in (10.0, 100.0, 1000.0)]
    return [cosine_designs.least_error(atoms, target, price) for price in prices]


def descend_p_norms(problem: JointProblem, cosines: Cosines, powers: tuple[int, ...]) -> Cosines:
    """Minimise p-norms of the error over moving frequencies and log-weights."""
    frequencies, weights = cosines
    free = problem.free(frequencies)
    logs = np.log(np.maximum(weights, 1e-3 * np.max(weights)))
    m = logs.size

    def value(x: np.ndarray, power: int) -> tuple[float, np.ndarray]:
        moved = frequencies.copy()
        moved[free] = x[m:]
        alpha = np.exp(np.minimum(x[:m], cosine_designs.LARGEST_LOGARITHM))
        waves = BoxWaves(problem.coarse.axes, moved, problem.form)
        norm, gradient = cosine_designs.log_p_norm(problem.coarse.target - waves.sum(alpha), power)
        gradient, slopes = waves.weighted_sums(-gradient)  # by weights, and by frequencies
        return norm, np.concatenate([alpha * gradient, (alpha[:, None] * slopes)[free]])

    x = np.r_[logs, frequencies[free]]
    for power in powers:
        x = cosine_designs.descend(value, x, (power,), maxiter=120, maxcor=20).x
    moved = frequencies.copy()
    moved[free] = x[m:]
    return moved, np.exp(x[:m])


def taylor_programs(problem: JointProblem, cosines: Cosines, steps: int = 40) -> Cosines:
    """Taylor programs (12), (13) with a trust region."""
    return cosine_designs.sequential_lp(problem, cosines, radius=0.1, steps=steps, tolerance=1e-4)


@dataclass(frozen=True)
class JointSearchOptions:
    """Constants of the search for a joint design."""

    # Disturbed selections of each pool. Without them, four of five designs are as good, in half of
    # the time, and one (of three coordinates) has an error that is larger by a quarter.
    disturbed: int = 16
    n_descended: int = 12  # designs that follow high p-norms
    n_finished: int = 4  # designs that the Taylor programs finish
    lags: tuple[int, int] = (25, 11)  # of an axis, for the optimisation of two and three axes


_OPTIONS = JointSearchOptions()
JointResult = tuple[JointProblem, Cosines, float, bool]  # with its rank bound; locally optimal
FORMS = ("modulation", "projection")


def design_joint_map(
    kernel: Any,
    n_components: int,
    domain: Sequence[tuple[float, float]],
    *,
    periods: Sequence[float | None] | None = None,
    cache: bool = True,
    progress: bool | None = None,
) -> JointDesign:
    """Design a map of a stationary kernel of two or three coordinates.

    Parameters
    ----------
    kernel : kernel, callable or sequence
        A stationary kernel, a signature k(λ) of lag vectors (..., n), or one kernel or
        one-dimensional signature per axis, whose product is meant.
    n_components : int
        Largest number of columns.
    domain : sequence of (low, high)
        Range of each coordinate.
    periods : sequence of float or None, optional
        Period of each axis, None where it has none.
    cache : bool, default=True
        Look up and store the design on disk (``KERNELMAPS_CACHE``).
    progress : bool, optional
        Show a bar; None shows it on a terminal.

    Returns
    -------
    JointDesign
        The better one of both forms, eqs. (19) and (20).

    Raises
    ------
    NotPositiveDefiniteError
        If no non-negative mixture of cosines can approach the signature.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.design.joint import design_joint_map
    >>> design = design_joint_map(km.kernels.Gaussian(1.0), 9, [(0, 1), (0, 1)])
    >>> design.certificate.proved
    True
    """
    check_count("design_joint_map", "n_components", n_components)
    if len(domain) not in (2, 3) or any(not high > low for low, high in domain):
        words = "two or three ranges (low, high) with low < high (RandomFourierMap takes more)"
        raise argument_error("design_joint_map", "domain", domain, words)
    if periods is not None and len(periods) != len(domain):
        raise ValueError("design_joint_map: give one period (or None) per axis.")
    target = resolve_signatures(kernel, len(domain))
    search = JointSearch(target, n_components, cache, progress)
    with limit_blas(1):  # matrices are small: threads of BLAS would only wait
        designs = search.designs(search.problems(domain, periods))
    best = min(designs, key=lambda item: item[0].max_error(item[1]))
    return describe_design(target, best, domain)


def describe_design(target: Target, result: JointResult, domain: Any) -> JointDesign:
    """The design of a result of the search, with its certificate."""
    problem, pair, lower, optimal = result
    proof, rms = bound_everywhere(problem, pair, target.is_product)
    return JointDesign(
        kernel=target.name,
        form=problem.form,
        method=f"{problem.form}, refined",
        domain=tuple((float(low), float(high)) for low, high in domain),
        periods=problem.periods,
        frequencies=pair[0],
        weights=pair[1],
        n_columns=int(np.sum(problem.columns(pair[0]))),
        max_error=proof.found,
        rms=rms,
        certificate=make_certificate(proof, proof.found, lower, locally_optimal=optimal),
    )


@dataclass(frozen=True)
class JointSearch:
    """What is looked for, and how."""

    target: Target
    n_columns: int
    cache: bool = True
    progress: bool | None = None

    def problems(
        self, domain: Sequence[tuple[float, float]], periods: Sequence[float | None] | None = None
    ) -> list[JointProblem]:
        """A problem for each form that the signature allows, modulations first."""
        signature = self.target.joint
        periods = (None,) * len(domain) if periods is None else tuple(periods)
        ends = zip(domain, periods, strict=True)
        # Floats: ends in whole numbers name the same design.
        spans = np.array([high - low if p is None else p / 2 for (low, high), p in ends], float)
        symmetric = is_symmetric(signature, spans)
        if not self.target.trusted:
            places = np.linspace(0, 1, 13 if spans.size == 2 else 6)
            gram = evaluate_gram(signature, spans, periods, places)
            refuse_indefinite("design_joint_map", self.target.name, gram)
        steps = _OPTIONS.lags[len(domain) - 2]
        forms = FORMS if symmetric else FORMS[1:]
        return [JointProblem(signature, spans, periods, form, steps) for form in forms]

    def designs(self, problems: list[JointProblem]) -> list[JointResult]:
        """A design of each form; a modulation is a start for projections."""
        designs: list[JointResult] = []
        for problem in problems:
            starts = [reflections(*design[1]) for design in designs]
            designs.append(self.design(problem, starts))
        return designs

    def design(self, problem: JointProblem, starts: list[Cosines]) -> JointResult:
        """Frequencies and weights of one form, the rank bound, and whether they are optimal."""

        def solve() -> Entry:
            frequencies, weights = self.solve(problem, starts)
            alive = weights > 1e-12 * np.sum(weights)
            pair = frequencies[alive], weights[alive]
            lower = lower_bound(problem, int(np.sum(problem.columns(pair[0]))))
            # Kolmogorov's criterion: small steps of the Taylor program gain next to nothing.
            moved = cosine_designs.sequential_lp(
                problem, pair, radius=1e-2, steps=6, tolerance=1e-4
            )
            optimal = problem.max_error(moved) > problem.max_error(pair) * (1 - 1e-3)
            arrays = dict(zip(("frequencies", "weights"), pair, strict=True))
            return {"lower_bound": lower, "optimal": optimal}, arrays

        header, arrays = load_or_solve(self._key(problem), solve, self.cache)
        pair = arrays["frequencies"], arrays["weights"]
        return problem, pair, float(header["lower_bound"]), bool(header["optimal"])

    def _key(self, problem: JointProblem) -> str:
        """Content key of a design: the signature on a coarse grid, and the size."""
        sample = problem.signature(product_grid(lag_axes(problem.spans, 7, "projection")))
        header = {"kind": "joint", "columns": self.n_columns, "form": problem.form}
        if problem.form == "projection":
            header["rules"] = 2  # modulations as starts
        header |= {"periods": [p or 0.0 for p in problem.periods], "steps": problem.steps}
        header["solver"] = 1  # raised when designs improve: stored ones are computed anew
        arrays = {"signature": np.round(sample, 10), "spans": np.round(problem.spans, 12)}
        return storage.digest("design-key", header, arrays)

    def solve(self, problem: JointProblem, starts: list[Cosines]) -> Cosines:
        """Select from the pool, descend in p-norms; Taylor programs finish these and the starts."""
        rng, designs = np.random.default_rng(0), []
        pools = self.pools(problem)
        for vectors, products in pools:
            ranks = [*_lp_weights(problem, vectors), products]
            designs += [_refit_weights(problem, vectors, rank, self.n_columns) for rank in ranks]
        for pool in pools:
            designs += self._disturb_selections(problem, *pool, rng)
        designs = list({pair[0].tobytes(): pair for pair in designs}.values())  # pools repeat
        scouts = track(designs, "joint design: scouts", enabled=self.progress)
        designs = [descend_p_norms(problem, pair, (2, 8)) for pair in scouts]
        designs = sorted(designs, key=problem.max_error)[: _OPTIONS.n_descended]
        designs = [descend_p_norms(problem, pair, (32, 128)) for pair in designs]
        distinct = cosine_designs.distinct_optima(problem, designs, 1e-3)[: _OPTIONS.n_finished]
        programs = track(distinct + starts, "joint design: programs", enabled=self.progress)
        ends = [taylor_programs(problem, pair, steps=12) for pair in programs]
        return taylor_programs(problem, min(ends, key=problem.max_error))

    def pools(self, problem: JointProblem) -> list[Cosines]:
        """Ω_⊗ and the products of weights (eq. 21); for projections with all reflections.

        Products of one-dimensional designs of some fewer and some more columns than needed.
        """
        per_axis, pools = round(self.n_columns ** (1 / len(problem.spans))), []
        for size in sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0}):
            axes = zip(self.target.marginals, problem.spans, problem.periods, strict=True)
            designs = [_axis_design(k, float(span), period, size) for k, span, period in axes]
            vectors = product_grid(tuple(frequencies for frequencies, _ in designs))
            weights = np.prod(product_grid(tuple(weights for _, weights in designs)), axis=1)
            is_product = problem.form == "modulation"
            pools.append((vectors, weights) if is_product else reflections(vectors, weights))
        return pools

    def _disturb_selections(
        self,
        problem: JointProblem,
        vectors: np.ndarray,
        products: np.ndarray,
        rng: np.random.Generator,
    ) -> Iterator[Cosines]:
        """Selections by the products of weights, disturbed: sets that no program would choose."""
        alike = np.unique(np.round(products / np.max(products), 6), return_inverse=True)[1]
        for turn in range(_OPTIONS.disturbed):
            noise = rng.normal(0, 0.7, products.size)
            if turn % 2:  # equal weights alike: a symmetric kernel may want a symmetric set
                noise = noise[alike]
            yield _refit_weights(problem, vectors, products * np.exp(noise), self.n_columns)
