"""The page of a model holds what the model says, for every model that is a sum of functions."""

import functools
import json
import re
import weakref

import numpy as np
import pandas
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import kernelmaps as km
from kernelmaps.evaluation.reports import _round_axis, fill_template
from kernelmaps.evaluation.scores import PredictionScores
from kernelmaps.inspection import PairFunctionDisplay, ShapeFunctionDisplay


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pandas.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(5.0, 20.0, n)),
            "</script><b>city": rng.choice(["Bern", "<i>Ulm</i>"], n),
            "floor": rng.integers(0, 9, n),
        }
    )
    y = np.where(X["area"].isna(), 2.0, 0.05 * X["area"]) + (X.iloc[:, 1] == "Bern")
    return X, y + 0.3 * (X["floor"] > 4) * (X.iloc[:, 1] == "Bern") + 0.1 * rng.normal(size=n)


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    X, y = table()
    model = km.AdditiveRegressor(interactions=[("floor", "</script><b>city")]).fit(X[:300], y[:300])
    page = tmp_path_factory.mktemp("page") / "model.html"
    km.model_report(model, page, X=X[300:], y=y[300:], target="rent <b>")
    return model, X[300:], y[300:], data_of(page), page


def test_a_page_is_written_by_the_rules_of_all_files(tmp_path):
    """Folders are not created, as by `km.save`."""
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        fill_template("model_report.html", {}, tmp_path / "gone" / "page.html")
    assert not list(tmp_path.iterdir())


def test_the_page_has_every_function_and_pair(regression):
    model, _, _, data, _ = regression
    shapes = {shape.name: shape for shape in model.shape_functions_}
    assert {found["name"] for found in data["shapes"]} == set(shapes)
    display = ShapeFunctionDisplay.from_model(model)
    np.testing.assert_allclose(data["range"], display.limits, rtol=1e-3)
    for found, panel in zip(data["shapes"], display.panels, strict=True):
        shape = shapes[found["name"]]
        order = np.arange(len(shape.grid)) if shape.levels is None else shape.level_order()
        values, errors = shape.values[order], shape.errors[order]
        np.testing.assert_allclose(np.ravel(found["values"]), values, rtol=1e-3, atol=1e-12)
        for key, sign in (("lower", -1), ("upper", 1)):
            band = values + sign * 2 * errors
            np.testing.assert_allclose(np.ravel(found[key]), band, rtol=1e-3, atol=1e-12)
        for key in ("name", "left_out", "levels"):
            assert found[key] == panel[key]
        for key in ("heights", "shares", "range"):
            np.testing.assert_allclose(found[key], panel[key], rtol=1e-3)
        named = None if shape.levels is None else [shape.levels[k] for k in order]
        assert found["levels"] == named
    [pair] = data["pairs"]
    own = model.pair_functions_[0]
    assert pair["name"] == own.name
    values = np.array(pair["values"], float)[..., 0]  # nothing where no rows are
    np.testing.assert_array_equal(np.isnan(values), own.density == 0)
    known = own.density > 0
    np.testing.assert_allclose(values[known], own.values[known], rtol=5e-3, atol=1e-12)
    pairs = PairFunctionDisplay.from_estimator(model)
    np.testing.assert_allclose(data["limits"], pairs.limits, rtol=5e-3)
    assert [line[0] for line in data["bars"]] == [row[0] for row in model.summary().rows]
    assert data["summary"]["rows"] == [list(row) for row in model.summary().rows]
    assert next(f for f in data["shapes"] if f["name"] == "area")["missing"] is not None


def test_rows_add_up_and_the_median_one_comes_first(regression):
    model, X, y, data, _ = regression
    predictions = model.predict(X)
    assert "median" in data["rows"][0]["label"]
    assert len(data["rows"]) == 5
    for row in data["rows"]:
        k = int(re.match(r"row (\d+)", row["label"])[1])
        total = row["intercept"] + sum(value for _, value, _ in row["terms"])
        said = model.explain(X.iloc[[k]])
        words = zip(said.names, said.shown, said.errors, strict=True)
        bands = {f"{name} = {shown}": 2 * error for name, shown, error in words}
        assert [words for words, _, _ in row["terms"]] == [line[0] for line in said.largest(20)]
        for words, _, band in row["terms"]:
            assert band == pytest.approx(bands[words], rel=0.05)
        assert total == pytest.approx(predictions[k], rel=2e-3)
        assert float(row["truth"]) == pytest.approx(y.iloc[k], rel=1e-5)
    first = int(re.match(r"row (\d+)", data["rows"][0]["label"])[1])
    assert np.mean(predictions <= predictions[first]) == pytest.approx(0.5, abs=0.02)


def test_scores_are_those_of_the_rows(regression):
    model, X, y, data, _ = regression
    scores = dict(data["scores"]["scores"])
    assert scores["R²"] == pytest.approx(model.score(X, y), rel=1e-3)
    points = np.array(data["scores"]["points"])
    np.testing.assert_allclose(points[:, 0], model.predict(X), rtol=1e-3)
    np.testing.assert_allclose(points[:, 1], y, rtol=1e-3)


def test_chosen_rows_are_explained_in_their_order(regression, tmp_path):
    model, X = regression[:2]
    data = data_of(km.model_report(model, tmp_path / "m.html", X=X, rows=[7, 3]))
    assert [row["label"] for row in data["rows"]] == ["row 7", "row 3"]
    assert data["rows"][0]["truth"] is None
    assert data["scores"] is None


def test_without_rows_the_page_has_what_the_model_knows(regression, tmp_path):
    model = regression[0]
    held_out = {"rows": 50, "scores": {"r2": 0.9}}
    data = data_of(km.model_report(model, tmp_path / "m.html", held_out=held_out))
    assert data["rows"] == []
    assert data["facts"][0] == ["0.9", "R² on 50 held-out rows"]


def test_two_classes(tmp_path):
    X, y = table()
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = km.AdditiveClassifier(loss="log_loss").fit(X, labels)
    data = data_of(km.model_report(model, tmp_path / "m.html", X=X, y=labels))
    assert data["scale"] == "the log-odds of class dear"
    counts = np.array(data["scores"]["confusion"]["counts"])
    assert counts.sum() == len(X)
    assert np.trace(counts) / len(X) == pytest.approx(model.score(X, labels))
    chances = np.array(data["scores"]["chances"])
    assert chances[:, 2].sum() == len(X)
    shares = chances[:, 1] @ chances[:, 2] / len(X)
    assert shares == pytest.approx(np.mean(labels == "dear"), abs=1e-3)
    mean = chances[:, 0] @ chances[:, 2] / len(X)
    assert mean == pytest.approx(model.predict_proba(X)[:, 1].mean(), abs=1e-3)
    assert (np.diff(chances[:, 0]) >= 0).all()


@pytest.mark.parametrize(("classes", "kind"), [((2, 10), "U"), ((1, 2, 10), "O"), ((2, 10), "u1")])
def test_scores_do_not_depend_on_the_type_of_the_labels(classes, kind):
    X, y = table()
    places = np.digitize(y, np.quantile(y, np.arange(1, len(classes)) / len(classes)))
    labels = np.array(classes)[places]
    model = km.AdditiveClassifier(loss="log_loss").fit(X, labels)
    of_numbers = PredictionScores(model).add(X, labels)
    assert of_numbers.scores()["accuracy"] == model.score(X, labels)
    of_others = PredictionScores(model).add(X, labels.astype(kind))
    assert of_others.scores() == of_numbers.scores()
    assert of_others.class_scores() == of_numbers.class_scores()


def test_classes_that_the_model_does_not_know_are_wrong_and_classes_of_their_own():
    X, y = table()
    labels = np.where(y > np.median(y), "dear", "cheap").astype(object)
    model = km.AdditiveClassifier(loss="log_loss").fit(X, labels)
    labels[:300] = np.resize(["new", "newer", "cheapest"], 300)
    judged = (
        PredictionScores(model, refuse=False).add(X[:150], labels[:150]).add(X[150:], labels[150:])
    )
    right = model.predict(X) == labels
    shares = [right[labels == label].mean() for label in np.unique(labels.astype(str))]
    scores = judged.scores()
    assert scores["accuracy"] == right.mean()
    assert scores["most_frequent_class"] == 100 / len(X)
    assert scores["balanced_accuracy"] == pytest.approx(np.mean(shares))
    known = PredictionScores(model).add(X[300:], labels[300:]).scores()
    assert scores["log_loss"] == pytest.approx(known["log_loss"])
    assert scores["roc_auc"] == known["roc_auc"]
    with pytest.raises(ValueError, match="the target has the classes"):
        PredictionScores(model).add(X, labels)


def test_three_classes_explain_the_predicted_one(tmp_path):
    X, y = table()
    labels = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    model = km.AdditiveClassifier(loss="log_loss", interactions=1).fit(X, labels)
    data = data_of(km.model_report(model, tmp_path / "m.html", X=X, y=labels))
    assert data["outputs"] == ["0", "1", "2"]
    assert {len(line) for found in data["shapes"] for line in found["values"]} == {3}
    scores = model.decision_function(X)
    for row in data["rows"]:
        k = int(re.match(r"row (\d+)", row["label"])[1])
        best, probability = scores[k].argmax(), model.predict_proba(X.iloc[[k]]).max()
        assert row["prediction"] == str(best)
        words = re.fullmatch(
            r"softmax score of class (\d): (\S+) \(probability (.*)\)", row["summary"]
        )
        assert words[1] == str(best)
        assert float(words[2]) == pytest.approx(scores[k].max(), rel=1e-4)
        assert float(words[3]) == pytest.approx(probability, rel=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        km.AdditiveSVR(feature_map=km.SplineMap()),
        km.AdditiveSVR(C=[0.1, 1.0], cv=2),
        km.StreamingRidge(feature_map=km.SplineMap()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_on_maps_have_a_page_too(model, tmp_path):
    X = np.random.default_rng(0).random((200, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    model.fit(X, y)
    path = km.model_report(model, tmp_path / "m.html", X=X, y=y, feature_names=["a", "b"])
    data = data_of(path)
    assert sorted(found["name"] for found in data["shapes"]) == ["a", "b"]
    assert data["summary"] is None
    assert dict(data["scores"]["scores"])["R²"] == pytest.approx(model.score(X, y), rel=1e-3)
    if data["rows"]:
        assert {term[0].split(" = ")[0] for term in data["rows"][0]["terms"]} == {"a", "b"}


def test_what_is_not_a_sum_of_functions_is_refused(tmp_path):
    X = np.random.default_rng(0).random((50, 2))
    model = km.StreamingRidge(feature_map=km.RandomFourierMap(n_components=8)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="is not a sum of functions of one feature"):
        km.model_report(model, tmp_path / "m.html")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"y": [1.0]}, "pass X="),
        ({"rows": [0]}, "pass X="),
        ({"X": np.ones((3, 2)), "y": [1.0]}, "X has 3 rows, y has 1 values"),
        ({"X": np.ones((3, 2)), "rows": [3]}, "rows holds 3, but X has the rows 0 to 2"),
    ],
)
def test_rows_that_do_not_fit_are_refused(more, match, tmp_path):
    X = np.random.default_rng(0).random((50, 2))
    model = km.AdditiveRegressor(smoothing="auto").fit(X, X[:, 0])
    with pytest.raises(ValueError, match=match):
        km.model_report(model, tmp_path / "m.html", **more)
    assert not (tmp_path / "m.html").exists()


def test_names_cannot_leave_the_data(regression):
    text = regression[4].read_text(encoding="utf-8")
    assert "</script><b>city" not in text
    assert "<i>Ulm" not in text
    assert "<b>" not in text.split('id="data">')[1]


def test_the_page_needs_no_network(regression):
    text = regression[4].read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)[^"'#]""", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("values", [[1.6e9, 1.6e9 + 2500.5, 1.6e9 + 5000], [0.0, 1e-9], [3.0, 3.0]])
def test_places_on_an_axis_keep_four_digits_of_its_extent(values):
    found = np.array(_round_axis(values))
    assert np.abs(found - values).max() <= 1e-4 * np.ptp(values) + 1e-12


@pytest.mark.parametrize("kind", ["numbers", "three"])
def test_rows_in_blocks_give_the_page_of_all_rows(tmp_path, kind):
    """And none of the blocks is kept while the next one is read."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = X.sum(axis=1)
    if kind != "numbers":
        y = np.digitize(y, [0.8, 1.2])
    cls = km.AdditiveRegressor if kind == "numbers" else km.AdditiveClassifier
    model = cls(smoothing="auto").fit(X, y)
    alive, most = [], []

    def blocks():
        for begin in range(0, 300, 70):
            block = X[begin : begin + 70].copy()
            alive.append(weakref.ref(block))
            most.append(sum(own() is not None for own in alive))
            yield block, y[begin : begin + 70], None
            del block

    whole = km.model_report(model, tmp_path / "whole.html", X=X, y=y)
    part = km.model_report(model, tmp_path / "blocks.html", X=blocks)
    assert part.read_text() == whole.read_text()
    assert max(most) <= 2  # the next one is made before the loop lets the last one go
    with pytest.raises(ValueError, match="rows holds 300, but X has the rows 0 to 299"):
        km.model_report(model, tmp_path / "blocks.html", X=blocks, rows=[300])


def test_the_page_shows_the_checks(regression):
    model, X, y, data, _ = regression
    check = model.check(X, y)
    assert data["check"]["rows"] == len(y)
    assert data["check"]["findings"] == check.findings
    assert [item[0] for item in data["check"]["tables"]] == list(check.tables())
    _, observed = check.qq()
    np.testing.assert_allclose([point[1] for point in data["check"]["qq"]], observed, rtol=1e-3)


# ---- predictors ----------------------------------------------------------------------------------

PREDICTED = {
    "pairs": km.AdditiveRegressor(interactions=[("floor", "</script><b>city")]),
    "counts": km.AdditiveRegressor("poisson"),
    "mean and scale": km.AdditiveRegressor("location_scale"),
    "two classes": km.AdditiveClassifier(),
    "three classes": km.AdditiveClassifier(),
    "ordered": km.AdditiveClassifier("ordinal"),
    "SVR": km.AdditiveSVR(),
    "SVC, two classes": km.AdditiveSVC(loss="log_loss"),
    "SVC, three classes": km.AdditiveSVC(),
    "SVC, pairs": km.AdditiveSVC(loss="log_loss", multi_class="ovo"),
    "ridge": km.StreamingRidge(feature_map=km.SplineMap(8)),
    "ridge, three classes": km.StreamingRidgeClassifier(feature_map=km.SplineMap(8)),
}


@functools.cache
def predicted(kind):
    """A model of some rows, these and others, and their targets."""
    model, (X, y) = clone(PREDICTED[kind]), table()
    if not hasattr(model, "interactions"):
        X = pandas.DataFrame({"area": X["area"].fillna(100.0), "floor": 1.0 * X["floor"]})
    if is_classifier(model):
        y = np.digitize(y, np.quantile(y, [0.5] if "two" in kind else [0.3, 0.7]))
    elif kind == "counts":
        y = np.round(np.abs(y))
    fitted_on = X if hasattr(model, "explain") else X.to_numpy()  # ridge models name no terms
    return model.fit(fitted_on[:300], y[:300]), fitted_on, y


@pytest.mark.usefixtures("drawn_weights")
@pytest.mark.parametrize("kind", PREDICTED)
def test_a_predictor_from_a_file_says_what_its_estimator_says(kind, tmp_path):
    """But for what only the fit knows: checks, tests, degrees of freedom, numbers of rows."""
    model, X, y = predicted(kind)
    km.save(model.predictor_, tmp_path / "predictor.kmap")
    predictor = km.load(tmp_path / "predictor.kmap")
    assert type(predictor) is type(model.predictor_) is not type(model)
    pages = []
    for one in (model, predictor):
        path = tmp_path / f"{type(one).__name__}.html"
        pages.append(data_of(km.model_report(one, path, X=X[300:], y=y[300:], rows=[0, 7])))
    assert pages[0]["shapes"]
    assert len(pages[0]["rows"]) == 2 * hasattr(model, "explain")
    of_gam = hasattr(model, "interactions")
    assert (pages[0]["summary"] is not None) == of_gam
    assert pages[1]["summary"] is pages[1]["check"] is None
    if of_gam:  # of which bands are made
        residual_df = float(model._residual_df.min())
        assert predictor.residual_df == pytest.approx(residual_df, rel=1e-12)
    for page in pages:  # what the fit alone knows
        page["subtitle"] = page["subtitle"].partition(",")[0]
        page["facts"] = [
            fact for fact in page["facts"] if fact[1] != "effective degrees of freedom"
        ]
        del page["summary"], page["check"]
    assert pages[0] == pages[1]
    displays = [
        ShapeFunctionDisplay.from_model(one, simultaneous=of_gam) for one in (model, predictor)
    ]
    assert displays[0].title == displays[1].title == type(model).__name__
    assert displays[0].score == displays[1].score
    assert displays[0].classes == displays[1].classes
    for ours, theirs in zip(*(display.panels for display in displays), strict=True):
        np.testing.assert_equal(theirs, ours)


@pytest.mark.usefixtures("drawn_weights")
@pytest.mark.parametrize("kind", ["pairs", "three classes", "SVR", "SVC, pairs"])
def test_explanations_of_a_predictor_are_those_of_its_estimator(kind, tmp_path):
    model, X, _ = predicted(kind)
    km.save(model.predictor_, tmp_path / "predictor.kmap")
    predictor = km.load(tmp_path / "predictor.kmap")
    for output in (None, 1) if is_classifier(model) else (None,):
        for k in (0, 7):
            ours, theirs = (one.explain(X.iloc[[k]], output) for one in (model, predictor))
            np.testing.assert_equal(vars(theirs), vars(ours))
    swapped = X.iloc[[0], ::-1]  # columns are found by name
    assert str(predictor.explain(swapped)) == str(model.explain(X.iloc[[0]]))
    with pytest.raises(ValueError, match=f"{type(model).__name__}.explain takes one row, got 2"):
        predictor.explain(X[:2])


def test_times_of_a_predictor_are_refused(tmp_path):
    X, _ = table(100)
    y = np.column_stack([np.arange(1.0, 101.0), np.arange(100) % 2])
    model = km.AdditiveSurvival().fit(X, y)
    with pytest.raises(ValueError, match="y of AdditiveSurvival is for the estimator"):
        km.model_report(model.predictor_, tmp_path / "m.html", X=X, y=y)
    data = data_of(km.model_report(model.predictor_, tmp_path / "m.html", X=X))
    assert data["scale"] == "the log hazard"
    assert data["rows"]


def test_what_is_not_fitted_is_refused(tmp_path):
    for call in (
        lambda m: km.model_report(m, tmp_path / "m.html"),
        ShapeFunctionDisplay.from_model,
    ):
        with pytest.raises(NotFittedError):
            call(km.AdditiveSVR())
