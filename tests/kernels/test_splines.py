"""The B-spline kernel: its polynomial, its spectrum, and what is not positive definite."""

import numpy as np
import pytest
from scipy import integrate
from scipy.interpolate import BSpline as Spline

import kernelmaps as km
from kernelmaps.kernels import BSpline, get


@pytest.mark.parametrize("degree", [3, 5, 9, 15])
def test_signature_is_the_central_b_spline(degree):
    x = np.linspace(-degree, degree, 401)
    end = (degree + 1) / 2
    exact = Spline.basis_element(np.arange(degree + 2) - end, extrapolate=False)
    values = np.nan_to_num(exact(x)) / exact(0.0)
    # Sums of powers up to ((n + 1)/2)^n / n! round by some thousand units.
    np.testing.assert_allclose(BSpline(degree).signature(x), values, atol=1e-9)
    assert BSpline(degree, 2.0).signature(2 * x) == pytest.approx(BSpline(degree).signature(x))
    assert not BSpline(degree, 2.0).signature(np.array([2 * end, 100.0])).any()


@pytest.mark.parametrize("degree", [3, 7])
def test_second_moment_is_the_curvature(degree):
    kernel, h = BSpline(degree, 1.7), 1e-3
    curve = (2 - 2 * kernel.signature(np.array([h]))[0]) / h**2
    assert kernel.second_moment(3) == pytest.approx(3 * curve, rel=h)  # degree 3 has a term |δ|³


@pytest.mark.parametrize("degree", [3, 7])
def test_frequencies_have_the_spectrum(degree):
    """E cos ωδ over a fine grid of quantiles is κ(δ), to the error that the table states."""
    n = 2**18
    uniforms = (np.arange(n)[:, None] + 0.5) / n
    omega = BSpline(degree, 0.5).frequencies(uniforms, 1)[:, 0]
    delta = np.linspace(0, 1.5, 31)
    estimate = np.cos(np.outer(delta, omega)).mean(axis=1)
    bound = (2 * np.pi / 256) ** 2 / 12 * (2 * delta.max()) ** 2
    np.testing.assert_allclose(estimate, BSpline(degree, 0.5).signature(delta), atol=bound)


def test_random_fourier_features_converge_to_it(seed):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    for sampling in ("iid", "sobol"):
        feature_map = km.RandomFourierMap(
            "bspline", 4096, sigma=2.0, sampling=sampling, random_state=seed
        ).fit(X)
        # At most 2/√D in rms: the variance of a paired feature is below 2/D.
        assert km.kernel_error(feature_map, X).rms < 2 / np.sqrt(4096)
    assert km.RandomFourierMap("bspline", 64, random_state=seed).fit(X).kernel_.scale > 0


def test_a_radial_b_spline_is_not_positive_definite_in_three_dimensions():
    """What the paper names: its spectrum is −F'(ω)/(2πω), negative where F = sinc⁴ rises."""
    spline = BSpline(3)
    omega = 2 * np.pi * 1.3  # after the first zero of F, at 2π
    value, error = integrate.quad(
        lambda r: spline.signature(np.array([r]))[0] * r * np.sin(omega * r), 0, 2, points=[1]
    )
    assert value < -100 * error
    # The product over features is positive definite: a law of all kernels.
    grid = np.stack(np.meshgrid(*[np.linspace(0, 2, 5)] * 3), axis=-1).reshape(-1, 3)
    assert np.linalg.eigvalsh(spline(grid)).min() > -1e-12


@pytest.mark.parametrize("degree", [1, 4, 17, 3.5])
def test_bad_degrees_are_refused(degree):
    with pytest.raises((ValueError, TypeError), match="degree"):
        BSpline(degree)


def test_it_has_a_name():
    assert get("bspline") == BSpline()
