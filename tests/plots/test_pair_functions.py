"""Displays of models of tables: bands, names of levels, heat maps of pairs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.inspection import PairFunctionDisplay, ShapeFunctionDisplay
from kernelmaps.models.shapes import PairFunction

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
    actual = model.explain(row)
    ax = actual.plot()
    widths = [bar.get_width() for bar in ax.patches]
    assert sum(widths) == pytest.approx(actual.values.sum())
    plt.close(ax.figure)


def test_terms_beyond_the_largest_are_one_bar(model):
    import matplotlib.pyplot as plt

    found = model.explain(pd.DataFrame({"a": [0.3], "k": ["up"]}))
    [(first, value, band), rest] = found.largest(1)
    k = int(np.argmax(np.abs(found.values)))
    assert first == f"{found.names[k]} = {found.shown[k]}"
    assert (value, band) == (found.values[k], 2 * found.errors[k])
    assert rest[0] == "2 more terms"
    assert found.largest(2)[-1][0] == "1 more term"
    ax = found.plot(n_terms=1)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx([rest[1], value])
    assert sum(widths) == pytest.approx(found.values.sum())
    plt.close(ax.figure)


def test_colours_end_where_most_cells_do():
    """One cell of a hundred is far from the others: it does not decide the scale."""
    values = np.ones((10, 10))
    values[0, 0], values[3, 3] = 50.0, 70.0
    density = np.full((10, 10), 0.01)
    density[3, 3] = 0.0  # no rows
    labels = tuple(f"{k} … {k + 1}" for k in range(10))
    pair = PairFunction("a × b", labels, labels, values, values, density, 1.0, "a")
    display = PairFunctionDisplay([pair])
    np.testing.assert_array_equal(display.limits, [1.0])
    [panel] = display.panels
    assert np.isnan(panel["values"][3, 3, 0])
    assert panel["ticks"][0][:2] == ["0", "1"]
    flat = PairFunctionDisplay([replace(pair, values=0 * values)])
    np.testing.assert_array_equal(flat.limits, [1.0])


def test_a_model_without_pairs_is_refused():
    X = np.random.default_rng(0).random((50, 2))
    plain = km.AdditiveRegressor(smoothing="auto").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="has no pairs"):
        PairFunctionDisplay.from_estimator(plain)
