"""Parts of the scripts that recompute the papers' tables: small cases with known answers."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from benchmarks import (
    attack_certificates,
    convergence,
    dot_product_features,
    reproduce_additive_classifiers,
    reproduce_chebyshev,
    reproduce_chebyshev_table3,
    reproduce_figures,
    sampler_bias,
)
from kernelmaps import kernels
from kernelmaps.maps.chebyshev import lemma_constant


def test_components_from_products_of_rows_are_those_of_a_pca(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 80)).astype(np.float32)
    train, test = reproduce_chebyshev.principal((Z[:20], Z[20:]), 5, None)
    own = np.vstack([train, test])
    theirs = PCA(5, svd_solver="full").fit_transform(Z)
    np.testing.assert_allclose(own @ own.T, theirs @ theirs.T, atol=1e-3)


def test_the_constant_of_figure_1_is_at_most_twice_the_limit_of_the_error(monkeypatch):
    """Terms oscillate in log m, the slower the nearer x is to 1: small x see whole periods."""
    monkeypatch.setattr(reproduce_figures, "FIRST", 2000)
    monkeypatch.setattr(reproduce_figures, "LAST", 4000)
    x = np.array([1e-3, 0.1, 0.5])
    bound, tail = reproduce_figures.constants(x)
    np.testing.assert_allclose(tail, lemma_constant(np.log(x)), rtol=1e-2)
    assert np.all(bound <= 2 * lemma_constant(np.log(x)) * 1.01)
    np.testing.assert_allclose(bound[0], 2 * lemma_constant(np.log(x[0])), rtol=1e-2)


def test_nystroem_features_are_exact_at_the_landmarks(seed):
    X = np.random.default_rng(seed).dirichlet(np.full(208, 0.5), size=60)
    features = reproduce_chebyshev_table3.Nystroem(20, seed).fit(X)
    at = features.landmarks_
    exact = features.kernel_(X, at)
    np.testing.assert_allclose(features.transform(X) @ features.transform(at).T, exact, atol=1e-6)
    np.testing.assert_allclose(np.diag(features.kernel_(X, X)), 2, atol=1e-12)


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_a_fit_of_the_sweep_reaches_its_gap(C, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(120, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=120) > 0.5
    found = convergence.one("SplineMap(20, order=2)", "squared_hinge", C, X, y)
    assert found["gap"] >= -1e-9
    assert found["reached"]
    assert found["warning"] is None


def test_exact_machines_of_pairs_vote_as_one_machine_of_all(seed):
    """SVC is one against one itself; bytes on a device have the same kernel."""
    rng = np.random.default_rng(seed)
    y = np.arange(150) % 3
    X = np.clip(rng.normal(90 + 15 * y[:, None], 40, (150, 12)), 0, 255).astype(np.uint8)
    data = X[:90], y[:90], X[90:], y[90:]
    _, found, remark = reproduce_additive_classifiers.exact_by_pairs(None)(data, 0.5)
    one = SVC(kernel=kernels.intersection, C=0.5).fit(data[0] / 255, data[1])
    assert found[""] == pytest.approx(100 * one.score(data[2] / 255, data[3]), abs=100 * 2 / 60)
    assert "one against one, 90 rows" in remark


def test_measurements_change_a_dot_product_kernel_by_one_over_the_root_of_their_number(seed):
    """As many measurements as features are a rotation; fewer err by O(1/√m), times √(1 − m/d)."""
    X = np.random.default_rng(seed).normal(size=(200, 64))
    kernel = dot_product_features.kernel_of(X)
    assert kernel.gamma * np.mean(np.sum(X**2, axis=1)) == pytest.approx(1)

    def error(m):
        draws = [dot_product_features.measured_error(X, kernel, m, seed + i) for i in range(5)]
        return np.sqrt(np.mean(np.square(draws)))

    assert error(64) < 1e-12
    expected = np.sqrt((1 / 8 - 1 / 64) / (1 / 32 - 1 / 64))
    assert error(8) / error(32) == pytest.approx(expected, rel=0.15)


def test_linear_splines_with_penalised_differences_have_the_error_of_interpolation(tmp_path):
    """K = 1 + 9 min(x, y) at the knots; between them min is off by at most 1/(4 · 9)."""
    found = reproduce_figures.spline_kernels(tmp_path)
    assert found["degree 1"]["largest"] == pytest.approx(1 / 36, rel=0.02)
    assert found["degree 1"]["offset"] == pytest.approx(1, abs=0.01)
    assert (tmp_path / "additive_figure_1.png").exists()


NEW_CASES = ("relative", "inner", "kernel_lists", "signed")


@pytest.mark.parametrize("name", NEW_CASES)
def test_a_certificate_of_half_the_bound_is_broken(name):
    case = getattr(attack_certificates, name)(np.random.default_rng(3))
    assert not attack_certificates.search(case, np.random.default_rng(0)).broken
    if name == "kernel_lists":  # its bound is that of the worst feature, which may be another one
        return
    half = case._replace(certificate=case.certificate.scaled(0.5))
    assert attack_certificates.search(half, np.random.default_rng(0)).broken


def test_bounds_of_rows_and_predictions_are_attacked():
    for kind in ("residuals", "predictions"):
        assert not any(one.broken for one in attack_certificates.attacks(kind, 3, 0))


@pytest.mark.parametrize("name", ["laplacian", "matern", "sech", "bspline"])
def test_the_bias_of_every_kernel_is_measured(name, monkeypatch):
    monkeypatch.setattr(sampler_bias, "COLUMNS", 256)
    for sampling in sampler_bias.samplings_of(name):
        assert sampler_bias.bias(sampling, 3, 0, name=name)[1] < 6


def test_a_biased_sampler_is_seen(monkeypatch):
    """Frequencies of one direction: far beyond four standard errors."""
    monkeypatch.setattr(sampler_bias, "COLUMNS", 256)
    assert sampler_bias.bias("iid", 3, 0)[1] < 6
    monkeypatch.setattr(
        kernels.Gaussian,
        "sample_frequencies",
        lambda self, n, d, rng: rng.normal(size=(n, 1)) * np.ones(d),
    )
    assert sampler_bias.bias("iid", 3, 0)[1] > 20
