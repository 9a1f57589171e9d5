"""Every kind of certificate under attack: no pair of values that can be found exceeds its bound."""

from functools import partial

import numpy as np
import pytest
from fitted_examples import map_of_the_plane

import kernelmaps as km
from benchmarks.error_search import largest_error
from benchmarks.paper_parts import eigen_table
from kernelmaps.design.api import make_solver
from kernelmaps.design.certify import curvature, even_derivative
from kernelmaps.design.cosines import harmonic_design
from kernelmaps.design.result import load_ready
from kernelmaps.engine import evaluate
from kernelmaps.kernels import Cauchy, Gaussian, Laplacian, Matern

KERNELS = ("chi2", "jensen_shannon", "intersection")
ERRORS = ("absolute", "relative", "signature")
METHODS = ("refined", "harmonic", "minimax", "eigen")
search = partial(largest_error, symmetric=True)
ROUNDING = 1e-12
"""Of the kernel's size: bounds of designs hold up to rounding, those of maps include it."""


def designed(kernel, n_columns, method="refined", **arguments):
    """A design without its lower bound, which takes longer than all else and is not at issue.

    Certificates hold for any cosines and any table: those of "harmonic" and "eigen" are not the
    best ones, and are found at once; the best ones are shipped for many domains.
    """
    searched = {"harmonic": "refined", "eigen": "minimax"}.get(method, method)
    solver = make_solver(kernel, method=searched, **arguments)
    if method == "eigen":
        table = eigen_table(solver.grid, n_columns)
        arrays = {"coefficients": table.coefficients, "nodes": table.nodes}
    elif method == "harmonic":
        arrays = dict(zip(("frequencies", "weights"), harmonic_design(solver.problem, n_columns)))
    else:
        shipped = load_ready().get(solver.key(n_columns))
        arrays = shipped[1] if shipped else solver.solve(n_columns)
    return solver.finish(arrays, 0.0)


def component_of(kernel):
    if hasattr(kernel, "component"):
        return kernel.component
    return lambda x, y: kernel.signature(np.abs(x - y))


def inner_products(phi, x, y):
    """⟨φ(x), φ(y)⟩ of pairs: every value is mapped once, in however many pairs it is."""
    values, place = np.unique(np.r_[x, y], return_inverse=True)
    mapped = phi(values)
    return np.einsum("ij,ij->i", mapped[place[: x.size]], mapped[place[x.size :]])


def design_error(design, kernel):
    """Error of a design in its own unit, from the formula of the spec that is applied to rows."""
    spec = design.make_spec(clip=False) if design.table is None else design.spec
    component = component_of(kernel)

    def error(x, y):
        exact = component(x, y)
        found = inner_products(lambda values: evaluate(spec, values[:, None], xp=np), x, y)
        miss = np.abs(found - exact)
        if design.error == "relative":
            return miss / exact
        return miss / np.sqrt(x * y) if design.error == "signature" and design.homogeneous else miss

    return error


def one_in_three():
    """Every two of a kernel, an error and a method meet."""
    return [
        (KERNELS[(e + m) % 3], ERRORS[e], METHODS[m]) for e in range(3) for m in range(len(METHODS))
    ]


@pytest.mark.parametrize(("name", "error", "method"), one_in_three())
def test_designs_of_homogeneous_kernels(name, error, method, seed):
    design = designed(name, 4, error=error, method=method)
    kernel, sure = km.kernels.get(name), design.certificate
    attack = design_error(design, kernel)
    found, _, _ = search(attack, 1, 255, random_state=seed)
    assert sure.proved
    assert found <= sure.bound * (1 + ROUNDING)
    assert 0.999 * sure.found <= found  # the attack is as good as the grids of the package
    assert sure.bound <= 1.05 * found
    if error == "absolute":
        below, _, _ = search(attack, 0, 255, random_state=seed)
        assert below * (1 - ROUNDING) <= sure.bound_to_zero <= 1.25 * below


@pytest.mark.parametrize("method", ["refined", "eigen"])
@pytest.mark.parametrize(
    "domain", [(1 / 1024, 1), (5, 80), np.array([1, 2, 3, 7, 30, 31])], ids=str
)
def test_designs_of_other_domains(domain, method, seed):
    design = designed("intersection", 3, domain=domain, method=method)
    attack = design_error(design, km.kernels.intersection)
    high = float(np.max(domain))
    below, _, _ = search(attack, 0, high, random_state=seed)
    assert below <= design.certificate.bound_to_zero * (1 + ROUNDING)
    if np.size(domain) > 2:
        x, y = (side.ravel() for side in np.meshgrid(*[domain.astype(float)] * 2))
        assert np.max(attack(x, y)) <= design.certificate.bound * (1 + ROUNDING)
    else:
        found, _, _ = search(attack, *map(float, domain), random_state=seed)
        assert found <= design.certificate.bound * (1 + ROUNDING)


@pytest.mark.parametrize("method", ["refined", "harmonic", "eigen"])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.7)], ids=repr)
def test_designs_of_stationary_kernels(kernel, method, seed):
    design = designed(kernel, 4, domain=(-1, 1), method=method)
    found, _, _ = search(design_error(design, kernel), -1, 1, random_state=seed)
    assert design.certificate.proved
    assert found <= design.certificate.bound <= 1.03 * found


@pytest.mark.parametrize("name", [*KERNELS, "hellinger"])
def test_universal_designs(name, seed):
    design = designed(name, 3, domain="universal")
    found, _, _ = search(design_error(design, km.kernels.get(name)), 0, 1, random_state=seed)
    assert found <= design.certificate.bound_to_zero <= 1.02 * found + 1e-9


MAPS = {
    "homogeneous": lambda k: km.HomogeneousMap(k, 5),
    "homogeneous of degree 1/2": lambda k: km.HomogeneousMap(k, 5, gamma=0.5),
    "homogeneous of degree 2": lambda k: km.HomogeneousMap(k, 7, gamma=2.0),
    "homogeneous even": lambda k: km.HomogeneousMap(k, 4),
    "designed": lambda k: km.DesignedMap(k, 4),
    "designed given": lambda k: km.DesignedMap(k, 3, domain=(1 / 64, 1.0)),
    "designed clipped": lambda k: km.DesignedMap(k, 4, out_of_domain="clip"),
    "designed universal": lambda k: km.DesignedMap(k, 5, domain="universal"),
    "designed table": lambda k: km.DesignedMap(k, 2, method="minimax", domain=(0.01, 1.0)),
    "anchors": lambda k: km.AnchorMap(k, 40, anchors="sqrt", n_neighbors=2),
    "anchors uniform": lambda k: km.AnchorMap(k, 12, anchors="uniform", n_neighbors=1, energy=1),
    "anchors kmeans": lambda k: km.AnchorMap(k, 9, anchors="kmeans", n_neighbors=2, energy=1),
    "anchors of given range": lambda k: km.AnchorMap(
        k, 16, n_neighbors=2, feature_range=(0.2, 1.0), out_of_domain="extrapolate"
    ),
}


def map_error(fitted, feature):
    """Error of one feature of a fitted map, from its own `transform`."""
    before = int(np.sum(fitted._columns_per_feature()[:feature]))
    own = slice(before, before + int(fitted._columns_per_feature()[feature]))

    def rows(values):
        X = np.zeros((values.size, fitted.n_features_in_))
        X[:, feature] = values
        return fitted.transform(X)[:, own]

    def error(x, y):
        return np.abs(inner_products(rows, x, y) - fitted.kernel_.component(x, y))

    return error


def check_map(fitted, high, seed):
    """Attack on [0, b] for the bound, and on the fitted range for the inner one."""
    sure = fitted.certificate_
    attack = map_error(fitted, 1)
    found, x, y = search(attack, 0.0, high, random_state=seed)
    assert found <= sure.bound, f"{found:.4g} at ({x:.4g}, {y:.4g}), certified {sure.bound:.4g}"
    return attack


def in_turns():
    """Every map once, every kernel with maps of every sort."""
    names = [KERNELS[(k + 1) % 3] for k in range(len(MAPS))]
    return [
        pytest.param(name, MAPS[make], id=f"{name}-{make}")
        for name, make in zip(names, MAPS, strict=True)
    ]


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize(("name", "make"), in_turns())
def test_fitted_maps_down_to_zero(name, make, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.dirichlet(np.full(3, 0.6), 80), 3)
    X[0], X[1] = (0, 1, 0), (1, 0, 0)
    fitted = make(name).fit(X)
    attack = check_map(fitted, 1.0, seed)
    inner = fitted.certificate_.inner
    if inner is not None:
        assert inner.bound < fitted.certificate_.bound
        low = fitted.range_[0] if hasattr(fitted, "range_") else fitted.domain_[0][1]
        found, _, _ = search(attack, float(low), 1.0, random_state=seed)
        assert found <= inner.bound


@pytest.mark.parametrize("make", [km.ChebyshevMap, km.SeriesMap])
@pytest.mark.parametrize("scale", ["auto", 1.0, 7.0])
def test_series_down_to_zero(make, scale, seed):
    X = np.random.default_rng(seed).dirichlet(np.full(3, 0.6), 80)
    X[0] = (0, 1, 0)
    check_map(make(4, scale=scale).fit(X), 1.0, seed)


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("kernel", [Gaussian(0.5), lambda lag: 1 / (1 + lag**2)], ids=["g", "own"])
def test_stationary_maps(kernel, seed):
    X = np.random.default_rng(seed).uniform(2, 3, (50, 2))
    fitted = km.DesignedMap(kernel, 4).fit(X)
    signature = kernel.signature if isinstance(kernel, Gaussian) else kernel
    own = fitted._columns_per_feature()[0]

    def rows(values):
        return fitted.transform(np.c_[values, np.full_like(values, X[0, 1])])[:, :own]

    def error(x, y):
        return np.abs(inner_products(rows, x, y) - signature(np.abs(x - y)))

    low, high = X[:, 0].min(), X[:, 0].max()
    assert search(error, low, high, random_state=seed)[0] <= fitted.certificate_.bound


KNOWN_CURVATURE = [
    *(Gaussian(sigma) for sigma in (0.002, 0.01, 1.0)),
    *(Matern(nu) for nu in (0.3, 0.85, 1.0, 1.2, 1.5, 2.0, 3.5)),
    Cauchy(0.05),
]


@pytest.mark.parametrize("kernel", KNOWN_CURVATURE, ids=repr)
def test_bounds_on_derivatives_are_never_below_them(kernel):
    """Those of narrow kernels are seen by small steps only, those of Matérn kernels may not exist.

    The second one is minus the second moment of the spectrum, infinite for ν ≤ 1; the fourth one is
    infinite for ν ≤ 2.
    """
    value, sure, _ = curvature(kernel.signature, 1.0)
    assert not sure or value >= kernel.second_moment(1)
    assert sure or isinstance(kernel, Matern)
    fourth = even_derivative(kernel.signature, 4, 0.04, 1e-2)
    if isinstance(kernel, Matern) and kernel.nu <= 2:
        assert np.isinf(fourth)
    if isinstance(kernel, Gaussian) and kernel.sigma > 0.002:
        assert fourth == pytest.approx(3 / kernel.sigma**4, rel=1e-2)


def test_tables_far_from_zero_count_the_rounding_of_values(seed):
    low, high = 1e6, 1e6 + 0.01
    domain = {"domain": (low, high), "method": "minimax"}
    fitted = km.DesignedMap(Matern(2.5, 0.5), 4, **domain).fit([[low], [high]])
    x = np.sort(np.random.default_rng(seed).uniform(low, high, 400))
    phi = evaluate(fitted.spec_, x[:, None], xp=np)
    error = np.abs(phi @ phi.T - fitted.kernel_.signature(x[:, None] - x))
    assert np.max(error) <= fitted.certificate_.bound < 1e-8


def test_joint_maps(seed):
    rng = np.random.default_rng(seed)
    fitted = map_of_the_plane().fit(rng.random((20, 2)))
    points = np.concatenate([rng.random((600, 2)), [[0, 0], [0, 1], [1, 0], [1, 1]]])
    points = np.concatenate([points, np.clip(points + rng.normal(0, 1e-3, points.shape), 0, 1)])
    phi = fitted.transform(points)
    assert np.max(np.abs(phi @ phi.T - Gaussian(1.0)(points))) <= fitted.certificate_.bound
