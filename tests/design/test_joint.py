"""Projections and modulations of two and three dimensions (section 6)."""

from functools import cache

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.design import joint as multidim
from kernelmaps.design.joint import (
    BoxWaves,
    JointProblem,
    design_joint_map,
    product_grid,
    resolve_signatures,
)
from kernelmaps.exceptions import DesignError
from kernelmaps.kernels import Gaussian, Laplacian, Matern

SQUARE = [(0, np.pi)] * 2


QUICK = multidim.JointSearchOptions(disturbed=0, n_descended=2, n_finished=1, lags=(13, 7))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Few starts on coarse grids."""
    monkeypatch.setattr(multidim, "_OPTIONS", QUICK)


@cache
def small(form, kernel=None, n_columns=13, domain=((0, np.pi), (0, np.pi))):
    """One design for many tests: they look at it from different sides."""
    target = resolve_signatures(Gaussian(0.8) if kernel is None else kernel, len(domain))
    search = multidim.JointSearch(target, n_columns, cache=False)
    problems = [p for p in search.problems(domain) if form in ("projection", p.form)]
    return multidim.describe_design(target, search.designs(problems)[-1], domain)


def problem_of(form, axes=2):
    return JointProblem(
        lambda lag: np.exp(-np.sum(lag**2, axis=-1)), np.full(axes, 2.0), (None,) * axes, form, 5
    )


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_products_of_matrices_are_the_sum_of_the_atoms(form, axes, seed):
    """Values, and both kinds of derivatives, against the atoms on the same grid."""
    problem = problem_of(form, axes)
    rng = np.random.default_rng(seed)
    frequencies, weights = rng.uniform(0.2, 2, (4, axes)), rng.uniform(0, 1, 4)
    waves = BoxWaves(problem.coarse.axes, frequencies, form)
    atoms = problem.atoms(problem.coarse.lags, frequencies)
    np.testing.assert_allclose(waves.sum(weights), atoms @ weights, atol=1e-13)
    factors = rng.standard_normal(problem.coarse.lags.shape[0])
    values, derivatives = waves.weighted_sums(factors)
    np.testing.assert_allclose(values, factors @ atoms, atol=1e-11)
    at_grid = problem.derivatives(problem.coarse.lags, frequencies)
    expected = np.einsum("z,zmn->mn", factors, at_grid)
    np.testing.assert_allclose(derivatives, expected, atol=1e-11)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_derivatives_are_those_of_the_atoms(form, axes, seed):
    problem = problem_of(form, axes)
    rng = np.random.default_rng(seed)
    frequencies = rng.uniform(0.2, 2, (4, axes))
    derivatives = problem.derivatives(problem.coarse.lags, frequencies)
    for axis in range(axes):
        step = np.zeros(axes)
        step[axis] = 1e-6
        numeric = problem.atoms(problem.coarse.lags, frequencies + step)
        numeric = (numeric - problem.atoms(problem.coarse.lags, frequencies - step)) / 2e-6
        np.testing.assert_allclose(derivatives[:, :, axis], numeric, atol=1e-8)


def test_columns_follow_equation_21():
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(problem_of("modulation").columns(vectors), [1, 2, 4])
    np.testing.assert_array_equal(problem_of("projection").columns(vectors), [1, 2, 2])


@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_transform_has_the_stated_error_and_size(form, seed):
    design = small(form)
    X = np.random.default_rng(seed).uniform(0, np.pi, (150, 2))
    phi = design(X)
    assert phi.shape == (150, design.n_columns)
    assert design.n_columns <= 13
    exact = Gaussian(0.8)(X)
    assert np.max(np.abs(phi @ phi.T - exact)) <= design.max_error * 1.03
    assert design(X.astype(np.float32)).dtype == np.float32


def test_a_modulation_is_the_mean_of_its_reflections():
    design = small("modulation")
    frequencies, weights = design.projections()
    lags = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    product = np.prod(np.cos(lags[:, None, :] * design.frequencies), axis=2) @ design.weights
    np.testing.assert_allclose(np.cos(lags @ frequencies.T) @ weights, product, atol=1e-12)


def test_projections_are_never_worse_than_modulations():
    """A modulation is a sum of projections of the same number of columns."""
    modulation, projection = small("modulation"), small("projection")
    assert projection.form == "projection"
    assert projection.max_error <= modulation.max_error * (1 + 1e-6)


def test_design_map_takes_several_ranges():
    """The better of both forms."""
    square = ((0, 1), (0, 1))
    joint = km.design_map(Gaussian(1.0), 9, domain=square, cache=False)
    modulation = small("modulation", Gaussian(1.0), 9, square)
    assert joint.max_error <= modulation.max_error
    assert joint.n_columns <= 9
    with pytest.raises(ValueError, match="several ranges"):
        km.design_map(Gaussian(0.8), max_error=0.1, domain=square)


def test_three_dimensions():
    design = small("modulation", Gaussian(1.0), 15, ((0, 1),) * 3)
    X = np.random.default_rng(0).uniform(0, 1, (60, 3))
    phi = design(X)
    assert np.max(np.abs(phi @ phi.T - Gaussian(1.0)(X))) <= design.max_error * 1.05
    assert design.max_error < 0.02


@pytest.mark.parametrize("form", ["projection", "modulation"])
def test_the_bound_holds_between_the_points_of_every_grid(form, seed):
    """Random lags, and a local search from the worst of them, stay below the proved bound."""
    design = small(form)
    assert design.certificate.proved
    assert design.max_error <= design.certificate.bound <= 1.05 * design.max_error
    rng = np.random.default_rng(seed)
    lags = rng.uniform(-np.pi, np.pi, (4000, 2))
    frequencies, weights = design.projections()

    def error(lag):
        return np.abs(np.exp(-np.sum(lag**2, -1) / 1.28) - np.cos(lag @ frequencies.T) @ weights)

    worst = lags[np.argsort(-error(lags))[:20]]
    near = worst[:, None, :] + rng.normal(0, 0.02, (20, 200, 2))
    near = np.clip(near, -np.pi, np.pi).reshape(-1, 2)
    actual = max(np.max(error(lags)), np.max(error(near)))
    assert 0.95 * design.max_error < actual <= design.certificate.bound


def test_no_map_is_below_the_rank_bound():
    """The eigenvectors of the points' own Gram matrix, best in the mean square, are not."""
    design = small("modulation", Gaussian(0.8), 9, ((0, 2),) * 2)
    lower = design.certificate.lower_bound
    assert 0 < lower <= design.max_error
    assert design.certificate.ratio == pytest.approx(design.max_error / lower)
    points = product_grid((np.linspace(0, 2, 24),) * 2)
    gram = Gaussian(0.8)(points)
    values, vectors = np.linalg.eigh(gram)
    rank = (vectors[:, -9:] * values[-9:]) @ vectors[:, -9:].T
    assert np.max(np.abs(gram - rank)) >= lower


def test_local_optimality_is_claimed():
    moved = small("modulation")
    assert moved.certificate.locally_optimal
    assert "no first-order improvement" in moved.summary()
    assert "proved" in moved.summary()
    assert f"no map of {moved.n_columns} columns of any kind is below" in moved.summary()


def test_kinks_are_certified_on_cell_faces_and_cones_are_not():
    product_kernel = small("modulation", Laplacian(1.0), 2, ((0, 1), (0, 2)))
    cone = small("modulation", Matern(0.5), 2, ((0, 1), (0, 1)))
    assert 0 < product_kernel.max_error <= product_kernel.certificate.bound < 0.5
    assert product_kernel.certificate.proved
    assert not cone.certificate.proved
    assert "no bound is proved" in cone.summary()


def test_the_spec_is_the_map_clipped_to_its_domain(tmp_path, seed):
    design = small("modulation")
    X = np.random.default_rng(seed).uniform(0, np.pi, (30, 2))
    inside = km.engine.apply(design.spec, X)
    np.testing.assert_allclose(inside, design(X), atol=1e-14)
    np.testing.assert_allclose(inside, km.engine.evaluate(design.spec, X), atol=1e-13)
    np.testing.assert_array_equal(
        km.engine.apply(design.spec, X + 10), km.engine.apply(design.spec, np.full((30, 2), np.pi))
    )
    km.save(design, tmp_path / "design.kmap")
    again = km.load(tmp_path / "design.kmap")
    assert again == design.spec
    np.testing.assert_array_equal(km.engine.apply(again, X), inside)


@pytest.mark.parametrize(
    "other", [{"error": "relative"}, {"homogeneous": True}, {"method": "minimax"}]
)
def test_what_joint_designs_do_not_know_is_refused(other):
    with pytest.raises(ValueError, match="several ranges needs n_components, method='refined'"):
        km.design_map(Gaussian(0.8), 5, domain=SQUARE, cache=False, **other)


def test_designs_are_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path))
    arguments = (Gaussian(0.8), 9, [(0, 1), (0, 2)])
    first = design_joint_map(*arguments)

    def refuse(*_, **__):
        raise AssertionError("designed again")

    monkeypatch.setattr("kernelmaps.design.joint.JointSearch.solve", refuse)
    moved = design_joint_map(*arguments[:2], [(5, 6), (-1, 1)])
    np.testing.assert_array_equal(first.frequencies, moved.frequencies)
    assert first.certificate == moved.certificate
    with pytest.raises(AssertionError, match="designed again"):
        design_joint_map(arguments[0], 8, arguments[2])


def test_a_signature_that_is_no_mirror_of_itself_gets_projections():
    shear = np.array([[1.0, 0.6], [0.0, 0.8]])

    def signature(lag):
        return np.exp(-0.5 * np.sum((lag @ shear) ** 2, axis=-1))

    design = design_joint_map(signature, 5, [(0, 1.5)] * 2, cache=False)
    assert design.form == "projection"
    X = np.random.default_rng(0).uniform(0, 1.5, (60, 2))
    miss = design.kernel_values(X, X) - signature(X[:, None] - X[None])
    assert np.max(np.abs(miss)) <= design.certificate.bound


def test_indefinite_and_misshapen_signatures_are_refused():
    def box(lag):
        return 1.0 * (np.max(np.abs(lag), axis=-1) < 0.5)

    with pytest.raises(DesignError, match="not positive definite"):
        design_joint_map(box, 9, SQUARE)
    with pytest.raises(ValueError, match="finite values of shape"):
        design_joint_map(lambda lag: np.exp(-(lag**2)), 9, SQUARE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 0}, ">= 1"),
        ({"domain": [(0, 1)]}, "two or three ranges"),
        ({"domain": [(0, 1), (1, 1)]}, "low < high"),
        ({"periods": [None]}, "per axis"),
        ({"kernel": [Gaussian(1.0)]}, "kernels for"),
        ({"kernel": "chi2"}, "not stationary"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"kernel": Gaussian(1.0), "n_components": 9, "domain": SQUARE} | change
    with pytest.raises(ValueError, match=message):
        design_joint_map(**arguments)
