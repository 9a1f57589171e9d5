"""compare: what it measures is what it says, within its budget, and nothing is lost by Ctrl-C."""

import dataclasses
import json
import warnings
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import kernelmaps as km
from kernelmaps._util.display import text_of
from kernelmaps.evaluation import comparison, methods
from kernelmaps.evaluation.candidates import candidates, expression, fit_kernel, kernel_code
from kernelmaps.evaluation.results import Comparison, is_tie, make_frame
from kernelmaps.exceptions import SuspectColumnWarning

pytestmark = pytest.mark.usefixtures("quick_baselines")

QUICK = {"maps": ["HomogeneousMap"], "kernels": ["chi2"], "sizes": [3, 7], "C": 10.0}


@pytest.fixture(scope="module")
def data():
    return km.datasets.make_histograms(240, 12, 2, n_counts=30, random_state=0)


@pytest.fixture(scope="module")
def result(data):
    return km.compare(*data, **QUICK)


def test_the_row_says_what_a_hand_made_pipeline_says(data, result):
    """The same folds, scaling and penalty give the same accuracy."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import LinearSVC

    X, y = data
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        feature_map = km.HomogeneousMap("chi2", n_components=3).fit(X[train])
        Z = feature_map.transform(X[train])
        scale = np.sqrt(np.mean(np.sum(Z**2, axis=1)))
        model = LinearSVC(C=10.0, dual=False, tol=0.01).fit(Z / scale, y[train])
        scores.append(model.score(feature_map.transform(X[test]) / scale, y[test]))
    row = result["HomogeneousMap 3"]
    assert row.score == pytest.approx(np.mean(scores), abs=1e-12)
    assert row.fold_scores == pytest.approx(scores)
    assert 1 - result.losses[row.name].mean() == pytest.approx(np.mean(scores))
    assert row["columns"] == 36
    assert row.bytes == 160 * 36 * 8
    assert (row.rows, row.status) == (240, "finished")


def test_every_finished_row_is_a_pipeline_that_gives_its_score(data, result):
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for label in ("plain linear", "HomogeneousMap 7", "sklearn AdditiveChi2Sampler 3, chi2"):
        scores = cross_val_score(result.estimator(label), *data, cv=folds)
        np.testing.assert_allclose(scores, result[label].fold_scores, atol=1e-12)
    with pytest.raises(KeyError, match="'exact chi2' has no estimator"):
        result.estimator("exact chi2")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_recommended_pipeline_is_saved_as_a_model_file(data, result, task, tmp_path):
    """Standardised and scaled columns, a map and a linear model, of classes and of numbers."""
    X, y = data
    target = y if task == "classification" else X @ np.arange(12.0)
    result = result if task == "classification" else km.compare(X, target, **QUICK)
    for label in ("plain linear", "GAM", "HomogeneousMap 3"):
        model = result.estimator(label).fit(X, target)
        km.save(model, tmp_path / "model.kmap")
        again = km.load(tmp_path / "model.kmap")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert [name for name, _ in again.steps] == [name for name, _ in model.steps]


def test_errors_shrink_with_the_size_and_come_in_parts(result):
    small, large = (result[f"HomogeneousMap {size}"] for size in (3, 7))
    assert large.error_rms < small.error_rms
    assert abs(small.error_bias) <= small.error_rms <= small.error_max
    assert small.error_max_relative == small.error_max / small.error_size


def test_baselines_are_compared_with_the_maps(result):
    assert {"linear", "gam", "exact", "sklearn", "boosting", "map"} == set(result.frame["kind"])
    assert pd.isna(result["exact chi2"]["columns"])
    assert result["sklearn AdditiveChi2Sampler 3, chi2"].error_max > 0


def test_nystroem_and_samplers_belong_to_their_kernels():
    X = np.random.default_rng(0).random((20, 3))
    kernels = [(fit_kernel(name, X), None) for name in ("gaussian", "exp_chi2")]
    found = methods.baselines(
        kernels,
        "classification",
        1.0,
        size=8,
        exact_rows=100,
        sparse=False,
    )
    labels = [item.label for item in found if item.kind == "sklearn"]
    assert labels == [
        "sklearn RBFSampler 8, gaussian",
        "sklearn Nystroem 8, gaussian",
        "sklearn Nystroem 8, exp_chi2",
    ]
    # With as many landmarks as rows Nyström is exact: the two libraries mean the same kernel.
    for item in [item for item in found if "Nystroem" in item.label]:
        nystroem = item.feature_map.set_params(n_components=20)
        error = km.kernel_error(nystroem, X, kernel=item.truth)
        assert error.max < 1e-8


def test_the_front_is_not_dominated(result):
    front = result.pareto("seconds", "score")
    for row in result.finished.itertuples():
        assert ((front["seconds"] <= row.seconds) & (front["score"] >= row.score)).any()
    assert front["seconds"].is_monotonic_increasing
    assert front["score"].is_monotonic_increasing
    assert result.pareto("columns", "error")["error_max"].notna().all()


def test_tables_frames_and_plain_values_agree(result):
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(result.frame) == len(plain["rows"]) == len(result)
    assert result.frame["score"].is_monotonic_decreasing
    for line in plain["rows"]:
        for name, value in result[line["label"]].dropna().items():
            assert line[name] == (list(value) if name == "fold_scores" else value)
    assert "HomogeneousMap 7" in text_of(result.table())


@pytest.mark.usefixtures("without_gams")
def test_exact_ridge_has_the_intercept_of_the_linear_model(data):
    """The map of the Hellinger kernel is exact: both machines then solve the same problem."""
    X, y = data[0], data[0] @ np.linspace(-1, 1, data[0].shape[1])
    noisy = y + 0.1 * np.random.default_rng(0).standard_normal(len(y))
    given = {"maps": ["HomogeneousMap"], "kernels": ["hellinger"], "sizes": [3]}
    unshifted = None
    for shift in (0.0, 1e6):
        result = km.compare(X, noisy + shift, task="regression", **given)
        exact, mapped = (result.frame[result.frame["kind"] == k].iloc[0] for k in ("exact", "map"))
        assert (result.task, result.score_name) == ("regression", "R²")
        # Adding 1e6 rounds the targets to 1e-10, and the normal equations square their condition.
        assert exact.score == pytest.approx(mapped.score, abs=1e-6)
        unshifted = exact.score if unshifted is None else unshifted
        assert exact.score == pytest.approx(unshifted, abs=1e-6)


def test_sparse_rows_stay_sparse(data, result):
    X, y = data
    dense, csr = result, km.compare(sparse.csr_matrix(X), y, **QUICK)
    assert csr.data["sparse"]
    assert "gam" not in set(csr.frame["kind"])
    for label in ("HomogeneousMap 3", "exact chi2"):
        assert csr[label].score == pytest.approx(dense[label].score, abs=0.02)


def test_maps_as_objects_and_pairs(data):
    maps = [km.HomogeneousMap(n_components=3), ("mine", km.HomogeneousMap("intersection"))]
    result = km.compare(*data, maps=maps, with_baselines=False, progress=False)
    assert set(result.frame.index) == {"HomogeneousMap(n_components=3)", "mine"}
    assert result["mine"].kernel == "intersection"


@pytest.mark.usefixtures("without_gams")
def test_kernels_of_histograms_are_left_out_for_negative_data(data):
    X, y = data
    result = km.compare(X - 0.1, y, maps=["HomogeneousMap"], kernels=["chi2"], progress=False)
    assert any("chi2 was left out: X goes down to -0.1" in note for note in result.notes)


# ---- scaling of columns -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """Two classes on a ring, in columns of very unlike units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (np.square(X).sum(axis=1) > 2.4).astype(int)
    return X * [1.0, 1e4, 1e-3] + [0.0, 5e4, 0.0], y


@pytest.mark.usefixtures("without_gams")
def test_columns_are_standardised_for_stationary_kernels(table):
    X, y = table
    options = {"joint_sizes": [256], "progress": False}
    result = km.compare(X, y, maps=["RandomFourierMap"], kernels=["gaussian"], **options)
    row = result["RandomFourierMap orthogonal 256, gaussian"]
    assert row.code.startswith("make_pipeline(StandardScaler(), km.RandomFourierMap(")
    assert row.score > 0.9
    assert result["exact gaussian"].score > 0.9
    # The same kernel on the rows as they are sees nothing but the second column.
    raw = km.kernels.Gaussian(1e4)
    options["with_baselines"] = False
    result = km.compare(X, y, maps=["RandomFourierMap"], kernels=[raw], **options)
    assert result["RandomFourierMap orthogonal 256, gaussian"].score < 0.8
    assert "StandardScaler" not in result["RandomFourierMap orthogonal 256, gaussian"].code


# ---- budget and interruption --------------------------------------------------------------------


class Clock:
    """A stand-in for measuring whose cost and score are known: what is tested is the loop."""

    def __init__(self, monkeypatch, seconds_per_row=1e-3, score=lambda label: 0.5, slow=None):
        self.now, self.calls = 0.0, []
        self.rate, self.score, self.slow = seconds_per_row, score, slow or {}
        monkeypatch.setattr(comparison, "choose_penalty", lambda method, problem, C: method)
        monkeypatch.setattr(comparison, "measure", self.measure)
        monkeypatch.setattr(comparison, "measure_error", lambda method, problem: None)
        monkeypatch.setattr(comparison, "perf_counter", lambda: self.now)

    def measure(self, method, problem):
        n = problem.X.shape[0]
        self.calls.append((method.label, n))
        self.now += self.rate * n * self.slow.get(method.label, self.slow.get(method.kind, 1))
        score = self.score(method.label)
        row = {"label": method.label, "kind": method.kind, "kernel": method.kernel, "rows": n}
        row |= {"score": score, "score_std": 0.0, "map_seconds": 1.0, "fit_seconds": 1.0}
        return row | {"predict_seconds": 1.0}, np.full(n, 1 - score)


@pytest.fixture(scope="module")
def many():
    return km.datasets.make_histograms(20_000, 3, 3, random_state=0)


ALL = {"kernels": ["chi2", "intersection"], "sizes": [3, 5], "progress": False}


@pytest.mark.parametrize("budget", [1e-3, 10.0, 60.0, 300.0])
def test_a_budget_is_kept_and_what_was_left_out_is_named(budget, many, monkeypatch):
    """A method takes a second per thousand rows, and there are 250 rows for each second.

    The first method of a kind may take longer than those of other kinds did.
    """
    clock = Clock(monkeypatch)
    result = km.compare(*many, budget=budget, **ALL)
    rows = min(20_000, max(500, int(250 * budget)))
    assert set(result.finished["rows"]) == {rows}
    assert clock.now <= max(budget + rows * clock.rate, 2 * rows * clock.rate)
    assert len(result.finished) >= 2
    notes = " ".join(result.notes)
    assert (f"Subsampled: {rows} of 20000 rows" in notes) == (rows < 20_000)
    left_out = result.frame[result.frame["status"] == "not started"]
    assert len(left_out) == len(result) - len(clock.calls)
    assert left_out["score"].isna().all()
    for label in left_out.index:
        assert label in notes.split("Not started, for want of time: ")[1]


def test_small_maps_come_first(many, monkeypatch):
    clock = Clock(monkeypatch)
    result = km.compare(*many, progress=False)
    assert len(clock.calls) == len(result)
    assert set(result.finished["rows"]) == {20_000}
    kinds = [result[label].kind for label, _ in clock.calls]
    assert kinds[0] == "linear"
    assert list(dict.fromkeys(kinds)) == ["linear", "exact", "map", "gam", "boosting", "sklearn"]


@pytest.mark.parametrize("leader", ["chi2", "intersection"])
def test_maps_of_the_leading_exact_kernel_are_the_first(leader, many, monkeypatch):
    clock = Clock(monkeypatch)
    clock.score = lambda label: 0.9 if label == f"exact {leader}" else 0.5
    result = km.compare(*many, **ALL)
    of_kernels = [result[label].kernel for label, _ in clock.calls if result[label].kind == "map"]
    turns = [kernel for kernel, _ in groupby(of_kernels)]
    # One map of each class, those of the leader first; then the others; larger ones are the last.
    assert turns[0] == turns[-1] == leader
    assert turns.count(leader) == 3


def test_a_slow_map_does_not_stop_those_of_other_classes(many, monkeypatch):
    """One takes 10 s of 20: no time for a second one of its class, and enough for the others."""
    clock = Clock(monkeypatch, score=lambda label: float(label == "exact exp_chi2"))
    clock.slow = {"ExponentialMap 256, exp_chi2": 20}
    X, y = many
    kernels = ["exp_chi2", "chi2"]
    result = km.compare(X[:500], y[:500], kernels=kernels, budget=20.0, progress=False)
    maps = [label for label, _ in clock.calls if result[label].kind == "map"]
    assert maps[0] == "ExponentialMap 256, exp_chi2"
    left_out = result.frame.index[result.frame["status"] == "not started"]
    assert "ExponentialMap 1024, exp_chi2" in left_out
    assert {"HomogeneousMap 3", "SplineMap 10", "NystroemMap 1024, exp_chi2"} <= set(maps)
    assert clock.now <= 20


def test_a_method_is_begun_if_the_longest_one_of_its_kind_would_fit(many, monkeypatch):
    """An exact machine takes 50 s of 90: no time for a second one, and enough for all maps."""
    clock = Clock(monkeypatch, slow={"exact": 50})
    X, y = many
    result = km.compare(X[:1000], y[:1000], budget=90.0, **ALL)
    assert clock.now < 90
    assert result["exact chi2"].status == "finished"
    assert result["exact intersection"].status == "not started"
    assert set(result.frame.loc[result.frame["kind"] == "map", "status"]) == {"finished"}


def test_what_saw_fewer_rows_cannot_win(result):
    """A method on fewer rows with the best score is shown, and does not win."""
    label = "HomogeneousMap 3"
    frame = result.frame.copy()
    frame.loc[label, ["score", "status"]] = [0.999, "limited"]
    changed = dataclasses.replace(result, frame=frame)
    assert label not in [changed.recommended(), *changed.ties(), *changed.pareto().index]
    assert "not compared" in str(changed)


# ---- the penalty --------------------------------------------------------------------------------


def _noisy_plane(n, n_columns, noise, seed):
    """Labels from a plane, some of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, (X @ rng.normal(size=n_columns) > 0) ^ (rng.random(n) < noise)


PLAIN = {"maps": [], "kernels": ["gaussian"], "progress": False}


@pytest.mark.usefixtures("without_gams")
def test_the_penalty_is_that_of_a_grid_search_in_the_first_training_rows():
    """An independent search agrees, for features and for Gram matrices."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC, LinearSVC

    X, y = _noisy_plane(270, 40, 0.2, 0)  # 180 training rows, in inner folds of 60
    penalties, folds = [0.01, 1.0, 1e4], StratifiedKFold(3, shuffle=True, random_state=0)
    result = km.compare(X, y, C=penalties[::-1], **PLAIN)
    train = next(folds.split(X, y))[0]
    rows = StandardScaler().fit_transform(X[train])
    kernel = fit_kernel("gaussian", StandardScaler().fit_transform(X))
    Z = km.MeanNormScaler().fit_transform(rows)
    for label, machine, inputs in (
        ("plain linear", LinearSVC(dual=False, tol=0.01), Z),
        ("exact gaussian", SVC(kernel="precomputed"), kernel(rows)),
    ):
        search = GridSearchCV(machine, {"C": penalties}, cv=folds).fit(inputs, y[train])
        assert search.best_params_["C"] == result[label].C, label
    assert pd.isna(result["gradient boosting"].C)
    assert result["plain linear"].C < result["exact gaussian"].C
    assert result.estimator("plain linear")[-1].C == result["plain linear"].C
    fixed = km.compare(X, y, C=result["exact gaussian"].C, **PLAIN)
    assert result["exact gaussian"].fold_scores == fixed["exact gaussian"].fold_scores
    assert result["exact gaussian"].code == kernel_code(kernel)


def _plain():
    return methods.baselines(
        [],
        "classification",
        1.0,
        size=8,
        exact_rows=9,
        sparse=False,
    )[0]


def test_the_penalty_is_not_chosen_on_the_rows_that_the_first_fold_holds_out(many, monkeypatch):
    X, y = (rows[:450] for rows in many)
    problem = comparison.Problem(X, y, "classification", 3, 0)
    trained_on, fit = [], methods.MeanNormScaler.fit

    def recorded(self, X, y=None):
        trained_on.append(len(X))
        return fit(self, X, y)

    monkeypatch.setattr(methods.MeanNormScaler, "fit", recorded)
    comparison.choose_penalty(_plain(), problem, [1.0, 10.0])
    assert trained_on == [len(problem.folds()[0][0])]


def test_a_sample_holds_every_class():
    y = np.r_[np.zeros(10_000), np.ones(5), np.full(2, 2)].astype(int)
    problem = comparison.Problem(np.arange(len(y))[:, None], y, "classification", 3, 0)
    np.testing.assert_array_equal(np.bincount(problem.sample(8).y), [3, 3, 2])
    assert problem.sample(None) is problem


@pytest.mark.usefixtures("without_gams")
def test_exact_machines_see_a_stated_subsample(data):
    result = km.compare(*data, **QUICK, exact_rows=90)
    assert (result["exact chi2"].rows, result["exact chi2"].status) == (90, "limited")
    assert "Exact kernel machines saw fewer rows: exact chi2." in result.notes


def test_ctrl_c_keeps_what_was_measured(data, monkeypatch):
    done, original = [], comparison.measure

    def measure(method, problem):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(method.label)
        return original(method, problem)

    monkeypatch.setattr(comparison, "measure", measure)
    result = km.compare(*data, **QUICK)
    assert result.interrupted
    assert set(result.frame.index) == set(done)
    assert any("Interrupted: 3 of" in note for note in result.notes)


@pytest.mark.usefixtures("without_gams")
def test_a_map_that_cannot_be_made_is_left_out_with_its_reason(data):
    bad = ("bad", km.HomogeneousMap(n_components=0))
    result = km.compare(*data, maps=[bad], kernels=["chi2"], progress=False)
    assert "bad" not in result.frame.index
    assert any(note.startswith("bad was left out: HomogeneousMap") for note in result.notes)


# ---- ties and advice ----------------------------------------------------------------------------


def test_a_tie_is_mcnemars_test(seed):
    """Two standard errors of the difference: √(discordant rows), for right and wrong classes."""
    wrong = np.zeros((2, 1000))
    wrong[0, :30], wrong[1, 30:50] = 1, 1  # 30 against 20 of 50 discordant rows: 10 < 2 √50
    assert is_tie(*wrong)
    wrong[1, 32:50] = 0  # 30 against 2 of 32: 28 > 2 √32
    assert not is_tie(*wrong)
    assert is_tie(wrong[0], wrong[0])
    noise = np.random.default_rng(seed).normal(size=(2, 4000)) ** 2
    assert not is_tie(noise[0], noise[1] + 1)


def _results(scores, seconds=None, n=1000, rows=None):
    rng, kinds = np.random.default_rng(0), {"exact": "exact", "plain linear": "linear"}
    lines, losses = [], {}
    for label, score in scores.items():
        losses[label] = rng.permutation(np.arange(n) >= round(score * n)).astype(float)
        line = {"label": label, "kind": kinds.get(label, "map"), "status": "finished", "rows": n}
        line |= {"score": score, "score_std": 0.01, "columns": 4, "fit_seconds": 0.0}
        line["map_seconds"] = line["predict_seconds"] = (seconds or {}).get(label, 1.0) / 2
        lines.append(line)
    data = {"name": "mine", "rows": rows or n, "columns": 3, "folds": 3, "C": 1.0}
    return Comparison("classification", data, make_frame(lines), losses=losses)


SCORES = {"exact": 0.96, "best": 0.95, "quick": 0.945, "plain linear": 0.8}


def test_the_fastest_of_those_tied_with_the_best_is_recommended():
    seconds = {"exact": 0.1, "best": 9.0, "quick": 1.0, "plain linear": 0.01}
    result = _results(SCORES, seconds)
    assert result.recommended() == "quick"
    first, *rest = result.use_this()
    assert first.startswith("Use quick: accuracy 0.945 ± 0.010, because it is statistically tied")
    assert "(best, 0.950) and 9.0 times as fast" in first
    assert "A plain linear model has 0.800, which is 0.145 lower." in rest
    exact = "The best exact kernel machine (exact) has 0.960, which is 0.015 higher; "
    assert f"{exact}for as many rows as it was fitted to, use it." in rest
    alike = _results(SCORES, {**seconds, "best": 1.01})
    assert alike.recommended() == "best"  # as fast, and of the higher score
    assert "none of those tied with it is faster" in alike.use_this()[0]
    # Of a part of the rows, too: no slower method is recommended for a difference that is chance.
    assert _results(SCORES, seconds, rows=2000).recommended() == "quick"


@pytest.mark.parametrize(
    ("times", "expected"),
    [((1.0, 0.99, 9.0), "ours"), ((1.0, 0.5, 9.0), "theirs"), ((1.0, 0.5, 0.4), "plain linear")],
)
def test_another_library_is_recommended_if_it_is_faster_and_not_otherwise(times, expected):
    """Within a tenth, which is chance, ours is; the most readable method is named, too."""
    labels = ("ours", "theirs", "plain linear")
    scores = dict(zip(labels, (0.951, 0.952, 0.95), strict=True))
    result = _results(scores, dict(zip(labels, times, strict=True)))
    frame = result.frame.assign(
        kind=result.frame["kind"].where(result.frame.index != "theirs", "sklearn")
    )
    result = dataclasses.replace(result, frame=frame)
    assert result.recommended() == expected
    fastest = labels[np.argmin(times)]
    most_readable = "and plain linear the most readable"
    if fastest == "plain linear":
        most_readable = "and the most readable"
    assert f"Of the 3 tied methods, {fastest} is the fastest {most_readable}." in result.use_this()


def test_a_tie_is_at_most_a_point():
    """On 200 rows, 4 points are within two standard errors; the best method is recommended."""
    result = _results({"exact": 0.905, "best": 0.9, "quick": 0.86}, {"quick": 0.1}, n=200)
    assert is_tie(result.losses["best"], result.losses["quick"])
    assert not result.tied("best", "quick")
    assert result.recommended() == "best"
    assert "(exact) has 0.905, which is a statistical tie." in " ".join(result.use_this())


@pytest.mark.usefixtures("without_gams")
def test_the_program_of_the_recommendation_runs_and_gives_its_score(data, tmp_path, capsys):
    X, y = data
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    loading = f"""import numpy as np
rows = np.load({str(tmp_path / "rows.npz")!r})
X, y = rows["X"], rows["y"]"""
    result = km.compare(X, y, loading_code=loading, **QUICK)
    scope = {}
    exec(result.code(), scope)
    row = result[result.recommended()]
    assert scope["scores"].mean() == pytest.approx(row.score, abs=1e-12)
    assert scope["model"].predict(X).shape == y.shape
    assert capsys.readouterr().out == f"accuracy: {row.score:.3f}\n"


def test_a_comparison_prints_a_table_and_shows_one_in_notebooks(result):
    text = str(result)
    assert "HomogeneousMap 7" in text
    assert "Use " in text
    assert len(text) < 6000
    assert max(map(len, text.split("\n"))) <= 100
    assert len(repr(result)) < 200
    page = result._repr_html_()
    assert page.count("<tr") == len(result) + 1
    assert "HomogeneousMap 7" in page
    # Names come from files: nothing in them is markup.
    hostile = dataclasses.replace(result, data=result.data | {"name": "<script>[/b]\x1b[31m"})
    assert "&lt;script&gt;[/b]\\x1b" in hostile._repr_html_()
    assert "<script>[/b]\\x1b" in str(hostile)


# ---- tables that are not ready ------------------------------------------------------------------


def test_one_class_is_said_before_anything_is_computed(data, monkeypatch):
    monkeypatch.setattr(comparison, "measure", None)
    with pytest.raises(ValueError, match=r"all 240 rows have the same class 'a'.*target column"):
        km.compare(data[0], np.full(240, "a"))
    with pytest.raises(ValueError, match=r"all 240 rows have the same target 1\.5"):
        km.compare(data[0], np.full(240, 1.5), task="regression")


def test_columns_that_a_fit_leaves_out_are_left_out_of_a_frame(data, result, tmp_path, capsys):
    """Those of one value, and IDs; the pipelines and the program take the frame as it is."""
    X, y = data
    bins = [f"bin {i}" for i in range(12)]
    frame = pd.DataFrame(X, columns=bins)
    frame.insert(0, "customer_id", 1000 + np.random.default_rng(0).permutation(240))
    frame["currency"] = 1.0
    loading = f"import pandas as pd\nX, y = pd.read_pickle({str(tmp_path / 'X')!r}), {y.tolist()}"
    frame.to_pickle(tmp_path / "X")
    chosen = km.compare(frame, y, loading_code=loading, **QUICK)
    assert (chosen.data["columns"], chosen.data["names"]) == (12, bins)
    for name in ("customer_id", "currency"):
        assert any(note.startswith(f"column '{name}' left out") for note in chosen.notes)
    for label in result.models:
        assert chosen[label].score == result[label].score
        expected = result.estimator(label).fit(X, y).predict(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspectColumnWarning)  # the GAM says what it leaves out
            predicted = chosen.estimator(label).fit(frame, y).predict(frame)
        np.testing.assert_array_equal(predicted, expected)
    assert "TableEncoder" in chosen["HomogeneousMap 3"].code
    exec(chosen.code("HomogeneousMap 3"), {})
    assert f"{chosen['HomogeneousMap 3'].score:.3f}" in capsys.readouterr().out
    chosen.report(tmp_path / "report.html")


@pytest.fixture(scope="module")
def mixed():
    """A table with text, dates and gaps, and two effects that need the text and the date."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(300),
            "area": rng.gamma(5, 10, 300).round(1),
            "kind": rng.choice(["flat", "house", "villa"], 300),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=300), "D"),
        }
    )
    frame["rent"] = frame["area"] + 40 * (frame["kind"] == "villa") + rng.normal(0, 5, 300)
    frame.loc[::7, "area"] = np.nan
    return frame


def test_a_table_with_text_dates_and_gaps_is_compared_as_it_is(mixed, tmp_path, capsys):
    loading = f"import pandas as pd\nX = pd.read_pickle({str(tmp_path / 'X')!r})\ny = X.pop('rent')"
    mixed.to_pickle(tmp_path / "X")
    options = {"joint_sizes": [64], "maps": ["RandomFourierMap"], "loading_code": loading}
    result = km.compare(mixed, "rent", **options)
    kinds = list(dict.fromkeys(row["kind"] for row in result.to_dict()["rows"]))
    assert set(kinds) == {"linear", "gam", "boosting", "map", "exact", "sklearn"}
    assert set(result.frame["kernel"]) == {"–", "gaussian", "laplacian"}
    assert result.data["names"] == ["area", "kind", "sold"]
    assert any(note.startswith("column 'customer_id' left out") for note in result.notes)
    # Where the area is known, the noise is a hundredth of the variance; gaps are a seventh.
    assert result["GAM"].score > 0.7
    assert result["plain linear"].score > 0.7
    for label in ("GAM with pairs", "plain linear"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspectColumnWarning)  # the GAM says what it leaves out
            exec(result.code(label), {})
        printed = float(capsys.readouterr().out.removeprefix("R²: "))
        # The program encodes the training rows of each fold alone.
        assert printed == pytest.approx(result[label].score, abs=0.02)


@pytest.mark.usefixtures("without_gams")
def test_rows_of_a_group_are_in_one_fold(mixed, monkeypatch):
    """Targets are those of the group: who sees another row of it, knows its target."""
    groups = np.repeat(np.arange(30), 8)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))[groups] + 0.01 * rng.normal(size=(240, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(
        subject=groups, y=rng.normal(size=30)[groups]
    )
    options = {"maps": [], "kernels": ["gaussian"], "progress": False}
    leaking = km.compare(frame.drop(columns="subject"), "y", **options)
    result = km.compare(frame, "y", groups="subject", **options)
    assert result["exact gaussian"].score < 0.3
    assert leaking["exact gaussian"].score > result["exact gaussian"].score + 0.4
    assert result.data["names"] == ["a", "b", "c"]
    assert "groups=groups, cv=GroupKFold(3, shuffle=True, random_state=0)" in result.code()
    with pytest.raises(ValueError, match="groups must be at least cv=3 different values"):
        km.compare(frame, "y", groups=groups // 20, **options)


@pytest.mark.usefixtures("without_gams")
def test_maps_of_a_leading_exact_machine_get_more_columns():
    """The fields of a chess board need many columns: the exact machine is ahead of a small map."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = (np.floor(4 * X).sum(axis=1) % 2).astype(int)
    options = {
        "kernels": [km.kernels.Gaussian(0.1)],
        "maps": ["RandomFourierMap"],
        "progress": False,
    }
    result = km.compare(X, y, joint_sizes=[8], **options)
    sizes = sorted(result.frame.loc[result.frame["kind"] == "map", "columns"])
    assert sizes == [8, 8, 16, 16, 32, 32]


def test_an_encoder_writes_a_table_as_numbers(mixed, tmp_path):
    X = mixed.drop(columns="rent")
    encoder = km.TableEncoder().fit(X)
    Z = encoder.transform(X)
    assert Z.shape == (300, encoder.n_outputs_)
    assert encoder.columns_used == ["area", "kind", "sold"]
    gaps = X["area"].isna()
    np.testing.assert_array_equal(Z[:, 0], X["area"].fillna(X["area"].median()))
    np.testing.assert_array_equal(Z[:, 1], gaps)
    assert set(encoder.levels_[1]) == {"flat", "house", "villa"}
    for k, level in enumerate(encoder.levels_[1]):
        np.testing.assert_array_equal(Z[:, 2 + k], X["kind"] == level)
    strange = X.assign(kind="castle")[list(X)[::-1]]  # found by name; no level of fit
    np.testing.assert_array_equal(encoder.transform(strange)[:, 2:5], 0)
    km.save(encoder, tmp_path / "encoder.kmap")
    np.testing.assert_array_equal(km.load(tmp_path / "encoder.kmap").transform(X), Z)
    named = km.TableEncoder(["customer_id", "area"]).fit(X)
    np.testing.assert_array_equal(named.transform(X)[:, 0], X["customer_id"])
    text = pd.DataFrame({"area": X["area"].map("{:.1f} m²".format).where(~gaps)})
    np.testing.assert_array_equal(km.TableEncoder().fit_transform(text), Z[:, :2])


# ---- candidates ---------------------------------------------------------------------------------


def test_code_makes_the_same_map(data):
    for kernel in (km.kernels.chi2, km.kernels.Gaussian(2.0), km.kernels.Exponential(gamma=0.5)):
        for candidate in candidates(kernel, (3,), 0):
            made = eval(expression(candidate.make()), {"km": km})
            assert repr(made) == repr(candidate.make())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"cv": 1}, "cv must be between 2"),
        ({"C": []}, "C must have at least one value"),
        ({"C": [1.0, -1.0]}, "C must be"),
        ({"budget": -1}, "budget must be a positive"),
        ({"maps": ["NoSuchMap"]}, "no map 'NoSuchMap'"),
        ({"maps": [3]}, "neither the name of a map nor a transformer"),
        ({"maps": [km.HomogeneousMap(), km.HomogeneousMap()]}, "labels occur twice"),
        ({"maps": [], "with_baselines": False}, "nothing to compare"),
    ],
)
def test_wrong_arguments_are_refused(data, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        km.compare(*data, **options)


def test_wrong_targets_are_refused(data):
    with pytest.raises(ValueError, match=r"no targets.*`choose` finds the smallest"):
        km.compare(data[0], None)
    with pytest.raises(ValueError, match="one value per row"):
        km.compare(data[0], data[1][:5])


# ---- MeanNormScaler -----------------------------------------------------------------------------


def test_the_scaler_is_an_estimator_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of skipped checks
        check_estimator(km.MeanNormScaler())


def test_the_scaler_brings_rows_to_a_mean_square_of_one(seed):
    X = np.random.default_rng(seed).normal(3, 2, size=(50, 4)).astype(np.float32)
    Z = km.MeanNormScaler().fit_transform(X)
    assert Z.dtype == np.float32
    assert np.mean(np.sum(Z.astype(float) ** 2, axis=1)) == pytest.approx(1, rel=1e-5)
    csr = km.MeanNormScaler().fit_transform(sparse.csr_matrix(X))
    np.testing.assert_allclose(csr.toarray(), Z, rtol=1e-6)
    np.testing.assert_array_equal(km.MeanNormScaler().fit_transform(np.zeros((3, 2))), 0)


def test_polynomial_kernels_have_scikit_learns_maps_next_to_them(data):
    X, y = data
    kernels, options = [(fit_kernel("polynomial", X), None)], {"exact_rows": 240, "sparse": False}
    listed = methods.baselines(kernels, "classification", 10.0, size=64, **options)
    peer = next(m for m in listed if m.label == "sklearn PolynomialCountSketch 64, polynomial")
    problem = comparison.Problem(X, y, "classification", 3, 0)
    # TensorSketch is unbiased: its error is noise, below the size of the kernel.
    assert 0 < comparison.measure_error(peer, problem).relative < 1
    assert "exact polynomial" in [method.label for method in listed]
    assert {item.name for item in candidates(fit_kernel("polynomial", X), (64,))} == {"NystroemMap"}
