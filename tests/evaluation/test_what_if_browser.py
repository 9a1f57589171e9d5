"""The form of a model's page in a real browser: what it computes is what Python computes."""

import numpy as np
import pandas as pd
import pytest
from browser_driver import NEEDS_BROWSER, open_page

import kernelmaps as km
from kernelmaps.evaluation import what_if

pytestmark = [
    *NEEDS_BROWSER,
    pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning"),
]
TOLERANCE = 1e-6  # promised; rounding errors are near 1e-14
COMPUTE = """return arguments[0].map(row => {
  const result = whatIf(row.map(x => x === null ? NaN : x));
  return [...result.scores, ...(result.errors || []), ...(result.probabilities || []),
          ...result.terms.flat()];
})"""


def training_rows(n=900):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 86, n).astype(float),
            "power": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(9, 11, n)),
            "town": rng.choice(["Ulm", "<b>Bonn</b>", "Kiel"], n),
            "shop": [f"shop {k % 290}" for k in range(n)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2e8, n), "s"),
            "hour": rng.integers(0, 24, n),
            "flag": rng.random(n) < 0.4,
        }
    )
    score = 0.03 * X["age"] * X["flag"] + 0.01 * X["power"].fillna(0) * (X["town"] == "Ulm")
    score += np.sin(X["hour"] / 3.82) + 0.3 * (X["day"].dt.day_of_week == 2)
    return X, (score + 0.3 * rng.normal(size=n)).to_numpy()


PAIRS = [
    ("age", "power"), ("town", "power"), ("town", "flag"),
    (km.Term("age", "linear"), km.Term("power", "linear")),
]  # fmt: skip


@pytest.fixture(scope="module")
def models():
    X, score = training_rows()
    few = X[["age", "power", "town", "flag"]]
    terms = {"hour": km.Term("hour", "periodic", period=24), "age": "linear"}
    counts = np.random.default_rng(1).poisson(np.exp(score / 4))
    thirds = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    going_on = {"power": km.Term("power", extrapolation="linear")}
    return {
        "numbers": km.AdditiveRegressor(terms=terms, interactions=PAIRS[:3]).fit(X, score),
        "counts": km.AdditiveRegressor("poisson", interactions=PAIRS[3:])
        .fit(few, counts)
        .edit("age", 0.0, between=(18, 25)),
        "two classes": km.AdditiveClassifier(terms=going_on).fit(few, score > 1),
        "ordered classes": km.AdditiveClassifier("ordinal").fit(few, thirds),
        "mean and scale": km.AdditiveRegressor("location_scale").fit(few, score),
        "three classes": km.AdditiveClassifier(interactions=PAIRS[:1]).fit(few, thirds),
    }


KINDS = ["numbers", "counts", "two classes", "three classes", "ordered classes", "mean and scale"]


@pytest.fixture(scope="module")
def pages(models, tmp_path_factory):
    folder, X = tmp_path_factory.mktemp("pages"), training_rows()[0].head(50)
    return {
        kind: km.model_report(model, folder / f"{kind[:3]}.html", X=X[[*model.feature_names_in_]])
        for kind, model in models.items()
    }


def hostile_rows(n=300):
    """Missing values, unseen levels, numbers far beyond the training rows."""
    X, rng = training_rows()[0].head(n), np.random.default_rng(2)
    X = X.astype({"flag": "boolean", "hour": float})
    numbers = [np.nan, -1e6, 1e6, 17.99, 18.0, 25.0, 25.5, 0.0]
    cells = {
        "age": numbers, "power": numbers, "hour": [np.nan, 23.5, 24.0, -3.0],
        "town": [None, "Ulm", "Rome"], "shop": [None, "shop 1", "new"], "flag": [pd.NA, True],
        "day": [pd.NaT, pd.Timestamp("1999-12-31 23:59:59"), pd.Timestamp("2040-02-29")],
    }  # fmt: skip
    for name, values in cells.items():
        rows = np.flatnonzero(rng.random(n) < 0.3)
        picked = pd.Series(values, dtype=X[name].dtype).iloc[
            rng.integers(0, len(values), len(rows))
        ]
        X.loc[rows, name] = picked.to_numpy()
    return X


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_computes_what_python_does(browser, models, pages, kind):
    """Scores, their standard errors, probabilities, and the contributions of the terms."""
    model, predictor = models[kind], models[kind].predictor_
    rows = hostile_rows()[[*model.feature_names_in_]]
    columns = model.reader_.read(rows, "test")
    row = np.column_stack([b.numbers(c, "test") for b, c in zip(predictor.books, columns)])
    plain = [[None if np.isnan(x) else x for x in cells] for cells in row.tolist()]
    got = np.array(open_page(browser, pages[kind], 800).execute_script(COMPUTE, plain), float)
    expected = [predictor.scores(columns), predictor.score_errors(columns)]
    if hasattr(model, "classes_"):
        expected.append(model.predict_proba(rows))
    expected.append(predictor.contributions(columns).reshape(len(rows), -1))
    np.testing.assert_allclose(got, np.hstack(expected), rtol=TOLERANCE, atol=TOLERANCE)


def words(browser):
    return browser.find_element("css selector", "#what-words").text


def field(browser, name):
    """The field of a column, by its label."""
    return browser.execute_script(
        """const label = [...document.querySelectorAll('.input .name')]
        .find(e => e.textContent === arguments[0]);
        return document.getElementById(label.getAttribute('for'))""",
        name,
    )


def shown(prediction, low, high, of="Prediction", suffix=" of the mean"):
    """The sentence of a prediction, with five digits each."""
    numbers = [np.format_float_positional(float(f"{v:.5g}"), trim="-") for v in (low, high)]
    value = np.format_float_positional(float(f"{prediction:.5g}"), trim="-")
    return f"{of} {value}; 95 % interval{suffix} {numbers[0]} … {numbers[1]}"


def begin_with_a_row(browser):
    """Choose the first row of the list, and return it."""
    options = browser.find_elements("css selector", "#what-start option")
    assert options[0].text == "typical values"
    browser.find_element("css selector", "#what-start").send_keys(options[1].text)
    return training_rows()[0].iloc[[int(options[1].text.split()[1].rstrip(","))]]


@pytest.mark.parametrize("width", [390, 1280])
def test_values_are_typed_and_chosen_by_the_keyboard(browser, models, pages, width):
    """The date sets its year, month, weekday and hour; an empty number is a missing value."""
    from selenium.webdriver.common.keys import Keys

    model, driver = models["numbers"], open_page(browser, pages["numbers"], width)
    row = begin_with_a_row(driver)
    driver.execute_script(
        "const f = arguments[0]; f.value = '2022-03-01T10:30'; f.dispatchEvent(new Event('input'))",
        field(driver, "day"),
    )
    age, power = field(driver, "age"), field(driver, "power")
    age.clear()
    age.send_keys("93.5")
    power.clear()
    field(driver, "town").send_keys("(miss")
    field(driver, "shop").send_keys("(another")
    row = row.assign(day=pd.Timestamp("2022-03-01 10:30"), age=93.5, power=np.nan, town=None)
    row["shop"] = "none of these"
    mean, error = (values[0] for values in model.predict(row, return_std=True))
    assert words(driver) == shown(mean, mean - 1.959964 * error, mean + 1.959964 * error)
    slider = driver.execute_script("return arguments[0].nextElementSibling", age)
    slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    assert age.get_attribute("value") == "19"
    mean, error = (values[0] for values in model.predict(row.assign(age=19.0), return_std=True))
    assert words(driver) == shown(mean, mean - 1.959964 * error, mean + 1.959964 * error)
    assert driver.get_log("browser") == []
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width


def test_the_form_begins_with_typical_values_or_a_row(browser, models, pages):
    model, driver = models["counts"], open_page(browser, pages["counts"], 1280)
    row = begin_with_a_row(driver)[[*model.feature_names_in_]]
    mean, error = (values[0] for values in model.predict(row, return_std=True))
    factor = np.exp(1.959964 * error / mean)
    assert words(driver) == shown(mean, mean / factor, mean * factor)
    bars = driver.find_elements("css selector", "#what-terms .label")
    assert sorted(bar.text for bar in bars) == sorted(model.term_names_)
    assert "age in [-inf, 25] = 0" in driver.find_element("css selector", "#subtitle").text


def test_classes_have_probabilities(browser, models, pages):
    model, driver = models["three classes"], open_page(browser, pages["three classes"], 390)
    labels = driver.find_elements("css selector", "#what-classes .label")
    assert [label.text for label in labels] == ["0", "1", "2"]
    driver.find_element("css selector", "#what-output").send_keys("contributions to 2")
    total = driver.find_element("css selector", "#what-sum").text
    assert total.startswith(f"With the intercept, {model.intercept_[2]:.5g}, they add up to")
    driver = open_page(browser, pages["two classes"], 390)
    assert words(driver).startswith("Probability of True: 0.")
    assert not driver.find_element("css selector", "#what-output").is_displayed()


def test_what_is_too_large_or_has_no_table_is_said(browser, models, tmp_path, monkeypatch):
    monkeypatch.setattr(what_if, "MAX_POSTERIOR", 100)
    page = km.model_report(models["counts"], tmp_path / "small.html")
    driver = open_page(browser, page, 800)
    assert driver.find_element("css selector", "#what-note").text.startswith("No interval: its cov")
    assert words(driver).startswith("Prediction ")
    assert "interval" not in words(driver)
    X = pd.DataFrame(np.random.default_rng(0).random((200, 2)), columns=["east", "north"])
    surface = km.AdditiveRegressor(terms=[km.Term(("east", "north"), "surface")])
    surface.fit(X, X["east"] * X["north"])
    driver = open_page(browser, km.model_report(surface, tmp_path / "surface.html"), 800)
    note = driver.find_element("css selector", "#what-note").text
    assert note == "east × north is a surface, which has no table: there is no form."
    assert driver.get_log("browser") == []
