"""Every map passes scikit-learn's own checks, in its default form or in those of the lists."""

import pytest
from fitted_examples import public_maps
from sklearn_checks import broken

import kernelmaps as km

# One map for each kind of compiled loop: octaves, equal and unequal bins, look-ups, matrices and
# fast transforms. Three columns: each size would have loops of its own to compile.
COMPILED = [
    km.HomogeneousMap(n_components=3, signed=True),
    km.HomogeneousMap(n_components=3),
    km.SplineMap(),
    km.AnchorMap(n_anchors=10, anchors="kmeans"),
    km.RandomFourierMap(n_components=20, random_state=0),
    km.RandomFourierMap(n_components=20, sampling="structured", random_state=0),
    km.RandomOrthoprojector(n_components=1, random_state=0),
]
# Others hand their rows to the same loops: what they do before and after is checked.
READABLE = [
    km.ChebyshevMap(3, signed=True),
    km.SeriesMap(3),
    km.DesignedMap(n_components=3),
    km.DesignedMap(n_components=3, signed=True),
    km.AnchorMap(n_anchors=10, n_neighbors=2),
    km.TrigonometricMap(3),
    km.HermiteMap(3),
    km.ExponentialMap(km.ChebyshevMap(3), n_components=20, random_state=0),
    km.CompressiveFourierMap(n_measurements=1, n_components=20, random_state=0),
]
COVERED = {type(estimator) for estimator in COMPILED + READABLE}
READABLE += [cls() for cls in public_maps().values() if cls not in COVERED]


@pytest.mark.parametrize("estimator", COMPILED, ids=str)
def test_estimator_checks(estimator):
    assert broken(estimator) == {}


@pytest.mark.filterwarnings("ignore:NystroemMap. n_components")  # of few rows
@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("estimator", READABLE, ids=str)
def test_estimator_checks_of_maps_with_loops_of_others(estimator):
    assert broken(estimator) == {}
