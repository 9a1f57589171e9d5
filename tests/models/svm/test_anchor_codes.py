"""Algorithm 1 of the anchor maps' paper in one estimator: models train and predict on codes."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.engine import record_paths
from kernelmaps.models.svm.fitted import sample_rows

KERNELS = ["chi2", "intersection", "jensen_shannon", "hellinger"]


@pytest.mark.compiled
@pytest.mark.parametrize(("kernel", "k"), [*((name, 1) for name in KERNELS), ("chi2", 2)])
def test_models_train_and_predict_on_codes(kernel, k):
    """Training on codes solves the problem that φ(X) poses, and forms φ of a sample alone.

    The solver is given: to choose one, κ is computed on a sample of rows. Its own primal and dual
    values bound the distance to the optimum; that the primal is the one of φ(X) = transform(X) is
    computed here. Two classes and one column, so that all kernels share what is compiled.
    """
    data = km.datasets.load("digits")
    kept = data.y_train < 2
    X, y = np.float32(data.X_train[kept]), data.y_train[kept]
    options = {"n_neighbors": k, "rank": 1, "out_of_domain": "extrapolate", "n_jobs": 1}
    feature_map = km.AnchorMap(kernel, **options).fit(X)
    codes = feature_map.encode(X)
    C = 1 / float(feature_map.kernel_.diag(X).mean())
    with record_paths() as paths:
        model = km.AdditiveSVC(feature_map, C=C, solver="dual", random_state=0, n_jobs=1)
        scores = model.fit(codes, y).decision_function(codes)
    with record_paths() as paths_of_sample:  # the map is applied to what describes the terms alone
        model.predictor_._describe(sample_rows(codes.values, np.ones(len(y))))
    for found in (paths, paths_of_sample):
        found[:] = [path for path in found if path.startswith(("table:", "formula:"))]
    assert paths == paths_of_sample
    np.testing.assert_allclose(model.decision_function(X), scores)
    assert model.score(data.X_test[data.y_test < 2], data.y_test[data.y_test < 2]) > 0.98
    weights = np.float64(model.predictor_.weights.ravel())
    from_phi = feature_map.transform(X) @ weights + model.predictor_.offset
    rounding = 1e-4 if k == 1 else 2e-2  # float32; a weight's byte
    np.testing.assert_allclose(scores, from_phi, atol=rounding * np.abs(from_phi).max())
    miss = np.maximum(0, 1 - (2 * y - 1) * from_phi)
    primal = 0.5 * np.sum(weights**2) + C * np.sum(miss**2)
    np.testing.assert_allclose(model.objective_, primal, rtol=5 * rounding)
    assert (model.duality_gap_ <= model.tol * model.objective_).all()
