"""Models of parts of the rows, merged: the model of all rows."""

from copy import deepcopy

import numpy as np
import pytest
from command_line import assert_refused, run

import kernelmaps as km


def halves(model, seed=0):
    """A model of all rows, and models of two parts of them, on one fitted map."""
    rng = np.random.default_rng(seed)
    X = rng.random((500, 3))
    y = np.sin(5 * X).sum(axis=1) + 0.1 * rng.normal(size=500)
    if hasattr(model, "predict_proba") or "Classifier" in type(model).__name__:
        y = y > y.mean()
    model.set_params(feature_map=km.SplineMap(8).fit(X))
    parts = [deepcopy(model).fit(X[rows], y[rows]) for rows in (slice(180), slice(180, 500))]
    return X, deepcopy(model).fit(X, y), parts


@pytest.mark.parametrize(
    "model",
    [km.StreamingRidge(), km.StreamingRidgeClassifier(), km.StreamingLasso(alpha=0.01)],
    ids=lambda model: type(model).__name__,
)
def test_merged_parts_are_the_model_of_all_rows(model):
    X, of_all, parts = halves(model)
    before = parts[0].predict(X)
    merged = km.merge(parts)
    # Sums of 500 rows have rounding errors of 1e-13, and a lasso stops at 1e-4 of its gap.
    tolerance = 1e-3 if "Lasso" in type(model).__name__ else 1e-8
    np.testing.assert_allclose(merged.predict(X) * 1.0, of_all.predict(X) * 1.0, atol=tolerance)
    np.testing.assert_array_equal(parts[0].predict(X), before)


def test_files_of_parts_are_merged(tmp_path):
    X, of_all, parts = halves(km.StreamingRidge())
    for name, part in zip("ab", parts):
        km.save(part, tmp_path / f"{name}.kmap")
    run("merge", tmp_path / "a.kmap", tmp_path / "b.kmap", "--out", tmp_path / "all.kmap")
    merged = km.load(tmp_path / "all.kmap")
    np.testing.assert_allclose(merged.predict(X), of_all.predict(X), atol=1e-8)


def test_what_keeps_no_sums_is_refused(tmp_path):
    X = np.random.default_rng(0).random((60, 2))
    gam = km.AdditiveRegressor().fit(X, X[:, 0])
    with pytest.raises(TypeError, match="AdditiveRegressor keeps no sums of its rows"):
        km.merge([gam, gam])
    km.save(gam, tmp_path / "gam.kmap")
    assert_refused(2, "keeps no sums", "merge", tmp_path / "gam.kmap", "-o", tmp_path / "x.kmap")
    with pytest.raises(ValueError, match="with at least one"):
        km.merge([])
    ridge = km.StreamingRidge(feature_map=km.SplineMap(4)).fit(X, X[:, 0])
    other = km.StreamingRidge(feature_map=km.SplineMap(4)).fit(X[:30] / 2, X[:30, 0])
    with pytest.raises(ValueError, match="fold both with the same fitted map"):
        km.merge([ridge, other])
    with pytest.raises(TypeError, match="takes another StreamingRidge"):
        km.merge([ridge, km.StreamingPCA(1).fit(X)])
