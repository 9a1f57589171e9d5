"""Maps, kernels and settings that only the reproductions of the papers need.

`SignCauchyMap` is the map of Li, Samorodnitsky and Hopcroft, a baseline of the nearest-neighbour
paper; `Sech` (in log(x + c), the skewed χ² kernel of Li, Ionescu and Sminchisescu) and `BSpline`
are kernels that the papers name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kernelmaps as km
from kernelmaps.design.cosines import least_error
from kernelmaps.design.rank_tables import _fit_table, _leading


class SignCauchyMap(TransformerMixin, BaseEstimator):
    """Signs of Cauchy projections, [sign⟨r_1, x⟩, …, sign⟨r_D, x⟩]/√D.

    Inner products have the mean 1 − 2 P(signs differ); for histograms of sum 1 that is close to
    1 − (2/π) arccos ρ with the χ² similarity ρ.
    """

    def __init__(self, n_components: int = 2000, random_state: int | None = None) -> None:
        self.n_components, self.random_state = n_components, random_state

    def fit(self, X: Any, y: Any = None) -> SignCauchyMap:
        rng = np.random.default_rng(self.random_state)
        self.matrix_ = rng.standard_cauchy((X.shape[1], self.n_components))
        return self

    def transform(self, X: Any) -> np.ndarray:
        return np.sign(np.asarray(X @ self.matrix_)) / np.sqrt(self.n_components)


class NearestLandmarkMap(TransformerMixin, BaseEstimator):
    """The row of the nearest landmark (nearest-neighbour maps, section 3.1).

    Inner products are the kernel between the nearest landmarks. A cover of d features by balls of
    radius ε takes O(ε^−d) landmarks, so that the error falls like m^(−1/d) only.
    """

    def __init__(self, kernel: Any, n_landmarks: int, random_state: int | None = None) -> None:
        self.kernel, self.n_landmarks, self.random_state = kernel, n_landmarks, random_state

    def fit(self, X: Any, y: Any = None) -> NearestLandmarkMap:
        projection = km.NystroemMap(self.kernel, self.n_landmarks, random_state=self.random_state)
        self.kernel_, self.landmarks_ = projection.fit(X).kernel_, projection.landmarks_
        self.mapped_ = projection.transform(self.landmarks_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        return self.mapped_[pairwise_distances_argmin(X, self.landmarks_)]


class WeightedAnchorMap(TransformerMixin, BaseEstimator):
    """Σ_j w_j φ(a_j) of the nearest anchors a_j of each value, the nearest first (eq. 5).

    φ is any additive map of the kernel, fitted to the anchors (section 3.3); `cover` places them.
    """

    def __init__(self, anchors: Any, weights: Any, feature_map: Any) -> None:
        self.anchors, self.weights, self.feature_map = anchors, weights, feature_map

    def fit(self, X: Any, y: Any = None) -> WeightedAnchorMap:
        self.rows_ = clone(self.feature_map).fit_transform(np.asarray(self.anchors)[:, None])
        return self

    def transform(self, X: Any) -> np.ndarray:
        weights = np.asarray(self.weights) / np.sum(self.weights)
        distances = np.abs(np.asarray(X)[..., None] - self.anchors)
        nearest = np.argsort(distances, axis=2, kind="stable")[..., : len(weights)]
        return np.einsum("k,ndkr->ndr", weights, self.rows_[nearest]).reshape(len(X), -1)


def cover(values: np.ndarray, epsilon: float) -> np.ndarray:
    """The fewest anchors with |x − anchor| ≤ ε for every value: greedy groups of width 2ε."""
    values, anchors = np.unique(values), []
    while len(values):
        group = values <= values[0] + 2 * epsilon
        anchors.append(values[group][[0, -1]].mean())
        values = values[~group]
    return np.array(anchors)


def eigen_table(kernel: Any, n_columns: int) -> Any:
    """Rank-D map of least mean square error on the fine grid, extended to the nodes by Nyström."""
    points = kernel.fine
    d = np.ones(points.size) if kernel.values is not None else np.sqrt(np.gradient(points))
    values, vectors = _leading(kernel.gram(points), d, n_columns)
    cross = kernel.component(kernel.nodes[:, None], points[None, :])
    some = values > points.size * np.finfo(float).eps * np.max(values)
    root = np.where(some, np.sqrt(np.where(some, values, 1.0)), np.inf)
    return _fit_table(kernel, cross @ (d[:, None] * vectors) / root, kernel.nodes)


@km.kernels.register
@dataclass(frozen=True)
class Sech(km.kernels.StationaryKernel):
    """Π_d sech((x_d − y_d)/2s); each ω_d has the density s sech(πsω)."""

    scale: float = 1.0
    name = "sech"

    def signature(self, delta: np.ndarray) -> np.ndarray:
        small = np.exp(-np.abs(delta) / (2 * self.scale))  # the half that does not overflow
        return 2 * small / (1 + small * small)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        return np.log(np.tan(np.pi / 2 * uniforms)) / (np.pi * self.scale)


def skewed_chi2_map(skewedness: float, n_components: int, random_state: Any = None) -> Pipeline:
    """Random Fourier features of Π_d 2 √((x_d + c)(y_d + c)) / (x_d + y_d + 2c): sech of logs."""
    logarithm = FunctionTransformer(lambda X: np.log(X + skewedness))
    features = km.RandomFourierMap(Sech(), n_components, random_state=random_state)
    return make_pipeline(logarithm, features)


@km.kernels.register
@dataclass(frozen=True)
class BSpline(km.kernels.StationaryKernel):
    """Π_d B_n((x_d − y_d)/s) / B_n(0) of odd degree n; the spectrum is sinc^{n+1}(sω/2π).

    The paper names B_n(‖x − y‖), which is not positive definite in two or more dimensions: its
    spectrum in three is −F'(ω)/(2πω) with the transform F of B_n, negative wherever F rises, and
    that in two, ∫ B_n(r) J_0(ωr) 2πr dr, for n = 3 negative around ω = 7.4.
    """

    degree: int = 3
    scale: float = 1.0
    name = "bspline"

    def signature(self, delta: np.ndarray) -> np.ndarray:
        return _spline(self.degree, delta / self.scale) / _spline(self.degree, np.zeros(1))

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        omega = np.linspace(0, 128 * np.pi, 2**16 + 1)  # beyond is less than 1e-7 of the mass
        density = np.sinc((omega[1:] + omega[:-1]) / (4 * np.pi)) ** (self.degree + 1)
        share = np.append(0.0, np.cumsum(density))
        centred = 2 * uniforms - 1
        moduli = np.interp(np.abs(centred), share / share[-1], omega)
        return np.sign(centred) * moduli / self.scale


def _spline(degree: int, x: np.ndarray) -> np.ndarray:
    """B_n(x), the sum of truncated powers from the nearer end."""
    end = (degree + 1) / 2 - np.abs(x)
    powers = [
        (-1) ** k * comb(degree + 1, k) * np.maximum(end - k, 0) ** degree
        for k in range((degree + 1) // 2 + 1)
    ]
    return np.sum(powers, axis=0) / factorial(degree)


def measured_isometry(matrix: np.ndarray, sparsity: int, n_supports: int = 2000) -> float:
    """Largest | ‖Ax‖²/‖x‖² − 1 | of k-sparse x: exact if there are at most `n_supports` supports.

    Else of random supports, a lower bound of the restricted isometry constant.
    """
    d, rng = matrix.shape[1], np.random.default_rng(0)
    if comb(d, sparsity) <= n_supports:
        supports = np.array(list(combinations(range(d), sparsity)))
    else:
        supports = np.argsort(rng.random((n_supports, d)), axis=1)[:, :sparsity]
    values = np.linalg.svd(np.swapaxes(matrix[:, supports], 0, 1), compute_uv=False)
    return float(np.abs(values**2 - 1).max())


def vlfeat_map(kernel: str, n_components: int) -> km.HomogeneousMap:
    """The map with VLFeat's period, which was fitted there to sizes alone: n cosine-sine pairs."""
    n = n_components // 2
    period = {
        "chi2": 8.80 * np.sqrt(n + 4.44) - 12.6,
        "jensen_shannon": 9.63 * np.sqrt(n + 1.00) - 2.93,
        "intersection": 2.00 * np.log(n + 0.99) + 3.52,
    }[kernel]
    return km.HomogeneousMap(kernel, n_components, period=max(1.0, float(period)))


def sine_map(high: float, n_columns: int) -> Callable[[np.ndarray], np.ndarray]:
    r"""Sines for min(x, y), the covariance of Brownian motion, on [0, b].

    .. math:: \min(x, y) = \sum_k \frac{2b}{((k - 1/2)π)^2} \sin\frac{(k - 1/2)πx}{b}
              \sin\frac{(k - 1/2)πy}{b}.

    Cut at D terms the error is largest on the diagonal; weights by a linear program halve it.
    """
    order = np.arange(1, n_columns + 1) - 0.5
    # All pairs of a coarse grid, and the diagonal finely: there the error peaks.
    points = np.linspace(0, 1, max(48, 8 * n_columns) + 1)[1:]
    first, second = np.triu_indices(points.size)
    diagonal = np.linspace(0, 1, max(400, 60 * n_columns) + 1)[1:]
    x, y = np.r_[points[first], diagonal], np.r_[points[second], diagonal]
    products = np.sin(np.pi * np.outer(x, order)) * np.sin(np.pi * np.outer(y, order))
    amplitudes = np.sqrt(least_error(products, np.minimum(x, y)) * high)
    return lambda x: amplitudes * np.sin(np.multiply.outer(x, order * np.pi / high))
