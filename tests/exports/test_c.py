"""The C header says the same as the library: compiled with the system's compiler and compared."""

import numpy as np
import pytest
from c_programs import needs_compiler, run_in_c
from fitted_examples import MAPS, fitted_map, rows

import kernelmaps as km
from kernelmaps.engine.families import CURVES
from kernelmaps.export.c import _FORMULAS, to_c


def test_every_family_of_curves_has_its_formula():
    assert set(_FORMULAS) == set(CURVES)


def test_joint_designs_are_refused_in_words():
    design = km.design_map(km.kernels.Gaussian(1.0), 9, domain=[(0, 1), (0, 1)])
    with pytest.raises(TypeError, match="not JointDesign"):
        to_c(design)


@needs_compiler
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize("name", MAPS)
def test_an_additive_map_in_c_gives_the_same_columns(name, tmp_path):
    feature_map = fitted_map(name)
    if feature_map.spec_.family not in CURVES and feature_map.spec_.family != "piecewise":
        for joint in (feature_map, feature_map.spec_):
            with pytest.raises(TypeError, match="for joint maps"):
                to_c(joint)
        return
    X = rows(20, seed=1)
    expected = np.asarray(feature_map.transform(X))
    # Tables of curves are made to the rounding error of their type.
    np.testing.assert_allclose(run_in_c(feature_map, X, tmp_path), expected, rtol=0, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("settings", [{"signed": True}, {"gamma": 0.5}, {"n_components": 4}])
def test_settings_of_cosine_maps_arrive_in_c(settings, tmp_path):
    X = rows(20) * (np.where(np.arange(6) % 2, -1, 1) if settings.get("signed") else 1)
    feature_map = km.HomogeneousMap("intersection", **settings).fit(X)
    expected = feature_map.transform(X)
    np.testing.assert_allclose(run_in_c(feature_map, X, tmp_path), expected, rtol=0, atol=1e-12)


@needs_compiler
def test_a_designed_map_of_five_columns_can_be_pasted(tmp_path):
    design = km.design_map("chi2", n_components=5, domain=(1, 255))
    x = np.concatenate([[0.0], np.linspace(1, 255, 40)])[:, None]
    columns = run_in_c(design, x, tmp_path)
    assert columns.shape == (41, 5)
    exact = km.kernels.chi2(x)
    assert np.abs(columns @ columns.T - exact).max() <= 1.0001 * design.max_error
    assert len(to_c(design)) < 3000


@needs_compiler
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize(
    ("kind", "map_name"),
    [
        ("AdditiveSVC", "HomogeneousMap"),
        ("AdditiveSVC", "SplineMap"),
        ("AdditiveSVC", "AnchorMap"),
        ("AdditiveSVR", "HomogeneousMap"),
    ],
)
@pytest.mark.usefixtures("drawn_weights", "readable")
def test_an_additive_model_in_c_gives_the_same_scores(kind, map_name, tmp_path):
    X = rows(60)
    classes = 3 if map_name == "HomogeneousMap" else 2
    y = np.arange(60) % classes if kind == "AdditiveSVC" else X @ np.arange(6.0)
    model = getattr(km, kind)(feature_map=fitted_map(map_name)).fit(X, y)
    new = rows(20, seed=1)
    scores = model.decision_function(new) if kind == "AdditiveSVC" else model.predict(new)
    got = run_in_c(model, new, tmp_path)
    bodies = [to_c(what).partition("#ifndef")[2] for what in (model, model.predictor_)]
    assert bodies[0] == bodies[1]
    # The library's own loop keeps weights in float32 or float64 as the data ask for.
    np.testing.assert_allclose(got, np.reshape(scores, got.shape), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("map_name", "n_targets"), [("HomogeneousMap", 1), ("SplineMap", 2), ("AnchorMap", 1)]
)
def test_a_linear_model_on_an_additive_map_in_c_gives_the_same_scores(
    map_name, n_targets, tmp_path
):
    X, new = rows(60), rows(20, seed=1)
    y = X @ np.arange(6.0 * n_targets).reshape(6, n_targets) ** 2
    model = km.StreamingRidge(feature_map=fitted_map(map_name)).fit(X, y)
    predicted = model.predict(new)
    got = run_in_c(model, new, tmp_path)
    np.testing.assert_allclose(got, predicted.reshape(got.shape), rtol=1e-9, atol=1e-9)
    labels = np.arange(60) % (1 + n_targets)
    classifier = km.StreamingRidgeClassifier(feature_map=fitted_map(map_name)).fit(X, labels)
    scores = classifier.decision_function(new)
    got = run_in_c(classifier.predictor_, new, tmp_path)
    np.testing.assert_allclose(got, scores.reshape(got.shape), rtol=1e-9, atol=1e-9)


def test_names_that_are_not_c_are_refused():
    with pytest.raises(ValueError, match="C identifier"):
        to_c(fitted_map("HomogeneousMap"), "2nd map")


def test_unfitted_and_other_things_are_refused():
    with pytest.raises(TypeError, match="not HomogeneousMap"):
        to_c(km.HomogeneousMap())
    joint = km.StreamingRidge(feature_map=km.RandomFourierMap(n_components=8))
    several = km.StreamingRidge(feature_map=[(None, km.SplineMap(4)), (None, km.SplineMap(5))])
    for model in (joint, several):
        with pytest.raises(TypeError, match="StreamingRidge has a form in C on one additive map"):
            to_c(model.fit(rows(60), np.arange(60.0)))
