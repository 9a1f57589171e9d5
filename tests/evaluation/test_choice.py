"""choose: the cheapest map that holds, evidence that can be checked, reasons for the rest."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

import kernelmaps as km
from kernelmaps.evaluation.candidates import candidates
from kernelmaps.evaluation.choice import ADDITIVE_SIZES, _Search, upper_bound
from kernelmaps.exceptions import SuspectColumnWarning, ToleranceError

# What is chosen does not depend on how maps are run; commands and pages choose by the fast form.
pytestmark = pytest.mark.usefixtures("readable")

WANTED = {"error": "absolute", "confidence": 0.95}
COSINES = {"families": ["HomogeneousMap"], "progress": False}


@pytest.fixture(scope="module")
def X():
    return km.datasets.make_histograms(240, 10, random_state=0)[0]


def test_the_smallest_size_that_holds_is_chosen(X):
    choice = km.choose(X, "chi2", max_error=0.01, **COSINES)
    assert choice.evidence.bound <= 0.01
    smaller = [item for item in choice.rejected if item.columns < choice.evidence.columns]
    assert smaller
    assert all(item.bound > 0.01 for item in smaller)
    assert choice.map.transform(X[:1]).shape[1] == choice.evidence.columns
    assert eval(choice.code(), {"km": km}).get_params() == choice.map.get_params()


def test_evidence_is_the_error_on_rows_that_the_map_has_not_seen(X):
    choice = km.choose(X, "chi2", max_error=0.05, random_state=3, **COSINES)
    order = np.random.default_rng(3).permutation(240)
    parts = []
    for held, seen in ((order[:120], order[120:]), (order[120:], order[:120])):
        map_ = eval(choice.code(), {"km": km}).fit(X[seen])
        parts.append(km.kernel_error(map_, X[held]))
    assert choice.evidence.max == pytest.approx(max(e.max for e in parts), rel=1e-9)
    squares = [e.rms**2 for e in parts]
    assert choice.evidence.rms == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-9)
    assert choice.evidence.bias == pytest.approx(np.mean([e.bias for e in parts]), rel=1e-9)
    assert choice.evidence.n_pairs == 2 * 120**2
    assert choice.evidence.certificate == choice.map.certificate_
    # Certificates of some maps take longer than all measurements together.
    assert all(item.certificate is None for item in choice.rejected)


def test_the_certificate_is_that_of_the_map_that_is_given():
    """Not that of a map of half of the rows, whose period is another one."""
    X = np.random.default_rng(0).gamma(0.3, size=(60, 4))
    choice = km.choose(X, "chi2", max_error=0.5, random_state=0, **COSINES)
    half = eval(choice.code(), {"km": km}).fit(X[:30])
    assert half.certificate_ != choice.map.certificate_
    assert choice.evidence.certificate == choice.map.certificate_


def test_many_anchors_are_tried_where_few_do_not_suffice():
    """The intersection has a kink: 33 anchors of an exponential column err by .049."""
    rows = np.random.default_rng(0).exponential(size=(1000, 2))
    options = {"families": ["AnchorMap"], "progress": False}
    choice = km.choose(rows, "intersection", max_error=0.045, **options)
    assert choice.evidence.columns > 33 * 2
    assert choice.evidence.bound <= 0.045


@pytest.mark.parametrize("max_error", [0.1, 0.004])
def test_bisection_finds_what_a_search_through_all_sizes_finds(X, max_error):
    families = ["HomogeneousMap", "SeriesMap"]
    search = _Search(X, km.kernels.chi2, {**WANTED, "max_error": max_error}, 0)
    smallest = []
    for name in families:
        every = [
            item for item in candidates(km.kernels.chi2, ADDITIVE_SIZES, 0) if item.name == name
        ]
        measured = (search._evaluate(item) for item in every)
        smallest.append(next(item for item in measured if item.bound <= max_error))
    best = min(smallest, key=lambda item: (item.columns, item.bound))
    choice = km.choose(X, "chi2", max_error=max_error, families=families, progress=False)
    assert choice.evidence.label == best.label
    assert choice.evidence.bound == best.bound


def test_a_family_that_cannot_win_is_measured_once(X):
    families = ["HomogeneousMap", "ChebyshevMap"]
    choice = km.choose(X, "chi2", max_error=0.02, families=families, progress=False)
    assert choice.evidence.candidate.name == "HomogeneousMap"
    losers = [item for item in choice.rejected if item.candidate.name == "ChebyshevMap"]
    assert [item.columns for item in losers] == [choice.evidence.columns]
    assert losers[0].bound > 0.02


def test_a_budget_ends_the_search_and_is_noted(X, monkeypatch):
    measured = _Search._evaluate

    def last(search, candidate):
        search.end = -np.inf
        return measured(search, candidate)

    monkeypatch.setattr(_Search, "_evaluate", last)
    choice = km.choose(X, "chi2", max_error=0.9, budget=60.0, progress=False)
    assert choice.rejected == []
    assert any("the budget was spent" in note for note in choice.notes)


def test_a_frame_gives_what_its_features_give(X):
    """IDs and columns of one value are left out, as by models of tables, and the map takes them."""
    frame = pd.DataFrame(X).add_prefix("c")
    wide = frame.assign(row_id=np.arange(len(X)), unit=3.0)
    options = {"max_error": 0.02, **COSINES}
    plain, named = km.choose(X, "chi2", **options), km.choose(frame, "chi2", **options)
    with pytest.warns(SuspectColumnWarning, match="'row_id' left out.*'unit' left out"):
        chosen = km.choose(wide[["row_id", *frame, "unit"]], "chi2", **options)
    assert chosen.columns == list(frame)
    assert named.columns is None
    for choice, rows in ((named, frame), (chosen, wide)):
        assert choice.evidence.label == plain.evidence.label
        assert choice.evidence.bound == plain.evidence.bound
        np.testing.assert_array_equal(choice.map.transform(rows), plain.map.transform(X))
    parts = {"km": km, "make_pipeline": make_pipeline}
    made = eval(chosen.code(), parts).fit(wide)
    np.testing.assert_array_equal(made.transform(wide), plain.map.transform(X))
    assert chosen.to_dict()["columns"] == list(frame)


def test_a_frame_behind_a_scaler(X):
    frame = pd.DataFrame(X).add_prefix("c").assign(unit=3.0)
    options = {"max_error": 0.5, "families": ["RandomFourierMap"], "progress": False}
    with pytest.warns(SuspectColumnWarning, match="'unit' left out"):
        choice = km.choose(frame, "gaussian", **options)
    plain = km.choose(X, "gaussian", **options)
    # Rows in another order of memory are summed in another one: 10 columns, values up to 1.
    np.testing.assert_allclose(
        choice.map.transform(frame), plain.map.transform(X), rtol=0, atol=1e-13
    )


def test_a_list_of_kernels_is_for_all_columns_of_a_frame(X):
    frame = pd.DataFrame(X[:, :2]).add_prefix("c").assign(unit=1.0)
    choice = km.choose(frame, ["chi2"] * 3, max_error=0.5, families=["AnchorMap"], progress=False)
    assert choice.columns is None
    assert choice.map.n_features_in_ == 3


@pytest.mark.parametrize(
    "kernel", [km.kernels.Gaussian(0.5), km.kernels.Exponential(km.kernels.chi2, 0.5)]
)
def test_stationary_and_exponentiated_kernels(X, kernel):
    choice = km.choose(X, kernel, max_error=0.25, progress=False)
    assert choice.evidence.bound <= 0.25
    assert km.kernel_error(choice.map, X[:100], kernel=kernel).max <= 0.25


def test_a_stationary_kernel_by_name_acts_on_standardised_columns(X):
    """Units of columns change nothing, and the map takes the rows as they are."""
    units = 10.0 ** np.arange(-5, 5)
    options = {"max_error": 0.5, "families": ["RandomFourierMap"], "progress": False}
    once, scaled = (km.choose(rows, "gaussian", **options) for rows in (X, X * units))
    assert once.evidence.label == scaled.evidence.label
    assert scaled.code().startswith("make_pipeline(StandardScaler(), km.RandomFourierMap(")
    Z = scaled.map.transform(X * units)
    exact = scaled.kernel(scaled.map[0].transform(X * units))
    assert np.abs(Z @ Z.T - exact).max() <= 0.5
    # At the median distance it is exp(-1/2) = 0.607: neither diagonal nor constant.
    assert 0.01 < np.median(exact) < 0.65
    assert "<table" in scaled._repr_html_()
    assert len(repr(scaled)) < 400


def test_a_kernel_of_ones_own_gets_anchors(X):
    kernel = km.kernels.Additive(lambda x, y: np.minimum(x, y), name="mine")
    choice = km.choose(X, kernel, max_error=0.5, progress=False)
    assert type(choice.map).__name__ == "AnchorMap"


def test_the_table_shows_the_chosen_map_and_others(X):
    choice = km.choose(X, "chi2", max_error=0.02, progress=False)
    assert len({item.candidate.name for item in choice.rejected} - {"HomogeneousMap"}) > 0
    assert f"{1 + len(choice.to_dict()['rejected'])} candidates were measured." in str(choice)
    # A terminal shows the chosen one and, of each family, the last size that was looked at.
    families = {(item.candidate.name, item.candidate.variant) for item in choice.rejected}
    assert choice.table().row_count == 1 + len(families)
    assert "confidence" in choice.summary()
    printed = str(choice)  # shows all that was measured
    assert choice.evidence.label in printed
    assert all(item.candidate.name in printed for item in choice.rejected)


def test_relative_errors_do_not_depend_on_the_scale(X):
    once = km.choose(X, "chi2", max_error=0.02, error="relative", **COSINES)
    scaled = km.choose(1000 * X, "chi2", max_error=0.02, error="relative", **COSINES)
    assert once.evidence.label == scaled.evidence.label
    assert once.evidence.max == pytest.approx(scaled.evidence.max, rel=1e-6)


def test_sparse_rows(X):
    dense = km.choose(X, "chi2", max_error=0.02, **COSINES)
    csr = km.choose(sparse.csr_matrix(X), "chi2", max_error=0.02, **COSINES)
    assert csr.evidence.label == dense.evidence.label


def test_the_bound_knows_how_many_fresh_rows_there_are(seed):
    """Exponential tails grow with the logarithm: log(4) scales more for four times the rows."""
    largest = np.random.default_rng(seed).exponential(size=4000)
    few, many = (upper_bound(largest, 0.9999, n) for n in (1000, 4000))
    assert 0.5 * np.log(4) < many - few
    assert upper_bound(largest, 0.9999) == many


def test_the_bound_holds_on_fresh_rows():
    """Chosen on two thirds, checked on the others: 6 cases, at most one failure."""
    held = []
    for seed in range(2):
        X, _ = km.datasets.make_histograms(300, 10, 3, random_state=seed)
        for kernel, tolerance in (
            ("chi2", 0.02),
            ("intersection", 0.1),
            (km.kernels.Gaussian(0.5), 0.3),
        ):
            families = ["HomogeneousMap", "RandomFourierMap"]
            choice = km.choose(
                X[:200], kernel, max_error=tolerance, families=families, random_state=seed,
                progress=False,
            )  # fmt: skip
            held.append(km.kernel_error(choice.map, X[200:], kernel=kernel).max <= tolerance)
    assert sum(held) >= 5


@pytest.mark.parametrize("make", [sparse.csr_matrix, pd.DataFrame])
def test_columns_that_no_map_can_know_are_named(make):
    X = np.random.default_rng(0).integers(0, 2, (200, 12)).astype(float)
    X[:, 3:10] = 0
    X[np.arange(7), np.arange(3, 10)] = 1  # in a single row, which is held out once
    rows = pd.DataFrame(X, columns=list("abcdefghijkl")) if make is pd.DataFrame else make(X)
    names = "d, e, f, g, h, …" if make is pd.DataFrame else "3, 4, 5, 6, 7, …"
    words = rf"held out: 7 \({names}\)\. Pass more rows, or leave these columns out\."
    with pytest.raises(ToleranceError, match=words) as failure:
        km.choose(rows, "intersection", max_error=0.01, families=["AnchorMap"], progress=False)
    assert failure.value.best.max == pytest.approx(1)


def test_a_bound_that_says_nothing_is_infinite():
    """Few errors among roundings: Hill's estimate has no end."""
    errors = np.full(1000, 1e-16)
    errors[:20] = 1.0
    assert upper_bound(errors, 0.95) == np.inf


def test_a_tolerance_that_nothing_holds_names_the_nearest(X):
    words = "no map of chi2 meets max_error=1e-09.*pass error='relative'"
    with pytest.raises(ToleranceError, match=words) as failure:
        km.choose(1e9 * X, "chi2", max_error=1e-9, **COSINES)
    assert failure.value.best.candidate.name == "HomogeneousMap"


def test_a_list_of_kernels_has_maps_that_do_not_clip(seed):
    """Anchors end with the fitted range: of few rows, the largest values of others are clipped."""
    X = np.random.default_rng(seed).dirichlet(np.ones(3), 300)
    choice = km.choose(X, ["chi2", "intersection", "chi2"], max_error=0.2, families=["NystroemMap"])
    assert choice.map.additive
    assert choice.evidence.bound <= 0.2
    functions = km.kernels.get(["chi2", np.minimum, "chi2"])  # which files cannot name
    assert {one.name for one in candidates(functions, (5,))} == {"AnchorMap"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_error": -1}, "max_error must be a positive number, got -1"),
        ({"max_error": "a"}, "max_error must be a positive number, got 'a'"),
        ({"max_error": True}, "max_error must be a positive number, got True"),
        ({"max_error": np.nan}, "max_error must be a positive number, got nan"),
        ({"max_error": 0.9, "budget": 0}, "budget must be a positive number of seconds, got 0"),
        ({"max_error": 0.1, "confidence": "high"}, "confidence must be"),
        ({"max_error": 0.1, "families": "HomogeneousMap"}, "must be a list of names"),
        ({"max_error": 0.1, "error": "squared"}, "error must be"),
        ({"max_error": 0.1, "confidence": 1.5}, "confidence must be"),
        ({"max_error": 0.1, "families": ["NoSuchMap"]}, "there is no map for"),
    ],
)
def test_wrong_wishes_are_refused(X, options, match):
    with pytest.raises(ValueError, match=match):
        km.choose(X, "chi2", **options)


def test_negative_rows_have_no_histogram_kernel(X):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        km.choose(X - 0.5, "chi2", max_error=0.1)
