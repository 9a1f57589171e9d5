"""Display of the check of a model."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.inspection import CheckDisplay

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(300), "c": rng.choice(["u", "v", "w$"], 300)})
    X.loc[:9, "a"] = np.nan
    y = 3 * (X["c"] == "u") + X["a"].fillna(0.5) + 0.3 * rng.normal(size=300)
    return X, y


@pytest.fixture(scope="module")
def check(rows):
    return km.AdditiveRegressor(terms=["a"]).fit(*rows).check(*rows)


def test_panels_hold_residuals_against_everything(rows, check):
    display = CheckDisplay.from_check(check)
    names = [panel["name"] for panel in display.panels]
    assert names == ["QQ plot", "fitted", "a"]
    qq, fitted, a = display.panels
    assert np.array_equal(qq["y"], np.sort(check.quantile_residuals))
    assert np.array_equal(fitted["x"], check.fitted)
    assert len(a["x"]) == 290  # without the missing values


def test_the_line_joins_the_means_of_groups(rows, check):
    X, _ = rows
    levels = X["c"].to_numpy(object)
    display = CheckDisplay(
        check.qq(), check.quantile_residuals, fitted=check.fitted, columns={"c": levels}
    )
    panel = display.panels[-1]
    assert panel["levels"] == ["u", "v", "w$"]
    means = [check.quantile_residuals[levels == level].mean() for level in ("u", "v", "w$")]
    np.testing.assert_allclose(panel["trend"][1], means)
    assert means[0] > 1 > means[1]  # the column that the model lacks


def test_the_display_is_drawn_and_saved(rows, tmp_path):
    model = km.AdditiveRegressor().fit(*rows)
    display = CheckDisplay.from_estimator(model, *rows, features=["c"])
    assert [ax.get_title() for ax in display.axes_] == ["QQ plot", "fitted", "c"]
    assert display.save(tmp_path / "check.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="no column 'z' among a, c"):
        CheckDisplay.from_check(model.check(*rows), ["z"])
