"""Maps, rows and tables for the tests of a GPU's kernels."""

from math import factorial

import numpy as np
from scipy.interpolate import BSpline

import kernelmaps as km
from kernelmaps.engine.table import AFFINE, Table


def histograms(seed, rows=37, features=13):
    X = np.random.default_rng(seed).gamma(0.5, size=(rows, features))
    X /= X.sum(axis=1, keepdims=True)
    X[3, 4] = 0
    return X


MAPS = {
    "homogeneous": km.HomogeneousMap(),
    "designed": km.DesignedMap("chi2", 5),
    "anchor, even": km.AnchorMap("chi2", 12, anchors="uniform", n_neighbors=2),
    "anchor, look-up": km.AnchorMap("chi2", 12, anchors="uniform"),
    "anchor, k-means look-up": km.AnchorMap("chi2", 12, anchors="kmeans", n_neighbors=1),
    "anchor, k-means": km.AnchorMap("chi2", 12, anchors="kmeans", n_neighbors=2),
    "chebyshev": km.ChebyshevMap(10),
    "spline": km.SplineMap(),
    "spline, banded": km.SplineMap(order=0),
    "trigonometric": km.TrigonometricMap(),
    "hermite": km.HermiteMap(),
    "fourier": km.RandomFourierMap(n_components=30, random_state=0),
    "fourier, pairs": km.RandomFourierMap(n_components=30, form="paired", random_state=0),
    "fourier, structured": km.RandomFourierMap(
        n_components=40, sampling="structured", random_state=0
    ),
    "exponential": km.ExponentialMap(n_components=40, random_state=0),
    "compressive": km.CompressiveFourierMap(5, 20, random_state=0),
}

# Maps whose readable form is what runs on a GPU: exact kernels of rows and landmarks.
FORMULAS = {
    "nystroem": km.NystroemMap("exp_chi2", 10, random_state=0),
    "nystroem, additive": km.NystroemMap("chi2", 5, additive=True, random_state=0),
}


def smooth_cubics(rng, d, bins, outputs, lo=0.0, size=1.0):
    """Splines with two continuous derivatives, as polynomials on each bin."""
    knots, left = np.arange(-3, bins + 4, dtype=float), np.arange(bins)
    coef = []
    for _ in range(d):
        spline = BSpline(knots, rng.normal(size=(bins + 3, outputs)), 3)
        coef.append(np.stack([spline(left, nu=k) / factorial(k) for k in range(4)], axis=1))
    return Table.build(
        AFFINE, 3, coef, np.arange(d), origin=np.full(d, lo), resolution=np.full(d, bins / size),
        clip_low=lo, clip_high=lo + size,
    )  # fmt: skip
