"""What maps refuse, and what the messages say: one table for all of them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler

import kernelmaps as km
from kernelmaps.design import anchors as placing
from kernelmaps.design.anchors import square_root
from kernelmaps.kernels import (
    Additive,
    Cauchy,
    Exponential,
    Gaussian,
    Matern,
    StationaryKernel,
    chi2,
    get,
)

X = np.random.default_rng(0).random((60, 4))
PLANE = X[:9, :2]
FEW = [[0.5, 0.5], [1, 0]]


def gauss(x, y):
    return np.exp(-((x - y) ** 2))


def anchors(**options):
    return km.AnchorMap(**options)


def exponential(**options):
    return km.ExponentialMap(**({"n_components": 50} | options))


def compressive(**options):
    return km.CompressiveFourierMap(**({"n_measurements": 2, "n_components": 4} | options))


def joint(**options):
    return km.JointDesignedMap(**({"n_components": 5} | options))


class WrongShape(Gaussian):
    def sample_frequencies(self, n, d, rng):
        return np.zeros((d, n))


class NoFrequencies(Gaussian):
    def frequencies(self, uniforms, d):
        return np.full((len(uniforms), d), np.nan)

    def sample_frequencies(self, n, d, rng):
        return np.full((n, d), np.nan)

    def radius_quantile(self, probability, d):
        return np.full(len(probability), np.nan)


N_COMPONENTS, OF_SIGMA = "n_components must be an integer >= 1", "sigma must be a positive number"
NO_PERIOD, SPACE = "period must be a positive number or 'auto'", "one for each of the 4 features"
OF_GAMMA, SCALE = "gamma must be a positive number", "scale must be a positive number or one of"
RANGE, OF_ENERGY = r"feature_range must be \(low, high\)", r"energy must be in \(0, 1\]"
PARAMETERS = [
    *((km.HomogeneousMap(n_components=n), N_COMPONENTS) for n in (0, 2.5)),
    (km.HomogeneousMap("chi3"), "unknown kernel 'chi3'.*Known kernels: chi2"),
    (km.HomogeneousMap(Gaussian()), "needs a homogeneous kernel with a signature and a spectrum"),
    (km.HomogeneousMap(Additive(np.minimum)), "AnchorMap for any additive kernel"),
    *((km.HomogeneousMap(period=period), NO_PERIOD) for period in (-1.0, "long", None)),
    *((km.HomogeneousMap(gamma=gamma), OF_GAMMA) for gamma in (0.0, "1", np.inf)),
    (km.HomogeneousMap(chi2.replace(gamma=0.5), gamma=2.0), "contradicts the gamma=0.5"),
    *((kind(n_components="many"), "must be an integer or 'auto', got 'many'")
      for kind in (km.HomogeneousMap, km.DesignedMap)),
    (km.DesignedMap(n_components=0), "n_components"),
    (km.DesignedMap(domain="all"), "'data', 'universal'"),
    (km.DesignedMap(domain=(0, 1)), "0 < m < b"),
    (km.DesignedMap(method="magic"), "one of"),
    (km.DesignedMap(method="minimax", out_of_domain="extrapolate"), "ends with its domain"),
    (km.DesignedMap(out_of_domain="wrap"), "out_of_domain"),
    (km.DesignedMap(Additive(lambda x, y: x * y)), "AnchorMap"),
    (km.DesignedMap(Gaussian(1.0), signed=True), "homogeneous"),
    (km.DesignedMap(Gaussian(1.0), domain=[(0, 1), (0, 1)]), "JointDesignedMap"),
    *((km.DesignedMap(own), "a kernel is a name, a kernel object or a function")
      for own in (int, StationaryKernel)),
    *((km.ChebyshevMap(n), f"{N_COMPONENTS}, got {n}") for n in (0, 2.5)),
    *((km.ChebyshevMap(scale=s), f"{SCALE} .*, got {s!r}") for s in (0.0, np.inf, "best")),
    (km.SplineMap(n_bases=3), "n_bases must be larger than degree"),
    (km.SplineMap(degree=0), "degree must be an integer >= 1"),
    (km.SplineMap(order=3), "order must be one of 0, 1, 2, got 3"),
    *((km.SplineMap(domain=domain), "domain must be") for domain in ("range", (1, 0))),
    (km.SplineMap(zero_at_zero="yes"), "zero_at_zero must be"),
    (km.SplineMap(out_of_domain="wrap"), "out_of_domain must be one of"),
    (km.SplineMap(sparse_output=True), "sparse_output=True needs order=0"),
    (km.TrigonometricMap(order=0), "order must be one of 1, 2"),
    (km.TrigonometricMap(n_bases=0), "n_bases must be an integer >= 1"),
    (km.TrigonometricMap(periodic="yes"), "periodic must be True or False, got 'yes'"),
    (km.TrigonometricMap(periodic=True, zero_at_zero=True), "exclude each other; leave out"),
    (km.HermiteMap(order=3), "order must be one of 1, 2"),
    (km.HermiteMap(n_bases=13), "n_bases must be at most 12"),
    (anchors(n_neighbors=41), "n_neighbors must be at most the number of anchors, 40, got 41"),
    (anchors(n_neighbors=3, anchors=[0.1, 0.2]), "at most the number of anchors, 2, got 3"),
    (anchors(n_anchors=70000), "at most 4096"),
    (anchors(n_anchors=0), "n_anchors must be an integer >= 1"),
    (anchors(weights="linear", n_neighbors=3), "must be 2 for weights='linear', got 3"),
    (anchors(weights="gauss"), "weights must be one of"),
    (anchors(rank=0), "rank must be an integer >= 1"),
    *((anchors(energy=energy), OF_ENERGY) for energy in (0.0, 1.5, "all", None)),
    (anchors(anchors="even"), "anchors must be one of"),
    (anchors(anchors=[0.1, 0.1, 0.5]), "distinct numbers"),
    *((anchors(anchors=own), "finite numbers of shape")
      for own in ([0.1, np.nan], [], [[0.1, 0.2], 0.3])),
    *((anchors(anchors=rows), f"anchors must be 4 rows, .*, got '{len(rows)} rows'")
      for rows in ([[0.1, 0.2]], [[0.1, 0.2], [0.3], [0.4]])),
    (anchors(anchors=np.linspace(0, 1, 4097)), "n_anchors must be at most 4096.*, got 4097"),
    (anchors(anchors=[-1.0, 0.0, 1.0]), "there is -1 in the anchors of column 0"),
    (anchors(feature_range=(-1, 1)), "there is -1 in the anchors of column 0"),
    (anchors(feature_range=(1, 0)), "finite low <= high"),
    (anchors(feature_range=(0, [1, 2, 3])), SPACE),
    *((anchors(feature_range=own), RANGE) for own in ((0,), 3, ("low", 1))),
    (anchors(out_of_domain="ignore"), "out_of_domain must be one of"),
    (anchors(kernel="gaussian"), "needs an additive kernel"),
    (anchors(kernel=lambda x, y: x * np.ones_like(y)), r"not symmetric: c\(.*\) = .*, but c\("),
    (anchors(kernel=lambda x, y: np.abs(x - y)), r"most negative eigenvalue .* -\d"),
    (anchors(kernel=lambda x, y: np.nan * (x + y)), "component is nan at the anchors"),
    (anchors(kernel=["chi2", gauss, gauss]), "kernels for 3 features"),
    (anchors(kernel=["chi2", *[gauss] * 3], anchors=[-1.0, 0, 1]), "there is -1 in the anchors of"),
    *((km.RandomFourierMap(sigma=sigma), f"RandomFourierMap: {OF_SIGMA}")
      for sigma in (0, -1.0, "width", np.nan, True)),
    (km.RandomFourierMap(Gaussian(2.0), sigma=1.0), "carries its own scale"),
    *((km.RandomFourierMap(kernel, sampling=sampling), "only isotropic kernels")
      for kernel in ("laplacian", "cauchy") for sampling in ("orthogonal", "structured")),
    (km.RandomFourierMap(n_components=7, form="paired"), "must be even for form='paired'.*, got 7"),
    (km.RandomFourierMap(sampling="halton"), "sampling must be one of"),
    (km.RandomFourierMap(form="sine"), "form must be one of"),
    (km.RandomFourierMap(n_components=0), N_COMPONENTS),
    (km.RandomFourierMap("chi2"), "no length scale"),
    (km.RandomFourierMap(random_state="seed"), "random_state must be"),
    *((kind(kernel=Gaussian), r"is a class; give a kernel, Gaussian\(\)")
      for kind in (km.RandomFourierMap, compressive)),
    (km.RandomFourierMap(WrongShape(), 10), "must return finite numbers"),
    *((km.RandomFourierMap(NoFrequencies(), sampling=sampling), "or NaN or infinity")
      for sampling in ("iid", "orthogonal", "structured")),
    *((exponential(gamma=gamma), f"ExponentialMap: {OF_GAMMA}")
      for gamma in (0, -1.0, np.inf, np.nan, "mean", True, None)),
    *((exponential(additive_map=stage), "Put RandomFourierMap after other features")
      for stage in (km.RandomFourierMap(), AdditiveChi2Sampler(), "chi2", km.ChebyshevMap,
                    Exponential())),
    (exponential(n_components=0), f"ExponentialMap: {N_COMPONENTS}"),
    (exponential(n_components=7, form="paired"), "n_components must be even .*, got 7"),
    (exponential(sampling="grid"), "ExponentialMap: sampling must be one of"),
    (exponential(form="sine"), "ExponentialMap: form must be one of"),
    *((km.RandomOrthoprojector(5, method=method), r"n_components must be at most 4, .*, got 5")
      for method in ("dense", "independent", "dct")),
    (compressive(n_measurements=5), r"n_measurements must be at most 4, .*, got 5"),
    *((compressive(kernel=kernel), "not isotropic. A projection keeps distances")
      for kernel in ("laplacian", Cauchy(2.0))),
    (compressive(projection="fft"), "projection must be one of"),
    (compressive(n_components=7, form="paired"), "CompressiveFourierMap: n_components must be ev"),
    (compressive(n_measurements=0), "n_measurements must be an integer >= 1"),
    (km.NystroemMap(landmarks="corners"), "NystroemMap: landmarks must be one of"),
    (km.NystroemMap(n_components=20, n_landmarks=10), "at least n_components=20, got 10"),
    (km.NystroemMap("chi2", sigma=2.0), "this kernel has no length scale"),
    (km.NystroemMap("exp_chi2", sigma=2.0), "Its width is gamma"),
    (km.NystroemMap("gaussian", additive=True), "additive=True needs a kernel that is a sum"),
    (km.NystroemMap(lambda x, y: np.minimum(x, y)), "has no name that it could be found by"),
    (joint(), "two or three coordinates, X has 4"),
]  # fmt: skip


def named(item):
    return type(item).__name__ if hasattr(item, "fit") else ""


@pytest.mark.parametrize(("feature_map", "message"), PARAMETERS, ids=named)
def test_bad_parameters(feature_map, message):
    with pytest.raises((ValueError, TypeError), match=message):
        feature_map.fit(X)


def measured_sparsity(**arguments):
    return km.effective_sparsity(np.eye(4), **arguments)


def required(**change):
    usual = {"epsilon": 0.1, "probability": 0.1, "sparsity": 5, "dim": 50, "diameter": 1.0}
    return km.required_features(**(usual | change))


ROWS = [
    ([[0.5, -0.25]], r"Negative values in data passed to HomogeneousMap.*signed=True"),
    ([[0.5, np.nan]], r"contains NaN \(row 0, column 1\)"),
    ([[0.5, 1.0], [np.inf, 1.0]], r"infinity \(inf\) \(row 1, column 0\)"),
    (sparse.csr_matrix([[0.0, 1.0], [np.nan, 0.0]]), r"NaN \(row 1, column 0\)"),
    (np.empty((0, 2)), "0 sample"),
    (np.empty((2, 0)), "0 feature"),
    ([["a", "b"]], "holds the text .* numbers are needed"),
    (np.array([[1.0, object()]], dtype=object), r"float\(\) argument|must be"),
    ([1.0, 2.0], "2D array"),
]
CODES = km.AnchorMap().fit(X).encode(X)
WRONG = CODES.values.copy()
WRONG[5, 2] = 40
PER_FEATURE = ["chi2", gauss, gauss, gauss]
CALLS = [
    *((lambda own=own: km.HomogeneousMap().fit(own), message) for own, message in ROWS),
    (lambda: km.DesignedMap().fit(-X), "Negative values"),
    (lambda: km.AnchorMap("chi2").fit(X - 0.5), "Negative values"),
    (lambda: km.design_map(int, 3), "a kernel is a name, a kernel object or a function"),
    (lambda: joint(kernel=Gaussian).fit(PLANE), "a kernel is a name, a kernel o"),
    # Kernels of each feature.
    (lambda: get(PER_FEATURE)(X[:, :3]), "kernels for 4 features, but X has 3"),
    (lambda: get(PER_FEATURE)(-X), "non-negative"),
    (lambda: get(["chi2", "gaussian"]), "feature 1 must be an additive one"),
    (lambda: get([["chi2"]]), "feature 0"),
    (lambda: get([]), "at least one kernel"),
    *((lambda kind=kind: anchors(kernel=PER_FEATURE).fit(kind(-X)), r"in columns \[0.*\] of X")
      for kind in (np.asarray, sparse.csr_matrix)),
    *((lambda kind=kind: anchors(kernel=PER_FEATURE).fit(X).transform(kind(-X)),
       r"in columns \[0.*\] of X") for kind in (np.asarray, sparse.csr_matrix)),
    # Anchors and their codes.
    (lambda: placing.kmeans(np.arange(70000.0), np.ones(70000, int), 65536),
     "table of .* split points"),
    (lambda: anchors(n_anchors=41).fit(X).decode(CODES), "codes of another map"),
    (lambda: anchors().fit(X).transform(CODES), "X holds codes of an Anch.*dec"),
    (lambda: km.ChebyshevMap().fit(X).transform(CODES), "X holds codes of an AnchorMap, not val"),
    (lambda: anchors().fit(X).decode(WRONG), "column 2 has the code 40, but .* end at 39"),
    (lambda: anchors().fit(X).decode(sparse.csr_matrix(np.uint8([[99, 0, 0, 0]]))),
     "unsigned integers of shape"),
    (lambda: anchors().fit(X).decode(X), "unsigned integers of shape"),
    (lambda: anchors().fit(X).decode(WRONG[:, :2]), "unsigned integers of sh"),
    # Random frequencies, and their sizes.
    (lambda: km.RandomFourierMap(sigma="scale").fit(X), "sigma must be a positive numb"),
    (lambda: km.RandomFourierMap(Matern(0.02), 1000, random_state=0).fit(X.astype(np.float32)),
     "larger than float32 holds"),
    (lambda: measured_sparsity(basis="wavelet"), "basis must be"),
    (lambda: measured_sparsity(energy=1.5), "energy must be"),
    (lambda: measured_sparsity(energy=0.9, shape=(3, 3)), "shape"),
    *((lambda name=name, value=value: required(**{name: value}),
       f"required_features: {name} must be")
      for name, value in (("epsilon", 0), ("probability", 2), ("sparsity", 60), ("dim", 0),
                          ("diameter", -1), ("epsilon", "a"), ("dim", None), ("diameter", [1]))),
    *((lambda kernel=kernel: required(kernel=kernel), r"no \(known\) second moment")
      for kernel in (km.kernels.Laplacian(1.0), Matern(0.5))),
    # Rows of a plane.
    (lambda: joint(periods=[None]).fit(PLANE), "1 periods for 2"),
    (lambda: joint(domain=(0, 1)).fit(PLANE), "one pair"),
    (lambda: joint(domain="universal").fit(PLANE), "'data' or one pair"),
    (lambda: joint(n_components=0).fit(PLANE), "n_components must be"),
    (lambda: joint(out_of_domain="no").fit(PLANE), "out_of_domain must be"),
    (lambda: joint().fit(np.c_[np.arange(4.0), np.full(4, 2.0)]), "feature 1 has the one value "),
    # Certificates of rows.
    (lambda: km.SplineMap().fit(X).row_certificate(X), r"SplineMap\.row_certificate needs a pr"),
    (lambda: km.HomogeneousMap().fit(X).row_certificate(X, probability=1.0),
     "HomogeneousMap: probability must be between 0 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_bad_calls(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_kernels_that_are_not_semidefinite():
    with pytest.raises(ValueError, match=r"most negative eigenvalue .* -\d"):
        square_root(lambda x, y: np.abs(x - y), np.linspace(0, 1, 500), energy=0.9)
