"""Exact kernels keep their digits far from the origin and at any scale of the data.

Shifts and scales are such that the shifted or scaled rows are exact: the laws then hold up to the
rounding of the kernels themselves.
"""

import numpy as np
import pytest
from scipy import sparse

from kernelmaps.kernels import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    chi2,
    hellinger,
    intersection,
    jensen_shannon,
)

STATIONARY = [Gaussian(2.0), Laplacian(8.0), Cauchy(2.0), Matern(0.5, 2.0), Matern(1.5, 2.0)]
HOMOGENEOUS = [chi2, intersection, hellinger, jensen_shannon]
FORMS = [np.asarray, sparse.csr_matrix]
TYPES = [np.float32, np.float64]


def grid(seed, dtype, low=-64, high=64):
    """Rows of multiples of 1/16, some of them equal or next to each other."""
    X = np.random.default_rng(seed).integers(low, high, (40, 6)) / 16
    X[1] = X[0]
    X[2] = X[0]
    X[2, 3] += 1 / 16
    return X.astype(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_a_shift_of_all_rows_changes_nothing(kernel, dtype, form, seed):
    """1/16 is an ulp of float32 from 2¹⁹ on, and exact in squares of float64."""
    X, Y = grid(seed, dtype), grid(seed + 1, dtype)
    shift = dtype(2**19)
    eps = np.finfo(dtype).eps
    # ‖x‖² + ‖y‖² − 2⟨x, y⟩, at most 6·2⁴ about the centre in units of the length, is rounded in
    # float64, and divided by a distance of at least 1/32. (Sparse rows are not centred: there it is
    # 6·2³⁸, but pairs nearer than 1e-7 of that, all of these, are computed from differences.)
    # The logarithms of the Cauchy kernel on sparse rows are of the order of 6·36.
    rounding = 0.0
    if isinstance(kernel, Gaussian | Matern):
        rounding = 6 * 2**4 * 32 * 2.0**-52
    elif isinstance(kernel, Cauchy):
        rounding = 2 * 6 * 36 * 2.0**-52
    for left, right in ((X, Y), (X, None)):
        moved = None if right is None else form(right + shift)
        near, far = kernel(left, right), kernel(form(left + shift), moved)
        assert far.dtype == dtype
        np.testing.assert_allclose(far, near, rtol=0, atol=16 * eps + rounding)


@pytest.mark.parametrize("exponent", [-110, -70, 70, 110])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_the_unit_of_the_data_does_not_matter(kernel, form, exponent, seed):
    """float32 down to 1e-33 and up to 1e33, where squares are not numbers any more."""
    for dtype, power in ((np.float32, exponent), (np.float64, 5 * exponent)):
        X, scale = grid(seed, dtype), dtype(2.0) ** power
        length = getattr(kernel, kernel.parameter_name)
        other = kernel.with_parameter(float(length) * float(scale))
        atol = 16 * np.finfo(dtype).eps
        np.testing.assert_allclose(other(form(X * scale)), kernel(form(X)), rtol=0, atol=atol)


@pytest.mark.parametrize("exponent", [-110, -70, 70, 110])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=repr)
def test_homogeneous_kernels_are_homogeneous_at_any_scale(kernel, form, exponent, seed):
    for dtype, power in ((np.float32, exponent), (np.float64, 5 * exponent)):
        X, scale = grid(seed, dtype, 0), dtype(2.0) ** power
        # x log x of Jensen-Shannon is that many times as large as the result, in float64.
        lost = abs(power) * 2.0**-50 if kernel is jensen_shannon else 0.0
        rtol = 16 * np.finfo(dtype).eps + lost
        np.testing.assert_allclose(kernel(form(X * scale)), kernel(form(X)) * scale, rtol=rtol)
        exponential, scaled = Exponential(kernel, 0.25), Exponential(kernel, 0.25 / float(scale))
        actual = scaled(form(X * scale))
        np.testing.assert_allclose(actual, exponential(form(X)), rtol=0, atol=16 * rtol)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=repr)
def test_exponential_kernels_of_rows_far_from_the_origin(kernel, dtype, form, seed):
    """k(x, x) + k(y, y) − 2 k(x, y) would have lost the distance: in float32, all of it."""
    X = grid(seed, dtype) + dtype(2**16)
    x, y = X.astype(float)[:, None], X.astype(float)
    squared = {
        "chi2": lambda: (x - y) ** 2 / (x + y),
        "intersection": lambda: np.abs(x - y),
        # (√x − √y)² and the first term of the series of Jensen-Shannon, right to (Δ/x)² = 1e-8.
        "hellinger": lambda: ((x - y) / (np.sqrt(x) + np.sqrt(y))) ** 2,
        "jensen_shannon": lambda: (x - y) ** 2 / (x + y) / (2 * np.log(2)),
    }[kernel.name]().sum(axis=-1)
    unit = float(np.median(squared))
    direct = kernel.name in ("chi2", "intersection")
    rtol = 16 * np.finfo(dtype).eps if direct else 1e-7
    # Otherwise the float64 rounding of 6·2¹⁷ (for Jensen-Shannon, thrice times 17) remains.
    atol = 0 if direct else 3 * 6 * 2.0**17 * 17 * 2.0**-52
    np.testing.assert_allclose(kernel.squared_distance(form(X)), squared, rtol=rtol, atol=atol)
    actual = Exponential(kernel, 1 / unit)(form(X))
    np.testing.assert_allclose(actual, np.exp(-squared / unit), rtol=0, atol=rtol + atol / unit)


def test_rows_too_far_apart_for_their_squares():
    """Beyond 1e154 squares are infinite: near pairs are near, far ones have the value 0."""
    X = np.array([[1e200, 0.0], [1e200, 1.0], [-1e200, 0.0], [0.0, 1.0], [0.0, 1.0]])
    near = np.exp(-0.5)
    expected = np.eye(5)
    expected[3, 4] = expected[4, 3] = 1
    expected[0, 1] = expected[1, 0] = near
    for form in FORMS:
        np.testing.assert_allclose(Gaussian(1.0)(form(X)), expected, atol=1e-15)
