"""Displays of models of tables: bands, names of levels, heat maps of pairs."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.inspection import PairFunctionDisplay, ShapeFunctionDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(400), "k": rng.choice(["up", "down"], 400)})
    y = X["a"] * np.where(X["k"] == "up", 1, -1) + 0.1 * rng.normal(size=400)
    return km.AdditiveRegressor(interactions=[("a", "k")]).fit(X, y)


def test_bands_and_levels_are_drawn(model):
    import matplotlib.pyplot as plt

    shown = ShapeFunctionDisplay.from_estimator(model, features=[0, 1]).plot()
    number, category = shown.axes_
    band = number.collections[0].get_paths()[0].vertices[:, 1]
    curve = model.shape_functions_[0]
    assert band.max() >= (curve.values + 2 * curve.errors).max() - 1e-12
    assert {text.get_text() for text in category.get_xticklabels()} == {"up", "down"}
    plt.close(shown.figure_)


def test_heat_map_shows_the_pair(model):
    import matplotlib.pyplot as plt

    shown = PairFunctionDisplay.from_estimator(model).plot()
    pair = model.pair_functions_[0]
    drawn = shown.axes_[0].images[0].get_array()
    seen = pair.density > 0
    np.testing.assert_allclose(np.asarray(drawn.T)[seen], pair.values[seen])
    assert shown.axes_[0].get_title() == "a × k"
    plt.close(shown.figure_)


def test_explanation_is_drawn_as_bars(model):
    import matplotlib.pyplot as plt

    row = pd.DataFrame({"a": [0.3], "k": ["up"]})
    found = model.explain(row)
    ax = found.plot()
    widths = [bar.get_width() for bar in ax.patches]
    assert sum(widths) == pytest.approx(found.values.sum())
    plt.close(ax.figure)


def test_a_model_without_pairs_is_refused():
    X = np.random.default_rng(0).random((50, 2))
    plain = km.AdditiveRegressor(smoothing="auto").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="has no pairs"):
        PairFunctionDisplay.from_estimator(plain)
