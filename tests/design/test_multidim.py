"""Projections and modulations of two and three dimensions (section 6)."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.design.multidim import JointProblem, _lag_grid, design_joint_map
from kernelmaps.kernels import Gaussian, Laplacian

SQUARE = [(0, np.pi)] * 2
RBF = Gaussian(np.sqrt(0.1))


def problem_of(form, axes=2):
    grid = _lag_grid(np.full(axes, 2.0), 5, form)
    return JointProblem(
        lambda lag: np.exp(-np.sum(lag**2, axis=-1)), np.full(axes, 2.0), (None,) * axes, form,
        grid, grid,
    )  # fmt: skip


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_slopes_are_the_derivatives_of_the_atoms(form, axes, seed):
    problem = problem_of(form, axes)
    rng = np.random.default_rng(seed)
    frequencies = rng.uniform(0.2, 2, (4, axes))
    slopes = problem.slopes(problem.grid, frequencies)
    for axis in range(axes):
        step = np.zeros(axes)
        step[axis] = 1e-6
        numeric = problem.atoms(problem.grid, frequencies + step)
        numeric = (numeric - problem.atoms(problem.grid, frequencies - step)) / 2e-6
        np.testing.assert_allclose(slopes[:, :, axis], numeric, atol=1e-8)


def test_columns_follow_equation_21():
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(problem_of("modulation").columns(vectors), [1, 2, 4])
    np.testing.assert_array_equal(problem_of("projection").columns(vectors), [1, 2, 2])


@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_transform_has_the_stated_error_and_size(form, seed):
    design = design_joint_map(Gaussian(0.8), 13, SQUARE, form=form, resolution=13)
    X = np.random.default_rng(seed).uniform(0, np.pi, (150, 2))
    phi = design.transform(X)
    assert phi.shape == (150, design.n_columns)
    assert design.n_columns <= 13
    exact = Gaussian(0.8)(X)
    assert np.max(np.abs(phi @ phi.T - exact)) <= design.max_error * 1.03
    assert design.transform(X.astype(np.float32)).dtype == np.float32


def test_a_modulation_is_the_mean_of_its_reflections():
    design = design_joint_map(Gaussian(0.8), 13, SQUARE, form="modulation", resolution=13)
    frequencies, weights = design.projections()
    lags = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    product = np.prod(np.cos(lags[:, None, :] * design.frequencies), axis=2) @ design.weights
    np.testing.assert_allclose(np.cos(lags @ frequencies.T) @ weights, product, atol=1e-12)


def test_ranking_of_the_methods_of_table_2():
    """Greedy < discrete LP < continuous extension, at 31 columns (paper: .2370, -, .1061)."""
    common = {"form": "modulation", "resolution": 17}
    greedy = design_joint_map(RBF, 31, SQUARE, select="greedy", refine=False, **common)
    discrete = design_joint_map(RBF, 31, SQUARE, refine=False, **common)
    continuous = design_joint_map(RBF, 31, SQUARE, **common)
    assert continuous.max_error <= 0.0984 * 1.05
    assert continuous.max_error < discrete.max_error < greedy.max_error


def test_design_map_takes_several_ranges():
    """Form "auto" is the better of both forms."""
    square = [(0, 2.0), (0, 2.0)]
    joint = km.design_map(Gaussian(0.8), 9, domain=square)
    modulation = design_joint_map(Gaussian(0.8), 9, square, form="modulation")
    assert joint.max_error <= modulation.max_error
    assert joint.n_columns <= 9
    with pytest.raises(ValueError, match="several ranges"):
        km.design_map(Gaussian(0.8), max_error=0.1, domain=square)


def test_polar_pool_of_projections():
    arguments = {"form": "projection", "pool": "polar", "resolution": 13}
    discrete = design_joint_map(Gaussian(0.8), 15, SQUARE, refine=False, **arguments)
    moved = design_joint_map(Gaussian(0.8), 15, SQUARE, **arguments)
    assert max(discrete.n_columns, moved.n_columns) <= 15
    assert moved.max_error < 0.3 * discrete.max_error
    assert moved.max_error < 0.1


def test_position_and_orientation_of_a_patch():
    """An aperiodic and a periodic axis: the frequencies of the angle stay whole numbers."""

    def orientation(lag):
        return np.exp(2 * (np.cos(lag) - 1))

    design = design_joint_map(
        [Gaussian(0.5), orientation], 25, [(0, 1), (0, 2 * np.pi)], periods=[None, 2 * np.pi],
        resolution=13,
    )  # fmt: skip
    np.testing.assert_allclose(design.frequencies[:, 1], np.round(design.frequencies[:, 1]))
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(0, 1, 80), rng.uniform(0, 8 * np.pi, 80)]
    phi = design.transform(X)
    exact = Gaussian(0.5)(X[:, :1]) * orientation(np.subtract.outer(X[:, 1], X[:, 1]))
    assert np.max(np.abs(phi @ phi.T - exact)) <= design.max_error * 1.05
    assert design.max_error < 0.12


def test_three_dimensions():
    design = design_joint_map(Gaussian(1.0), 27, [(0, 1)] * 3, form="modulation", resolution=7)
    X = np.random.default_rng(0).uniform(0, 1, (60, 3))
    phi = design.transform(X)
    assert np.max(np.abs(phi @ phi.T - Gaussian(1.0)(X))) <= design.max_error * 1.05
    assert design.max_error < 0.02


def test_product_kernels_need_not_be_isotropic():
    options = {"form": "modulation", "resolution": 13, "refine": False}
    design = design_joint_map(Laplacian(1.0), 13, [(0, 1), (0, 2)], **options)
    assert 0 < design.max_error < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 0}, ">= 1"),
        ({"domain": [(0, 1)]}, "two or three ranges"),
        ({"domain": [(0, 1), (1, 1)]}, "low < high"),
        ({"form": "sum"}, "form is one of"),
        ({"pool": "polar"}, "projections"),
        ({"periods": [None]}, "per axis"),
        ({"kernel": [Gaussian(1.0)]}, "kernels for"),
        ({"kernel": "chi2"}, "not stationary"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"kernel": Gaussian(1.0), "n_components": 9, "domain": SQUARE} | change
    with pytest.raises(ValueError, match=message):
        design_joint_map(**arguments)
