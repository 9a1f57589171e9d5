"""What streaming models refuse, and what the messages say: one table for all of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler

import kernelmaps as km

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 6)) + 2
Y = np.sin(X @ rng.normal(size=(6, 2))) + 0.3 * rng.normal(size=(50, 2)) + 7
y, ONES, LABELS = Y[:, 0], np.ones(50), np.arange(50) % 4
INDICATORS = (rng.random((50, 4)) < 0.5).astype(int)
MAP = RBFSampler(gamma=0.1, n_components=40, random_state=0)
KERNELS = [
    (slice(0, 3), RBFSampler(gamma=0.2, n_components=30, random_state=0)),
    ([3, 4, 5], RBFSampler(gamma=0.05, n_components=25, random_state=1)),
]
GROUPS = np.repeat([0, 1, 2], 2)
RIDGE, CLASSIFIER, LASSO = km.StreamingRidge, km.StreamingRidgeClassifier, km.StreamingLasso
NO_MAP = "feature_map must be None, a transformer, or a list"
NO_COLUMNS = "columns of a kernel must be a slice, positions below 6"


def chunked(*arrays, size=17):
    return [tuple(a[i : i + size] for a in arrays) for i in range(0, len(arrays[0]), size)]


def fitted(*arguments, **parameters):
    return RIDGE(*arguments, **parameters).fit(X, Y)


def lasso(**parameters):
    return LASSO(0.1, **parameters)


def intervals(*arguments, **options):
    return RIDGE(0.5, MAP).fit(X, y).predict_interval(X, *arguments, **options)


def scored(*arguments, **options):
    return RIDGE(0.5).fit(X, y).conformity_scores(X, *arguments, **options)


CODES = km.AnchorMap("chi2", 10, feature_range=(0, None)).fit(np.abs(X)).encode(np.abs(X))


REFUSED_MODELS = [
    (km.StreamingPCA(60), r"StreamingPCA: n_components=60 must be between 1 and .*=6"),
    (km.StreamingPCA(0), "must be between 1 and"),
    (km.StreamingPCA(1.5), "fraction of variance"),
    (RIDGE(n_components=7), r"n_components=7 must be between 1 and .*=6, with 50 rows"),
    (RIDGE(1.0, KERNELS, n_components=28), r"=28 .*=25, with 50 rows and 25 features"),
    (RIDGE(1.0, RBFSampler(n_components=60), n_components=55), r"n_components=55 .*=50"),
    (RIDGE(-1.0), "alpha must be a number >= 0"),
    (RIDGE([]), "alpha must be a number >= 0"),
    (RIDGE("strong"), "several such or 'evidence', got 'strong'"),
    (RIDGE([1, 2], validation=1), "validation must be a number of folds"),
    (
        RIDGE([1, 2], validation="loo"),
        "number of folds of at least 2 or 'gcv', got",
    ),
    (RIDGE(block_rows=0), "block_rows must be an integer >= 1"),
    (RIDGE(block_rows=2.5), "block_rows must be an integer >= 1"),
    (RIDGE(1.0, 3), NO_MAP),
    (RIDGE(1.0, pd.Series([1.0])), NO_MAP),
    (RIDGE(1.0, RBFSampler), NO_MAP),
    (RIDGE(1.0, []), NO_MAP),
    (RIDGE(1.0, [MAP]), NO_MAP),
    (RIDGE(1.0, [(None, 3)]), NO_MAP),
    (RIDGE(1.0, [("name", MAP)]), NO_COLUMNS),
    (RIDGE(1.0, [([1, 9], MAP)]), NO_COLUMNS),
    (RIDGE("reml"), "alpha must be a number"),
    (LASSO("evidence"), "alpha must be a number"),
    (lasso(l1_ratio=0), r"l1_ratio must be in \(0, 1\] without groups.*got 0"),
    (lasso(l1_ratio=1.5, groups=GROUPS), r"l1_ratio must be in \[0, 1\], got 1.5"),
    (lasso(l1_ratio="half"), "l1_ratio must be in"),
    (lasso(l1_ratio=0, groups="columns"), "groups must be None, 'kernels' or the group"),
    (
        lasso(l1_ratio=0, groups=[0, 1]),
        "groups.* one integer for each of the 6",
    ),
    (lasso(l1_ratio=0, groups=GROUPS / 2), "one integer for each of the 6.*float64"),
    (lasso(l1_ratio=0, groups=GROUPS, n_components=3), "without PCA; .* with PCA"),
    (lasso(max_iter=0), "max_iter must be an integer >= 1"),
    (lasso(tol=-1.0), "tol must be >= 0"),
]
CLASSIFIERS = [
    (CLASSIFIER(multi_class="all"), "multi_class must be one of 'ovr', 'ovo', got 'all'"),
    (
        km.StreamingLassoClassifier(multi_class="all"),
        "Classifier: multi_class must be",
    ),
    (km.StreamingLassoClassifier([0.1, 1.0], validation="gcv"), "validation must be a number"),
    (km.StreamingLassoClassifier(l1_ratio=0, groups=[0, 1]), "groups must have one"),
]
REFUSED_CALLS = [
    (lambda: fitted().cv_results_, "there was nothing to choose"),
    (lambda: fitted().refit(alpha=[1.0, 2.0]), "folded without folds, so validation=5"),
    (lambda: fitted(1.0, KERNELS, n_components=5).refit(n_components=6), "more than the 5 that"),
    (lambda: fitted(1.0, KERNELS, n_components=5).partial_fit(X, Y), "need two passes"),
    (lambda: RIDGE(1.0, KERNELS, n_components=5).partial_fit(X, Y), "need two passes"),
    (lambda: RIDGE().partial_fit(iter(chunked(X, Y)), None), "takes one chunk of rows"),
    (lambda: RIDGE().fit(X, Y, unlabeled=X), "unlabeled= serves the PCA"),
    (lambda: RIDGE().fit(iter([X])), r"has no targets\. Give y"),
    (lambda: CLASSIFIER().fit(iter([(X, Y)])), "chunk 0: labels must be a vector"),
    (lambda: CLASSIFIER().fit(X, np.zeros(50, int)), "at least 2 classes"),
    (lambda: RIDGE().fit(iter([(X, Y), (X[:, :4], Y)])), "chunk 1 has 4 columns, the chunks befo"),
    (lambda: fitted().partial_fit(X[:, :4], Y), "X has 4 features, but StreamingRidge is expect"),
    (lambda: fitted().predict(iter([X[:, :4]])), "X has 4 features, but StreamingRidge is expect"),
    (lambda: fitted().merge(km.StreamingLasso().fit(X, Y)), "takes another StreamingRidge, got"),
    (lambda: km.StreamingPCA().fit(X).merge(fitted()), "takes another StreamingPCA, got"),
    (lambda: fitted().merge(fitted(1.0, MAP)), "another feature map"),
    (lambda: km.StreamingLassoClassifier().fit(X, np.zeros(50, int)), "at least 2 classes"),
    (lambda: CLASSIFIER().fit(X, LABELS).refit(multi_class="ovo"), "folded without sums by class"),
    (lambda: CLASSIFIER().fit(X, LABELS).merge(CLASSIFIER(multi_class="ovo").fit(X, LABELS)),
     "another multi_class"),
    (lambda: CLASSIFIER().fit(X, INDICATORS), "y should be a 1d array"),
    # Intervals.
    (lambda: RIDGE("evidence").fit(X[:1], y[:1]), "alpha=.evidence. needs at least two rows"),
    (lambda: RIDGE(0.0).fit(X[:7], y[:7]).predict(X, return_std=True), "as many degrees of fre"),
    (lambda: intervals(95), "level must be between 0 and 1"),
    (lambda: intervals(conformity_scores=ONES[:18]),
     r"18 conformity scores are too few for level=0.95.*19"),
    (lambda: intervals(conformity_scores=np.ones((30, 2))), "finite numbers >= 0, with 1 column"),
    (lambda: intervals(conformity_scores=-1.0 - LABELS), r">= 0.* values from -4 to -1"),
    (lambda: scored(y[:5]), r"y has shape \(5,\)"),
    # Codes.
    (lambda: RIDGE().fit(CODES, y), "X holds codes of an AnchorMap.*decoded chunks"),
    (lambda: fitted().predict(CODES), "X holds codes of an AnchorMap.*decoded chunks"),
]  # fmt: skip
ERRORS = (ValueError, TypeError, AttributeError, NotFittedError)


@pytest.mark.parametrize(("model", "message"), REFUSED_MODELS)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(ERRORS, match=message):
        clone(model).fit(X, y)


@pytest.mark.parametrize(("model", "message"), CLASSIFIERS)
def test_bad_parameters_of_classifiers_are_refused(model, message):
    with pytest.raises(ERRORS, match=message):
        clone(model).fit(X, LABELS)


@pytest.mark.parametrize(
    ("call", "message"), REFUSED_CALLS, ids=lambda item: item if isinstance(item, str) else ""
)
def test_bad_calls_are_refused(call, message):
    with pytest.raises(ERRORS, match=message):
        call()


def test_settings_are_looked_at_before_a_second_chunk_is_read():
    def chunks():
        yield X, Y
        pytest.fail("a second chunk was read")

    with pytest.raises(ValueError, match=r"^StreamingLasso: max_iter must be"):
        lasso(max_iter=0).fit(chunks)
