"""Surfaces: smooth functions of two columns on one scale, thin-plate splines."""

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import RBFInterpolator

import kernelmaps as km
from kernelmaps.data import tables
from kernelmaps.export.c import to_c
from kernelmaps.inspection import PairFunctionDisplay

PLACE = ("east", "north")
SURFACE = [km.Term(PLACE, "surface")]


def places(rng, n):
    return pd.DataFrame(rng.random((n, 2)), columns=PLACE)


def hump(X):
    return np.exp(-((X["east"] - 0.5) ** 2 + (X["north"] - 0.4) ** 2) / 0.05).to_numpy()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = places(rng, 300).assign(age=rng.random(300))
    y = hump(X) + X["age"] + 0.2 * rng.normal(size=300)
    return km.AdditiveRegressor(terms={PLACE: "surface"}).fit(X, y), X, y


@pytest.mark.parametrize(("loss", "n"), [("squared_error", 80), ("poisson", 600)])
def test_turning_moving_and_stretching_the_map_changes_nothing(seed, loss, n):
    """Of no more points than knots, and of clusters of them: k-means turns with the points."""
    rng = np.random.default_rng(seed)
    X, angle = places(rng, n), rng.uniform(0, 2 * np.pi)
    y = hump(X) + 0.3 * rng.normal(size=n) if loss != "poisson" else rng.poisson(3 * hump(X))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = pd.DataFrame(1000 * X.to_numpy() @ turn + [300, -5000], columns=PLACE)
    first, second = (km.AdditiveRegressor(loss, terms=SURFACE).fit(Z, y) for Z in (X, turned))
    expected, std = first.predict(X, return_std=True)
    found, found_std = second.predict(turned, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found_std, std, rtol=1e-3)
    np.testing.assert_allclose(second.edf_, first.edf_, rtol=1e-8)


def test_predictions_are_the_thin_plate_spline_through_the_fitted_values(seed):
    rng = np.random.default_rng(seed)
    X, new = places(rng, 90), places(rng, 500)
    model = km.AdditiveRegressor(terms=SURFACE).fit(X, hump(X) + 0.1 * rng.normal(size=90))
    spline = RBFInterpolator(X, model.predict(X), kernel="thin_plate_spline")
    with pytest.warns(km.exceptions.OutOfDomainWarning, match="goes on with its slope"):
        far = model.predict(new + 1)
    np.testing.assert_allclose(model.predict(new.clip(0.02, 0.98)), spline(new.clip(0.02, 0.98)),
                               atol=1e-8)  # fmt: skip
    np.testing.assert_allclose(far, spline(new + 1), rtol=1e-6, atol=1e-6)


def test_surfaces_are_more_accurate_than_pairs_and_their_bands_hold():
    """A hump at irregular places; SciPy's splines with the best of eight smoothing parameters."""
    errors, held, rejected = [], [], []
    for k in range(4):
        rng = np.random.default_rng(k)
        X, new = places(rng, 200), places(rng, 1000)
        X["noise"], new["noise"] = rng.random(200), rng.random(1000)
        y, truth = hump(X) + 0.1 * rng.normal(size=200), hump(new)
        smooth = km.AdditiveRegressor(terms=SURFACE, n_jobs=1).fit(X, y)
        pair = km.AdditiveRegressor(terms=[*PLACE, PLACE], n_jobs=1).fit(X, y)
        predicted, std = smooth.predict(new, return_std=True)
        points = X[[*PLACE]].to_numpy(), new[[*PLACE]].to_numpy()
        best = min(
            np.sqrt(np.mean((RBFInterpolator(points[0], y, smoothing=s)(points[1]) - truth) ** 2))
            for s in 10.0 ** np.arange(-5, 3)
        )
        by_pair = np.sqrt(np.mean((pair.predict(new) - truth) ** 2))
        errors.append([np.sqrt(np.mean((predicted - truth) ** 2)), by_pair, best])
        held.append(np.mean(np.abs(predicted - truth) <= 1.96 * std))
        nothing = km.AdditiveRegressor(terms=SURFACE, n_jobs=1).fit(X, rng.normal(size=200))
        rejected.append(nothing.predictor_.terms[0].p_value[0] < 0.05)
    surface, pair, best = np.mean(errors, axis=0)
    assert surface < 0.9 * pair
    assert surface < 1.15 * best
    assert 0.9 <= np.mean(held) <= 0.99
    assert np.mean(rejected) <= 0.25  # one of four


def test_terms_sum_to_the_score_and_errors_are_those_of_the_posterior(fitted):
    model, X, _ = fitted
    assert model.term_names_ == ["age", "east × north"]
    values = model.eval_terms(X)
    np.testing.assert_allclose(values.sum(axis=1) + model.intercept_, model.predict(X), rtol=1e-10)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-9)
    alone = km.AdditiveRegressor(terms=SURFACE).fit(X, hump(X) + X["age"])
    columns = alone._columns(X)
    np.testing.assert_allclose(
        alone.predictor_.errors(columns)[:, 0], alone.predictor_.score_errors(columns), rtol=1e-6
    )
    Z = model.model_matrix(X)
    std = np.sqrt(np.sum((Z @ model.covariance_) * Z, axis=1))
    np.testing.assert_allclose(std, model.predict(X, return_std=True)[1], rtol=1e-4)
    assert model.summary().to_frame().set_index("term").loc["east × north", "kind"] == "surface"
    assert "east × north" in str(model.explain(X.iloc[[0]]))


def test_rows_without_a_coordinate_have_a_value_of_their_own(seed):
    rng = np.random.default_rng(seed)
    X = places(rng, 400)
    y = hump(X) + 0.1 * rng.normal(size=400)
    y[:40] += 3.0
    X.loc[:19, "east"], X.loc[20:39, "north"] = np.nan, np.nan
    model = km.AdditiveRegressor(terms=SURFACE).fit(X, y)
    missing = model.predict(X.iloc[:40])
    np.testing.assert_allclose(missing, missing[0], rtol=1e-12)
    assert abs(missing[0] - y[:40].mean()) < 0.2
    known = model.predict(X.iloc[40:])
    assert np.sqrt(np.mean((known - hump(X.iloc[40:])) ** 2)) < 0.08


def test_many_rows_in_memory_and_block_by_block(seed, tmp_path, monkeypatch):
    rng = np.random.default_rng(seed)
    X = places(rng, 6000).assign(age=rng.random(6000))
    X["y"] = hump(X) + X["age"] + 0.5 * rng.normal(size=6000)
    X.to_parquet(tmp_path / "rows.parquet")
    model = km.AdditiveRegressor(terms={PLACE: "surface"})
    predicted = model.fit(X.drop(columns="y"), X["y"]).predict(X.drop(columns="y"))
    assert np.sqrt(np.mean((predicted - hump(X) - X["age"]) ** 2)) < 0.08  # .5 √(60/6000) = .05
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 0)
    streamed = km.AdditiveRegressor(terms={PLACE: "surface"}).fit(tmp_path / "rows.parquet", "y")
    np.testing.assert_allclose(streamed.predict(X.drop(columns="y")), predicted, atol=1e-6)


def test_classes_have_a_surface_each(seed):
    rng = np.random.default_rng(seed)
    X = places(rng, 600)
    y = np.where(hump(X) > 0.4, "hill", np.where(X["north"] > 0.5, "north", "south"))
    model = km.AdditiveClassifier(terms=SURFACE).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.pair_functions_[0].values.shape == (40, 40, 3)


def test_files_and_pages(fitted, tmp_path):
    model, X, y = fitted
    X = X.assign(east=np.where(np.arange(len(X)) % 9, X["east"], np.nan))
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    for ours, again in zip(model.predict(X, return_std=True), loaded.predict(X, return_std=True)):
        np.testing.assert_array_equal(again, ours)
    with pytest.raises(ValueError, match="the surface 'east × north' has no form in C"):
        to_c(model, "places")
    with pytest.raises(ValueError, match=r"'east × north' \(surface\) is no piecewise polynomial"):
        km.to_sql(model, "places")
    page = km.model_report(model, tmp_path / "page.html", X=X, y=y)
    assert "east × north" in page.read_text(encoding="utf-8")


def test_a_surface_is_drawn_where_its_knots_are():
    """Of places around a circle, its centre stays blank."""
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    X = pd.DataFrame({"east": np.cos(angle), "north": np.sin(angle)})
    model = km.AdditiveRegressor(terms=SURFACE).fit(X, np.sin(3 * angle))
    (surface,) = model.pair_functions_
    assert 0.9 < surface.density.sum() <= 1.0
    assert surface.density[15:25, 15:25].sum() == 0
    assert surface.first[0].startswith("-1") or surface.first[0].startswith("-0.99")
    display = PairFunctionDisplay.from_estimator(model)
    assert np.isnan(display.panels[0]["values"][20, 20]).all()
    display.plot()


def test_points_that_nearly_coincide(seed, tmp_path):
    """Rounding errors of places do not change the fit."""
    rng = np.random.default_rng(seed)
    X = places(rng, 50)
    twice = pd.concat([X, X * (1 + 1e-12)])
    y = rng.normal(size=50) + 3 * hump(X)
    exact, close = (
        km.AdditiveRegressor(terms=SURFACE).fit(Z, np.tile(y, 2))
        for Z in (pd.concat([X, X]), twice)
    )
    np.testing.assert_allclose(close.predict(X), exact.predict(X), atol=1e-6)
    km.save(close, tmp_path / "m.kmap")
    np.testing.assert_array_equal(km.load(tmp_path / "m.kmap").predict(X), close.predict(X))


@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.SuspectColumnWarning")
def test_what_a_surface_cannot_be(seed):
    rng = np.random.default_rng(seed)
    X = places(rng, 60).assign(level=rng.choice(["a", "b"], 60), line=1.0)
    X["line"] = 2 * X["east"] + 1
    y, term = rng.random(60), km.Term
    for terms, match in (
        ([term(("east", "line"), "surface")], "three points that lie on no line"),
        ([term(("east", "level"), "surface")], "'level' is 'surface'|column 'level'"),
        ([term(("east", "east"), "surface")], "a surface has two columns"),
        ([term(("east", "north", "line"), "surface")], "a surface has two columns"),
        ([term("east", "surface")], "a surface has two columns, and all else one"),
        ([term(PLACE, "spline")], "a surface has two columns, and all else one"),
        ([term(PLACE, "surface", order=1)], "takes n_bases= alone"),
        ([*SURFACE, PLACE], "have a surface and a pair"),
        ({("east", "west"): "surface"}, "names the column 'west'"),
    ):
        with pytest.raises(ValueError, match=match):
            km.AdditiveRegressor(terms=terms).fit(X, y)


def test_columns_of_a_surface_may_have_curves_of_their_own(fitted):
    _, X, y = fitted
    by_place = {PLACE: km.Term(PLACE, "surface", n_bases=20), "east": "spline"}
    model = km.AdditiveRegressor(terms=by_place).fit(X, y)
    assert model.term_names_ == ["east", "age", "east × north"]
    assert model.predictor_.terms[2].n_functions == 19
    fixed = km.AdditiveRegressor(terms=SURFACE, smoothing=1e6).fit(X, y)
    free = km.AdditiveRegressor(terms=SURFACE, smoothing=1e-3).fit(X, y)
    assert fixed.edf_[0] < 2 < 50 < free.edf_[0]


def test_a_surface_is_compared_with_curves_by_a_model_of_both(fitted):
    surface, X, y = fitted
    curves = km.AdditiveRegressor(terms=["east", "north", "age"]).fit(X, y)
    both = km.AdditiveRegressor(terms=["east", "north", "age", *SURFACE]).fit(X, y)
    assert km.anova(curves, both).records[1]["p_value"] < 1e-6
    with pytest.raises(ValueError, match="are not nested: model 2 has no term 'east'"):
        km.anova(curves, surface)
    pair = km.AdditiveRegressor(terms=["east", "north", "age", PLACE]).fit(X, y)
    with pytest.raises(ValueError, match=r"model 2 has no term .* \(a surface\)"):
        km.anova(surface, pair)
    with pytest.raises(ValueError, match="is a surface, which has no table of bands or levels"):
        surface.to_tables()
    assert "Check of AdditiveRegressor" in str(surface.check(X, y))
