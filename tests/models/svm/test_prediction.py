"""Prediction compiled to per-feature polynomials: equal to the sum of the weighted columns."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets

import kernelmaps as km
from kernelmaps.engine.reference import evaluate_table
from kernelmaps.engine.table import AFFINE, CODE, EDGES, Table
from kernelmaps.engine.table.dot import sum_table
from kernelmaps.exceptions import OutOfDomainWarning
from kernelmaps.models.svm.fitted import add_sums

ONE = {"n_jobs": 1, "tol": 1e-3, "random_state": 0}
# Any weights are those of a model: loops that would train them are not compiled here.
untrained = pytest.mark.usefixtures("drawn_weights", "readable")


def data(seed, classes=2, n=120, d=5):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    score = np.sin(7 * X[:, 0]) + 2 * X[:, 1] ** 2
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def to_bytes(X):
    return (255 * X).astype(np.uint8)


def to_single(X):
    return X.astype(np.float32)


UNEVEN = km.AnchorMap(lambda x, y: np.exp(-((x - y) ** 2)), 8, anchors="kmeans", n_neighbors=2)
# A map, the rows, classes, and the bins that the compiled form has.
CASES = {
    "cubic": (km.SplineMap(), np.array, 2, AFFINE),
    "large-table": (km.SplineMap(36), np.array, 2, AFFINE),
    "linear": (km.SplineMap(50, degree=1), np.array, 2, AFFINE),
    "single": (km.SplineMap(), to_single, 2, AFFINE),
    "single-large-table": (km.SplineMap(80), to_single, 2, AFFINE),
    "extrapolated": (km.SplineMap(out_of_domain="extrapolate"), np.array, 2, AFFINE),
    "classes": (km.SplineMap(), np.array, 3, AFFINE),
    "many-classes": (km.SplineMap(), to_single, 19, AFFINE),
    "uneven": (UNEVEN, np.array, 2, EDGES),
    "bytes": (km.SplineMap(order=0), to_bytes, 2, CODE),
    "sparse": (km.SplineMap(), sparse.csr_matrix, 2, AFFINE),
    "sparse-classes": (km.SplineMap(), sparse.csr_matrix, 3, AFFINE),
}


def trained(case, seed):
    """A model and its rows, whose compiled form is that of the case."""
    feature_map, convert, classes, kind = CASES[case]
    X, y = data(seed, classes, d=67)  # four groups of up to sixteen values, and some left over
    X = convert(np.where(X < 0.2, 0, X))
    model = km.AdditiveSVC(feature_map, **ONE).fit(X, y)
    terms = model.predictor_._summed_table(X)
    assert terms.bins.binning == kind
    assert terms.outputs == (1 if classes == 2 else classes)
    return model, 2 * X - 0.7 if case == "extrapolated" else X  # several bins beyond both ends


def sum_terms(machine, X):
    """Scores as the terms say."""
    return machine.terms(X).sum(axis=1) + machine.offset


def check_sums_of_terms(model, X):
    found, single = model.predictor_.scores(X), model.predictor_.precision(X) is np.float32
    expected = sum_terms(model.predictor_, X)
    np.testing.assert_allclose(found, expected, atol=2e-5 if single else 1e-11)
    if not sparse.issparse(X):
        terms = model.eval_terms(X).reshape(*X.shape, -1).sum(axis=1) + model.intercept_
        np.testing.assert_allclose(found, terms, atol=2e-4 if single else 1e-9)


@untrained
@pytest.mark.parametrize("case", CASES)
def test_compiled_prediction_is_the_sum_of_weighted_columns(case, seed):
    check_sums_of_terms(*trained(case, seed))


@untrained
@pytest.mark.parametrize("bases", [10, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vectors_cover_every_shape(bases, dtype, seed):
    """Fewer rows or features than a vector has, and whole vectors with something left over."""
    n, d = 130, 150  # more than a tile of features
    X, y = data(seed, n=n, d=d)
    X = X.astype(dtype)
    for width in (1, 7, 8, 16, 17, d):
        own = np.ascontiguousarray(X[:, :width])
        model = km.AdditiveSVC(km.SplineMap(bases), **ONE).fit(own, y)
        expected = sum_terms(model.predictor_, own)
        for rows in (1, 7, 8, 9, 16, 33, 65, n):
            found = model.predictor_.scores(own[n - rows :])
            nothing = np.zeros((rows, 1))  # values that fill up a vector are not outside the domain
            add_sums(model.predictor_._summed_table(own), own[n - rows :], nothing, 1)
            np.testing.assert_allclose(
                found, expected[n - rows :], atol=2e-5 if dtype is np.float32 else 1e-11
            )


@untrained
@pytest.mark.parametrize(("bases", "d"), [(10, 5), (10, 20), (40, 20)])
def test_values_are_looked_at_on_the_way(bases, d, seed):
    X, y = data(seed, d=d)
    model = km.AdditiveSVC(km.SplineMap(bases), **ONE).fit(X, y)
    ends = np.stack([X.min(axis=0), X.max(axis=0)])
    ends = ends[np.arange(19) % 2]
    model.decision_function(ends)  # the ends belong to the domain: no warning
    more = np.where(np.arange(d) == 2, 0.1, 0)
    with pytest.warns(OutOfDomainWarning, match="column 2 reaches"):
        beyond = model.decision_function(ends + more)
    clipped = np.minimum(ends + more, ends[1])
    np.testing.assert_allclose(beyond, model.decision_function(clipped), atol=1e-10)
    for wrong in (np.nan, np.inf, -np.inf):  # said although the warning is over
        bad = X.copy()
        bad[7, 3] = wrong
        with pytest.raises(ValueError, match=r"\(row 7, column 3\)"):
            model.decision_function(bad)
    strict = km.SplineMap(out_of_domain="raise")
    with pytest.raises(ValueError, match="outside the fitted domain"):
        km.AdditiveSVC(strict, **ONE).fit(X, y).decision_function(X + 0.01)


@untrained
@pytest.mark.parametrize("case", ["sparse", "sparse-classes"])
def test_stored_values_outside_the_domain_are_clipped(case, seed):
    """Bins of values that come clipped have no guard of their own."""
    model, X = trained(case, seed)
    low, high = X.toarray().min(axis=0), X.toarray().max(axis=0)
    far = X.copy()
    far.data = np.where(np.arange(X.nnz) % 2, 1e3, -1e3)
    clipped = far.copy()
    clipped.data = np.clip(far.data, low[X.indices], high[X.indices])
    zeros = np.zeros((2, X.shape[0], model.predictor_.n_outputs))
    terms = model.predictor_._summed_table(X)
    add_sums(terms, far, zeros[0], 1)
    add_sums(terms, clipped, zeros[1], 1)
    np.testing.assert_allclose(*zeros, atol=1e-9)


@untrained
@pytest.mark.parametrize(
    ("feature_map", "dtype"),
    [
        (km.AnchorMap("chi2", rank=1), np.float64),
        (km.AnchorMap("chi2", anchors="kmeans", rank=1), np.float64),
        (km.AnchorMap("chi2", n_neighbors=2, rank=1), np.float32),
        (km.AnchorMap("chi2", out_of_domain="extrapolate", rank=1), np.float64),
        (km.HomogeneousMap(n_components=3), np.float32),
        (km.ChebyshevMap(3), np.float64),
        (km.DesignedMap("chi2", 3), np.float64),
    ],
)
def test_negative_values_of_a_kernel_for_histograms_are_refused(feature_map, dtype, seed):
    """Look-up maps have bins without outer ends, which would take them for the first anchor."""
    X, y = data(seed)
    model = km.AdditiveSVC(feature_map, **ONE).fit(X, y)
    wrong = X.astype(dtype)
    wrong[5, 2] = -0.1
    with pytest.raises(ValueError, match="Negative values"):
        model.decision_function(wrong)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_an_explanation_speaks_of_the_predicted_class(multi_class):
    """One against one: of a pair that this class has won, and none that it won is closer."""
    X, y = datasets.load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    model = km.AdditiveSVC(multi_class=multi_class, random_state=0).fit(X, labels)
    for k in (0, 60, 120):
        said, guess = model.explain(X[k : k + 1]), model.predict(X[k : k + 1])[0]
        every = [model.explain(X[k : k + 1], output=output) for output in range(3)]
        if multi_class == "ovr":
            assert said.output == guess
            assert said.score == max(own.score for own in every)
            continue
        second, first = said.output.split(", not ")
        assert guess == (second if said.score > 0 else first)
        won = [
            abs(own.score)
            for own in every
            if own.output.split(", not ")[0 if own.score > 0 else 1] == guess
        ]
        assert abs(said.score) == min(won)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 7, 100])
def test_sums_at_the_ends_of_bins_are_those_of_the_readable_form(seed, dtype, bins):
    """At edges, at both ends and next to them; and values within the range are never beyond it."""
    rng = np.random.default_rng(seed)
    d = 37
    lo, width = rng.normal(size=d), 10.0 ** rng.uniform(-1, 3, d)
    lo[3], width[3] = 1e5, 1.0  # too far from zero for positions in float32
    scale = bins / width
    knots = np.arange(bins + 1) - 1.0  # truncated powers: cubics that join smoothly
    steps = [rng.normal(size=(len(knots), 1)) for _ in range(d)]
    sets = []
    for own in steps:
        at = np.arange(bins)[:, None] - knots
        powers = [np.maximum(at, 0) ** (3 - k) * c for k, c in enumerate((1, 3, 3, 1))]
        powers[3] = (at >= 0) * 1.0
        sets.append(np.stack([p @ own / bins**3 for p in powers], axis=1))
    table = Table.build(
        AFFINE,
        3,
        sets,
        np.arange(d),
        origin=lo,
        resolution=scale,
        clip_low=lo,
        clip_high=lo + bins / scale,
    )
    low, high = table.clip_low.astype(dtype), table.clip_high.astype(dtype)
    edges = np.clip((lo + np.arange(bins + 1)[:, None] / scale).astype(dtype), low, high)
    X = np.concatenate([low[None], high[None], edges, rng.uniform(low, high, (60, d))]).astype(
        dtype
    )
    X = np.clip(np.concatenate([X, np.nextafter(X, low), np.nextafter(X, high)]), low, high)
    expected = evaluate_table(table, X.astype(np.float64), np).sum(axis=1)
    terms = sum_table(table, np.dtype(dtype))
    found = np.zeros((len(X), 1))
    add_sums(terms, X, found, 1)
    size = max(float(np.abs(own).max()) for own in sets)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e5 * np.finfo(dtype).eps * size)
    for side in (low, high):  # a step outside is noticed, and the value is that at the end
        out = np.nextafter(side, side * 2 - (low + high) / 2)[None].astype(dtype)
        there = np.zeros((1, 1))
        add_sums(terms, out, there, 1)
        at_end = evaluate_table(table, side[None].astype(np.float64), np).sum()
        np.testing.assert_allclose(there[0, 0], at_end, atol=1e5 * np.finfo(dtype).eps * size)


@untrained
@pytest.mark.parametrize(
    ("begin", "width"), [(-2, 5), (3, 1e-38), (-3.4e38, 6.8e38), (0, 1e60), (1.6e9 + 1080, 3600)]
)
def test_float32_positions_are_bounded_where_they_may_be_anywhere(seed, begin, width):
    """Ranges that float32 cannot hold, or not well: rows stay within the table."""
    X, y = data(seed)
    X[:, 0] = begin + X[:, 0] * width if begin != 3 else X[:, 0] * width
    with np.errstate(over="ignore"):
        single = np.clip(X, -3.4e38, 3.4e38).astype(np.float32)
    model = km.AdditiveSVC(km.SplineMap(200), **ONE).fit(X, y)
    terms = model.predictor_._summed_table(single)
    with np.errstate(all="ignore"):
        found = np.zeros((len(X), 1))
        add_sums(terms, single, found, 1)
    if width < 1e50:  # float32 does not reach farther
        scores = sum_terms(model.predictor_, single)
        np.testing.assert_allclose(found + model.predictor_.offset, scores, atol=1e-3)


def test_training_rows_are_described_once_and_leave_with_the_pickle():
    X = np.random.default_rng(0).random((60, 2))
    model = km.AdditiveSVC(km.SplineMap(4)).fit(X, X[:, 0] > 0.5)
    copied = pickle.loads(pickle.dumps(model))
    assert all("_sample" not in vars(each.predictor_) for each in (model, copied))
    np.testing.assert_array_equal(copied.feature_importances_, model.feature_importances_)
    assert model.feature_importances_[0] > 5 * model.feature_importances_[1]
