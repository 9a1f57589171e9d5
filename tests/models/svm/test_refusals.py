"""What additive SVMs refuse, and what the messages say: one table for both estimators."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps.export.c import to_c

rng = np.random.default_rng(0)
X = rng.random((60, 3))
y, target, three = np.arange(60) % 2, X.sum(axis=1), np.arange(60) % 3
INDICATORS = np.eye(3, dtype=int)[three]
SVC, SVR = km.AdditiveSVC, km.AdditiveSVR
NEWTON = {"C": 1.0, "solver": "primal"}  # no loops but those of scores


def changed(values, row, value):
    values = np.array(values, dtype=np.result_type(values, type(value)))
    values[row] = value
    return values


def chunks(*arrays):
    return lambda: (tuple(a[k : k + 20] for a in arrays) for k in (0, 20, 40))


def anchors(*, fitted=True):
    own = km.AnchorMap("intersection", n_anchors=12, rank=1)
    return own.fit(X) if fitted else own


def nan_rows(row=3, column=2):
    bad = X.copy()
    bad[row, column] = np.nan
    return bad


SETTINGS = [
    (SVC, {"C": C}, "C must be a positive number, several of them or 'scale', got")
    for C in (0, -1.0, np.inf, "x", "many", None, np.nan, True, [], [1, -1], [0.0, 1.0], ["a"])
] + [
    (SVC, {"tol": 0}, "tol must be a positive number"),
    (SVC, {"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    (SVR, {"max_iter": np.inf}, "max_iter must be"),
    (SVR, {"max_iter": "a"}, "max_iter must be"),
    (SVR, {"epsilon": -1}, "epsilon must be a number >= 0"),
    (SVR, {"epsilon": None}, "epsilon must be"),
    (SVC, {"loss": "squared_error"}, "loss must be one of"),
    (SVR, {"loss": "poisson"}, "got 'poisson'. 'poisson' is a loss of AdditiveRegressor"),
    (SVR, {"solver": "newton"}, "solver must be one of 'auto', 'dual', 'primal'"),
    (SVC, {"multi_class": "both"}, "multi_class must be one of 'ovr', 'ovo', got 'both'"),
    (SVC, {"C": 1e-300}, r"C times the weight of row 0 is .* between 1e-30 and"),
    (SVR, {"C": 1e300}, "AdditiveSVR: C times the weight of row 0"),
    (SVC, {"class_weight": {0: -1.0, 1: 1.0}}, "class_weight must hold finite numbers >= 0"),
    (SVC, {"feature_map": km.RandomFourierMap()}, "additive map.*RandomFourierMap acts on whole"),
    (SVC, {"feature_map": "spline"}, "must be an additive map.*such as SplineMap or"),
    (SVC, {"feature_map": LinearSVC()}, "must be an additive map.*such as SplineMap or"),
]


@pytest.mark.parametrize(("cls", "settings", "message"), SETTINGS)
def test_bad_settings(cls, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cls(**settings).fit(X, y)


FOLDS = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
CALLS = [
    (lambda: SVC().fit(X, np.ones(60)), "y has only one class"),
    (lambda: SVC().fit(X, y, 1.0 * y), "belong to only one class"),
    (lambda: SVC().fit(X, y[:-1]), "inconsistent numbers of samples"),
    (lambda: SVC().fit(X[0], y), "2D array"),
    (lambda: SVC().fit(X[:0], y[:0]), "0 sample"),
    (lambda: SVC().fit(nan_rows(), y), r"contains NaN \(row 3, column 2\)"),
    (lambda: SVC().fit(X, y).predict(X[0]), r"shape \(3,\). Reshape"),
    (lambda: SVC().fit(X, y).predict(X[None]), r"shape \(1, 60, 3\). Reshape"),
    (lambda: SVC(km.SplineMap(zero_at_zero=False)).fit(sparse.csr_matrix(X), y),
     "does not map 0 to 0"),
    (lambda: SVC(km.TrigonometricMap(out_of_domain="extrapolate")).fit(X * [1e-4, 1e7, 1], y),
     "out_of_domain='clip'"),
    (lambda: SVR().fit(X, changed(target, 7, 1e160)),
     r"AdditiveSVR: y is 1e\+160 in row 7; for rows of float64"),
    (lambda: SVR().fit(X.astype(np.float32), changed(target, 7, 1e40)),
     r"y is 1e\+40 in row 7; for rows of float32"),
    (lambda: SVC(anchors(fitted=False)).fit(anchors().encode(X), y),
     "the fitted AnchorMap that encoded them"),
    (lambda: SVC().fit(anchors().encode(X), y), "feature_map is a Spline"),
    (lambda: SVC(anchors(), **NEWTON).fit(X, y).predict(anchors().encode(X)),
     "was fitted on values"),
    (lambda: SVR(C=[0.1, 1.0], cv=FOLDS).fit(X, target, 1.0 * (np.arange(60) >= 30)),
     "gives no folds: all rows of a fold have the weight 0"),
    (lambda: SVC(C=[0.1, 1.0]).fit(chunks(X, y)), "for rows in memory only, not for files"),
    (lambda: SVR().fit(X, target, -np.ones(60)), ">= 0.*Negative values"),
    (lambda: SVR().fit(X, target, np.full(60, np.nan)), ">= 0.*contains NaN"),
    (lambda: SVR().fit(X, target, np.zeros(60)), ">= 0.*non-zero number"),
    (lambda: SVR().fit(X, target, ["a"] * 60), ">= 0.*could not convert"),
    (lambda: SVR().fit(X, target, np.ones(59)), r"60 finite numbers.*\(59,\)"),
    # Rows that come in blocks.
    (lambda: SVC().fit(chunks(X, y)()), "a generator can be read only once"),
    (lambda: SVC().fit(chunks(X)), "carry no targets"),
    (lambda: SVC().fit(chunks(nan_rows(30), y)), r"NaN or infinity \(chunk 1, row 10, column 2"),
    (lambda: SVC().fit(lambda: iter([(X, y), (X[:, :2], y)])), "chunk 1 has 2 columns, the chu"),
    (lambda: SVR().fit(list), "no rows"),
    (lambda: SVR().fit(chunks(X, changed(target, 0, np.nan))), "y contains NaN"),
    (lambda: SVR().fit(chunks(X, np.array(["a"] * 60))), "must be numbers"),
    # Several labels, and pairs of classes.
    (lambda: SVC().fit(X, INDICATORS), "y should be a 1d array"),
    (lambda: SVC(multi_class="ovo").fit(chunks(X, three)), "available for rows that come in bl"),
    (lambda: to_c(SVC(multi_class="ovo").fit(X, three)), "votes have no form in C"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize(("call", "message"), CALLS)
def test_bad_calls(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
