r"""Certificates of cosine designs: error between grid points, and optimality.

*Between grid points.* For a positive-definite k the derivative of even order is largest at zero,
|k''(λ)| ≤ −k''(0), and |k̂''| ≤ Σ αω². On a grid of step h a function deviates from its chord by at
most h²/8 times its curvature, so with a monotone weight

.. math:: \sup_{[z_i, z_{i+1}]} w|k - \hat k| \le \max(w_i, w_{i+1})
          \big(\max(|e_i|, |e_{i+1}|) + \tfrac{h^2}{8}(-k''(0) + \textstyle\sum αω^2)\big).

A kernel with a kink at zero (intersection, Laplacian) has a convex signature on λ > 0 whose
curvature is largest at 0+; that is checked, not proved, for a user's own.

*Local optimality.* D + 1 alternations of the error at its full height mean that no small change of
frequencies and weights helps. Designs of rough kernels may touch their maximum in other patterns;
for them the Taylor program, which would find any first-order improvement, is asked directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..display import html_of, two_columns
from .problem import Function, Problem, cosine_sum
from .refine import alternation
from .slp import Cosines, sequential_lp

_MAX_GRID = 400_000


@dataclass(frozen=True)
class Proof:
    """A bound on an error with the way it was obtained.

    Attributes
    ----------
    bound : float
        No error is larger; infinite where nothing is proved.
    found : float
        The largest error found.
    bound_method : str
        How both were obtained, in words.
    """

    bound: float
    found: float
    bound_method: str

    @property
    def proved(self) -> bool:
        """Whether there is a bound."""
        return bool(np.isfinite(self.bound))


@dataclass(frozen=True)
class DesignCertificate(Proof):
    """How good a design is, and how good any design could be.

    Attributes
    ----------
    bound : float
        The error is at most this everywhere on the domain, between grid points too (up to the
        rounding of the evaluation). Infinite where that is not proved.
    found : float
        The largest error found on the domain: an estimate where there is no bound.
    bound_method : str
        How both were obtained, in words.
    alternations : int
        Times that the weighted error touches its maximum with alternating sign; 0 for tables.
    needed : int
        Alternations that make a cosine design locally optimal: D + 1.
    locally_optimal : bool
        Whether no small change of the design can reduce the error.
    lower_bound : float
        No map of as many columns, of any kind, has a smaller error.
    ratio : float
        Error over lower bound (inf where the bound is zero).
    bound_to_zero : float
        Homogeneous kernels, absolute error: a bound for all values in [0, b], those between zero
        and the smallest value m of the domain included. Infinite where none is known.
    """

    lower_bound: float
    ratio: float
    alternations: int = 0
    needed: int = 0
    locally_optimal: bool = False
    bound_to_zero: float = np.inf

    @property
    def words(self) -> str:
        """The bound, or in its absence the largest error found, and how it was obtained."""
        if self.proved:
            return f"at most {number_words(self.bound)} everywhere (proved: {self.bound_method})"
        largest = number_words(self.found)
        return f"{largest} is the largest error found (no bound is proved: {self.bound_method})"

    def to_words(self) -> dict[str, Any]:
        """The proved bound, how it was found, and what no map of this size could do better."""
        if self.proved:
            told: dict[str, Any] = {"error at most (proved)": float(self.bound)}
        else:
            told = {"largest error found (no bound is proved)": float(self.found)}
        told["by"] = self.bound_method
        if self.alternations:
            told["alternations of the error"] = f"{self.alternations} of {self.needed}"
        if self.lower_bound:
            told["no map of this size has less than"] = float(self.lower_bound)
        return told

    def _repr_html_(self) -> str:
        return html_of(two_columns(self.to_words(), "Certificate of a design"))

    def for_map(self, error: str, domain: str) -> Certificate:
        """The part that a fitted map carries."""
        return Certificate(self.bound, error, domain, self.bound_method, found=self.found)


def certified(proof: Proof, error: float, lower_bound: float, **facts: Any) -> DesignCertificate:
    """The certificate of a design of this error; `lower_bound` comes from the rank bound."""
    ratio = float(error / lower_bound) if lower_bound > 0 else np.inf
    return DesignCertificate(**vars(proof), lower_bound=lower_bound, ratio=ratio, **facts)


def number_words(value: float) -> str:
    """Three significant digits, trailing zeros kept: 0.0310."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    return f"{value:.2e}" if digits > 6 or digits < -3 else f"{value:.{max(digits, 0)}f}"


def curvature(signature: Function, span: float) -> tuple[float, bool, str]:
    """A bound on |k''| over (0, M], whether it is sure, and why."""
    step = 2e-3 * min(span, 1.0)
    at = signature(np.array([0.0, step / 2, step, 2 * step]))
    coarse, fine = 2 * (at[0] - at[2]) / step**2, 8 * (at[0] - at[1]) / step**2
    if fine < 1.3 * coarse or abs(fine) < 1e-9 * abs(at[0]):
        value = max((4 * fine - coarse) / 3, fine)
        return 1.001 * abs(value) + 1e-9 * abs(at[0]), True, "|k''| is largest at 0"
    grid = signature(np.linspace(0, span, 4001))
    second = np.diff(grid, 2)
    convex = bool(np.all(second >= -1e-12 * abs(at[0])) and np.argmax(second) == 0)
    edge = (at[0] - 2 * at[2] + at[3]) / step**2
    largest = max(abs(edge), float(np.max(np.abs(second))) * (4000 / span) ** 2)
    return 1.01 * largest, convex, "the signature is convex"


def between_grid(problem: Problem, cosines: Cosines) -> Proof:
    """A bound on the weighted error everywhere on the domain."""
    frequencies, weights = cosines
    if problem.points is not None:
        value = float(np.max(np.abs(problem.grid_residual(cosines))))
        return Proof(value, value, "all lags of the discrete set")
    curve, sure, reason = curvature(problem.signature, problem.span)
    bend = curve + float(weights @ frequencies**2)
    error = max(problem.max_error(cosines), 1e-15 * problem.scale)
    top = float(np.max(problem.weight(problem.lags)))
    wanted = problem.span * np.sqrt(top * bend / (8 * 0.002 * error))
    size = int(np.clip(wanted, 4000, _MAX_GRID))
    lags = np.linspace(0, problem.span, size + 1)
    miss = np.abs(problem.signature(lags) - cosine_sum(lags, cosines))
    weight = problem.weight(lags)
    gap = bend * (lags[1] - lags[0]) ** 2 / 8
    pieces = np.maximum(weight[1:], weight[:-1]) * (np.maximum(miss[1:], miss[:-1]) + gap)
    bound = float(np.max(pieces))
    if problem.tail:
        end = np.array([problem.span])
        remainder = problem.signature(end)[0] + np.sum(weights)
        bound = max(bound, float(problem.weight(end)[0] * remainder))
    monotone = problem.error in ("absolute", "signature") or bool(
        np.all(np.diff(weight) >= 0) or np.all(np.diff(weight) <= 0)
    )
    words = f"computed at {size + 1} lags; bounded between them, since {reason}"
    found = max(float(np.max(weight * miss)), problem.max_error(cosines))
    return Proof(bound if sure and monotone else np.inf, found, words)


def certify_cosines(
    problem: Problem, cosines: Cosines, n_columns: int, lower_bound: float
) -> DesignCertificate:
    """Certificate of a cosine design; `lower_bound` comes from the rank bound."""
    peaks = alternation(problem, cosines, slack=1e-3).size
    error = problem.max_error(cosines)
    optimal = peaks > n_columns or error <= 1e-12 * problem.scale
    if not optimal and problem.period is None:
        largest = replace(problem, norm="max")
        moved = sequential_lp(largest, cosines, reach=1e-3 * problem.span, steps=3)
        optimal = problem.max_error(moved) > error * (1 - 1e-4)
    return certified(
        between_grid(problem, cosines),
        error,
        lower_bound,
        alternations=peaks,
        needed=n_columns + 1,
        locally_optimal=optimal,
        bound_to_zero=_to_zero(problem, cosines),
    )


def _to_zero(problem: Problem, cosines: Cosines) -> float:
    r"""A bound for all of [0, b]: cosines continue below m, where they vanish like x^{γ/2}.

    For values x ≤ y ≤ b of any ratio the error is x^{γ/2} y^{γ/2} |κ − κ̂| ≤ b^γ e^{−γλ/2} |κ − κ̂|,
    λ = log y/x: the weighted error of eq. (16), over all lags and not only over those up to M.
    """
    if not problem.kernel.homogeneous or problem.error != "absolute" or problem.period is not None:
        return np.inf
    if problem.tail:
        return between_grid(problem, cosines).bound
    reach = max(problem.span, 60.0 / problem.kernel.gamma)
    return between_grid(replace(problem, points=None, span=reach, tail=True), cosines).bound
