"""Edits of fitted GAMs: an effect changes where it was asked to, and nowhere else."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import kernelmaps as km
from kernelmaps.export.tables import write_tables
from kernelmaps.models.gam.edits import add_nodes

TOLERANCE = 1e-12  # rounding errors of sums of a few numbers near 1
pytestmark = pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 86, n).astype(float),
            "power": np.where(rng.random(n) < 0.05, np.nan, rng.gamma(9, 11, n)),
            "hour": rng.integers(0, 24, n).astype(float),
            "years": rng.random(n),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n),
        }
    )
    eta = 0.01 * X["age"] + 0.01 * X["power"].fillna(90) * (X["age"] > 40) - 1
    return X, rng.poisson(np.exp(eta + 0.4 * np.sin(X["hour"] / 3.82) + (X["town"] == "Ulm")))


@pytest.fixture(scope="module")
def model(rows):
    terms = {"hour": km.Term("hour", "periodic", period=24), "years": "linear"}
    return km.AdditiveRegressor("poisson", terms=terms, interactions=[("age", "power")]).fit(*rows)


@pytest.fixture(scope="module")
def probes(rows):
    """Values between those of the training rows, and beyond them."""
    X = rows[0].head(600).copy()
    ends = {"age": (18, 85), "power": (1, 300), "hour": (0, 23.999), "years": (-1, 2)}
    for name, (low, high) in ends.items():
        X[name] = np.linspace(low, high, len(X))
    return X


INTERVALS = [
    ("age", 25, 40), ("age", None, 25), ("age", 80.5, None), ("age", 85, None), ("age", 30, 30),
    ("power", 50.3, 120.7), ("power", 0, 90), ("hour", 6, 9), ("hour", 20, 23), ("hour", 0, 3.5),
    ("hour", 20, 24), ("years", 0.2, 0.4), ("years", 0.9, None),
]  # fmt: skip


@pytest.mark.parametrize(("term", "low", "high"), INTERVALS)
def test_an_effect_changes_between_two_values_and_nowhere_else(model, probes, term, low, high):
    """Other terms, pairs among them, stay as they were, and so does the posterior."""
    edited, k = model.edit(term, 0.25, between=(low, high)), model.term_names_.index(term)
    before, after = model.eval_terms(probes), edited.eval_terms(probes)
    x = probes[term].to_numpy()
    inside = (x >= (-np.inf if low is None else low)) & (x <= (np.inf if high is None else high))
    assert np.count_nonzero(~inside) or term == "age"
    np.testing.assert_allclose(after[inside, k], 0.25, atol=TOLERANCE)
    np.testing.assert_allclose(after[~inside, k], before[~inside, k], atol=TOLERANCE)
    np.testing.assert_allclose(np.delete(after, k, 1), np.delete(before, k, 1), atol=TOLERANCE)
    same = np.isclose(after, before, rtol=0, atol=TOLERANCE).all(axis=1)
    np.testing.assert_allclose(edited.predict(probes)[same], model.predict(probes)[same])
    np.testing.assert_allclose(edited.covariance_, model.covariance_)


def test_more_nodes_change_nothing(model, probes):
    predictor = model.predictor_
    columns = model.reader_.read(probes, "test")
    for j, points in ((0, [18.2, 18.3, 77.7]), (1, np.linspace(60, 150, 500)), (2, [23.5])):
        refined = add_nodes(predictor, j, np.asarray(points))
        assert len(refined.books[j].nodes) > len(predictor.books[j].nodes)
        for name in ("scores", "contributions", "errors", "score_errors"):
            before, after = getattr(predictor, name)(columns), getattr(refined, name)(columns)
            # The functions of the posterior have float32.
            tolerance = 1e-5 if "errors" in name else TOLERANCE
            np.testing.assert_allclose(after, before, rtol=tolerance, atol=tolerance)


def test_functions_grids_levels_and_everything(model, probes, rows):
    towns = model.edit("town", {"Ulm": 0.5, "missing": -1}).eval_terms(
        probes.assign(town=["Ulm", None, "Bonn"] * 200)
    )[:, 4]
    assert towns[:2].tolist() == [0.5, -1]
    assert towns[2] == model.eval_terms(probes.assign(town="Bonn"))[0, 4]
    grid = [18, 20.5, 30, 90], [0.5, 0.1, 0.3, 0.0]
    by_grid = model.edit("age", lambda x, old: np.interp(x, *grid)).eval_terms(probes)[:, 0]
    bend = 0.18 * (85 - 18) / 256 / 4  # of straight lines between the points of a function
    np.testing.assert_allclose(by_grid, np.interp(probes["age"], *grid), atol=bend)
    rising = model.edit("age", lambda x, old: np.maximum.accumulate(old)).eval_terms(probes)[:, 0]
    assert np.diff(rising).min() >= -TOLERANCE
    assert (rising >= model.eval_terms(probes)[:, 0] - TOLERANCE).all()
    power = probes.assign(power=[np.nan, 50.0, 1e6] * 200)
    everywhere = model.edit("power", 0.0).eval_terms(power)[:, 1]
    np.testing.assert_allclose(everywhere, 0.0, atol=TOLERANCE)
    same = model.edit("power", lambda x, old: old, between=(50, 100))
    np.testing.assert_allclose(same.predict(probes), model.predict(probes), rtol=TOLERANCE)


def test_a_pair_is_left_out_and_its_columns_show_what_they_did(model, probes):
    for term in ("age × power", ("power", "age")):
        edited = model.edit(term, 0.0)
        before, after = model.eval_terms(probes), edited.eval_terms(probes)
        assert edited.term_names_[5] == "age × power"
        np.testing.assert_allclose(after[:, 5], 0, atol=TOLERANCE)
        np.testing.assert_allclose(after[:, :5], before[:, :5], atol=TOLERANCE)


def test_the_model_itself_stays_as_it_was(model, probes):
    before = model.predict(probes)
    edited = model.edit("age", 0.0).edit("power", 0.0, between=(50, None))
    assert edited.edits_ == ["age = 0", "power in [50, inf] = 0"]
    assert model.edits_ == []
    np.testing.assert_array_equal(model.predict(probes), before)


def test_the_intercept_is_the_best_one_and_deviances_are_those_of_the_rows(model, rows):
    """With a log link, the best intercept makes predictions add up to the targets."""
    X, y = rows
    exposure = np.linspace(0.5, 1.5, len(y))
    options = {"X": X, "y": y, "exposure": exposure}
    edited = model.edit("age", 0.0, **options, refit_intercept=True)
    assert edited.predict(X, exposure=exposure).sum() == pytest.approx(y.sum(), rel=1e-6)
    plain = model.edit("age", 0.0, **options)
    assert plain.intercept_ == model.intercept_

    def deviance(fitted):
        loss = km.losses.Poisson()
        eta = np.log(fitted.predict(X, exposure=exposure))
        return 2 * np.sum(loss.value(y.astype(float), eta) - loss.saturated_value(y.astype(float)))

    words = f"age = 0; deviance of 1,500 rows {deviance(model):.8g} → {deviance(edited):.8g}"
    assert edited.edits_[0].startswith(words)
    assert plain.edits_[0].endswith(f" → {deviance(plain):.8g}")
    assert deviance(edited) < deviance(plain)


def test_classes_have_effects_each(rows):
    X, y = rows
    model = km.AdditiveClassifier().fit(X, np.minimum(y, 2))
    edited = model.edit("age", lambda x, old: old * [1.0, 0.0, 1.0], between=(30, None))
    before, after = model.eval_terms(X)[:, 0], edited.eval_terms(X)[:, 0]
    old = X["age"].to_numpy() >= 30
    np.testing.assert_allclose(after[old, 1], 0, atol=TOLERANCE)
    np.testing.assert_allclose(after[:, [0, 2]], before[:, [0, 2]], atol=TOLERANCE)
    again = edited.edit("town", {"Ulm": [0.0, 1.0, 2.0]}, X=X, y=np.minimum(y, 2))
    assert again.eval_terms(X.assign(town="Ulm"))[0, 4].tolist() == [0.0, 1.0, 2.0]
    assert "deviance of 1,500 rows" in again.edits_[1]
    with pytest.raises(ValueError, match="a class that the model was not fitted on"):
        model.edit("age", 0.0, X=X, y=y + 7)


def test_what_was_edited_is_said_everywhere(model, probes, tmp_path):
    edited = model.edit("age", 0.0, between=(18, 25))
    words = "age in [-inf, 25] = 0"
    assert words in str(edited.summary())
    km.save(edited, tmp_path / "edited.kmap")
    loaded = km.load(tmp_path / "edited.kmap")
    assert loaded.edits_ == [words]
    np.testing.assert_array_equal(loaded.predict(probes), edited.predict(probes))
    assert words in km.to_sql(edited, "rows")
    page = km.model_report(edited, tmp_path / "page.html")
    assert words in page.read_text("utf-8")
    write_tables(edited, tmp_path / "tables.csv")
    table = pd.read_csv(tmp_path / "tables.csv")
    assert table.loc[table["term"] == "(edits)", "band or level"].tolist() == [words]
    tables = edited.to_tables({"age": [26]})
    assert tables["age"]["effect"].iloc[0] == pytest.approx(0, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", 0.0), "edit: term names the column 'nothing'"),
        ((("age", "town"), 0.0), "edit: the model has no term of 'age × town'"),
        (("age", "low"), "effect must be a number, a function"),
        (("age", np.nan), "the new effect of 'age' must be finite"),
        (("age", 0.0, (60, 20)), "between must hold two numbers in order"),
        (("age", 0.0, (90, 120)), r"\[90, 120\] holds no value of column 'age' in fit: 18 … 85"),
        (("age", 0.0, "18-25"), "between must hold two numbers"),
        (("age", lambda x, old: old[1:]), r"numbers of the shape \(\d+,\)"),
        (("age", {"other": 1.0}), "column 'age' has no level 'other'"),
        (("town", 0.0, (1, 2)), "between is for numbers, and 'town' is a category"),
        (("town", {"Köln": 0.0}), "column 'town' has no level 'Köln'"),
        (("town", {"Ulm": "low"}), "the effect of 'Ulm' must be a number"),
        (("town", {}), "no level"),
        (("age", lambda x: x), "two arrays"),
        (("age", lambda x, old: "none"), "two arrays"),
        (("age × power", lambda x, old: old), "'age × power' is a term of two columns"),
    ],
)
def test_what_cannot_be_edited_is_refused(model, arguments, message):
    term, effect, *between = arguments
    with pytest.raises(ValueError, match=message):
        model.edit(term, effect, between=between[0] if between else None)


def test_rows_are_needed_for_an_intercept_and_a_fit_for_an_edit(model, rows):
    with pytest.raises(ValueError, match="X= and y are needed to compare with rows"):
        model.edit("age", 0.0, refit_intercept=True)
    with pytest.raises(NotFittedError):
        km.AdditiveRegressor().edit("age", 0.0)


def test_a_function_holds_between_the_values_of_few_rows(seed):
    """Within the square of the distance of points times an eighth of the second derivative."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": np.repeat(np.arange(0.0, 41.0, 10.0), 40)})
    model = km.AdditiveRegressor().fit(X, 0.1 * X["x"] + 0.1 * rng.normal(size=len(X)))
    x = np.linspace(0.0, 40.0, 501)
    edited = model.edit("x", lambda values, old: values**2 / 100)
    effect = edited.eval_terms(pd.DataFrame({"x": x})).ravel()
    np.testing.assert_allclose(effect, x**2 / 100, atol=(40 / 256) ** 2 / 8 * 0.02 + 1e-12)
    step = model.edit("x", lambda values, old: np.where(values < 25, 0.0, 1.0))
    away = np.abs(x - 25) > 40 / 256
    effect = step.eval_terms(pd.DataFrame({"x": x})).ravel()
    np.testing.assert_allclose(effect[away], (x > 25)[away], atol=1e-12)
