"""A kernel carries the facts about itself: its width, its rules for it, its second moment."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.evaluation.candidates import fit_kernel
from kernelmaps.export.classes import listed_class
from kernelmaps.kernels import (
    Additive,
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    StationaryKernel,
    chi2,
    get,
    intersection,
    register,
)
from kernelmaps.kernels.registry import KNOWN
from kernelmaps.kernels.stationary import fit_length

STATIONARY = [Gaussian(), Laplacian(), Cauchy(), Matern(2.5)]


@pytest.fixture
def X(seed):
    return np.random.default_rng(seed).gamma(2.0, size=(60, 4))


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_length_follows_the_unit_of_the_data(kernel, X):
    """k(c x, c y) with the length of c X is k(x, y) with the length of X."""
    rng = np.random.default_rng(0)
    once, scaled = (fit_length("test", kernel, "auto", c * X, rng) for c in (1.0, 8.0))
    np.testing.assert_allclose(scaled(8 * X), once(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_maps_and_comparisons_share_one_rule(kernel, X):
    drawn = km.RandomFourierMap(kernel.name, 4, random_state=0).fit(X).kernel_
    assert fit_kernel(kernel.name, X).length == pytest.approx(drawn.length, rel=5e-3)


def test_the_number_after_a_name_is_the_parameter_of_the_kernel():
    assert Matern(2.5, 3.0).with_parameter(0.5) == Matern(2.5, 0.5)
    assert chi2.with_parameter(0.5) == chi2.replace(gamma=0.5)
    assert Exponential(intersection, 2.0).with_parameter(0.5) == Exponential(intersection, 0.5)
    with pytest.raises(ValueError, match="sigma must be a positive number"):
        Gaussian(2.0).with_parameter(-1.0)
    with pytest.raises(TypeError, match="the kernel 'product' has no parameter"):
        Additive(lambda x, y: x * y, name="product").with_parameter(2.0)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Cauchy(2.0), Matern(4.0, 1.5)], ids=repr)
def test_second_moment_is_the_curvature_at_zero(kernel):
    h = 1e-3
    curvature = 2 * (1 - float(kernel.signature(np.array(h)))) / h**2
    assert kernel.second_moment(3) == pytest.approx(3 * curvature, rel=1e-4)


@pytest.mark.parametrize("kernel", [Laplacian(), Matern(0.5), Matern(1.0)], ids=repr)
def test_heavy_tails_have_no_second_moment(kernel):
    assert kernel.second_moment(3) == np.inf


@pytest.mark.parametrize("kernel", [Laplacian(0.8), Cauchy(2.0)], ids=repr)
def test_product_of_signatures_is_the_kernel(kernel, X):
    """The form that a kernel without loops of its own gets."""
    for rows in (X, sparse.csr_matrix(X)):
        plain = StationaryKernel._gram(kernel, rows, rows[:7], None)
        np.testing.assert_allclose(plain, kernel(X, X[:7]), rtol=1e-12)


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is forgotten after it."""
    before = dict(KNOWN)
    yield KNOWN
    KNOWN.clear()
    KNOWN.update(before)


@dataclass(frozen=True)
class Wave(StationaryKernel):
    scale: float = 1.0
    name = "cosine of the tests"

    def signature(self, delta):
        return np.cos(np.asarray(delta) / self.scale)

    def frequencies(self, uniforms, d):
        return np.where(uniforms < 0.5, -1.0, 1.0) / self.scale


@pytest.mark.usefixtures("registry")
def test_a_registered_kernel_is_found_by_name():
    with pytest.raises(ValueError, match="unknown kernel"):
        get("cosine_of_the_tests")
    register(Wave, "cosine_of_the_tests")
    assert get("cosine_of_the_tests") == Wave()
    assert listed_class("Wave") is Wave
    assert register(Wave, "cosine_of_the_tests") is Wave  # twice is no mistake
    with pytest.raises(ValueError, match="there is a kernel 'gaussian' already"):
        register(Wave, "gaussian")
    with pytest.raises(TypeError, match="takes a class of kernels"):
        register(Wave())
