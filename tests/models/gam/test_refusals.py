"""What generalised additive models refuse, and what the messages say: one table for both."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import kernelmaps as km

rng = np.random.default_rng(0)
X = rng.integers(-3, 4, (60, 2)).astype(float)  # few values, which have a code each
y, two, three = X[:, 0] + rng.normal(size=60), np.arange(60) % 2, np.arange(60) % 3
SITES = pd.DataFrame({"x": rng.random(60), "site": np.where(two, "north", "south")})
ZIP = pd.DataFrame({"zip": np.where(two, "01067", "04109")})
ONES, CHUNKS = np.ones(60), [(X[:30], y[:30]), (X[30:], y[30:])]
GAM, CLASSES = km.AdditiveRegressor, km.AdditiveClassifier


def poisson(**options):
    return GAM("poisson", **options)


def linear(*columns, loss="squared_error"):
    return GAM(loss, terms=[km.Term(j, "linear") for j in columns])


def framed(column):
    return pd.DataFrame({"a": X[:, 0], "d": pd.Series(list(column))})


SETTINGS = [
    ({"smoothing": -1.0}, "smoothing must be"),
    ({"smoothing": None}, "smoothing must be"),
    ({"smoothing": np.timedelta64(1)}, "smoothing must be"),
    ({"smoothing": {"x0": np.timedelta64(1)}}, "smoothing must be"),
    ({"smoothing": {"nothing": 1.0}}, "smoothing names the column 'nothing'"),
    ({"interactions": np.timedelta64(1)}, "interactions must be"),
    ({"interactions": "many"}, "interactions must be"),
    ({"interactions": 1.5}, "interactions must be"),
    ({"interactions": [("x0", "x0")]}, "pairs the column 'x0' with itself"),
    ({"interactions": [(0, km.Term(1, n_bases=9))]}, "a Term of a pair may only be 'linear'"),
    ({"terms": []}, "terms must be"),
    ({"terms": {"x0": None, "x1": None}}, "terms leaves out all 2 columns"),
    ({"terms": {"x0": "wavelet"}}, "kind='wavelet'"),
    ({"terms": [km.Term("x0", n_bases=2)]}, "n_bases must be"),
    ({"terms": [km.Term("x0", period=3.0)]}, "period is for"),
    ({"terms": [km.Term(0, extrapolation="cubic")]}, "extrapolation='cubic'; choose one of"),
    (
        {"terms": [km.Term(0, "periodic", extrapolation="linear")]},
        "has no slope to extrapolate with",
    ),
    ({"constraints": {"x0": "up"}}, "must be one of increasing"),
    ({"constraints": {"x0": ("convex", "concave")}}, "cannot be both"),
    ({"constraints": "increasing"}, "constraints must be a mapping"),
    ({"constraints": {"x1": "convex"}, "categorical_features": [1]}, "have no order"),
    ({"constraints": {"x0": "convex"}, "interactions": [(0, 1)]}, "would undo"),
    ({"constraints": {"x0": "increasing"}, "terms": ["x1"]}, "which has no term"),
    ({"constraints": {"x0": "increasing"}, "terms": {(0, 1): "surface"}}, "which has no term"),
    (
        {"constraints": {(0, 1): "increasing in x0"}, "terms": {(0, 1): "surface"}},
        "the shape of a surface is free",
    ),
    ({"terms": {(0, 1): "surface", (1, 0): "surface"}}, "surface of 'x0' and 'x1' twice"),
    ({"categorical_features": ["x9"]}, "categorical_features names"),
    ({"loss": "hinge"}, "loss must be one of"),
    ({"loss": "epsilon_insensitive"}, "is a loss of AdditiveSVR"),
    ({"weights": [1.0, 2.0]}, "weights must be one of 'relative', 'frequency'"),
    ({"loss": "absolute_error", "weights": "precision"}, "'precision' are inverse variances"),
]


@pytest.mark.parametrize(("options", "message"), SETTINGS)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=f"AdditiveRegressor: .*{message}"):
        GAM(**options).fit(X, y)


CALLS = [
    # Rows.
    (lambda: GAM().fit(sparse.csr_matrix(X), y), "X is sparse.* AdditiveSVR, which"),
    (lambda: CLASSES().fit(sparse.csr_matrix(X), two), "X is sparse.* AdditiveSVC, which takes"),
    (lambda: GAM().fit(framed([[1, 2]] * 60), y), "'d' holds values that are neither num"),
    (lambda: GAM().fit(framed(np.full(60, 1j)), y), "'d' holds complex numbers"),
    (lambda: GAM().fit(pd.DataFrame(X, columns=["a", "a"]), y), "X has 2 columns named 'a'"),
    (lambda: GAM().fit(ZIP, y).predict(ZIP.astype(int)), "'zip' held categories in fit, and now"),
    (lambda: GAM(interactions=[("x", km.Term("site", "linear"))]).fit(SITES, y),
     "linear in 'site', which does not hold numbers"),
    (lambda: GAM().fit([(SITES, y), (SITES[["site", "x"]], y)]), "have different columns"),
    # Targets, weights, exposures and offsets.
    (lambda: CLASSES().fit(X, ONES), "only one class"),
    (lambda: poisson().fit(X, y), "needs y >= 0"),
    (lambda: poisson().fit(X, 0 * y), "some y > 0"),
    (lambda: GAM("gamma").fit(X, two), "needs y > 0"),
    (lambda: GAM().fit(X, np.where(two, np.nan, y)), r"Input y contains NaN. \(row 1\)"),
    (lambda: GAM().fit(X, 1e300 * ONES), "y reaches 1e[+]300"),
    (lambda: GAM().fit(X, "size"), "y='size' names a column, which is for files"),
    (lambda: GAM().fit(X, y, 0 * y), "at least one non-zero|weights are zero"),
    (lambda: CLASSES(weights="precision").fit(X, two), "'precision' are inverse variances"),
    (lambda: poisson().fit(X, two, exposure=[1.0]), "must hold 60 positive num"),
    (lambda: poisson().fit(X, two, exposure=-ONES), "must hold 60 positive"),
    (lambda: poisson().fit(X, two, exposure=np.nan * y), "hold 60 positive"),
    (lambda: GAM().fit(X, y, exposure=ONES), "exposure is for"),
    (lambda: poisson().fit(X, two, exposure="e"), "exposure='e' names a column, which is for f"),
    (lambda: GAM().fit(X, y, offset=y[:20]), "offset must hold 60 finite numbers"),
    (lambda: GAM().fit(X, y, offset=X), r"60 finite numbers.*\(60, 2\)"),
    (lambda: GAM().fit(X, y, offset=np.where(two, np.nan, y)), "finite numbers.*row 1 has nan"),
    (lambda: CLASSES().fit(X, three, offset=y), "offset= is for two classes"),
    (lambda: GAM().fit(CHUNKS, offset=y), "offset= is for rows in memory"),
    (lambda: GAM().fit(X, y).check(X, y[:10]), "X has 60 rows, y has 10"),
    # Intervals and comparisons.
    *((lambda rows=rows: GAM("quantile").fit(X, y).predict_interval(X, calibration=rows),
       r"a tuple \(X, y\) of further rows, or a dict of X, y")
      for rows in (X, (X, y, y), {"X": X}, {"X": X, "y": y, "weight": y})),
    (lambda: GAM("quantile").fit(X, y).predict_interval(X, calibration=(X[:10], y[:10])),
     r"10 rows of calibration are too few.*: pass 39 or more"),
    (lambda: GAM("quantile").fit(X[:30], y[:30]).predict_interval(X),
     r"30 rows of the fit are too few for a level of 0\.95"),
    (lambda: GAM("quantile").fit(X, y).predict_interval(X, 95), "between 0 and 1"),
    (lambda: GAM().fit(X, y).shape_functions_[0].band(95), "between 0 and 1, got 95"),
    (lambda: km.AdditiveSVR().fit(X, y).shape_functions_[0].band(), "no standard errors"),
    (lambda: GAM().fit(SITES[["site"]], y).shape_functions_[0].derivative(), "and no slope"),
    (lambda: km.anova(linear(0).fit(X, y)), "two models or more"),
    (lambda: km.anova(linear(0, 1).fit(X, y), linear(0).fit(X, y)), "has no term 'x1'"),
    (lambda: km.anova(linear(0).fit(X, y), linear(0, 1).fit(X[:50], y[:50])),
     "different rows.*60 and 50 rows"),
    (lambda: km.anova(linear(0).fit(X, y), linear(0, 1).fit(X, y + X[:, 0])),
     "different rows, targets or weights"),
    (lambda: km.anova(linear(0).fit(X, y), linear(0, 1, loss="gamma").fit(X, np.exp(y))),
     "different losses, 'squared_error' and 'gamma'"),
    (lambda: km.anova(linear(0).fit(X, y), km.StreamingRidge()), "got StreamingRidge"),
    (lambda: km.anova(*[CLASSES(constraints={0: "increasing"}).fit(X, three)] * 2),
     "one against the rest"),
    (lambda: km.AdditiveRegressor("location_scale").fit(X, np.ones(60)), "targets that differ"),
    (lambda: GAM(km.losses.LocationScale(["x9"])).fit(X, y), "scale_terms names .*'x9'"),
    (lambda: GAM(km.losses.LocationScale(["x0"]), terms=["x1"]).fit(X, y), "has no term"),
    (lambda: km.losses.LocationScale("x0"), "scale_terms must be a list of columns"),
    (lambda: linear(0).fit(X, y).predict_scale(X), "has no scale of each row"),
    (lambda: km.AdditiveRegressor("location_scale", constraints={0: "increasing"}).fit(X, y),
     "do not say which"),
    (lambda: CLASSES("multinomial", constraints={0: "increasing"}).fit(X, three),
     "do not say which"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_bad_calls(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
