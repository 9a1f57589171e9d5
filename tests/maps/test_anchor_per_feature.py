"""A kernel for each feature of an anchor map."""

import numpy as np
import pytest
import scipy.sparse as sp

import kernelmaps as km
from kernelmaps.kernels import PerFeature, chi2, get, hellinger, intersection, jensen_shannon
from kernelmaps.kernels.registry import kernel_of_text, kernel_text

NAMES = ["chi2", "intersection", "chi2", "hellinger", "js"]


def rows(seed, n=60, d=5):
    return np.random.default_rng(seed).gamma(1.0, 1.0, (n, d))


def gauss(x, y):
    return np.exp(-((x - y) ** 2))


# ---- the kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_kernel_is_the_sum_of_its_parts(seed, form, dtype):
    X, Y = rows(seed).astype(dtype), rows(seed + 1, 9).astype(dtype)
    k = get(NAMES)
    parts = [chi2, intersection, chi2, hellinger, jensen_shannon]
    exact = sum(p(X[:, [d]], Y[:, [d]]) for d, p in enumerate(parts))
    np.testing.assert_allclose(
        k(form(X), form(Y)), exact, rtol=1e-6 if dtype == np.float32 else 1e-12
    )
    np.testing.assert_allclose(k.diag(form(X)), np.diag(k(X)), rtol=1e-6)
    assert k(form(X), form(Y)).dtype == dtype
    np.testing.assert_allclose(k.component(X[:9], Y).sum(axis=1), np.diag(exact[:9]), rtol=1e-5)


def test_the_kernel_has_a_text():
    assert kernel_of_text(kernel_text(get(NAMES))) == get(NAMES)


# ---- the map ------------------------------------------------------------------------------------


def test_the_map_is_that_of_each_feature(seed):
    X = rows(seed)
    both = km.AnchorMap(NAMES, 30, n_neighbors=2).fit(X)
    alone = [km.AnchorMap(k, 30, n_neighbors=2).fit(X[:, [d]]) for d, k in enumerate(NAMES)]
    np.testing.assert_array_equal(
        both.transform(X), np.hstack([m.transform(X[:, [d]]) for d, m in enumerate(alone)])
    )
    bound = max(m.certificate_.bound for m in alone)
    assert both.certificate_.bound == pytest.approx(bound)
    assert both.get_feature_names_out()[0] == "x0_chi2_0"
    assert both.get_feature_names_out()[-1].startswith("x4_jensen_shannon_")


def test_equal_anchors_of_different_kernels_have_different_tables(seed):
    X = rows(seed).clip(0, 1)
    X[:2] = [[0], [1]]
    feature_map = km.AnchorMap(NAMES, 20, feature_range=(0, 1)).fit(X)
    exact = feature_map.kernel_(X)
    Z = feature_map.transform(X)
    # Theorem 1: at most the sum of the features' bounds.
    assert np.abs(Z @ Z.T - exact).max() <= 5 * feature_map.certificate_.bound
    one = km.AnchorMap("chi2", 20, feature_range=(0, 1)).fit(X)
    assert np.abs(one.transform(X) @ one.transform(X).T - exact).max() > 0.1


def test_certificates_hold_for_rows(seed):
    X = rows(seed, 1000)
    feature_map = km.AnchorMap(NAMES, 40, energy=0.9999).fit(X)
    statement = feature_map.row_certificate(X, probability=0.9)
    assert statement.proved
    fresh = rows(seed + 1, 400)
    with np.errstate(all="ignore"):
        error = km.kernel_error(feature_map, np.minimum(fresh, X.max(axis=0)))
    assert error.max <= 5 * feature_map.certificate_.bound
    assert km.AnchorMap(["chi2", gauss], 10).fit(X[:, :2]).certificate_ is None


def test_models_codes_and_files_take_it(seed, tmp_path):
    X = rows(seed, 300)
    feature_map = km.AnchorMap(NAMES, 20).fit(X)
    km.save(feature_map, tmp_path / "map.kmap")
    again = km.load(tmp_path / "map.kmap")
    assert isinstance(again.kernel_, PerFeature)
    np.testing.assert_array_equal(again.transform(X), feature_map.transform(X))
    np.testing.assert_allclose(
        feature_map.decode(feature_map.encode(X)), feature_map.transform(X), atol=1e-6
    )
    ridge = km.StreamingRidge(1e-3, km.AnchorMap(NAMES, 20)).fit(X, np.sqrt(X).sum(axis=1))
    assert ridge.score(X, np.sqrt(X).sum(axis=1)) > 0.95


def test_choose_and_nystroem_take_a_list(seed):
    X = np.random.default_rng(seed).random((300, 5))
    choice = km.choose(X, NAMES, max_error=0.2)
    assert choice.evidence.bound <= 0.2
    assert "kernel=['chi2', 'intersection', 'chi2', 'hellinger', 'jensen_shannon']" in " ".join(
        str(choice).split()
    )
    nystroem = km.NystroemMap(NAMES, 100, random_state=0).fit(X)
    assert km.kernel_error(nystroem, X).max < 0.2


def test_kernels_of_any_values_stand_beside_those_of_values_above_zero(seed):
    X = rows(seed, d=2)
    X[:, 1] -= 2
    feature_map = km.AnchorMap(["chi2", gauss], 200, energy=1).fit(X)
    assert km.kernel_error(feature_map, X).max < 0.05
