"""Shape functions: those of models and of linear models on maps, drawn by one display."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from command_line import run

import kernelmaps as km
from kernelmaps.inspection import ShapeFunctionDisplay, importance, shape_functions

NAMES = ["age", "income", "height"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2


@pytest.fixture(scope="module")
def model(rows):
    return km.AdditiveSVR(km.SplineMap(), C=10.0).fit(*rows)


@pytest.fixture(scope="module")
def ridge(rows):
    return km.StreamingRidge(feature_map=km.SplineMap(8)).fit(*rows)


def test_a_linear_model_on_a_map_is_the_sum_of_its_shape_functions(rows, ridge):
    X, _ = rows
    shapes = shape_functions(ridge, domain=(X.min(axis=0), X.max(axis=0)))
    total = sum(np.interp(X[:, j], s.grid, s.values) for j, s in enumerate(shapes))
    actual = ridge.predict(X)
    # Linear interpolation on 60 points of cubic splines with 8 pieces: errors of h²/8 · |g''|.
    assert np.std(total - actual) < 0.02 * np.std(actual)


def table_with_gaps(seed):
    """A number, a category and a number that is missing where the target is high; a pair."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(0.5, 2.0, 250), rng.integers(0, 3, 250), rng.random(250)])
    X[rng.random(250) < 0.2, 2] = np.nan
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 0] / 4 + 3.0 * np.isnan(X[:, 2])
    return X, y + 0.1 * rng.normal(size=250)


IMPORTANCES = {
    "map": lambda X, y: km.AdditiveSVR(km.SplineMap(), C=10.0).fit(np.nan_to_num(X), y),
    "table": lambda X, y: km.AdditiveRegressor(
        categorical_features=[1], interactions=[(0, 1)]
    ).fit(X, y),
    "classes": lambda X, y: km.AdditiveClassifier(
        categorical_features=[1], loss="log_loss"
    ).fit(X, np.digitize(y, [1.0, 3.0])),
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPORTANCES)
def test_importance_is_one_number_wherever_it_is_shown(kind, seed, tmp_path):
    """Standard deviation of a term's contributions to the rows: in Python, `explain` and pages."""
    X, y = table_with_gaps(seed)
    model = IMPORTANCES[kind](X, y)
    X = np.nan_to_num(X) if kind == "map" else X
    shapes, pairs = model.shape_functions_, getattr(model, "pair_functions_", [])
    actual = np.array([importance(function) for function in (*shapes, *pairs)])
    np.testing.assert_array_equal(actual[: len(shapes)], model.feature_importances_)
    spread = model.eval_terms(X).std(axis=0)
    spread = spread.mean(axis=-1) if spread.ndim == 2 else spread
    # So few rows are all in the sample of a map; nodes of a table stand for the values near them.
    np.testing.assert_allclose(actual, spread, rtol=1e-9 if kind == "map" else 0.04)
    named = dict(zip([f.name for f in (*shapes, *pairs)], actual.tolist(), strict=True))
    km.save(model, tmp_path / "m.kmap")
    told = json.loads(run("explain", tmp_path / "m.kmap", "--json"))
    listed = [*told["features"], *told.get("pairs", [])]
    assert {item["name"]: item["importance"] for item in listed} == named
    page = km.model_report(model, tmp_path / "page.html").read_text(encoding="utf-8")
    bars = json.loads(page.split('id="data">')[1].split("</script>")[0])["bars"]
    order = sorted(named, key=lambda name: -named[name])
    assert bars == [[name, float(f"{named[name]:.4g}")] for name in order]


def test_a_display_draws_at_once_and_takes_features_by_name(model):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()
    display = ShapeFunctionDisplay.from_estimator(model, features=["height", 0], names=NAMES)
    assert [ax.get_title() for ax in display.axes_] == ["height", "age"]
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close(display.figure_)
    _, axes = plt.subplots(1, 3)
    again = ShapeFunctionDisplay.from_estimator(model, axes=axes)
    assert list(again.axes_) == list(axes)
    plt.close(again.figure_)


def test_names_come_from_the_frame(rows):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows[0], columns=NAMES)
    model = km.StreamingRidge(feature_map=km.SplineMap(4)).fit(frame, rows[1])
    assert [shape.name for shape in shape_functions(model)] == NAMES


def test_the_picture_of_a_file_is_the_same_display(ridge, tmp_path):
    pytest.importorskip("matplotlib")
    display = ShapeFunctionDisplay.from_model(ridge, n_features=2, names=["$x^2$", "b", "c"])
    path = display.save(tmp_path / "shapes.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_unknown_features_and_models_are_refused(model, rows):
    with pytest.raises(ValueError, match="no feature 'weight' among age, income, height"):
        ShapeFunctionDisplay.from_model(model, features=["weight"], names=NAMES)
    joint = km.StreamingRidge(feature_map=km.RandomFourierMap(n_components=8)).fit(*rows)
    with pytest.raises(ValueError, match="StreamingRidge on RandomFourierMap is not a sum"):
        ShapeFunctionDisplay.from_model(joint)


def test_the_value_of_a_missing_feature_is_drawn_beside_the_curve():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    X[::7, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 2.0, X[:, 0]) + 0.1 * rng.normal(size=300)
    model = km.AdditiveRegressor(smoothing="auto").fit(X, y)
    display = ShapeFunctionDisplay.from_estimator(model, features=[0, 1])
    texts = [[text.get_text() for text in ax.texts] for ax in display.axes_]
    assert texts == [["missing"], []]
    curve, point = display.axes_[0].get_lines()[:2]
    assert point.get_xdata()[0] > curve.get_xdata().max()
    assert point.get_ydata()[0] == pytest.approx(model.shape_functions_[0].missing[0])


def test_of_many_levels_those_with_the_largest_effects_are_drawn():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    shops = rng.integers(0, 40, 2000)
    X = pandas.DataFrame({"shop": [f"shop number {k:02d} of a long street" for k in shops]})
    model = km.AdditiveRegressor().fit(X, shops + rng.normal(size=2000))
    [ax] = ShapeFunctionDisplay.from_estimator(model).axes_
    ax.figure.canvas.draw()
    labels = [text for text in ax.get_xticklabels() if text.get_text()]
    assert ax.get_title() == "shop (14 of 40 levels)"
    shape = model.shape_functions_[0]
    largest = np.argsort(-np.abs(shape.values))[:14]
    assert {text.get_text()[:14] for text in labels} == {shape.levels[k][:14] for k in largest}
    boxes = [text.get_window_extent() for text in labels]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.usefixtures("drawn_weights", "readable")
def test_long_names_of_classes_stay_on_the_figure():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    y = np.array([f"a class with a long name, number {k}" for k in (8 * X[:, 0]).astype(int)])
    model = km.AdditiveSVC(km.SplineMap()).fit(X, y)
    figure = ShapeFunctionDisplay.from_estimator(model).figure_
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_simultaneous_bands_are_wider(rows):
    model = km.AdditiveRegressor().fit(*rows)
    single, all_at_once = (
        ShapeFunctionDisplay.from_model(model, features=[0], simultaneous=simultaneous).panels[0]
        for simultaneous in (False, True)
    )
    shape = model.shape_functions_[0]
    assert np.array_equal(all_at_once["upper"][:, 0], shape.band(simultaneous=True)[1])
    assert (all_at_once["upper"] > single["upper"]).all()
    assert np.array_equal(single["lower"][:, 0], shape.values - 2 * shape.errors)


def test_partial_residuals_scatter_around_the_function(rows):
    """Of squared error: a function plus the residuals is the target without the other terms."""
    X, y = rows
    model = km.AdditiveRegressor().fit(X, y)
    check = model.check(X, y)
    terms = model.eval_terms(X)
    expected = y - model.intercept_ - terms[:, 1] - terms[:, 2]
    np.testing.assert_allclose(check.partial_residuals["x0"], expected, atol=1e-9)
    panel = ShapeFunctionDisplay.from_model(model, features=["x0"], check=check).panels[0]
    np.testing.assert_allclose(panel["points"], np.column_stack([X[:, 0], expected]), atol=1e-9)
    display = ShapeFunctionDisplay.from_estimator(model, features=["x0"], check=check)
    assert len(display.axes_[0].get_lines()[1].get_xdata()) == len(y)


def test_partial_residuals_of_levels_stand_at_their_places():
    X, y = table_with_gaps(0)
    model = km.AdditiveRegressor(categorical_features=[1]).fit(X, y)
    display = ShapeFunctionDisplay.from_model(model, check=model.check(X, y))
    panel = next(panel for panel in display.panels if panel["levels"] is not None)
    assert [panel["levels"][int(k)] for k in panel["points"][:, 0]] == [
        str(int(c)) for c in X[:, 1]
    ]
    gaps = next(panel for panel in display.panels if panel["name"] == "x2")
    assert len(gaps["points"]) == np.isfinite(X[:, 2]).sum()


def test_slopes_are_drawn_in_place_of_curves(rows):
    model = km.AdditiveRegressor().fit(*rows)
    display = ShapeFunctionDisplay.from_model(model, features=[0, 1], derivative=True)
    assert [shape.name for shape in display.shapes] == ["slope of x0", "slope of x1"]
    slope = display.shapes[0]
    assert np.abs(slope.values - 2 * np.cos(2 * slope.grid))[5:-5].mean() < 0.2
    assert (slope.errors > 0).all()


def test_levels_stand_in_their_order_by_number_or_by_effect():
    """Weekdays and ordered categories have an order, names of numbers another, others none."""
    n = 600
    X = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=n)})
    X["size"] = pd.Categorical(np.resize(["big", "mid", "small"], n), ["small", "mid", "big"], True)
    X["town"], X["rank"] = np.resize(["a", "b"], n), np.resize(["10", "9", "2"], n)
    X["flag"] = np.resize([0, 1, 1, 0, 0], n)
    y = 4e6 * (X["town"] == "b") + X["day"].dt.day_of_week + 5 * (X["rank"] == "9") - X["flag"]
    model = km.AdditiveRegressor(categorical_features=["rank"]).fit(X, y)
    display = ShapeFunctionDisplay.from_model(model)
    levels = {panel["name"]: panel["levels"] for panel in display.panels}
    assert levels["size"] == ["small", "mid", "big"]
    assert levels["day (weekday)"] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert levels["rank"] == ["2", "9", "10"]
    assert levels["town"] == ["b", "a"]
    assert levels["flag"] == ["0", "1"]
    display.plot()
    assert display.axes_[0].get_ylabel() == "prediction"
    display.figure_.canvas.draw()
    assert "1M" in [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert not display.axes_[0].yaxis.get_offset_text().get_text()


@pytest.mark.parametrize(
    ("model", "labels", "name", "mean"),
    [
        (km.AdditiveClassifier(), True, "log-odds of class 1", "probability"),
        (km.AdditiveClassifier("ordinal"), True, "log-odds of classes above 0", "probability"),
        (km.AdditiveSVC(loss="log_loss"), True, "log-odds of class 1", None),
        (km.AdditiveSVC(), True, "score of class 1", None),
        (km.AdditiveRegressor("poisson"), False, "logarithm of prediction", "prediction"),
        (km.AdditiveRegressor("binomial"), False, "log-odds of prediction", "prediction"),
        (km.AdditiveRegressor(), False, "prediction", None),
    ],
    ids=str,
)
def test_scores_are_named_and_their_means_stand_beside_them(rows, model, labels, name, mean):
    X, y = rows[0][:200, :2], (rows[1][:200] > 0).astype(int)
    if not labels:
        y = y * 0.5 + 0.2
    model.fit(X, y)
    explained = model.explain(X[:1])
    assert str(explained).startswith(f"{name}: ")
    if mean is None:
        assert explained.mean is None
        return
    exact = model.predict_proba(X[:1])[0, 1] if labels else model.predict(X[:1])[0]
    assert explained.mean == pytest.approx(exact)
    assert f"({mean} {exact:.4g})" in str(explained)
    assert model.summary().facts["score"] == name.replace("prediction", "the mean")


def test_numbers_below_a_panel_do_not_overlap():
    from matplotlib.figure import Figure

    grid = 1e6 + np.arange(0, 50.0)
    shape = km.models.shapes.ShapeFunction("n", grid, grid - grid.mean(), grid, np.ones(49) / 49)
    display = ShapeFunctionDisplay([shape] * 4)
    figure = Figure(layout="constrained", dpi=130)
    display.plot(display._panels(figure, 4))
    figure.canvas.draw()
    for ax in display.axes_:
        boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        assert len(boxes) > 1
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
