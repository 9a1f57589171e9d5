"""The skewed χ² kernel and its sampler, against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.kernel_approximation import SkewedChi2Sampler

import kernelmaps as km
from kernelmaps.kernels import Sech, SkewedChi2


def rows(seed, n=40, d=3):
    X = np.random.default_rng(seed).gamma(0.5, 1.0, (n, d))
    X[:, 0] *= X[:, 0] > 0.2
    return X


def test_the_kernel_is_the_published_product(seed):
    X, c = rows(seed), 0.3
    a, b = X[:, None] + c, X[None] + c
    exact = np.prod(2 * np.sqrt(a) * np.sqrt(b) / (a + b), axis=2)
    np.testing.assert_allclose(SkewedChi2(c)(X), exact, rtol=1e-12)
    np.testing.assert_allclose(SkewedChi2(c)(sp.csr_matrix(X)), exact, rtol=1e-12)
    with pytest.raises(ValueError, match="non-negative"):
        SkewedChi2(c)(-X)
    with pytest.raises(ValueError, match="skewedness"):
        SkewedChi2(0.0)


def test_frequencies_have_the_density_sech(seed):
    omega = Sech(2.0).sample_frequencies(5000, 1, np.random.default_rng(seed))[:, 0]
    # The hyperbolic secant distribution of SciPy has the density sech(x)/π.
    assert stats.kstest(omega * 2 * np.pi, stats.hypsecant.cdf).pvalue > 1e-6
    delta = np.linspace(0, 8, 41)
    h = 1e-3
    curve = (2 - 2 * Sech(2.0).signature(np.array([h]))[0]) / h**2
    assert Sech(2.0).second_moment(1) == pytest.approx(curve, rel=1e-5)
    np.testing.assert_allclose(Sech(2.0).signature(delta), 1 / np.cosh(delta / 4), rtol=1e-12)


def test_features_of_scikit_learns_frequencies_are_the_same(seed):
    X, c = rows(seed), 0.3
    peer = SkewedChi2Sampler(skewedness=c, n_components=50, random_state=0).fit(X)
    ours = km.RandomFourierMap(SkewedChi2(c), 50, form="cosine", random_state=0).fit(X)
    logarithm, features = ours.spec_.parts
    arrays = {"matrix": peer.random_weights_, "phases": peer.random_offset_}
    same = km.engine.Spec("fourier", arrays, features.numbers)
    chain = km.engine.Spec("chain", parts=(logarithm, same))
    np.testing.assert_allclose(km.engine.apply(chain, X), peer.transform(X), atol=1e-12)


@pytest.mark.parametrize("sampling", ["iid", "sobol"])
def test_the_map_converges_to_the_kernel(seed, sampling):
    X = rows(seed)
    feature_map = km.RandomFourierMap(
        "skewed_chi2", 4096, sampling=sampling, random_state=seed
    ).fit(X)
    assert feature_map.kernel_ == SkewedChi2()
    assert km.kernel_error(feature_map, X).rms < 2 / np.sqrt(4096)
    np.testing.assert_allclose(
        feature_map.transform(sp.csr_matrix(X)), feature_map.transform(X), atol=1e-12
    )


def test_what_it_cannot_do_is_said(seed, tmp_path):
    X = rows(seed)
    with pytest.raises(ValueError, match="Negative values in data passed to RandomFourierMap"):
        km.RandomFourierMap("skewed_chi2", 10).fit(X).transform(-X)
    with pytest.raises(ValueError, match=r"no length scale sigma\. Leave sigma='auto'"):
        km.RandomFourierMap("skewed_chi2", 10, sigma=2.0).fit(X)
    with pytest.raises(ValueError, match="isotropic"):
        km.RandomFourierMap("skewed_chi2", 10, sampling="orthogonal").fit(X)
    with pytest.raises(ValueError, match="isotropic"):
        km.CompressiveFourierMap(2, 10, kernel="skewed_chi2").fit(X)
    saved = km.RandomFourierMap("skewed_chi2", 10, random_state=0).fit(X)
    km.save(saved, tmp_path / "map.kmap")
    np.testing.assert_array_equal(km.load(tmp_path / "map.kmap").transform(X), saved.transform(X))
