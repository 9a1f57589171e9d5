"""design_map: what it returns, says, stores and refuses."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.design import api
from kernelmaps.design.api import design_map
from kernelmaps.design.approximation import NotPositiveDefiniteError, build_problem
from kernelmaps.design.certify import bound_between_grid
from kernelmaps.engine import evaluate
from kernelmaps.exceptions import DesignError

INTEGERS = np.arange(256.0)


def kernel_miss(design, kernel, values=INTEGERS):
    phi = evaluate(design.spec, values[:, None], xp=np)
    return np.abs(phi @ phi.T - kernel.component(values[:, None], values))


@pytest.mark.parametrize(
    ("kernel", "method", "limit"),
    [
        ("chi2", "refined", 0.1635),
        ("chi2", "minimax", 0.033),
        ("js", "refined", 0.01857),
        ("js", "minimax", 0.0038),
    ],
)
def test_spec_has_the_error_that_the_design_states(kernel, method, limit):
    """Applied by the engine to {0..255}², zeros included."""
    design = design_map(kernel, 5, method=method)
    miss = kernel_miss(design, km.kernels.get(kernel))
    assert np.max(miss) <= design.max_error * 1.002
    assert np.max(miss) >= design.max_error * 0.93  # integers come close to the worst ratio
    assert design.max_error <= limit
    assert np.max(miss) <= design.certificate.bound
    np.testing.assert_allclose(np.sqrt(np.mean(miss**2)), design.rms, rtol=1e-2)
    np.testing.assert_allclose(
        evaluate(design.spec, INTEGERS[1:, None], xp=np), design(INTEGERS[1:]), atol=1e-11
    )


def test_rms_of_table_1():
    assert abs(design_map("chi2", 5).rms - 0.0808) < 2e-4


def test_least_size_for_an_error():
    design = design_map("chi2", max_error=0.01)
    assert design.n_columns == 8  # 7 columns have 0.0106
    assert design.max_error <= 0.01
    table = design_map("chi2", max_error=0.4, method="minimax")
    assert table.n_columns == 4  # 3 columns have 0.43


def test_impossible_error_carries_the_best(monkeypatch):
    monkeypatch.setattr(api, "LARGEST", 2)
    words = "up to 2 columns.*the best found has 2 columns"
    with pytest.raises(DesignError, match=words) as caught:
        design_map("chi2", max_error=1e-9, domain=(1, 20))
    assert caught.value.best.n_columns == 2
    assert caught.value.best.max_error > 1e-9


def test_indefinite_signature_is_refused_with_its_eigenvalue():
    with pytest.raises(NotPositiveDefiniteError, match=r"eigenvalue -.*Check the formula"):
        design_map(lambda lag: np.where(lag < 1, 1.0, 0.0), 5, domain=(0, 3))
    with pytest.raises(ValueError, match="not positive definite"):
        design_map(lambda lag: np.cos(lag) ** 3 - 0.5, 5, domain=(0, np.pi))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": (0, 1)}, "0 < m < b"),
        ({"domain": (-1, 1)}, "0 < m < b"),
        ({"domain": (5, 5)}, "m < b"),
        ({"domain": (5, 2)}, "m < b"),
        ({"domain": (1, np.inf)}, "finite"),
        ({"domain": "everything"}, "universal"),
        ({"n_components": 0}, ">= 1"),
        ({"n_components": 2.5}, "integer"),
        ({"n_components": None}, "either n_components= or max_error="),
        ({"max_error": 0.1}, "either n_components= or max_error="),
        ({"n_components": None, "max_error": -1.0}, "positive"),
        ({"method": "magic"}, "method must be one of"),
        ({"error": "squared"}, "error must be one of"),
        ({"domain": "universal", "error": "relative"}, "tail"),
        ({"domain": "universal", "method": "minimax"}, "range or a set"),
        ({"error": lambda lag: -lag}, ">= 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        design_map("chi2", **{"n_components": 3, **arguments})


def test_kernels_without_signature_and_broken_signatures():
    with pytest.raises(TypeError, match="no one-dimensional signature"):
        design_map(km.kernels.Additive(lambda x, y: x * y), 3)
    with pytest.raises(ValueError, match="same shape"):
        design_map(lambda lag: 1.0, 3, domain=(0, 1))
    with pytest.raises(ValueError, match="stay positive"):
        design_map(lambda lag: np.maximum(0, 1 - lag), 3, domain=(0, 2), error="relative")


def test_homogeneous_signature_by_function_equals_the_kernel():
    design = design_map(lambda lag: 1 / np.cosh(lag / 2), 4, homogeneous=True, cache=False)
    reference = design_map("chi2", 4, cache=False)
    np.testing.assert_allclose(design.frequencies, reference.frequencies, rtol=1e-6)
    assert design.homogeneous


def test_degree_of_homogeneity_and_scale():
    kernel = km.kernels.chi2.replace(gamma=0.5)
    design = design_map(kernel, 4, domain=(1, 100))
    values = np.geomspace(1, 100, 60)
    miss = kernel_miss(design, kernel, values)
    assert 0.9 * design.max_error <= np.max(miss) <= 1.001 * design.max_error
    scaled = design.make_spec(scale=7.0)
    phi = evaluate(scaled, 7 * values[:, None], xp=np)
    other = kernel.component(7 * values[:, None], 7 * values)
    assert np.max(np.abs(phi @ phi.T - other)) <= 7**0.5 * design.max_error * 1.001


def test_table_specs_scale():
    design = design_map("chi2", 3, method="minimax")
    values = np.geomspace(1, 255, 50)
    phi = evaluate(design.make_spec(scale=0.013), 0.013 * values[:, None], xp=np)
    np.testing.assert_allclose(phi, np.sqrt(0.013) * design(values), atol=1e-12)


@pytest.mark.parametrize("kernel", ["chi2", "js", "intersection"])
def test_bound_between_grid_points_holds_and_is_tight(kernel, seed):
    problem = build_problem(kernel, (1, 255))
    design = design_map(kernel, 4)
    proof = bound_between_grid(problem, (design.frequencies, design.weights))
    lags = np.random.default_rng(seed).uniform(0, problem.span, 20_000)
    miss = np.max(np.abs(problem.residual(lags, (design.frequencies, design.weights))))
    assert miss <= proof.found * (1 + 1e-9)
    assert proof.found <= proof.bound <= 1.01 * design.max_error


def test_cache_returns_the_same_design_and_survives_damage(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path))
    arguments = {"kernel": "chi2", "n_components": 4, "domain": (1, 77.7)}
    first = design_map(**arguments)
    files = list(tmp_path.glob("*.kmap"))
    assert len(files) == 1
    calls = []
    monkeypatch.setattr(api, "refined_design", lambda *a, **k: calls.append(1))
    second = design_map(**arguments)
    assert calls == []
    np.testing.assert_array_equal(first.frequencies, second.frequencies)
    assert second.certificate == first.certificate
    monkeypatch.undo()
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path))
    files[0].write_bytes(files[0].read_bytes()[:-9])  # cut short
    third = design_map(**arguments)
    np.testing.assert_array_equal(first.frequencies, third.frequencies)


def test_unwritable_cache_is_no_reason_to_fail(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("KERNELMAPS_CACHE", str(blocked))
    assert design_map("chi2", 2, domain=(1, 33.3)).n_columns == 2
