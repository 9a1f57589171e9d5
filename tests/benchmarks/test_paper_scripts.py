"""Parts of the scripts that recompute the papers' tables: small cases with known answers."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from benchmarks import (
    attack_certificates,
    dot_product_features,
    reproduce_additive_classifiers,
    reproduce_chebyshev,
    sampler_bias,
)
from kernelmaps import kernels


def test_components_from_products_of_rows_are_those_of_a_pca(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 80)).astype(np.float32)
    train, test = reproduce_chebyshev.principal((Z[:20], Z[20:]), 5, None)
    own = np.vstack([train, test])
    theirs = PCA(5, svd_solver="full").fit_transform(Z)
    np.testing.assert_allclose(own @ own.T, theirs @ theirs.T, atol=1e-3)


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


NEW_CASES = ("relative", "inner", "kernel_lists", "signed")


@pytest.mark.parametrize("name", NEW_CASES)
def test_a_certificate_of_half_the_bound_is_broken(name):
    case = getattr(attack_certificates, name)(np.random.default_rng(3))
    assert not attack_certificates.search(case, np.random.default_rng(0)).broken
    if name == "kernel_lists":  # its bound is that of the worst feature, which may be another one
        return
    half = case._replace(certificate=case.certificate.scaled(0.5))
    assert attack_certificates.search(half, np.random.default_rng(0)).broken


def test_residuals_are_attacked():
    assert not any(one.broken for one in attack_certificates.attacks("residuals", 3, 0))


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
