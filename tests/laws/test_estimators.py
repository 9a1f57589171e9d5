"""Every map passes scikit-learn's own checks, in its default form or in those of the list."""

from every_model import public_maps
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelmaps as km

ESTIMATORS = [
    # Three columns: the checks are not about sizes, each of which has loops of its own to compile.
    km.HomogeneousMap(n_components=3, signed=True),
    km.HomogeneousMap(n_components=3),
    km.ChebyshevMap(3, signed=True),
    km.SeriesMap(3),
    km.DesignedMap(n_components=3),
    km.DesignedMap(n_components=3, signed=True),
    km.SplineMap(),
    km.TrigonometricMap(3),
    km.HermiteMap(3),
    km.AnchorMap(n_anchors=10, n_neighbors=2),
    km.AnchorMap(n_anchors=10, anchors="kmeans"),
    km.SignCauchyMap(n_components=20, random_state=0),
    km.ExponentialMap(km.ChebyshevMap(3), n_components=20, random_state=0),
    km.RandomFourierMap(n_components=20, random_state=0),
    km.RandomFourierMap(n_components=20, sampling="structured", random_state=0),
    km.RandomOrthoprojector(n_components=1, random_state=0),
    km.CompressiveFourierMap(n_measurements=1, n_components=20, random_state=0),
]
COVERED = {type(estimator) for estimator in ESTIMATORS}
ESTIMATORS += [cls() for cls in public_maps().values() if cls not in COVERED]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
