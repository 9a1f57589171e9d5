"""Additive models on rows of other array libraries: scores on the rows' own device."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.engine import record_paths

# Models of any weights: how they are trained is not at issue.
pytestmark = pytest.mark.usefixtures("drawn_weights", "readable")


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    return pytest.importorskip(request.param)


def problem(seed, classes=3, rows=120):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(rows, 5))
    return X, np.digitize(X[:, 0] + 0.3 * X[:, 1], np.linspace(0, 3, classes + 1)[1:-1])


def host(array):
    return np.asarray(array.cpu().numpy() if hasattr(array, "cpu") else array)


MAPS = {
    "splines": km.SplineMap(),
    "banded": km.SplineMap(order=0),
    "anchors": km.AnchorMap("chi2", 12, n_neighbors=2),
    "chi2": km.HomogeneousMap(n_components=3),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("splines", "float32"),
        ("splines", "float64"),
        ("banded", "float64"),
        ("anchors", "float32"),
        ("chi2", "float64"),
    ],
)
def test_scores_are_those_of_the_processor(xp, name, dtype, seed):
    X, y = problem(seed)
    X = X.astype(dtype)
    model = km.AdditiveSVC(MAPS[name], loss="log_loss", tol=1e-3).fit(X, y)
    rows = xp.asarray(X)
    with record_paths() as paths:
        scores = model.decision_function(rows)
    assert all(path.startswith("reference:") for path in paths)
    assert type(scores) is type(rows)
    wanted = model.decision_function(X)
    # Positions in bins are rounded once; the columns of χ² are tabulated to 100 roundings.
    tolerance = (500 if name == "chi2" else 50) * np.finfo(dtype).eps * np.abs(wanted).max()
    np.testing.assert_allclose(host(scores), wanted, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        host(model.predict_proba(rows)), model.predict_proba(X), rtol=0, atol=tolerance
    )
    clear = np.sort(wanted, axis=1)[:, -1] - np.sort(wanted, axis=1)[:, -2] > 2 * tolerance
    np.testing.assert_array_equal(host(model.predict(rows))[clear], model.predict(X)[clear])


def test_two_classes_and_regressors(xp, seed):
    X, y = problem(seed, 2)
    classifier = km.AdditiveSVC(loss="log_loss", tol=1e-3).fit(X, y)
    rows = xp.asarray(X)
    assert classifier.decision_function(rows).shape == (len(X),)
    np.testing.assert_array_equal(host(classifier.predict(rows)), classifier.predict(X))
    np.testing.assert_allclose(
        host(classifier.predict_proba(rows)), classifier.predict_proba(X), rtol=0, atol=1e-12
    )
    regressor = km.AdditiveSVR(tol=1e-3).fit(X, X[:, 0] ** 2)
    wanted = regressor.predict(X)
    np.testing.assert_allclose(host(regressor.predict(rows)), wanted, rtol=0, atol=1e-11)


def test_models_of_codes_take_values(xp, seed):
    X, y = problem(seed, 2)
    anchors = km.AnchorMap("chi2", 12, rank=1).fit(X)
    model = km.AdditiveSVC(anchors, tol=1e-3).fit(anchors.encode(X), y)
    wanted = model.decision_function(anchors.encode(X))
    # Codes are the same; float32 polynomials of the processor against float64 ones.
    np.testing.assert_allclose(host(model.decision_function(xp.asarray(X))), wanted, atol=1e-4)


def test_codes_of_other_libraries(xp, seed):
    X, _ = problem(seed)
    for options in ({"n_neighbors": 2}, {"anchors": "kmeans"}, {"n_anchors": 300}):
        anchors = km.AnchorMap("chi2", **{"n_anchors": 12, **options}).fit(X)
        codes, wanted = anchors.encode(xp.asarray(X)), anchors.encode(X)
        np.testing.assert_array_equal(host(codes.values), wanted.values)
        assert str(codes.dtype).endswith(wanted.dtype.name)
        assert codes.nbytes == wanted.nbytes
        decoded = host(anchors.decode(codes))
        np.testing.assert_allclose(decoded, anchors.decode(wanted), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="NaN"):
        anchors.encode(xp.asarray(np.where(X.max() / 2 < X, np.nan, X)))


def test_bad_rows_are_named(xp, seed):
    X, y = problem(seed)
    model = km.AdditiveSVC(km.SplineMap(out_of_domain="raise"), tol=1e-2).fit(X, y)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN or infinity; SplineMap refuses both"):
        model.decision_function(xp.asarray(X))
    X[3, 2] = 1e3
    for call in (model.decision_function, model.feature_map_.transform):
        with pytest.raises(ValueError, match=r"1 of 5 columns .* column 2 reaches \[.*, 1000\]"):
            call(xp.asarray(X))
    with pytest.raises(ValueError, match=r"is expecting \(n, 5\)"):
        model.decision_function(xp.asarray(X[:, :4]))


def test_text_labels_have_no_form_on_a_device(xp, seed):
    X, y = problem(seed, 2)
    model = km.AdditiveSVC(tol=1e-2).fit(X, np.where(y > 0, "yes", "no"))
    with pytest.raises(TypeError, match=r"AdditiveSVC\.predict: labels of type <U3"):
        model.predict(xp.asarray(X))


@pytest.fixture
def elsewhere():
    """Rows on a device that is not ordinary memory: a stand-in for a GPU."""
    strict = pytest.importorskip("array_api_strict")
    X, y = problem(0)
    return strict.asarray(X, device=strict.Device("device1")), y


@pytest.mark.parametrize(
    "model",
    [
        km.AdditiveSVC(),
        km.AdditiveSVR(),
        km.AdditiveSVC(C=[0.1, 1.0]),
        km.AdditiveSVR(C=[0.1, 1.0]),
    ],
)
def test_training_on_a_gpu_is_refused_and_nothing_is_copied(model, elsewhere):
    X, y = elsewhere
    with pytest.raises(TypeError, match=rf"{type(model).__name__}\.fit runs on the proc"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="decision_function and predict take rows where they are"):
        model.fit(X, y)
    rows = np.ones(X.shape)
    with pytest.raises(
        TypeError, match=r"\.fit runs on the processor, and y is a array_api_strict"
    ):
        model.fit(rows, X[:, 0])
    with pytest.raises(
        TypeError, match=r"on the processor, and sample_weight is a array_api_strict"
    ):
        model.fit(rows, y, sample_weight=X[:, 0])


CALLS = {
    "effective_sparsity": (lambda X, y, fitted: km.effective_sparsity(X), "runs on the processor"),
    "choose": (lambda X, y, fitted: km.choose(X, max_error=0.1), "runs on the processor"),
    "compare": (lambda X, y, fitted: km.compare(X, y), "runs on the processor"),
    "MeanNormScaler": (lambda X, y, fitted: km.MeanNormScaler().fit(X), "processor.*by scale_"),
    "row_certificate": (lambda X, y, fitted: fitted.row_certificate(X), "runs on the processor"),
    "transform with set_output": (
        lambda X, y, fitted: fitted.set_output(transform="pandas").transform(X), "transform='pand",
    ),
    "array_api_strict array on": (
        lambda X, y, fitted: km.StreamingRidge().fit(X, y), r"device1.*torch\.from_dlpack",
    ),
    "AdditiveClassifier": (
        lambda X, y, fitted: km.AdditiveClassifier(interactions=0)
        .fit(problem(0)[0], y)
        .decision_function(X),
        "takes rows in ordinary memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_other_parts_of_the_processor_say_so(elsewhere, name):
    call, message = CALLS[name]
    with pytest.raises(TypeError, match=rf"{name}.*{message}"):
        call(*elsewhere, km.DesignedMap("chi2", 3).fit(problem(0)[0]))


def test_sparse_matrices_of_cupy_are_refused_by_name():
    def device(self):
        raise NotImplementedError  # as CuPy's do

    names = {"__module__": "cupyx.scipy.sparse", "device": property(device)}
    matrix = type("csr_matrix", (), names)()
    fitted = km.HomogeneousMap().fit(problem(0)[0])
    for call in (fitted.fit, fitted.transform):
        with pytest.raises(TypeError, match=r"X is a cupyx array on a GPU.*takes dense arrays"):
            call(matrix)


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch")
    X = problem(0)[0]
    fitted = km.HomogeneousMap().fit(X)
    with pytest.raises(TypeError, match="of tensors, dense ones are taken"):
        fitted.transform(torch.asarray(X).to_sparse_coo())


def test_scores_of_rows_wherever_they_are(xp, seed):
    X, y = problem(seed)
    w = np.random.default_rng(seed).random(len(y))
    rows, target = xp.asarray(X), X[:, 0] ** 2
    for model, wanted in ((km.AdditiveSVC(tol=1e-2), y), (km.AdditiveSVR(tol=1e-2), target)):
        model.fit(X, wanted)
        assert model.score(rows, wanted) == pytest.approx(model.score(X, wanted), abs=1e-12)
        found = model.score(rows, xp.asarray(wanted), xp.asarray(w))
        assert type(found) is float
        assert found == pytest.approx(model.score(X, wanted, w), abs=1e-12)


def test_halves_of_maps_without_a_table_are_scored_in_single_precision(seed):
    torch = pytest.importorskip("torch")
    X, y = problem(seed)
    model = km.AdditiveSVC(km.HomogeneousMap(n_components=3), tol=1e-2).fit(X, y)
    for dtype in (torch.float16, torch.bfloat16):
        rows = torch.asarray(X).to(dtype)
        scores, wanted = (
            model.decision_function(rows),
            model.decision_function(rows.double().numpy()),
        )
        assert scores.dtype == torch.float32
        np.testing.assert_allclose(scores.numpy(), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


DISPATCH = """
import numpy as np, sklearn, kernelmaps as km
import array_api_strict as xp

X = np.random.default_rng(0).random((20, 3))
fitted = km.HomogeneousMap().fit(X)
wanted = fitted.transform(X)
for dispatch in (True, False):
    with sklearn.config_context(array_api_dispatch=dispatch):
        found = fitted.transform(xp.asarray(X))
        assert isinstance(found, type(xp.asarray(X)))
        assert np.abs(np.asarray(found) - wanted).max() < 1e-13
        assert np.abs(fitted.transform(X) - wanted).max() == 0
print("same")
"""


def test_scikit_learns_dispatch_changes_nothing():
    """Without it, the variable that SciPy asks for need not be set: all other tests here."""
    pytest.importorskip("array_api_strict")
    assert not os.environ.get("SCIPY_ARRAY_API")
    done = subprocess.run(
        [sys.executable, "-c", DISPATCH],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "same", done.stderr
