"""Additive survival models: coxph's figures, invariances, curves and bands, and refusals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning

# A small table with ties, and what survival 3.5-3 of R says of it: coxph(ties = "efron") and
# survfit(conf.type = "log-log") for a = 0.5, b = 1, s = 1 at the times 2 and 5.
TABLE = pd.DataFrame({
    "a": [0.1, 1.3, 0.3, 3.3, -0.1, 0.1, -1.9, -1.3, 0.4, 0.3, -0.8, 1.1, 1.7, -2.0, 1.8, 0.8, 0.2,
          -0.2, -0.1, 0.4, -1.0, 2.3, 1.8, -0.3],
    "b": [0, 1] * 12,
    "s": [1, 1, 2, 2, 3, 3] * 4,
    "e": [0, 0, 0, 0, 0, 8, 6, 0, 0, 6, 0, 0, 0, 8, 0, 5, 3, 0, 0, 0, 6, 0, 0, 4],
    "t": [2, 1, 2, 1, 7, 9, 9, 9, 1, 9, 7, 9, 3, 9, 5, 8, 4, 9, 4, 2, 9, 1, 1, 5],
    "d": [1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1],
    "w": [3, 3, 2, 3, 2, 2, 2, 2, 3, 3, 2, 3, 3, 1, 2, 2, 3, 1, 2, 2, 3, 3, 2, 3],
})  # fmt: skip
COXPH = {
    (): (
        [0.7562928437, -0.9556714483, 0.2530535991, 0.5808135824, -33.5705059010, 0.8160919540],
        [0.9023315373, 0.6850780210, 0.6689961391, 0.3301044883, 0.9740662167, 0.8789139685],
    ),
    ("strata",): (
        [1.0903508576, -0.5318139592, 0.3632999451, 0.6384257335, -16.1176594831, 0.8363636364],
        [0.800405813819, 0.307669307159, 0.222064972410, 0.001018835662, 0.967597034560,
         0.817355113227],
    ),
    ("entry",): (
        [0.5507693518, -0.5080435838, 0.2580766292, 0.5887784052, -30.5324598036, 0.7307692308],
        [0.8174519773, 0.4675306673, 0.4481460232, 0.1010647090, 0.9506419181, 0.7770891577],
    ),
    ("strata", "entry"): (
        [0.8241836180, -0.1861845720, 0.3801045227, 0.6400939127, -14.5251207019, 0.7647058824],
        [0.6953598150109, 0.1937024184737, 0.1020197563556, 0.0002184454675, 0.9438089088280,
         0.7264051162881],
    ),
}  # fmt: skip
PARAMETRIC = {"a": "parametric", "b": "parametric"}


def drawn(seed, n=600, n_noise=1):
    """Rows with a curve and a factor, their log hazards, times and events: a third censored."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "g": rng.choice(list("uvw"), n)})
    for k in range(n_noise):
        X[f"noise{k}"] = rng.random(n)
    eta = np.sin(2 * np.pi * X["x"]) + X["g"].map({"u": -0.5, "v": 0.0, "w": 0.5})
    time = rng.weibull(1.5, n) * np.exp(-eta / 1.5)
    censored = rng.exponential(2.0, n)
    y = np.column_stack([np.minimum(time, censored), time <= censored])
    return X, eta.to_numpy(), y


@pytest.mark.parametrize("columns", COXPH, ids=lambda columns: " and ".join(columns) or "plain")
def test_parametric_terms_are_those_of_coxph(columns):
    figures, curves = COXPH[columns]
    beside = {name: TABLE[name[0]] for name in columns}
    X, y = TABLE[["a", "b"]], TABLE[["t", "d"]]
    model = km.AdditiveSurvival(terms=PARAMETRIC).fit(X, y, **beside)
    steps = pd.DataFrame({"a": [0.0, 1.0, 0.0], "b": [0, 0, 1]})
    scores, errors = model.predict(steps), np.sqrt(np.diagonal(model.covariance_))[1:]
    scale = (
        np.diff(model.model_matrix(steps)[[0, 1]], axis=0)[0, 1],
        np.ptp(model.model_matrix(steps)[[0, 2], 2]),
    )
    found = [*(scores[1:] - scores[0]), *(errors * np.abs(scale)), model.log_likelihood_,
             model.concordance_]  # fmt: skip
    np.testing.assert_allclose(found, figures, rtol=1e-5)
    strata = {"strata": [1]} if "strata" in columns else {}
    row = pd.DataFrame({"a": [0.5], "b": [1]})
    survival, bands = model.predict_survival(row, [2, 5], level=0.95, **strata)
    np.testing.assert_allclose(survival[0], curves[:2], rtol=1e-5)
    # Posterior factors have six digits, and the last band is a difference of two curves.
    np.testing.assert_allclose(bands[0].T.ravel(), curves[2:], rtol=1e-4, atol=1e-5)
    assert model.score(X, y, **beside) == pytest.approx(figures[-1])
    assert model.edf_ == pytest.approx(2)
    assert model.aic_ == pytest.approx(4 - 2 * model.log_likelihood_)


def test_weights_are_those_of_coxph():
    model = km.AdditiveSurvival(terms=PARAMETRIC, weights="frequency")
    model.fit(TABLE[["a", "b"]], TABLE[["t", "d"]], sample_weight=TABLE["w"])
    scores = model.predict(pd.DataFrame({"a": [0.0, 1.0, 0.0], "b": [0, 0, 1]}))
    np.testing.assert_allclose(scores[1:] - scores[0], [0.7942835497, -0.9896717668], rtol=1e-5)
    assert model.log_likelihood_ == pytest.approx(-112.3168184359)
    assert model.concordance_ == pytest.approx(0.8223404255)
    relative = km.AdditiveSurvival(terms=PARAMETRIC)
    fits = [
        relative.fit(TABLE[["a", "b"]], TABLE[["t", "d"]], sample_weight=scale * TABLE["w"])
        .predict(TABLE[["a", "b"]])
        for scale in (1, 7)
    ]  # fmt: skip
    np.testing.assert_allclose(*fits, rtol=1e-6)


def test_functions_are_found_and_covered(seed):
    X, eta, y = drawn(seed, 1500)
    model = km.AdditiveSurvival().fit(X, y)
    scores, errors = model.predict(X, return_std=True)
    assert np.corrcoef(scores, eta)[0, 1] >= 0.97
    assert np.mean(np.abs(scores - (eta - eta.mean())) < 2 * errors) >= 0.8
    assert scores.mean() == pytest.approx(0, abs=1e-6)
    table = model.summary().to_frame().set_index("term")
    assert (table.loc[["x", "g"], "p_value"] < 1e-6).all()
    assert table.loc["noise0", "p_value"] > 1e-4
    assert model.concordance_ == pytest.approx(model.score(X, y))


def test_only_the_order_of_times_counts(seed):
    X, _, y = drawn(seed)
    model = km.AdditiveSurvival().fit(X, y)
    other = km.AdditiveSurvival().fit(X, np.column_stack([np.log1p(y[:, 0]) ** 3, y[:, 1]]))
    np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-8, atol=1e-10)
    times = np.array([0.1, 0.5, 1.0])
    curves = (
        model.predict_survival(X[:5], times),
        other.predict_survival(X[:5], np.log1p(times) ** 3),
    )
    np.testing.assert_allclose(*curves, rtol=1e-7)


def test_a_constant_belongs_to_the_baseline(seed):
    X, _, y = drawn(seed)
    model = km.AdditiveSurvival().fit(X, y)
    shifted = km.AdditiveSurvival().fit(X, y, offset=np.full(len(X), 2.0))
    np.testing.assert_allclose(shifted.predict(X), model.predict(X), atol=1e-6)
    hazard = shifted.baseline_.hazard * np.exp(2.0)
    np.testing.assert_allclose(hazard, model.baseline_.hazard, rtol=1e-6)
    rows, of_table = TABLE.assign(one=1.0)[["a", "b", "one"]], TABLE[["t", "d"]]
    with_constant, without = (
        km.AdditiveSurvival(terms=[km.Term(name, "parametric") for name in names])
        .fit(rows, of_table)
        .predict(rows)
        for names in (["a", "b", "one"], ["a", "b"])
    )
    np.testing.assert_allclose(with_constant, without, rtol=1e-9)


def test_every_event_is_expected(seed):
    """Without ties, the cumulative hazards of all rows at their times sum to the events."""
    X, _, y = drawn(seed)
    groups = X["g"].to_numpy()
    for strata in (None, groups):
        model = km.AdditiveSurvival().fit(X, y, strata=strata)
        with warnings.catch_warnings(action="error"):
            hazards = model.predict_cumulative_hazard(X, y[:, 0], strata=strata)
        np.testing.assert_allclose(hazards.diagonal().sum(), y[:, 1].sum(), rtol=1e-6)
        survival = model.predict_survival(X, y[:, 0], strata=strata)
        np.testing.assert_allclose(survival, np.exp(-hazards))


def test_curves_fall_within_their_bands(seed):
    X, eta, y = drawn(seed)
    model = km.AdditiveSurvival().fit(X, y)
    times = np.linspace(0, 1.5, 30)
    survival, bands = model.predict_survival(X, times, level=0.9)
    assert (survival[:, 0] == 1).all()
    assert (bands[:, 0] == 1).all()
    assert (np.diff(survival) <= 0).all()
    assert (bands[..., 0] <= survival).all()
    assert (survival <= bands[..., 1]).all()
    truth = np.exp(-(times**1.5) * np.exp(eta)[:, None])
    inside = (bands[:, 1:, 0] < truth[:, 1:]) & (truth[:, 1:] < bands[:, 1:, 1])
    assert inside.mean() > 0.7
    with pytest.warns(OutOfDomainWarning, match="1 times are later than all"):
        last = model.predict_survival(X[:1], [y[:, 0].max(), 1e3])
    assert last[0, 0] == last[0, 1]


def test_pairs_and_constraints():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(1200), "b": rng.random(1200)})
    time = rng.exponential(np.exp(-4 * (X["a"] - 0.5) * (X["b"] - 0.5) * 4 - X["a"]))
    y = np.column_stack([time, time < 3])
    model = km.AdditiveSurvival(interactions="auto").fit(X, y)
    assert "a × b" in model.term_names_
    rising = km.AdditiveSurvival(constraints={"a": "increasing"}).fit(X, y)
    grid = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": 0.5})
    assert (np.diff(rising.predict(grid)) >= 0).all()
    table = km.anova(km.AdditiveSurvival().fit(X, y), model)
    assert table.columns[-2] == "chi²"
    assert table.to_frame()["p_value"][1] < 1e-6


def test_factors_of_many_levels_are_frailties(seed):
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(300), 5)
    frailty = 0.7 * rng.normal(size=300)
    time = rng.exponential(np.exp(-frailty[site]))
    X = pd.DataFrame({"site": [f"s{k}" for k in site]})
    model = km.AdditiveSurvival().fit(X, np.column_stack([time, np.ones(len(site))]))
    assert 50 < model.edf_[0] < 250
    # The best linear prediction has a correlation of about 0.84.
    assert np.corrcoef(model.predict(X)[::5], frailty)[0, 1] > 0.7


def test_forms_of_y_and_columns_of_a_file(tmp_path):
    X, _, y = drawn(0)
    model = km.AdditiveSurvival().fit(X, y)
    structured = np.array(
        [*zip(y[:, 1] == 1, y[:, 0], strict=True)], dtype=[("dead", bool), ("t", float)]
    )
    frame = pd.DataFrame({"t": y[:, 0], "dead": y[:, 1] == 1})
    for form in (structured, frame, y.tolist()):
        other = km.AdditiveSurvival().fit(X, form)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    alone = km.AdditiveSurvival().fit(X, y[:, 0])
    of_all = km.AdditiveSurvival().fit(X, np.column_stack([y[:, 0], np.ones(len(X))]))
    np.testing.assert_array_equal(alone.predict(X), of_all.predict(X))
    group = np.where(y[:, 0] > 0.5, "long", "short")
    path = tmp_path / "rows.csv"
    X.assign(time=y[:, 0], event=frame["dead"], group=group).to_csv(path, index=False)
    of_file = km.AdditiveSurvival().fit(path, ("time", "event"), strata="group")
    assert list(of_file.feature_names_in_) == list(X)
    with_strata = km.AdditiveSurvival().fit(X, y, strata=group)
    np.testing.assert_allclose(of_file.predict(X), with_strata.predict(X), atol=1e-6)
    score = of_file.score(path, ("time", "event"), strata="group")
    assert score == pytest.approx(of_file.concordance_)


def test_residuals_of_censored_times_are_normal(seed):
    X, _, y = drawn(seed, 1500)
    entry = np.where(np.arange(len(X)) % 3 == 0, 0.3 * y[:, 0], 0.0)
    groups = np.where(X["noise0"] < 0.5, "first", "second")
    model = km.AdditiveSurvival().fit(X, y, entry=entry, strata=groups)
    check = model.check(X, y, entry=entry, strata=groups)
    residuals = check.quantile_residuals
    assert abs(residuals.mean()) < 4 / np.sqrt(len(X))
    assert residuals.std() == pytest.approx(1, abs=4 / np.sqrt(2 * len(X)))
    # Martingale residuals sum to zero in each stratum.
    hazards = np.empty(len(X))
    for group in ("first", "second"):
        rows = groups == group
        at = [
            model.predict_cumulative_hazard(X[rows], times[rows], strata=groups[rows]).diagonal()
            for times in (y[:, 0], entry)
        ]
        hazards[rows] = at[0] - at[1]
        assert hazards[rows].sum() == pytest.approx(y[rows, 1].sum(), rel=1e-6)
    signs, at_risk = np.sign(check.deviance_residuals), hazards > 0
    np.testing.assert_array_equal(signs[at_risk], np.sign(y[:, 1] - hazards)[at_risk])


def test_tables_and_pages_have_hazards(tmp_path):
    X, _, y = drawn(0)
    model = km.AdditiveSurvival().fit(X, y)
    table = model.to_tables()["g"]
    np.testing.assert_allclose(table["relativity"], np.exp(table["effect"]))
    sql = km.to_sql(model, "rows")
    assert "EXP" not in sql
    page = km.model_report(model, tmp_path / "page.html", X=X, y=y, target="time").read_text()
    assert "the log hazard" in page
    assert f"{model.concordance_:.4g}" in page
    assert "Efron" in page


def test_a_model_file_has_the_baseline(tmp_path):
    X, _, y = drawn(0)
    group = np.where(X["g"] == "u", "first", "other")
    model = km.AdditiveSurvival().fit(X, y, strata=group)
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    times = [0.2, 0.7]
    before, after = (
        m.predict_survival(X[:9], times, level=0.95, strata=group[:9]) for m in (model, loaded)
    )
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.concordance_ == model.concordance_
    frame = loaded.baseline_.to_frame()
    assert list(frame["stratum"].unique()) == ["first", "other"]


def test_a_model_of_the_last_event_has_no_concordance(tmp_path):
    X, _, y = drawn(0, 60)
    model = km.AdditiveSurvival().fit(X, np.column_stack([y[:, 0], y[:, 0] == y[:, 0].max()]))
    assert np.isnan(model.concordance_)
    km.save(model, tmp_path / "model.kmap")
    assert np.isnan(km.load(tmp_path / "model.kmap").concordance_)


def test_scikit_learn_takes_it():
    X, _, y = drawn(0)
    model = clone(km.AdditiveSurvival(smoothing=3.0))
    assert model.smoothing == 3.0
    assert (cross_val_score(model, X, y, cv=3) > 0.6).all()


GOOD = {"X": TABLE[["a", "b"]], "y": TABLE[["t", "d"]]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "the target y is None"),
        ({"y": TABLE["d"]}, "y must be a structured array of an event"),
        ({"y": ["u"] * 24}, "names columns, which is for files"),
        ({"y": ("t", "d")}, "X has no column 't', 'd'; it has 'a', 'b'"),
        ({"y": TABLE[["t", "d"]][:9]}, "the times of y must hold 24 finite numbers"),
        ({"y": TABLE[["t", "d"]].assign(t=-1.0)}, "times must be >= 0, and row 0 has -1"),
        ({"y": TABLE[["t", "d"]].assign(t=np.nan)}, "the times of y .* row 0 has nan"),
        ({"y": TABLE[["d", "t"]]}, "events must be True or False .* time and event in this order"),
        ({"y": TABLE[["t", "d"]].assign(d=0)}, "no row of positive weight has an event"),
        ({"sample_weight": 1 - TABLE["d"]}, "no row of positive weight has an event"),
        ({"entry": TABLE["t"]}, "must enter before their time, and row 0 has 2"),
        ({"entry": [0, 1]}, "entry must hold 24 finite numbers"),
        ({"strata": [0, 1]}, "strata must hold 24 labels"),
        ({"strata": [None, *"a" * 23]}, "strata must hold a label for each row, and row 0"),
        ({"X": iter([(TABLE, TABLE)])}, "need all rows in memory"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(ValueError, match=message):
        km.AdditiveSurvival().fit(**(GOOD | changes))


def stratified(times, **options):
    model = km.AdditiveSurvival(terms=PARAMETRIC).fit(**GOOD, strata=TABLE["s"])
    return model.predict_survival(GOOD["X"], times, **options)


CALLS = [
    (lambda: km.AdditiveSurvival("poisson").fit(**GOOD), "must be one of 'cox'"),
    (lambda: km.AdditiveRegressor("cox").fit(**GOOD), "'cox' is a loss of AdditiveSurvival"),
    (lambda: km.AdditiveSurvival(weights="precision").fit(**GOOD), "weights='precision'"),
    (lambda: stratified([1.0]), "fitted with strata"),
    (lambda: stratified([1.0], strata=np.full(24, 7)), "row 0 belongs to the stratum 7"),
    *((lambda times=times: stratified(times, strata=TABLE["s"]), "times must be a vector")
      for times in ([-1.0], ["a"], [[1.0]], [np.nan])),
    (lambda: stratified([1.0], level=95, strata=TABLE["s"]), "level"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_calls_that_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_files_that_are_refused(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="y must name the columns of times and of events"):
        km.AdditiveSurvival().fit(tmp_path / "t.csv", "t")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        km.AdditiveSurvival().fit(tmp_path / "none.csv", ("t", "d"))
