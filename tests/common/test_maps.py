"""Every map is held to the same laws; a new one adds one line here."""

import numpy as np
import pytest
from contracts import check_feature_map
from fitted_examples import map_of_the_plane

import kernelmaps as km

# Sizes, rate of the rms error, bound on the last size's largest error.
RANDOM, PROJECTED = ((100, 10000), 0.4, 0.1), ((4, 12), 0.5, 1e-12)
NO_ERROR = 0, None  # bases of functions name no kernel, so that there is no error to fall
SEEDED = {"random_state": 0}
THREE = ["chi2", "intersection", "js"]
# name -> (make(size), sizes, rate, bound)
MAPS = {
    "homogeneous-chi2": (lambda n: km.HomogeneousMap("chi2", n), (3, 21), 2, 2e-3),
    "homogeneous-chi2-even": (lambda n: km.HomogeneousMap("chi2", n), (2, 20), 2, 2e-3),
    "homogeneous-js": (lambda n: km.HomogeneousMap("jensen_shannon", n), (3, 21), 2, 2e-3),
    "homogeneous-intersection": (lambda n: km.HomogeneousMap("intersection", n), (3, 41), 0.5, 0.1),
    "homogeneous-hellinger": (lambda n: km.HomogeneousMap("hellinger", n), (1, 3), 0, 1e-14),
    "homogeneous-gamma": (lambda n: km.HomogeneousMap("chi2", n, gamma=0.5), (3, 21), 2, 0.05),
    "homogeneous-signed": (lambda n: km.HomogeneousMap("chi2", n, signed=True), (3, 21), 2, 2e-3),
    "chebyshev": (km.ChebyshevMap, (3, 48), 0.9, 6e-3),
    "chebyshev-signed": (lambda n: km.ChebyshevMap(n, signed=True), (3, 48), 0.9, 6e-3),
    "series": (km.SeriesMap, (3, 21), 2, 2e-3),
    "designed-chi2": (lambda n: km.DesignedMap("chi2", n), (2, 8), 3, 2e-3),
    "designed-js": (lambda n: km.DesignedMap("js", n, domain="universal"), (2, 8), 3, 2e-3),
    "designed-table": (lambda n: km.DesignedMap("chi2", n, method="minimax"), (2, 4), 3, 2e-2),
    "anchor-chi2": (lambda n: km.AnchorMap("chi2", n, energy=1), (4, 160), 0.9, 2e-2),
    "anchor-js-linear":
        (lambda n: km.AnchorMap("js", n, n_neighbors=2, energy=1), (4, 160), 1.2, 5e-3),
    "anchor-intersection-kmeans":
        (lambda n: km.AnchorMap("intersection", n, anchors="kmeans", energy=1), (4, 40), 1, 1e-12),
    "anchor-per-feature": (lambda n: km.AnchorMap(THREE * 4, n, energy=1), (4, 160), 0.9, 3e-2),
    "exponential":
        (lambda n: km.ExponentialMap(km.SeriesMap(4), n, gamma="scale", **SEEDED), *RANDOM),
    "fourier": (lambda n: km.RandomFourierMap(n_components=n, **SEEDED), *RANDOM),
    "fourier-paired": (
        lambda n: km.RandomFourierMap(
            "matern", n, sampling="orthogonal", form="paired", **SEEDED
        ), *RANDOM,
    ),
    "fourier-structured":
        (lambda n: km.RandomFourierMap(n_components=n, sampling="structured", **SEEDED), *RANDOM),
    "orthoprojector": (lambda n: km.RandomOrthoprojector(n, **SEEDED), *PROJECTED),
    "orthoprojector-dct":
        (lambda n: km.RandomOrthoprojector(n, method="dct", **SEEDED), *PROJECTED),
    "compressive": (lambda n: km.CompressiveFourierMap(12, n, projection="dct", **SEEDED), *RANDOM),
    "nystroem": (lambda n: km.NystroemMap("exp_chi2", n, **SEEDED), (5, 40), 0.4, 1e-6),
    "nystroem-laplacian-rpcholesky": (
        lambda n: km.NystroemMap("laplacian", n, landmarks="rpcholesky", **SEEDED),
        (5, 40), 0.4, 1e-6,
    ),
    "nystroem-additive":
        (lambda n: km.NystroemMap("chi2", n, additive=True, **SEEDED), (2, 6), 2, 1e-2),
    "spline": (lambda n: km.SplineMap(n_bases=n), (10,), *NO_ERROR),
    "spline-sparse":
        (lambda n: km.SplineMap(n_bases=n, order=0, sparse_output=True), (10,), *NO_ERROR),
    "trigonometric": (lambda n: km.TrigonometricMap(n_bases=n), (4,), *NO_ERROR),
    "hermite": (lambda n: km.HermiteMap(n_bases=n), (4,), *NO_ERROR),
}  # fmt: skip


# What these are made of (bins, powers, columns) is compiled for others, each in other company.
READABLE = {"designed-table", "trigonometric", "hermite"}


@pytest.mark.parametrize("name", MAPS)
def test_map_laws(name, seed, request):
    if name in READABLE:
        request.getfixturevalue("readable")
    make, sizes, rate, exact = MAPS[name]
    check_feature_map(
        make, sizes, rate=rate, exact=exact, random_state=seed, estimator_checks=False
    )


def test_no_public_map_is_forgotten():
    held = {type(make(sizes[0])).__name__ for make, sizes, *_ in MAPS.values()}
    public = {name for name, home in km._MODULE_OF.items() if home.startswith("kernelmaps.maps.")}
    assert public - held == {"JointDesignedMap", "Codes"}  # a test of its own; no map


def test_map_laws_of_designed_maps_of_the_plane(seed):
    """A map of two or three coordinates takes no histograms: points of a square instead."""
    X = np.vstack([np.zeros(2), np.random.default_rng(seed).uniform(0, 1, (39, 2))])
    check_feature_map(
        lambda n: map_of_the_plane().set_params(n_components=n),
        (5, 9),
        X,
        rate=4,
        exact=1e-3,
        estimator_checks=False,
    )
