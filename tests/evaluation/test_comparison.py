"""compare: what it measures is what it says, within its budget, and nothing is lost by Ctrl-C."""

import io

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.evaluation import comparison, contenders
from kernelmaps.evaluation.candidates import candidates, fitted_to_data, kernel_code

QUICK = {"maps": ["HomogeneousMap"], "kernels": ["chi2"], "sizes": [3, 7], "progress": False}


@pytest.fixture(scope="module")
def data():
    return km.datasets.make_histograms(240, 12, 3, n_counts=30, random_state=0)


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
        scale = np.sqrt(np.mean(np.sum(Z[:200] ** 2, axis=1)))
        model = LinearSVC(C=10.0, random_state=0).fit(Z / scale, y[train])
        scores.append(model.score(feature_map.transform(X[test]) / scale, y[test]))
    row = result["HomogeneousMap 3"]
    assert row.score == pytest.approx(np.mean(scores), abs=1e-12)
    assert row.columns == 36
    assert row.bytes == 160 * 36 * 8
    assert row.rows == 240


def test_errors_shrink_with_the_size_and_come_in_parts(result):
    small, large = (result[f"HomogeneousMap {size}"].error for size in (3, 7))
    assert large.rms < small.rms
    assert abs(small.bias) <= small.rms <= small.max


def test_yardsticks_stand_beside_the_maps(result):
    kinds = [row.kind for row in result.rows]
    assert {"linear", "exact", "sklearn", "boosting", "map"} == set(kinds)
    assert result["exact chi2"].columns is None
    assert result["sklearn AdditiveChi2Sampler 3, chi2"].error.max > 0


def test_nystroem_and_samplers_belong_to_their_kernels():
    X = np.random.default_rng(0).random((20, 3))
    kernels = [fitted_to_data(name, X) for name in ("gaussian", "exp_chi2")]
    found = contenders.yardsticks(kernels, size=8, exact_rows=100)
    labels = [item.label for item in found if item.kind == "sklearn"]
    assert labels == [
        "sklearn RBFSampler 8, gaussian",
        "sklearn Nystroem 8, gaussian",
        "sklearn Nystroem 8, exp_chi2",
    ]
    # With as many landmarks as rows Nyström is exact: the two libraries mean the same kernel.
    for item in [item for item in found if "Nystroem" in item.label]:
        error = km.kernel_error(item.make_map().set_params(n_components=20), X, kernel=item.truth)
        assert error.max < 1e-8


def test_the_front_is_not_dominated(result):
    front = result.pareto("seconds", "score")
    for row in result.rows:
        if row.score is None:
            continue
        beaten = [f for f in front if f.seconds <= row.seconds and f.score >= row.score]
        assert beaten
    assert [row.seconds for row in front] == sorted(row.seconds for row in front)
    assert all(row.error is not None for row in result.pareto("columns", "error"))


def test_tables_frames_and_plain_values_agree(result):
    frame = pytest.importorskip("pandas") and result.to_pandas()
    assert len(frame) == len(result.rows) == len(result.to_dict()["rows"]) == len(result)
    row = result["HomogeneousMap 7"]
    line = frame[frame.label == row.label].iloc[0]
    assert line.error_max == row.error.max
    assert line.score == row.score
    assert "HomogeneousMap 7" in _text(result.table())


def _text(table):
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_a_plot_has_a_point_per_row(result, tmp_path):
    figure = result.plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
    points = sum(len(item.get_offsets()) for item in figure.axes[1].collections)
    assert points == len(result.rows)


def test_without_targets_errors_and_times_are_left(data):
    result = km.compare(data[0], **QUICK)
    assert result.task == "none"
    assert {row.kind for row in result.rows} == {"map"}
    assert all(row.score is None and row.error is not None for row in result.rows)
    assert result.best().label == "HomogeneousMap 7"


def test_a_real_target_is_scored_by_r2(data):
    X, _ = data
    y = np.sqrt(X) @ np.arange(12.0)
    result = km.compare(X, y, **QUICK)
    assert (result.task, result.score_name) == ("regression", "R²")
    # √x is in the span of a Hellinger-like map: the maps must beat the linear model.
    assert result["HomogeneousMap 7"].score > result["plain linear"].score


def test_sparse_rows_stay_sparse(data):
    X, y = data
    dense, csr = km.compare(X, y, **QUICK), km.compare(sparse.csr_matrix(X), y, **QUICK)
    assert csr.data["sparse"]
    for label in ("HomogeneousMap 3", "exact chi2"):
        assert csr[label].score == pytest.approx(dense[label].score, abs=0.02)


def test_maps_as_objects_and_pairs(data):
    maps = [km.HomogeneousMap(n_components=3), ("mine", km.HomogeneousMap("intersection"))]
    result = km.compare(*data, maps=maps, with_yardsticks=False, progress=False)
    assert [row.label for row in result.rows] == ["HomogeneousMap(n_components=3)", "mine"]
    assert result["mine"].kernel == "intersection"


def test_kernels_of_histograms_are_left_out_for_negative_data(data):
    X, y = data
    result = km.compare(X - 0.1, y, maps=["HomogeneousMap"], kernels=["chi2"], progress=False)
    assert any("chi2 was left out: X goes down to -0.1" in note for note in result.notes)


# ---- budget and interruption --------------------------------------------------------------------


def _slow(seconds_per_row):
    """A stand-in whose cost is known: what is tested is the planning, not this machine."""

    def measure(contender, problem, seconds):
        clock[0] += seconds_per_row * problem.X.shape[0]
        return contenders.Row(contender.label, contender.kind, contender.kernel, len(problem.y))

    clock = [0.0]
    return measure, lambda: clock[0]


@pytest.mark.parametrize("budget", [3.0, 30.0, 3000.0])
def test_a_budget_is_kept_and_subsampling_stated(budget, monkeypatch):
    X, y = km.datasets.make_histograms(20_000, 3, 3, random_state=0)
    measure, clock = _slow(1e-3)
    monkeypatch.setattr(comparison, "measure", measure)
    monkeypatch.setattr(comparison, "perf_counter", clock)
    result = km.compare(X, y, budget=budget, **QUICK)
    assert clock() <= budget
    rows = max(row.rows for row in result.rows)
    if budget == 3000.0:
        assert rows == 20_000
    else:
        assert f"Subsampled: {rows} of 20000 rows" in " ".join(result.notes)


def test_a_dear_method_does_not_hold_up_the_others(monkeypatch):
    X, y = km.datasets.make_histograms(20_000, 3, 3, random_state=0)
    measure, clock = _slow(1e-3)
    spent = []

    def one_is_dear(contender, problem, seconds):
        if contender.kind == "boosting":
            spent.append(problem.X.shape[0])
            measure(contender, problem.of_rows(np.arange(10_000) % 300), seconds)
        return measure(contender, problem, seconds)

    monkeypatch.setattr(comparison, "measure", one_is_dear)
    monkeypatch.setattr(comparison, "perf_counter", clock)
    result = km.compare(X, y, budget=60.0, **QUICK)
    assert clock() <= 60
    assert spent == [300]
    assert max(row.rows for row in result.rows) > 300
    assert "Slow ones saw fewer rows: gradient boosting (300)." in " ".join(result.notes)


def test_no_fold_is_begun_after_the_time_is_over(data):
    X, y = data
    problem = contenders.Problem(X, y, "classification", 3, 1.0, X[:20], 0)
    row = contenders.measure(contenders.Contender("plain linear", "linear"), problem, 0.0)
    assert row.note == "1 of 3 folds: the time was over"
    assert row.score is not None


def test_more_budget_gives_more_rows(monkeypatch):
    X, y = km.datasets.make_histograms(20_000, 3, 3, random_state=0)
    seen = []
    for budget in (5.0, 50.0):
        measure, clock = _slow(1e-3)
        monkeypatch.setattr(comparison, "measure", measure)
        monkeypatch.setattr(comparison, "perf_counter", clock)
        seen.append(max(row.rows for row in km.compare(X, y, budget=budget, **QUICK).rows))
    assert seen[1] > 2 * seen[0]


def test_a_hundred_thousand_rows_or_a_note_that_says_how_many():
    X, y = km.datasets.make_histograms(100_000, 8, 3, random_state=0)
    options = {"maps": ["HomogeneousMap"], "kernels": ["chi2"], "sizes": [3]}
    result = km.compare(X, y, **options, budget=8.0, progress=False)
    assert any("Subsampled" in note for note in result.notes) or result.rows[0].rows == 100_000


def test_exact_machines_see_a_stated_subsample(data):
    result = km.compare(*data, **QUICK, exact_rows=90)
    assert result["exact chi2"].rows == 90
    assert "Exact kernel machines saw 90 rows: exact chi2." in result.notes


def test_ctrl_c_keeps_what_was_measured(data, monkeypatch):
    done = []

    def measure(contender, problem, seconds):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(contender.label)
        return contenders.measure(contender, problem)

    monkeypatch.setattr(comparison, "measure", measure)
    result = km.compare(*data, **QUICK)
    assert result.interrupted
    assert {row.label for row in result.rows} == set(done)
    assert "Interrupted: 3 of" in result.notes[-1]


def test_a_map_that_cannot_be_made_is_left_out_with_its_reason(data):
    bad = ("bad", km.HomogeneousMap(n_components=0))
    result = km.compare(*data, maps=[bad], with_yardsticks=True, kernels=["chi2"], progress=False)
    assert "bad" not in [row.label for row in result.rows]
    assert any(note.startswith("bad was left out: HomogeneousMap") for note in result.notes)


# ---- candidates ---------------------------------------------------------------------------------


def test_code_makes_the_same_map(data):
    for kernel in (km.kernels.chi2, km.kernels.Gaussian(2.0), km.kernels.Exponential(gamma=0.5)):
        for candidate in candidates(kernel, (3,), 0):
            made = eval(candidate.code(), {"km": km})
            assert repr(made) == repr(candidate.make())


def test_widths_come_from_the_data():
    X = np.random.default_rng(0).normal(size=(200, 5))
    once, twice = (fitted_to_data("gaussian", s * X).sigma for s in (1, 2))
    assert twice == pytest.approx(2 * once, rel=5e-3)  # rounded to three digits
    assert kernel_code(km.kernels.Gaussian(2.0)) == "km.kernels.Gaussian(sigma=2.0)"
    fixed = km.kernels.Gaussian(7.0)
    assert fitted_to_data(fixed, X) is fixed


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"cv": 1}, "cv must be between 2"),
        ({"budget": -1}, "budget must be a positive"),
        ({"maps": ["NoSuchMap"]}, "no map 'NoSuchMap'"),
        ({"maps": [3]}, "neither the name of a map nor a transformer"),
        ({"maps": [km.HomogeneousMap(), km.HomogeneousMap()]}, "labels occur twice"),
        ({"maps": [], "with_yardsticks": False}, "nothing to compare"),
    ],
)
def test_wrong_arguments_are_refused(data, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        km.compare(*data, **options)


def test_wrong_targets_are_refused(data):
    with pytest.raises(ValueError, match="one value per row"):
        km.compare(data[0], data[1][:5])


@pytest.mark.parametrize("rows", [300, 200])
def test_a_terminal_of_80_columns_shows_whole_names(rows):
    from rich.console import Console

    labels = [
        "RandomFourierMap orthogonal 1024, gaussian",
        "sklearn AdditiveChi2Sampler 15, gaussian",
    ]
    lines = [
        contenders.Row(label, "map", "gaussian", n, 1024, 0.5, 0.01, 1.234, 12.345, 1.234)
        for label, n in zip(labels, (300, rows))
    ]
    data = {"name": "mine", "rows": 10**6, "columns": 10**4, "C": 1.0}
    console = Console(width=80, file=io.StringIO())
    console.print(comparison.Comparison(lines, "classification", data).table())
    printed = console.file.getvalue()
    assert "RandomFourierMap 1024" in printed
    assert "sk. AdditiveChi2 15" in printed
    assert ("rows" in printed) == (rows != 300)
