"""Anchor maps: rates, exactness on the anchors, optimal placement, codes, and what they refuse."""

import ckmeans
import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.design import anchors as placing
from kernelmaps.design.anchors import square_root
from kernelmaps.engine import record_paths
from kernelmaps.engine.reference import evaluate
from kernelmaps.exceptions import OutOfDomainWarning

NAMED = ["chi2", "intersection", "jensen_shannon", "hellinger"]


def rows(seed, n=200, d=4):
    return np.random.default_rng(seed).random((n, d))


def naive(feature_map, X, k, linear=False):
    """Eqs. 4 and 5 as they are written: sort the anchors by distance, combine their rows."""
    columns = []
    for d, anchors in enumerate(feature_map.anchors_):
        Q = square_root(
            feature_map.kernel_.component, anchors, energy=feature_map.energy, rank=feature_map.rank
        ).rows
        for_rows = []
        for x in X[:, d]:
            near = np.argsort(np.abs(x - anchors), kind="stable")[:k]
            if linear:
                i = int(np.clip(np.searchsorted(anchors, x, side="right") - 1, 0, len(anchors) - 2))
                near = np.array([i, i + 1])
                u = np.clip((x - anchors[i]) / (anchors[i + 1] - anchors[i]), 0, 1)
                for_rows.append((1 - u) * Q[i] + u * Q[i + 1])
            else:
                for_rows.append(Q[near].mean(axis=0))
        columns.append(np.array(for_rows))
    return np.concatenate(columns, axis=1)


# Truth


@pytest.mark.compiled
@pytest.mark.parametrize("anchors", ["uniform", "sqrt", "kmeans"])
@pytest.mark.parametrize(("k", "weights"), [(1, "auto"), (2, "auto"), (2, "uniform"), (5, "auto")])
def test_equals_the_papers_definition(anchors, k, weights, seed):
    X = rows(seed, 60, 3)
    feature_map = km.AnchorMap(
        anchors=anchors, n_anchors=9, n_neighbors=k, weights=weights, rank=4
    ).fit(X)
    with record_paths() as paths:
        Z = feature_map.transform(X)
    assert paths == [f"table:{'affine' if anchors == 'uniform' else 'edges'}:dense"]
    np.testing.assert_allclose(
        Z, naive(feature_map, X, k, linear=k == 2 and weights == "auto"), atol=1e-13
    )


@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize("k", [1, 2])
def test_full_energy_reproduces_the_kernel_on_the_anchors(kernel, k):
    anchors = np.linspace(0, 1, 40)
    feature_map = km.AnchorMap(kernel, anchors=anchors, n_neighbors=k, energy=1)
    feature_map.fit(anchors[:, None])
    Z = feature_map.transform(anchors[:, None])
    exact = getattr(km.kernels, kernel)(anchors[:, None])
    np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-10)


@pytest.mark.parametrize("kernel", NAMED)
def test_rates(kernel):
    """Rms error O(h) for look-ups; O(h²) for interpolation of kernels without a kink.

    The intersection has a kink of jump 1 on the diagonal: error O(h) on a strip of width O(h),
    rms O(h^1.5). Hellinger and Jensen-Shannon are smooth away from 0.
    """
    X = np.linspace(0.1, 1, 997)[:, None]  # no multiple of the anchors' step
    order = {"intersection": 1.5}.get(kernel, 2.0)

    def rms(n, k):
        fitted = km.AnchorMap(kernel, n, n_neighbors=k, energy=1, feature_range=(0.1, 1)).fit(X)
        return km.kernel_error(fitted, X).rms

    for k, expected in ((1, 1.0), (2, order)):
        measured = np.log2(rms(21, k) / rms(81, k)) / 2
        assert abs(measured - expected) < 0.12, (k, measured)


@pytest.mark.parametrize("kernel", NAMED)
def test_the_mean_signed_error_is_of_second_order(kernel):
    """Theorem 1(a): values spread evenly around their anchors, whose errors cancel in the mean.

    The mean of min(x, y) over a bin of width h is that of its centre less h/6, or h/6 (1 − 1/s²)
    for s values in the middle of s parts; pairs of different bins have no error in the mean.
    """
    parts = 8

    def mean_error(n):
        anchors, X = (0.1 + 0.9 * (np.arange(m) + 0.5) / m for m in (n, parts * n))
        fitted = km.AnchorMap(kernel, n, anchors=anchors, energy=1).fit(X[:, None])
        Z = fitted.transform(X[:, None]).mean(axis=0)
        return fitted.kernel_(X[:, None]).mean() - Z @ Z

    assert np.log2(mean_error(20) / mean_error(80)) / 2 == pytest.approx(2, abs=0.05)
    if kernel == "intersection":
        assert mean_error(20) == pytest.approx(-0.9 / 6 / 20**2 * (1 - 1 / parts**2), rel=1e-9)


def test_rank_and_energy_are_kept():
    X = rows(0)
    assert km.AnchorMap("intersection", rank=7).fit(X).ranks_.tolist() == [7] * 4
    anchors = np.linspace(0, 1, 60)
    exact = km.kernels.intersection(anchors[:, None])
    root = square_root(km.kernels.intersection.component, anchors, energy=0.97)
    assert np.sum(root.rows**2) / np.trace(exact) >= 0.97
    left = exact - root.rows @ root.rows.T
    assert np.linalg.eigvalsh(left)[0] > -1e-12  # never above the kernel
    assert np.abs(left).max() == pytest.approx(root.left_out)
    fewest = square_root(km.kernels.intersection.component, anchors, energy=0.97).rows.shape[1]
    assert np.sum(np.linalg.eigvalsh(exact)[::-1][: fewest - 1]) < 0.97 * np.trace(exact)


def test_any_mercer_kernel():
    """A spline kernel (Wahba's cubic one) and a stationary one, on values of both signs."""

    def cubic(x, y):
        low, high = np.minimum(x, y), np.maximum(x, y)
        return 1 + x * y + low**2 * (3 * high - low) / 6

    def gaussian(x, y):
        return np.exp(-((x - y) ** 2))

    X = rows(1)
    for component, shift in ((cubic, 0), (gaussian, 0.5)):
        feature_map = km.AnchorMap(component, 60, n_neighbors=2, energy=1).fit(X - shift)
        assert km.kernel_error(feature_map, X - shift).relative < 1e-3
        assert feature_map.certificate_ is None  # nothing is known of its growth


# Placing


def test_kmeans_is_the_exact_optimum(seed):
    """The same clusters as an independent library, with repeated values and without."""
    rng = np.random.default_rng(seed)
    for x in (
        rng.standard_normal(300),
        rng.integers(0, 40, 500).astype(float),
        1e6 + rng.random(99),
    ):
        values, counts = np.unique(x, return_counts=True)
        for n in (1, 2, 7, 25):
            actual = placing.kmeans(values, counts, n)
            cost = np.min((x[:, None] - actual) ** 2, axis=1).sum()
            best = sum(np.sum((c - c.mean()) ** 2) for c in ckmeans.ckmeans(x, n))
            assert len(actual) == n
            assert cost <= best * (1 + 1e-9) + 1e-12


def squared_error(x, anchors):
    return np.min((x[:, None] - anchors) ** 2, axis=1).sum()


@pytest.mark.parametrize("far", [-1e12, -1e8, 1e8, 1e12])
def test_kmeans_keeps_its_optimum_beside_an_outlier(seed, far):
    """An outlier is a cluster of its own, and the others are clustered as without it."""
    x = np.random.default_rng(seed).standard_normal(400)
    x = np.round(x, 2)
    alone = placing.kmeans(*np.unique(x, return_counts=True), 7)
    actual = placing.kmeans(*np.unique([far, *x], return_counts=True), 8)
    assert far in actual
    np.testing.assert_allclose(squared_error(x, actual), squared_error(x, alone), rtol=1e-6)


def test_spaced_anchors():
    assert placing.space_by_roots(0, 1, 3).tolist() == [0, 0.25, 1]
    np.testing.assert_allclose(placing.space_by_roots(1, 4, 3), [1, 2.25, 4])


def test_features_have_anchors_and_ranks_of_their_own(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(80), rng.integers(0, 3, 80), np.full(80, 0.5), np.zeros(80)])
    feature_map = km.AnchorMap("intersection", 12, anchors="kmeans", energy=1).fit(X)
    assert [len(a) for a in feature_map.anchors_] == [12, 3, 1, 1]
    assert feature_map.ranks_.tolist() == [12, 2, 1, 1]
    names = feature_map.get_feature_names_out()
    assert len(names) == 16
    assert names[-1] == "x3_intersection_0"
    Z = feature_map.transform(X)
    np.testing.assert_allclose(Z, evaluate(feature_map.spec_, X), atol=1e-14)
    # Distinct values that are all anchors, and constants, are exact.
    np.testing.assert_allclose(
        Z[:, 12:] @ Z[:, 12:].T, km.kernels.intersection(X[:, 1:]), atol=1e-12
    )


# Codes


@pytest.mark.parametrize(
    ("anchors", "k", "dtype"),
    [  # every pair of two of them
        ("uniform", 1, np.float32),
        ("kmeans", 1, np.float64),
        ("uniform", 1, np.uint8),
        ("kmeans", 2, np.float32),
        ("uniform", 2, np.float64),
        ("kmeans", 2, np.uint8),
        ("uniform", 3, np.float32),
        ("kmeans", 3, np.float64),
        ("kmeans", 3, np.uint8),
    ],
)
def test_codes_stand_for_the_map(anchors, k, dtype, seed):
    X = (rows(seed) * 255).astype(dtype)
    feature_map = km.AnchorMap(anchors=anchors, n_neighbors=k, n_anchors=30).fit(X)
    codes = feature_map.encode(X)
    assert codes.dtype == (np.uint16 if k == 2 else np.uint8)
    assert codes.nbytes == X.size * (2 if k == 2 else 1)
    # Exact, but for float32 and (k = 2) half a unit of the weight's byte times the step.
    steps = max(np.abs(np.diff(Q, axis=0)).max() for Q in _rows_of(feature_map)) if k == 2 else 0
    Z = evaluate(feature_map.spec_, np.float64(X))
    np.testing.assert_allclose(
        feature_map.decode(codes), Z, atol=steps / 510 + 1e-6 * np.abs(Z).max()
    )


def _rows_of(feature_map):
    return [square_root(feature_map.kernel_.component, a).rows for a in feature_map.anchors_]


@pytest.mark.parametrize("k", [1, 2])
def test_codes_of_csr_rows_are_those_of_dense_ones(k, seed):
    X = rows(seed) * (np.random.default_rng(seed).random((200, 4)) < 0.3)
    feature_map = km.AnchorMap(n_neighbors=k).fit(X)
    codes = feature_map.encode(sparse.csr_matrix(X))
    np.testing.assert_array_equal(codes.values, feature_map.encode(X).values)


def test_anchor_at_zero_keeps_csr_sparse(seed):
    rng = np.random.default_rng(seed)
    S = sparse.csr_matrix(rows(seed) * (rng.random((200, 4)) < 0.6))
    feature_map = km.AnchorMap(n_anchors=12, feature_range=(0, None)).fit(S)
    assert all(a[0] == 0 and len(a) == 12 for a in feature_map.anchors_)
    assert sparse.issparse(feature_map.transform(S))
    assert not sparse.issparse(km.AnchorMap(anchors="kmeans", n_anchors=12).fit_transform(S))


# Algorithm 1 in one estimator


@pytest.mark.compiled
@pytest.mark.parametrize(("kernel", "k"), [*((name, 1) for name in NAMED), ("chi2", 2)])
def test_models_train_and_predict_on_codes(kernel, k):
    """Training on codes solves the problem that φ(X) poses, without forming φ(X).

    The solver is given: to choose one, κ is computed on a sample of rows. Its own primal and dual
    values bound the distance to the optimum; that the primal is the one of φ(X) = transform(X) is
    computed here. Two classes and one column, so that all kernels share what is compiled.
    """
    data = km.datasets.load("digits")
    kept = data.y_train < 2
    X, y = np.float32(data.X_train[kept]), data.y_train[kept]
    options = {"n_neighbors": k, "rank": 1, "out_of_domain": "extrapolate", "n_jobs": 1}
    feature_map = km.AnchorMap(kernel, **options).fit(X)
    codes = feature_map.encode(X)
    C = 1 / float(feature_map.kernel_.diag(X).mean())
    with record_paths() as paths:
        model = km.AdditiveSVC(feature_map, C=C, solver="dual", random_state=0, n_jobs=1)
        scores = model.fit(codes, y).decision_function(codes)
    assert not any(path.startswith(("table:", "formula:")) for path in paths)
    np.testing.assert_allclose(model.decision_function(X), scores)
    assert model.score(data.X_test[data.y_test < 2], data.y_test[data.y_test < 2]) > 0.98
    weights = np.float64(model.predictor_.weights.ravel())
    from_phi = feature_map.transform(X) @ weights + model.predictor_.offset
    rounding = 1e-4 if k == 1 else 2e-2  # float32; a weight's byte
    np.testing.assert_allclose(scores, from_phi, atol=rounding * np.abs(from_phi).max())
    miss = np.maximum(0, 1 - (2 * y - 1) * from_phi)
    primal = 0.5 * np.sum(weights**2) + C * np.sum(miss**2)
    np.testing.assert_allclose(model.objective_, primal, rtol=5 * rounding)
    assert (model.duality_gap_ <= model.tol * model.objective_).all()


# Certificate


@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("anchors", ["uniform", "kmeans"])
def test_certificate_bounds_every_error(kernel, k, anchors, seed):
    X = rows(seed, 60, 2) * [1, 3]
    feature_map = km.AnchorMap(kernel, 15, anchors=anchors, n_neighbors=k, energy=0.999).fit(X)
    whole = feature_map.certificate_
    certificate = whole if whole.inner is None else whole.inner  # on the fitted range
    assert certificate.bound <= whole.bound
    worst = 0.0
    for d in range(2):
        grid = np.linspace(X[:, d].min(), X[:, d].max(), 501)
        Z = feature_map.transform(np.repeat(grid[:, None], 2, axis=1).clip(*feature_map.domain_))
        columns = slice(*np.cumsum([0, *feature_map.ranks_])[d : d + 2])
        gap = Z[:, columns] @ Z[:, columns].T - feature_map.kernel_.component(grid[:, None], grid)
        worst = max(worst, np.abs(gap).max())
    assert worst <= certificate.bound
    assert certificate.measured <= certificate.bound
    assert certificate.bound < 2 * worst  # and it is no empty promise
    if k == 1:  # a look-up's bound is attained, and never above the theorem's
        assert certificate.measured == pytest.approx(certificate.bound)
        assert certificate.bound <= certificate.theorem_bound * (1 + 1e-12)


# Few values, and those outside the range


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_neighbors", [1, 2])
def test_few_values_are_the_anchors_by_default(make, n_neighbors):
    """Each value is an anchor (the trivial cover of section 3.2), and the map is exact."""
    rng = np.random.default_rng(0)
    binary, chess = rng.integers(0, 2, (600, 2)), rng.integers(1, 9, (600, 2))
    X = make(np.column_stack([binary, chess, rng.random((600, 1))]).astype(np.float64))
    feature_map = km.AnchorMap("chi2", 12, n_neighbors=n_neighbors, energy=1).fit(X)
    exact = feature_map.anchors_[:4]
    assert [a.tolist() for a in exact] == 2 * [[0, 1]] + 2 * [list(range(1, 9))]
    assert feature_map.ranks_[:4].tolist() == [1, 1, 8, 8]
    assert len(feature_map.anchors_[4]) == 12
    Z, columns = feature_map.transform(X[:, :]), X[:, :4]
    Z = Z.toarray() if sparse.issparse(Z) else Z
    dense = columns.toarray() if sparse.issparse(columns) else columns
    np.testing.assert_allclose(Z[:, :18] @ Z[:, :18].T, km.kernels.chi2(dense), atol=1e-12)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon", "hellinger"])
def test_features_of_up_to_ten_values_are_exact_whatever_the_energy(kernel):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, levels, 400) for levels in (2, 8, 10, 16)]).astype(float)
    for energy in (0.5, 0.99):
        feature_map = km.AnchorMap(kernel, energy=energy).fit(X)
        assert feature_map.ranks_[0] == 1  # 0 takes no column
        assert (feature_map.ranks_[:3] <= [1, 7, 9]).all()
        Z, columns = feature_map.transform(X), feature_map.ranks_[:3].sum()
        exact = km.kernels.get(kernel)(X[:, :3])
        np.testing.assert_allclose(Z[:, :columns] @ Z[:, :columns].T, exact, atol=1e-12)
        spectrum = np.linalg.eigvalsh(km.kernels.get(kernel)(feature_map.anchors_[3][:, None]))
        share = spectrum[::-1].cumsum() / spectrum.sum()
        assert feature_map.ranks_[3] == 1 + np.searchsorted(share, energy)
    assert km.AnchorMap(kernel, rank=1).fit(X).ranks_.tolist() == [1] * 4


def test_few_values_leave_a_given_range_covered_and_few_rows_spaced():
    X = np.repeat([1.0, 2.0, 4.0], 20)[:, None]
    assert km.AnchorMap(feature_range=(0, 3)).fit(X).anchors_[0].tolist() == [0, 1, 2, 3]
    # Averages of three anchors would not tell three values apart.
    assert len(km.AnchorMap(n_neighbors=3).fit(X).anchors_[0]) == 40
    # As many values as rows are not few values.
    assert len(km.AnchorMap().fit(X[::20]).anchors_[0]) == 40


@pytest.mark.parametrize("anchors", ["uniform", "sqrt", "kmeans"])
@pytest.mark.parametrize("k", [1, 2])
def test_constant_columns_have_one_exact_anchor(anchors, k):
    X = np.column_stack([np.linspace(0, 1, 30), np.full(30, 0.7), np.zeros(30)])
    feature_map = km.AnchorMap("chi2", 10, anchors=anchors, n_neighbors=k).fit(X)
    assert feature_map.anchors_[1].tolist() == [0.7]
    assert feature_map.ranks_[1:].tolist() == [1, 1]
    Z = feature_map.transform(X)
    np.testing.assert_allclose(Z[:, -2] ** 2, 0.7)
    assert not Z[:, -1].any()
    with pytest.warns(OutOfDomainWarning, match="column 1"):
        assert (feature_map.transform(X + np.array([0, 0.1, 0])) == Z).all()


def test_rounding_to_float32_leaves_no_domain(recwarn):
    """The largest value of a column, rounded up to float32, is still that column's largest."""
    X = rows(0)
    feature_map = km.AnchorMap().fit(X)
    feature_map.transform(X.astype(np.float32))
    feature_map.encode(X.astype(np.float32))
    assert (np.float64(X.astype(np.float32)) > feature_map.domain_[1]).any()
    assert not recwarn.list


def test_the_default_anchors_follow_the_kernel(seed):
    """Even in √x where the kernel changes fastest next to 0, even in x elsewhere."""
    X = np.random.default_rng(seed).dirichlet(np.full(50, 0.3), size=100)
    own, roots, even = (
        km.AnchorMap("chi2", 40, **options).fit(X)
        for options in ({}, {"anchors": "sqrt"}, {"anchors": "uniform"})
    )
    assert own.spec_.hash == roots.spec_.hash
    # The kernel is homogeneous: errors of small values, most of a histogram, are what counts.
    assert km.kernel_error(own, X).rms < 0.3 * km.kernel_error(even, X).rms
    signed = km.AnchorMap(lambda x, y: np.exp(-((x - y) ** 2)), 9).fit(X - 0.5)
    np.testing.assert_allclose(np.diff(signed.anchors_[0], 2), 0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_values_outside_the_range(k):
    X = rows(0)
    outside = X.copy()
    outside[3, 1] = 7.0
    clipped = X.copy()
    clipped[3, 1] = X[:, 1].max()
    feature_map = km.AnchorMap(n_neighbors=k).fit(X)
    with pytest.warns(OutOfDomainWarning, match="column 1 reaches"):
        Z = feature_map.transform(outside)
    assert (feature_map.transform(clipped) == Z).all()
    with pytest.warns(OutOfDomainWarning):
        codes = km.AnchorMap(n_neighbors=k).fit(X).encode(outside)
    assert (codes.values == feature_map.encode(clipped).values).all()
    with pytest.raises(ValueError, match="outside the fitted domain; column 1"):
        km.AnchorMap(n_neighbors=k, out_of_domain="raise").fit(X).encode(outside)


@pytest.mark.parametrize("k", [1, 2])
def test_anchors_go_on_beyond_the_range_where_the_map_extrapolates(k, recwarn):
    """Up to twice the largest value errors are those of anchors, not of what is clipped."""
    X = rows(0)
    ends = {"low": X.min(axis=0), "high": X.max(axis=0)}
    options = {"n_neighbors": k, "energy": 1, "n_anchors": 200}
    wide = km.AnchorMap("intersection", out_of_domain="extrapolate", **options).fit(X)
    far = 1.9 * ends["high"][None, :]
    exact = km.kernels.intersection(np.vstack([X, far]))
    Z = wide.transform(np.vstack([X, far]))
    np.testing.assert_allclose(wide.domain_[1], 2 * ends["high"] - ends["low"])
    # A value is at most half a step of √x from its anchor; the kernel's gradient is 1.
    steps = [np.diff(anchors).max() for anchors in wide.anchors_]
    assert np.abs(Z @ Z.T - exact).max() <= np.sum(steps)
    beyond = 3 * ends["high"][None, :]
    np.testing.assert_array_equal(wide.transform(beyond), wide.transform(2 * beyond))
    assert not recwarn.list
