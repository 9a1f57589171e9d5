"""The streaming estimators against scikit-learn in memory, and against themselves."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn_checks import broken

import kernelmaps as km
from kernelmaps.models.streaming import rows as rows_module
from kernelmaps.stats.moments import fold_of_row

MAP = RBFSampler(gamma=0.1, n_components=40, random_state=0)


def regression(seed, n=600, d=6, t=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2
    Y = np.sin(X @ rng.normal(size=(d, t))) + 0.3 * rng.normal(size=(n, t)) + 7
    return X, Y, rng.uniform(0.2, 3, n)


def classes(seed, n=600, c=4):
    X, Y, w = regression(seed, n)
    # Unbalanced on purpose: without ȳ in the prediction most decisions change (errata 2.20).
    return X, np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.5, 0.8, 0.95][: c - 1])), w


def chunked(*arrays, size=97):
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, len(arrays[0]), size)]


@pytest.mark.parametrize(
    "estimator",
    [
        km.StreamingPCA(),
        km.StreamingRidge(),
        km.StreamingRidgeClassifier(),
        km.StreamingLasso(alpha=0.1, l1_ratio=0.5),
        km.StreamingLassoClassifier(l1_ratio=0.5, groups="kernels", multi_class="ovo"),
    ],
    ids=str,
)
def test_scikit_learn_conventions(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the checks themselves provoke
        assert broken(estimator) == {}


# ---- Algorithm 2 --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [1, 7, 0.9, None])
def test_pca_is_that_of_the_stored_features(seed, n_components):
    X, _, _ = regression(seed)
    model = km.StreamingPCA(n_components, MAP).fit(iter(chunked(X)))
    Z = MAP.fit(X).transform(X)
    size = Z.shape[1] if n_components is None else n_components
    exact = PCA(size, svd_solver="full").fit(Z)
    assert model.n_components_ == exact.n_components_
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        np.testing.assert_allclose(getattr(model, name), getattr(exact, name), rtol=1e-8)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), exact.transform(Z), atol=1e-8)
    assert list(model.get_feature_names_out()[:1]) == ["streamingpca0"]


# ---- Algorithm 3 --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_components", [None, 12])
@pytest.mark.parametrize("targets", [1, 3])
def test_ridge_is_that_of_scikit_learn(seed, targets, n_components, weighted):
    X, Y, w = regression(seed, t=targets)
    y, w = (Y[:, 0] if targets == 1 else Y), (w if weighted else None)
    model = km.StreamingRidge(0.3, MAP, n_components=n_components)
    model.fit(chunked(X, y) if w is None else chunked(X, y, w))
    Z = MAP.fit(X).transform(X)
    if n_components is None:
        exact = Ridge(0.3, solver="cholesky").fit(Z, y, sample_weight=w)
        coef, intercept, predicted = exact.coef_, exact.intercept_, exact.predict(Z)
    else:
        # scikit-learn's PCA knows no weights: rows about the weighted mean, scaled, do.
        v = np.ones(len(Z)) if w is None else w
        mean = np.average(Z, axis=0, weights=v)
        U = np.linalg.svd((Z - mean) * np.sqrt(v)[:, None], full_matrices=False)[2][:n_components].T
        exact = Ridge(0.3, solver="cholesky").fit((Z - mean) @ U, y, sample_weight=w)
        coef = exact.coef_ @ U.T
        intercept, predicted = exact.intercept_ - coef @ mean, exact.predict((Z - mean) @ U)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-8)
    np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-8)
    assert model.predict(X).shape == y.shape


FEW_ROWS = [
    {"alpha": 0.3},
    {"alpha": [0.1, 10.0, 1000.0]},
    {"alpha": [0.1, 10.0, 1000.0], "validation": "gcv"},
]


@pytest.mark.parametrize(
    ("settings", "form"), [*((own, np.asarray) for own in FEW_ROWS), (FEW_ROWS[0], sp.csr_array)]
)
def test_few_rows_are_solved_in_their_span(seed, settings, form, monkeypatch):
    rng = np.random.default_rng(seed)
    factors, w = rng.normal(size=(30, 2)), rng.uniform(0.2, 3, 30)
    X = factors @ rng.normal(size=(2, 250)) + rng.normal(size=(30, 250)) + 1
    y, labels = factors + rng.normal(size=(30, 2)), np.arange(30) % 3
    rotate, rotated = rows_module.rotate_rows, []
    monkeypatch.setattr(rows_module, "rotate_rows", lambda *a: rotated.append(1) or rotate(*a))
    for model, target, options in [
        (km.StreamingRidge(), y, {}),
        (km.StreamingRidgeClassifier(), labels, {"classes": [0, 1, 2]}),
        (km.StreamingRidgeClassifier(multi_class="ovo"), labels, {"classes": [0, 1, 2]}),
    ]:
        model.set_params(**settings).fit(form(X), target, w)
        assert len(rotated) == 1
        rotated.clear()
        sums = clone(model).partial_fit(form(X), target, sample_weight=w, **options)
        np.testing.assert_allclose(model.coef_, sums.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, sums.intercept_, atol=1e-7)
        assert model.alpha_ == pytest.approx(sums.alpha_, rel=1e-3)
        assert model.n_components_ is None
        assert not rotated
        if isinstance(settings["alpha"], list):
            errors = [m.cv_results_["mean_squared_error"] for m in (model, sums)]
            np.testing.assert_allclose(*errors, rtol=1e-7)


def test_few_rows_have_the_evidence_of_their_sums(seed):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(100, 2))
    X = factors @ rng.normal(size=(2, 250)) + rng.normal(size=(100, 250))
    y = factors + rng.normal(size=(100, 2))
    model, sums = km.StreamingRidge("evidence").fit(X, y), km.StreamingRidge("evidence")
    sums.partial_fit(X, y)
    values = [m.cv_results_["log_evidence"] for m in (model, sums)]
    np.testing.assert_allclose(*values, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, sums.coef_, atol=1e-5)


@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize("n_components", [None, 12])
def test_classifier_is_that_of_scikit_learn(seed, n_components, c):
    X, y, w = classes(seed, c=c)
    model = km.StreamingRidgeClassifier(0.3, MAP, n_components=n_components).fit(X, y)
    steps = [MAP] if n_components is None else [MAP, PCA(n_components, svd_solver="full")]
    exact = make_pipeline(*steps, RidgeClassifier(0.3)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    if n_components is None:
        np.testing.assert_allclose(model.coef_, np.atleast_2d(exact[-1].coef_), atol=1e-8)
        np.testing.assert_allclose(model.intercept_, exact[-1].intercept_, atol=1e-8)
        exact = RidgeClassifier(0.3).fit(MAP.fit_transform(X), y, sample_weight=w)
        model = km.StreamingRidgeClassifier(0.3, MAP).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(model.coef_, np.atleast_2d(exact.coef_), atol=1e-8)


def test_labels_may_be_words_and_appear_late(seed):
    X, y, _ = classes(seed)
    words = np.array(["ant", "bee", "cat", "dog"])[y]
    order = np.argsort(y, kind="stable")
    late = km.StreamingRidgeClassifier(1.0).fit(iter(chunked(X[order], words[order])))
    assert late.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    exact = RidgeClassifier(1.0).fit(X, words)
    np.testing.assert_allclose(late.decision_function(X), exact.decision_function(X), atol=1e-8)


def test_float32_features_give_the_float64_model_to_float32_accuracy(seed):
    X, Y, _ = regression(seed)
    fitted = MAP.fit(X.astype(np.float32))
    single = km.StreamingRidge(1.0, fitted).fit(X.astype(np.float32), Y)
    double = km.StreamingRidge(1.0, fitted).fit(X.astype(np.float32).astype(float), Y)
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    # Perturbation: ‖δw‖ ≤ (‖δA‖ ‖w‖ + ‖δb‖)/(λ_min + α), with δ of the order of u32 ‖A‖.
    scale = 2.0**-24 * np.linalg.norm(double.stats_.H, 2) * np.linalg.norm(double.coef_)
    assert np.abs(single.coef_ - double.coef_).max() < 10 * scale
    np.testing.assert_allclose(
        single.predict(X.astype(np.float32)), double.predict(X), rtol=1e-3, atol=1e-3
    )


def test_sparse_rows_stay_sparse(seed):
    rng = np.random.default_rng(seed)
    X = sp.random_array((300, 30), density=0.1, rng=rng, format="csr")
    y = rng.normal(size=300)
    dense, sparse = (km.StreamingRidge(1.0).fit(A, y) for A in (X.toarray(), X))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-10)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), atol=1e-10)
    mapped = km.StreamingRidge(1.0, AdditiveChi2Sampler(sample_steps=2)).fit(abs(X), y)
    assert sp.issparse(mapped.feature_map_.transform(abs(X)))
    both = km.StreamingRidge(1.0, AdditiveChi2Sampler(sample_steps=2)).fit(abs(X).toarray(), y)
    np.testing.assert_allclose(mapped.coef_, both.coef_, atol=1e-8)


# ---- paths and choices --------------------------------------------------------------------------


def counting(source):
    """A source that counts how often it is read."""
    reads = []

    def function():
        reads.append(1)
        return iter(source)

    return function, reads


def test_refits_cost_no_second_pass(seed):
    X, Y, _ = regression(seed)
    source, reads = counting(chunked(X, Y))
    fitted = MAP.fit(X)
    model = km.StreamingRidge(1.0, fitted, n_components=20).fit(source)
    seen = len(reads)
    for size in (5, 20):
        for alpha in (0.1, 1.0, 10.0):
            exact = km.StreamingRidge(alpha, fitted, n_components=size).fit(X, Y)
            again = model.refit(alpha=alpha, n_components=size)
            np.testing.assert_allclose(again.coef_, exact.coef_, atol=1e-9)
            np.testing.assert_allclose(again.intercept_, exact.intercept_, rtol=1e-9)
    assert len(reads) == seen <= 2  # a look at the first rows, and the pass
    assert model.n_components == 20
    again.partial_fit(X[:10], Y[:10])
    assert (model.n_samples_seen_, again.n_samples_seen_) == (600, 610)


def naive_errors(Z, Y, w, alphas, U, left_out):
    """Squared errors on rows left out, by refitting for every set of them."""
    errors = np.zeros(len(alphas))
    for rows in left_out:
        train = np.setdiff1d(np.arange(len(Z)), rows)
        for a, alpha in enumerate(alphas):
            model = Ridge(alpha, solver="cholesky").fit(Z[train] @ U, Y[train], w[train])
            residual = Y[rows] - model.predict(Z[rows] @ U)
            errors[a] += (w[rows][:, None] * residual**2).sum()
    return errors / w.sum()


@pytest.mark.parametrize("size", [None, 6])
def test_folds_give_the_held_out_errors(seed, size):
    X, Y, w = regression(seed, 200)
    alphas = [0.01, 1.0, 100.0]
    model = km.StreamingRidge(alphas, MAP, n_components=size, validation=3)
    model.fit(iter(chunked(X, Y, w)))
    Z = model.feature_map_.transform(X)
    U = np.eye(40)
    if size is not None:
        U = km.StreamingPCA(size, model.feature_map_).fit(X, sample_weight=w).components_.T
    fold = fold_of_row(np.arange(200), 3)
    expected = naive_errors(Z, Y, w, alphas, U, [np.flatnonzero(fold == f) for f in range(3)])
    found = model.cv_results_["mean_squared_error"][0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert model.alpha_ == alphas[int(np.argmin(expected))]
    whole = km.StreamingRidge(model.alpha_, model.feature_map_, n_components=size).fit(X, Y, w)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_folds_may_lack_a_class(seed, multi_class):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    y, alphas = np.repeat(["a", "b", "rare"], [20, 19, 1]), [0.1, 10.0]
    model = km.StreamingRidgeClassifier(alphas, validation=3, multi_class=multi_class).fit(X, y)
    if multi_class == "ovr":
        fold = fold_of_row(np.arange(40), 3)
        Y = (y[:, None] == model.classes_).astype(float)
        held_out = [np.flatnonzero(fold == f) for f in range(3)]
        expected = naive_errors(X, Y, np.ones(40), alphas, np.eye(3), held_out)
        np.testing.assert_allclose(model.cv_results_["mean_squared_error"][0], expected, rtol=1e-8)
    assert model.alpha_ in alphas


def test_gcv_is_leave_one_out_with_mean_leverage(seed):
    X, Y, _ = regression(seed, 120)
    alphas = [0.1, 10.0]
    model = km.StreamingRidge(alphas, validation="gcv").fit(iter(chunked(X, Y)))
    for a, alpha in enumerate(alphas):
        C = np.column_stack([np.ones(120), X - X.mean(axis=0)])
        hat = C @ np.linalg.solve(C.T @ C + np.diag([0, *[alpha] * 6]), C.T)
        residual = Y - hat @ Y
        expected = (residual**2).sum() / 120 / (1 - np.trace(hat) / 120) ** 2
        found = model.cv_results_["mean_squared_error"][0, a]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_without_a_penalty_few_rows_have_the_solution_of_least_norm(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 400)) + 3.0
    X[:, 7], X[5] = 2.0, X[6]  # a constant column, and a row that is there twice
    y = X[:, :2] + rng.normal(size=(30, 2))
    least = km.StreamingRidge(0.0)
    with pytest.warns(LinAlgWarning, match="rank 28, less than their 400 columns"):
        least.fit(X, y)
    norm = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(axis=0), rcond=1e-10)[0].T
    np.testing.assert_allclose(least.coef_, norm, atol=1e-9)


# ---- partial_fit and merge ----------------------------------------------------------------------


@pytest.mark.parametrize("validation", [3, "gcv"])
def test_partial_fit_is_fit(seed, validation):
    X, Y, w = regression(seed)
    fitted = MAP.fit(X)
    parameters = {"alpha": [0.1, 1.0], "feature_map": fitted, "validation": validation}
    whole = km.StreamingRidge(**parameters).fit(X, Y, w)
    parts = km.StreamingRidge(**parameters)
    for chunk in chunked(X, Y, w):
        parts.partial_fit(*chunk)
    assert parts.n_samples_seen_ == 600
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-9)
    errors = [model.cv_results_["mean_squared_error"] for model in (parts, whole)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-9)


def test_merge_is_fitting_on_all_rows(seed):
    X, y, _ = classes(seed)
    fitted = MAP.fit(X)
    make = lambda: km.StreamingRidgeClassifier(1.0, fitted, n_components=10)  # noqa: E731
    halves = [make().fit(X[:200], y[:200]), make().fit(X[200:], y[200:])]
    whole = make().fit(X, y)
    np.testing.assert_allclose(halves[0].merge(halves[1]).coef_, whole.coef_, atol=1e-8)
    pcas = [km.StreamingPCA(4, fitted).fit(part) for part in (X[:200], X[200:])]
    exact = km.StreamingPCA(4, fitted).fit(X)
    np.testing.assert_allclose(pcas[0].merge(pcas[1]).components_, exact.components_, atol=1e-8)


# ---- unlabelled rows ----------------------------------------------------------------------------


def test_unlabelled_rows_serve_the_pca_alone(seed):
    """Errata 2.23: U of all rows, Hessian of the labelled ones (UᵀHU is not diagonal)."""
    X, Y, _ = regression(seed)
    extra = 1.5 * regression(seed + 1, 400)[0]
    fitted = MAP.fit(X)
    model = km.StreamingRidge(0.5, fitted, n_components=8).fit(X, Y, unlabeled=iter(chunked(extra)))
    Z, E = fitted.transform(X), fitted.transform(extra)
    U = PCA(8, svd_solver="full").fit(np.vstack([Z, E])).components_.T
    exact = Ridge(0.5, solver="cholesky").fit(Z @ U, Y)
    np.testing.assert_allclose(model.coef_, exact.coef_ @ U.T, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), exact.predict(Z @ U), rtol=1e-8)
    training_only = km.StreamingRidge(0.5, fitted, n_components=8).fit(X, Y)
    assert np.abs(model.coef_ - training_only.coef_).max() > 1e-3
    halves = [
        km.StreamingRidge(0.5, fitted, n_components=8).fit(X[:300], Y[:300], unlabeled=extra),
        km.StreamingRidge(0.5, fitted, n_components=8).fit(X[300:], Y[300:]),
    ]
    np.testing.assert_allclose(halves[0].merge(halves[1]).coef_, model.coef_, atol=1e-8)
    later = km.StreamingRidge(0.5, fitted, n_components=8).fit(X[:300], Y[:300], unlabeled=extra)
    np.testing.assert_allclose(later.partial_fit(X[300:], Y[300:]).coef_, model.coef_, atol=1e-8)


# ---- Algorithm 4 --------------------------------------------------------------------------------

KERNELS = [
    (slice(0, 3), RBFSampler(gamma=0.2, n_components=30, random_state=0)),
    ([3, 4, 5], RBFSampler(gamma=0.05, n_components=25, random_state=1)),
]


def block_pca(X, kernels, sizes, extra=None):
    """Features of each kernel, and the projection of each kernel's own PCA."""
    blocks, axes = [], []
    for (columns, transformer), size in zip(kernels, sizes):
        transformer.fit(X[:, columns])
        Z = transformer.transform(X[:, columns])
        rows = Z if extra is None else np.vstack([Z, transformer.transform(extra[:, columns])])
        blocks.append(Z)
        axes.append(PCA(size, svd_solver="full").fit(rows).components_.T)
    return blocks, axes


@pytest.mark.parametrize("unlabelled", [False, True])
def test_several_kernels_with_a_pca_each(seed, unlabelled):
    X, Y, _ = regression(seed)
    extra = 1.5 * regression(seed + 1, 400)[0] if unlabelled else None
    kernels = [(KERNELS[0][0], KERNELS[0][1], 6), (KERNELS[1][0], KERNELS[1][1], 9)]
    source, reads = counting(chunked(X, Y))
    model = km.StreamingRidge(0.5, kernels).fit(source, unlabeled=extra)
    assert len(reads) == 3  # a look, and two passes
    blocks, axes = block_pca(X, KERNELS, [6, 9], extra)
    projected = np.hstack([Z @ U for Z, U in zip(blocks, axes)])
    exact = Ridge(0.5, solver="cholesky").fit(projected, Y)
    np.testing.assert_allclose(model.predict(X), exact.predict(projected), rtol=1e-8)
    beta = np.hstack([exact.coef_[:, :6] @ axes[0].T, exact.coef_[:, 6:] @ axes[1].T])
    np.testing.assert_allclose(model.coef_, beta, atol=1e-8)
    assert model.n_components_ == [6, 9]
    assert [len(m.random_offset_) for m in model.feature_map_] == [30, 25]


def test_sizes_of_several_kernels_are_chosen_together(seed):
    X, y, _ = classes(seed)
    model = km.StreamingRidgeClassifier([0.01, 1.0], KERNELS, n_components=[3, 8]).fit(X, y)
    assert model.cv_results_["mean_squared_error"].shape == (2, 2)
    small = km.StreamingRidgeClassifier(model.alpha_, KERNELS, n_components=3).fit(X, y)
    np.testing.assert_allclose(
        model.refit(alpha=model.alpha_, n_components=3).coef_, small.coef_, atol=1e-8
    )
    share = km.StreamingRidge(1.0, KERNELS, n_components=0.8).fit(X, y.astype(float))
    assert all(1 <= size <= 25 for size in share.n_components_)


def test_several_kernels_without_pca_take_one_pass(seed):
    X, Y, _ = regression(seed)
    model = km.StreamingRidge(0.5, KERNELS).fit(iter(chunked(X, Y)))
    blocks, _ = block_pca(chunked(X)[0][0], KERNELS, [1, 1])
    Z = np.hstack([m.transform(X[:, c]) for m, (c, _) in zip(model.feature_map_, KERNELS)])
    assert [b.shape[1] for b in blocks] == [30, 25]
    exact = Ridge(0.5, solver="cholesky").fit(Z, Y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-8)
    parts = km.StreamingRidge(0.5, [(c, m) for m, (c, _) in zip(model.feature_map_, KERNELS)])
    for chunk in chunked(X, Y):
        parts.partial_fit(*chunk)
    np.testing.assert_allclose(parts.coef_, model.coef_, atol=1e-8)


def test_columns_may_be_a_mask(seed):
    X, Y, _ = regression(seed)
    mask = np.array([True, False, True, False, False, False])
    by_mask = km.StreamingRidge(1.0, [(mask, None), (~mask, None)]).fit(X, Y)
    by_number = km.StreamingRidge(1.0, [([0, 2], None), ([1, 3, 4, 5], None)]).fit(X, Y)
    np.testing.assert_allclose(by_mask.coef_, by_number.coef_)
    exact = Ridge(1.0).fit(X[:, [0, 2, 1, 3, 4, 5]], Y)
    np.testing.assert_allclose(by_mask.coef_, exact.coef_, atol=1e-8)


# ---- maps ---------------------------------------------------------------------------------------


def test_predictions_of_any_source(seed, tmp_path):
    X, Y, _ = regression(seed)
    np.save(tmp_path / "X.npy", X)
    model = km.StreamingRidge(1.0, MAP, n_components=5).fit(tmp_path / "X.npy", Y)
    expected = model.predict(X)
    for source in (tmp_path / "X.npy", np.load(tmp_path / "X.npy", mmap_mode="r"), chunked(X)):
        np.testing.assert_array_equal(model.predict(source), expected)


# ---- chunks --------------------------------------------------------------------------------------


def test_labels_unseen_in_earlier_chunks(seed):
    X, y, _ = classes(seed)
    model = km.StreamingRidgeClassifier()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X[:100], y[:100], classes=[0, 1, 2, 3])
    before = model.n_samples_seen_
    with pytest.raises(ValueError, match=r"labels \[9\] are not among the 4 classes"):
        model.partial_fit(X[:2], [0, 9])
    assert model.n_samples_seen_ == before  # all rows of a chunk, or none
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit(X[:2], [0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match=r"labels \[3\] are not among"):
        km.StreamingRidgeClassifier().fit(iter(chunked(X, y)), classes=[0, 1, 2])


def test_nan_in_chunk_17_is_named(seed):
    X, Y, _ = regression(seed)
    chunks = chunked(X.copy(), Y, size=10)
    chunks[17][0][4, 2] = np.nan
    message = (
        r"StreamingRidge: input X contains NaN: chunk 17, row 4 \(row 174 of the data\), column 2"
    )
    with pytest.raises(ValueError, match=message):
        km.StreamingRidge(1.0, MAP).fit(iter(chunks))
    model = km.StreamingRidge(1.0, MAP, block_rows=3)
    for chunk in chunks[:17]:
        model.partial_fit(*chunk)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*chunks[17])
    assert model.n_samples_seen_ == 170  # all rows of a chunk, or none


def test_empty_chunks_are_nothing(seed):
    X, Y, _ = regression(seed)
    empty = (X[:0], Y[:0])
    model = km.StreamingRidge(1.0).fit(iter([empty, (X[:50], Y[:50]), empty, (X[50:], Y[50:])]))
    np.testing.assert_allclose(model.coef_, km.StreamingRidge(1.0).fit(X, Y).coef_, atol=1e-9)
    with pytest.raises(ValueError, match="StreamingRidge: the data have no rows"):
        km.StreamingRidge().fit(iter([empty, empty]))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        km.StreamingRidge().fit(iter(chunked(X, Y, np.zeros(len(X)))))


def test_generators_are_kept_where_rows_are_read_twice(seed):
    X, Y, _ = regression(seed)
    model = km.StreamingRidge(1.0, KERNELS, n_components=5)
    once, chunks = (clone(model).fit(given) for given in (iter(chunked(X, Y)), chunked(X, Y)))
    np.testing.assert_allclose(once.predict(X), chunks.predict(X), atol=1e-10)


@pytest.mark.parametrize("kind", ["parquet", "function", "generator", "array", "dask"])
def test_maps_are_fitted_on_rows_from_everywhere(kind, tmp_path):
    """The range of a column is that of all rows, sorted or not, however far its ends are."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 20_000)
    X = np.column_stack([t, rng.normal(size=len(t))])
    X[12_345, 1] = 77.0
    y = np.sin(6 * t)
    chunks = [(X[k : k + 3000], y[k : k + 3000]) for k in range(0, len(t), 3000)]
    given = chunks
    if kind == "parquet":
        given = tmp_path / "t.parquet"
        pd.DataFrame(X, columns=["t", "u"]).assign(y=y).to_parquet(given)
    elif kind == "dask":
        da = pytest.importorskip("dask.array")
        given = da.from_array(X, (3000, 2)), da.from_array(y, 3000)
    elif kind != "array":
        given = (lambda: iter(chunks)) if kind == "function" else iter(chunks)
    rows = (X, y) if kind == "array" else given if kind == "dask" else (given,)
    with warnings.catch_warnings():
        warnings.simplefilter("error", km.exceptions.OutOfDomainWarning)
        model = km.StreamingRidge(1e-6, km.SplineMap(20)).fit(*rows)
        predictions = model.predict(given if kind == "parquet" else X)
    low, high = model.feature_map_.domain_
    np.testing.assert_array_equal([low, high], [X.min(axis=0), X.max(axis=0)])
    # A cubic spline of 17 pieces misses sin(6 t) by about (6/17)⁴/384 = 4e-5.
    assert np.sqrt(np.mean((predictions - y) ** 2)) < 1e-3


def test_nan_in_sparse_rows_is_placed_even_in_the_sample_of_the_map():
    X = sp.csr_array(np.abs(np.random.default_rng(0).normal(size=(40, 5))))
    X.data[33] = np.nan  # row 6, column 3
    for data in (X, iter([X[:5], X[5:]])):
        with pytest.raises(ValueError, match=r"StreamingPCA: input X contains NaN.*row 6 of"):
            km.StreamingPCA(2, km.HomogeneousMap()).fit(data)


def test_equal_rows_explain_nothing():
    with pytest.warns(LinAlgWarning, match="rank 0"):
        fitted = km.StreamingPCA(0.5).fit(np.ones((5, 2)))
    assert not fitted.explained_variance_ratio_.any()  # zeros; NaN would be true


class TestOneAgainstOne:
    """Pairs come from the sums of their two classes: no second pass, and no other statistics."""

    def data(self, seed, n=240):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5)) + 3.0
        return X, np.array(list("abcd"))[np.argmax(X[:, :4] + rng.normal(size=(n, 4)), axis=1)]

    def test_it_is_scikit_learns_wrapper_of_its_ridge_classifier(self, seed):
        X, y = self.data(seed)
        own = km.StreamingRidgeClassifier(2.0, multi_class="ovo").fit(X, y)
        theirs = OneVsOneClassifier(RidgeClassifier(2.0)).fit(X, y)
        np.testing.assert_allclose(
            own.decision_function(X), theirs.decision_function(X), rtol=0, atol=1e-9
        )
        np.testing.assert_array_equal(own.predict(X), theirs.predict(X))
        each = np.array([estimator.coef_.ravel() for estimator in theirs.estimators_])
        np.testing.assert_allclose(own.coef_, each, atol=1e-10)

    def test_chunks_merge_and_weights_are_the_fit_to_all_rows(self, seed):
        X, y = self.data(seed)
        weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
        whole = km.StreamingRidgeClassifier(multi_class="ovo").fit(X, y, weight)
        rows = np.repeat(np.arange(len(y)), weight.astype(int))
        again = km.StreamingRidgeClassifier(multi_class="ovo").fit(X[rows], y[rows])
        np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-9)
        order = np.argsort(y, kind="stable")  # chunks of one class each, about other shifts
        X, y, weight = X[order], y[order], weight[order]
        parts = [
            km.StreamingRidgeClassifier(multi_class="ovo").partial_fit(
                X[part], y[part], list("abcd"), weight[part]
            )
            for part in (slice(0, 70), slice(70, 240))
        ]
        np.testing.assert_allclose(parts[0].merge(parts[1]).coef_, whole.coef_, atol=1e-9)

    def test_with_a_pca_it_is_the_pipeline(self, seed):
        X, y = self.data(seed)
        own = km.StreamingRidgeClassifier(1.0, n_components=3, multi_class="ovo").fit(X, y)
        Z = PCA(3).fit_transform(X)
        theirs = OneVsOneClassifier(RidgeClassifier(1.0)).fit(Z, y)
        np.testing.assert_allclose(
            own.decision_function(X), theirs.decision_function(Z), rtol=0, atol=1e-9
        )

    def test_folds_choose_by_the_errors_of_the_pairs(self, seed):
        X, y = self.data(seed, 60)
        alphas = [1e-3, 1.0, 1e3]
        model = km.StreamingRidgeClassifier(alphas, validation=3, multi_class="ovo").fit(X, y)
        fold = fold_of_row(np.arange(60), 3)
        errors = np.zeros(3)
        for k, (a, b) in itertools.product(range(3), itertools.combinations("abcd", 2)):
            held, train = (np.isin(y, [a, b]) & mask for mask in (fold == k, fold != k))
            for i, alpha in enumerate(alphas):
                ridge = Ridge(alpha).fit(X[train], y[train] == b)
                if held.any():
                    errors[i] += np.sum((ridge.predict(X[held]) - (y[held] == b)) ** 2)
        np.testing.assert_allclose(model.cv_results_["mean_squared_error"][0], errors / 60)
        chosen = km.StreamingRidgeClassifier(alphas, validation="gcv", multi_class="ovo").fit(X, y)
        assert chosen.alpha_ in alphas


def test_a_group_lasso_ends_below_the_rounding_of_its_gap(seed):
    """Features that a map makes nearly dependent: no gap falls to a tolerance of 0."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((40, 6)), rng.integers(0, 2, 40)
    model = km.StreamingLassoClassifier(
        1e-3, km.HomogeneousMap(n_components=3), l1_ratio=0.5, groups="kernels", tol=0
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(X, y)
    assert model.n_iter_ < model.max_iter
