"""ONNX graphs say the same as the library, to 1e-5 in float32."""

import numpy as np
import pytest
from fitted_examples import (
    MAPS,
    MODELS,
    fitted_map,
    fitted_model,
    labels,
    map_of_the_plane,
    output,
    rows,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import kernelmaps as km

pytest.importorskip("skl2onnx", reason="the ONNX export needs skl2onnx")
runtime = pytest.importorskip("onnxruntime", reason="graphs are run by onnxruntime")

from kernelmaps.export.onnx import register, to_onnx  # noqa: E402
from kernelmaps.export.onnx_tracer import Trace  # noqa: E402
from kernelmaps.models.shapes import predictor_of  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def run_in_onnx(model, X):
    graph = to_onnx(model, X)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_every_map(name, dtype):
    feature_map, X = fitted_map(name), rows(15, seed=1, dtype=dtype)
    (got,) = run_in_onnx(feature_map, X)
    assert got.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, feature_map.transform(X), rtol=0, atol=tolerance)


def test_several_coordinates():
    points = rows(30, dtype=np.float32)[:, :2]
    joint = map_of_the_plane().fit(points)
    (got,) = run_in_onnx(joint, points)
    np.testing.assert_allclose(got, joint.transform(points), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name):
    model, X = fitted_model(name), rows(15, seed=1, dtype=np.float32)
    got = run_in_onnx(model, X)
    if hasattr(model, "classes_"):
        assert got[0].tolist() == model.predict(X).tolist()
        expected = model.decision_function(X)
        np.testing.assert_allclose(got[1], np.reshape(expected, got[1].shape), atol=1e-5)
        assert len(got) == 2 + hasattr(model, "predict_proba")
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(got[2], model.predict_proba(X), rtol=0, atol=1e-5)
    else:
        expected = output(model, X)
        np.testing.assert_allclose(got[0].reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["AdditiveClassifier", "AdditiveSVC", "AdditiveSVR"])
def test_predictors_have_the_graph_of_their_estimator(name):
    model, X = fitted_model(name), rows(15, seed=1, dtype=np.float32)
    results = zip(run_in_onnx(predictor_of(model), X), run_in_onnx(model, X), strict=True)
    for of_predictor, of_estimator in results:
        np.testing.assert_array_equal(of_predictor, of_estimator)


@pytest.mark.parametrize("name", ["StreamingRidgeClassifier", "StreamingLassoClassifier"])
def test_two_classes_have_one_score_and_integer_labels(name):
    X = rows(40, dtype=np.float32)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 7, 3)
    model = getattr(km, name)(feature_map=km.HomogeneousMap()).fit(X, y)
    label, scores = run_in_onnx(model, X)
    assert label.tolist() == model.predict(X).tolist()
    assert scores.shape == (40, 1)


def test_probabilities_of_two_classes():
    X = rows(40, dtype=np.float32)
    y = np.where(X[:, 0] > np.median(X[:, 0]), "yes", "no")
    model = km.AdditiveSVC(loss="log_loss", random_state=0).fit(X, y)
    label, scores, probabilities = run_in_onnx(model, X)
    assert label.tolist() == model.predict(X).tolist()
    assert scores.shape == (40, 1)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-5)


def test_several_kernels_on_their_own_columns():
    X = rows(40, dtype=np.float32)
    parts = [(slice(0, 3), km.HomogeneousMap()), ([3, 4, 5], None)]
    model = km.StreamingRidge(feature_map=parts).fit(X, X @ np.arange(6.0))
    (got,) = run_in_onnx(model, X)
    np.testing.assert_allclose(got.ravel(), model.predict(X), atol=1e-5)


def test_a_pipeline_with_a_scikit_learn_step():
    X = rows(40, dtype=np.float32)
    model = make_pipeline(
        Normalizer("l2"), km.StreamingRidgeClassifier(feature_map=km.HomogeneousMap())
    ).fit(X, labels())
    label, _ = run_in_onnx(model, X)
    assert label.tolist() == model.predict(X).tolist()


def test_all_maps_and_models_are_registered():
    assert set(register()) >= {*MAPS, *MODELS}


def test_integer_rows_are_refused_with_a_remedy():
    with pytest.raises(TypeError, match=r"HomogeneousMap: ONNX input must be float32"):
        to_onnx(fitted_map("HomogeneousMap"), rows(3).astype(np.int64))


def test_a_function_that_the_tracer_lacks_is_named():
    with pytest.raises(AttributeError, match=r"does not know xp\.cumprod"):
        Trace(None, None).cumprod(1)
