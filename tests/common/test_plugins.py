"""A kernel and a map from outside the library work with everything in it."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pytest
from contracts import check_feature_map, check_kernel

import kernelmaps as km
from kernelmaps._util.schema import array
from kernelmaps.engine import Spec
from kernelmaps.engine.families import waves_arrays
from kernelmaps.kernels import StationaryKernel, get, register
from kernelmaps.kernels.registry import KNOWN
from kernelmaps.maps.base import AdditiveMap


@dataclass(frozen=True)
class Mixture(StationaryKernel):
    """Mean of two Gaussians, one twice as wide as the other, feature by feature."""

    scale: float = 1.0
    name = "mixture"

    def signature(self, delta):
        squared = (np.asarray(delta, dtype=np.float64) / self.scale) ** 2
        return (np.exp(-squared / 2) + np.exp(-squared / 8)) / 2

    def frequencies(self, uniforms, d):
        from scipy.special import ndtri

        # Those below one half choose the wide Gaussian, the others the narrow one.
        wide = uniforms < 0.5
        within = np.maximum(2 * np.where(wide, uniforms, uniforms - 0.5), 2.0**-54)
        return ndtri(within) / np.where(wide, 2 * self.scale, self.scale)

    def second_moment(self, d):
        return d * (1 + 1 / 4) / 2 / self.scale**2


@pytest.fixture
def kernel():
    register(Mixture)
    yield "mixture"
    del KNOWN["mixture"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_a_kernel_from_outside_obeys_the_laws(kernel, seed):
    check_kernel(get(kernel), np.random.default_rng(seed).normal(size=(30, 3)))
    check_kernel(get(kernel).with_parameter(2.0), random_state=seed)


def test_maps_take_a_kernel_from_outside_by_name(kernel, data):
    X, _ = data
    fitted = km.RandomFourierMap(kernel, 4000, random_state=0).fit(X)
    assert isinstance(fitted.kernel_, Mixture)
    assert fitted.kernel_.scale != 1.0  # it follows the data
    # Hoeffding's bound for the largest of n² pairs, failing once in 10⁶ times
    assert km.kernel_error(fitted, X).max < 2 * np.sqrt(2 * np.log(2e6 * len(X) ** 2) / 4000)
    check_feature_map(lambda n: km.RandomFourierMap(Mixture(), n, random_state=0), sizes=(8, 4096))


def test_files_and_graphs_hold_it(kernel, data, tmp_path):
    X, _ = data
    fitted = km.RandomFourierMap(kernel, 16, random_state=0).fit(X)
    km.save(fitted, tmp_path / "map.kmap")
    loaded = km.load(tmp_path / "map.kmap")
    assert loaded.kernel_ == fitted.kernel_
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    runtime = pytest.importorskip("onnxruntime")
    to_onnx = pytest.importorskip("kernelmaps.export.onnx").to_onnx
    rows = X.astype(np.float32)
    graph = to_onnx(fitted, rows[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: rows})
    np.testing.assert_allclose(found, fitted.transform(rows), atol=1e-5)


@dataclass(eq=False, repr=False)
class OutsideMap(AdditiveMap):
    """Gauss-Legendre quadrature of the spectrum of a homogeneous kernel.

    κ(λ) = 2 ∫₀^∞ κ̂(ω) cos(ωλ) dω is cut off at ω = reach: each node is a cosine and a sine.
    """

    kernel: Any = "chi2"
    n_nodes: int = 4
    _: KW_ONLY
    reach: float = 2.0
    n_jobs: int | None = None

    _non_negative = True
    _state = AdditiveMap._state.extended(
        {"nodes_": array("f8", "nodes"), "weights_": array("f8", "nodes", low=0)}
    )

    def _learn(self, X):
        self.kernel_ = get(self.kernel)
        nodes, weights = np.polynomial.legendre.leggauss(self.n_nodes)
        self.nodes_ = self.reach * (nodes + 1) / 2
        self.weights_ = self.reach * weights * self.kernel_.spectrum(self.nodes_)
        waves = waves_arrays(self.nodes_, self.weights_)
        return Spec("log_waves", waves, {"gamma": 1.0, "signed": False})


@pytest.fixture
def outside(monkeypatch):
    """The map made known, for one test."""
    from kernelmaps.maps import base as registry
    from kernelmaps.maps import register

    monkeypatch.setattr(registry, "_FAMILIES", {})
    settings = [("", {}), ("wide", {"reach": 4.0})]
    yield register(OutsideMap, "homogeneous", size_name="n_nodes", variants=settings)
    registry.PLUGINS.pop("OutsideMap")


def test_a_map_from_outside_is_held_to_the_laws():
    """scikit-learn's checks are among them.

    With enough nodes, what is left of an error is the spectrum beyond the reach, times √(xy) ≤ 1
    for each of 12 features: 2 ∫_R^∞ sech(πω) dω ≤ 4 e^{−πR}/π.
    """
    tail = 12 * 4 * np.exp(-3 * np.pi) / np.pi
    check_feature_map(lambda n: OutsideMap("chi2", n, reach=3.0), sizes=(2, 32), exact=tail)


def test_files_graphs_and_the_command_line_know_a_map_from_outside(outside, tmp_path):
    from kernelmaps.cli.settings import parse_map

    assert parse_map("OutsideMap(n_nodes=3, reach=1.5)").reach == 1.5
    X = np.random.default_rng(0).random((20, 4))
    fitted = OutsideMap("chi2", 2, reach=1.5).fit(X)
    km.save(fitted, tmp_path / "map.kmap")
    loaded = km.load(tmp_path / "map.kmap")
    assert type(loaded) is OutsideMap
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.nodes_, fitted.nodes_)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    exported = pytest.importorskip("kernelmaps.export.onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert "OutsideMap" in exported.register()
    rows = X.astype(np.float32)
    graph = exported.to_onnx(fitted, rows[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: rows})
    np.testing.assert_allclose(found, fitted.transform(rows), atol=1e-5)


def test_what_is_no_map_is_not_registered(outside):
    from kernelmaps.maps import register

    with pytest.raises(TypeError, match="takes a class of maps"):
        register(int)
    with pytest.raises(ValueError, match="sort must be of"):
        register(OutsideMap, "quadratic")
    with pytest.raises(ValueError, match="no parameter 'n_bases'"):
        register(OutsideMap, "homogeneous", size_name="n_bases")
    with pytest.raises(ValueError, match="is taken by"):
        register(type("OutsideMap", (km.HomogeneousMap,), {}))
