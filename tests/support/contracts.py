"""What every kernel and every map guarantees; AssertionError says what failed."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_models import take_readable_forms
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from kernelmaps._util.arguments import generator
from kernelmaps._util.sparse import dense
from kernelmaps.engine import Spec, apply, evaluate
from kernelmaps.evaluation.kernel_error import kernel_error
from kernelmaps.exceptions import KernelScaleWarning, OutOfDomainWarning
from kernelmaps.kernels import AdditiveKernel, HomogeneousKernel, Kernel, StationaryKernel
from kernelmaps.maps.base import AdditiveMap, FeatureMap

__all__ = ["check_feature_map", "check_kernel"]

# Sums over d features of one rounding error each, with room for the order of summation.
_SLACK = 64


def check_kernel(kernel: Kernel, X: Any = None, *, random_state: Any = 0) -> None:
    """Assert that a kernel is symmetric, positive semi-definite, and the same on every path.

    Parameters
    ----------
    kernel : Kernel
        What to check.
    X : array of shape (n, d), optional
        Rows in the kernel's domain, some entries zero; by default sparse non-negative ones.
    random_state : int, RandomState, Generator or None
        Draws the default rows.
    """
    X = _histograms(generator(random_state), 40, 12) if X is None else np.asarray(X, float)
    Y = X[::-2]
    gram, cross = kernel(X), kernel(X, Y)
    scale = float(np.abs(gram).max())
    _close(gram, gram.T, 0, scale, "the Gram matrix is not exactly symmetric")
    _close(cross, kernel(X, X)[:, ::-2], _SLACK, scale, "k(X, Y) differs from a part of k(X, X)")
    _close(kernel.diag(X), np.diag(gram), _SLACK, scale, "diag(X) is not the Gram's diagonal")
    least = float(np.linalg.eigvalsh(gram).min())
    assert least > -_SLACK * len(X) * np.finfo(float).eps * scale, (
        f"not positive semi-definite: the Gram matrix has the eigenvalue {least:g}"
    )
    _close(kernel(sparse.csr_matrix(X)), gram, _SLACK, scale, "CSR rows give another Gram matrix")
    _close(kernel(sparse.csr_matrix(X), sparse.csr_matrix(Y)), cross, _SLACK, scale, "CSR differs")
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float32, f"float32 rows gave a {single.dtype} matrix"
    _close(single, gram, _SLACK, scale, "float32 differs by more than its precision", np.float32)
    distance = kernel.squared_distance(X)
    diagonal = np.diag(gram)
    _close(distance, diagonal[:, None] + diagonal - 2 * gram, _SLACK, scale, "squared_distance")
    assert distance.min() >= 0, "a squared distance is negative"
    _close(kernel(X, n_jobs=1), gram, 0, scale, "the number of threads changes the result")
    _check_structure(kernel, X, gram, scale)


def _check_structure(kernel: Kernel, X: np.ndarray, gram: np.ndarray, scale: float) -> None:
    if isinstance(kernel, AdditiveKernel):
        features = [(kernel.feature(d), X[:, d]) for d in range(X.shape[1])]
        total = sum(one.component(x[:, None], x[None, :]) for one, x in features)
        _close(gram, np.asarray(total), _SLACK, scale, "the Gram matrix is not a sum of components")
    if isinstance(kernel, HomogeneousKernel):
        lam = np.linspace(-6, 6, 41)
        by_component = kernel.component(np.exp(-lam / 2), np.exp(lam / 2))
        _close(kernel.signature(lam), by_component, _SLACK, 1.0, "signature and component differ")
        scaled = kernel.component(3 * X[:, None, 0], 3 * X[None, :, 0])
        expected = 3**kernel.gamma * kernel.component(X[:, None, 0], X[None, :, 0])
        _close(scaled, expected, _SLACK, scale * 3**kernel.gamma, "not homogeneous of degree gamma")
    if isinstance(kernel, StationaryKernel):
        delta = np.linspace(0, 3, 31)
        one = kernel(delta[:, None], np.zeros((1, 1)))[:, 0]
        _close(kernel.signature(delta), one, _SLACK, 1.0, "signature and Gram matrix differ")


def check_feature_map(
    make: Callable[[int], FeatureMap],
    sizes: Sequence[int],
    X: Any = None,
    *,
    rate: float = 0.0,
    exact: float | None = None,
    random_state: Any = 0,
    estimator_checks: bool = True,
) -> None:
    """Assert what every map guarantees.

    Parameters
    ----------
    make : callable
        ``make(size)`` returns an unfitted map.
    sizes : sequence of int
        Growing sizes; the error at the last must be below that at the first. A map that names
        no `kernel_` (a basis of functions) has no error, and is held to all the rest.
    X : array of shape (n, d), optional
        Rows in the map's domain; by default sparse histograms.
    rate : float
        The rms error must fall at least as fast as size^−rate between first and last size.
    exact : float, optional
        Bound on the largest error at the last size.
    random_state : int, RandomState, Generator or None
        Draws the default rows.
    estimator_checks : bool
        Whether scikit-learn's own checks run, too (some seconds).
    """
    X = _histograms(generator(random_state), 40, 12) if X is None else np.asarray(X, float)
    _check_convergence(make, sizes, X, rate, exact)
    fitted = make(sizes[0]).fit(X)
    _check_paths(fitted, X)
    _check_persistence(fitted, X)
    _check_domain_policy(make(sizes[0]), X)
    with warnings.catch_warnings():  # a domain or a length scale that was given
        warnings.simplefilter("ignore", OutOfDomainWarning)
        warnings.simplefilter("ignore", KernelScaleWarning)
        _check_sizes(make(sizes[0]), X)
    if estimator_checks:
        check_estimator(make(sizes[0]), on_skip=None)


def _check_convergence(
    make: Callable[[int], FeatureMap],
    sizes: Sequence[int],
    X: np.ndarray,
    rate: float,
    exact: float | None,
) -> None:
    with pytest.MonkeyPatch.context() as patch:  # each size would have loops of its own
        take_readable_forms(patch)
        fitted = [make(size).fit(X) for size in sizes]
        if not hasattr(fitted[0], "kernel_"):
            assert (rate, exact) == (0, None), "without a kernel_ there is nothing to converge to"
            return
        errors = [kernel_error(fitted_map, X) for fitted_map in fitted]
    first, last = errors[0], errors[-1]
    floor = 1e-13 * max(1.0, float(np.abs(X).max()))
    allowed = first.rms * (sizes[0] / sizes[-1]) ** rate
    assert last.rms <= max(allowed, floor) * (1 + 1e-9), (
        f"rms error {first.rms:.3g} at size {sizes[0]} fell to {last.rms:.3g} at {sizes[-1]}; "
        f"the stated rate {rate:g} asks for {allowed:.3g}"
    )
    if exact is not None:
        assert last.max <= exact, f"largest error {last.max:.3g} at size {sizes[-1]} > {exact:g}"


def _check_paths(fitted: FeatureMap, X: np.ndarray) -> None:
    """Dense = reference = CSR = chunked = float32 = one thread = `out=`."""
    Z = dense(fitted.transform(X))
    scale = float(np.abs(Z).max()) or 1.0
    assert Z.shape == (len(X), len(fitted.get_feature_names_out())), "shape and names disagree"
    _close(Z, evaluate(fitted.spec_, X), 2**10, scale, "the fast path differs from the formula")
    single = dense(fitted.transform(X.astype(np.float32)))
    assert single.dtype == np.float32, f"float32 rows gave {single.dtype}"
    _close(single, Z, 2**8, scale, "float32 differs by more than its precision", np.float32)
    chunks = [dense(fitted.transform(X[start : start + 7])) for start in range(0, len(X), 7)]
    # BLAS adds in another order for other shapes: a few units of angles of up to a dozen radians.
    _close(np.concatenate(chunks), Z, 2**6, scale, "chunks of rows give another result")
    one = clone(fitted).set_params(n_jobs=1).fit(X).transform(X)
    _close(dense(one), Z, 4, scale, "the number of threads changes the result")
    if not sparse.issparse(one):
        out = np.full(Z.shape, np.nan)
        assert fitted.transform(X, out=out) is out, "out= was not used"
        _close(out, Z, 0, scale, "out= gives another result")
        for start in (0, max(0, Z.size - X.size // 2)):
            memory = np.empty(max(Z.size, start + X.size))
            rows, out = memory[start : start + X.size], memory[: Z.size]
            rows[:] = X.ravel()
            fitted.transform(rows.reshape(X.shape), out=out.reshape(Z.shape))
            _close(out.reshape(Z.shape), Z, 0, scale, "out= that overlaps X gives another result")
    compressed = fitted.transform(sparse.csr_matrix(X))
    _close(dense(compressed), Z, 2**10, scale, "CSR rows give another result")
    if not sparse.issparse(one):
        _check_sparsity(fitted, X, compressed)
    _check_other_libraries(fitted, X, Z, scale)


def _check_other_libraries(fitted: FeatureMap, X: np.ndarray, Z: np.ndarray, scale: float) -> None:
    """Rows of every array library that is installed give the same features, as its own arrays."""
    for name in filter(find_spec, ("array_api_strict", "torch")):
        xp = import_module(name)
        for dtype, slack in ((np.float64, 2**10), (np.float32, 2**8)):
            rows = xp.asarray(X.astype(dtype))
            features = fitted.transform(rows)
            assert type(features) is type(rows), f"rows of {name} gave a {type(features).__name__}"
            assert features.dtype == rows.dtype, (
                f"{rows.dtype} rows of {name} gave {features.dtype}"
            )
            message = f"rows of {name} give another result"
            _close(np.asarray(features), Z, slack, scale, message, dtype)
        bad = X.copy()
        bad[-1, -1] = np.nan
        assert _refusal(fitted.transform, xp.asarray(bad)), f"NaN in rows of {name} was not refused"


def _check_sparsity(fitted: FeatureMap, X: np.ndarray, compressed: Any) -> None:
    """CSR rows give CSR features, with the zeros kept, where φ(0) = 0, and only there."""
    with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
        vanishes = not np.any(fitted.transform(np.zeros((1, X.shape[1]))))
    if sparse.issparse(compressed):
        assert vanishes, "CSR out needs phi(0) = 0"
        columns = compressed.shape[1] / X.shape[1]
        assert compressed.nnz <= np.count_nonzero(X) * columns, "CSR output lost its sparsity"
    else:
        must_be_sparse = vanishes and isinstance(fitted, AdditiveMap)
        assert not must_be_sparse, "phi(0) = 0, but CSR rows gave a dense result"


def _check_persistence(fitted: FeatureMap, X: np.ndarray) -> None:
    Z = dense(fitted.transform(X))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(dense(again.transform(X)), Z), "a pickled map gives another result"
    with tempfile.TemporaryDirectory() as folder:
        fitted.spec_.save(Path(folder, "map.spec"))
        loaded = Spec.load(Path(folder, "map.spec"))
    assert loaded.hash == fitted.spec_.hash, "the spec changed on disk"
    assert np.array_equal(dense(apply(loaded, X)), Z), "a loaded spec gives another result"
    refitted = clone(fitted).fit(X)
    assert refitted.spec_ == fitted.spec_, "fitting twice gives two different specs"


def _check_domain_policy(unfitted: FeatureMap, X: np.ndarray) -> None:
    """Values beyond the fitted domain are clipped with one warning, refused, or extrapolated."""
    fitted = clone(unfitted).fit(X)
    bounded = isinstance(fitted, AdditiveMap) and fitted.domain_ is not None
    if not bounded or "out_of_domain" not in fitted.get_params():
        return
    outside = X + 2 * np.ptp(X)
    clipping = clone(unfitted).set_params(out_of_domain="clip").fit(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, second = clipping.transform(outside), clipping.transform(outside)
    named = [item for item in caught if issubclass(item.category, OutOfDomainWarning)]
    assert len(named) == 1, f"clipping warned {len(named)} times instead of once"
    assert np.array_equal(dense(first), dense(second)), "clipping is not repeatable"
    refusing = clone(unfitted).set_params(out_of_domain="raise").fit(X)
    message = _refusal(refusing.transform, outside)
    assert "domain" in message, f"out_of_domain='raise' did not refuse by name: {message!r}"
    try:
        free = clone(unfitted).set_params(out_of_domain="extrapolate").fit(X)
    except ValueError as error:
        if "out_of_domain" in str(error):  # a table ends where it ends, and may say so
            return
        raise
    with warnings.catch_warnings(action="error", category=OutOfDomainWarning):
        beyond = dense(free.transform(outside))
    assert np.isfinite(beyond).all(), "out_of_domain='extrapolate' gave values that are not finite"


def _check_sizes(unfitted: FeatureMap, X: np.ndarray) -> None:
    """The paths agree for all sizes that maps state to be exact; larger and smaller are refused.

    Those are 1e-150 to 1e150 in float64, and the normal numbers in float32.
    """
    X = np.where(np.abs(X) < 1e-6 * np.abs(X).max(), 0, X)  # what is left has seven decades
    for factor, dtype in [(1e-140, np.float64), (1e140, np.float64),
                          (1e-30, np.float32), (1e30, np.float32)]:  # fmt: skip
        rows = (factor / np.abs(X).max() * X).astype(dtype)
        where = f"for values of the size {factor:g}"
        fitted = clone(unfitted).fit(rows)
        expected = evaluate(fitted.spec_, rows.astype(np.float64))
        scale = float(np.abs(expected).max())
        assert 0 < scale < np.inf, f"{where} the features are zero or infinite"
        for kind, form in (("dense", rows), ("CSR", sparse.csr_matrix(rows))):
            features = dense(fitted.transform(form)).astype(np.float64)
            assert np.isfinite(features).all(), f"{kind} features are not finite {where}"
            # Angles of large rows in units of a given length scale have no digits left.
            if isinstance(fitted, AdditiveMap) or factor < 1:
                _close(
                    features / scale, expected / scale, 2**10, 1, f"{kind} differs {where}", dtype
                )
    for factor in (1e-200, 1e200):
        message = _refusal(clone(unfitted).fit, factor * X)
        assert "size" in message or "scale" in message, (
            f"values of the size {factor:g} were not refused by name: {message!r}"
        )


def _refusal(call: Callable[[Any], Any], rows: Any) -> str:
    """The message by which rows are refused; empty if they are not."""
    try:
        call(rows)
    except ValueError as error:
        return str(error)
    return ""


def _histograms(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows of a sparse, L1-normalised kind, as histograms are."""
    X = rng.gamma(0.5, size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[:, 0] += 1e-3
    return X / X.sum(axis=1, keepdims=True)


def _close(
    actual: Any, expected: Any, slack: float, scale: float, message: str, dtype: Any = np.float64
) -> None:
    """Assert |actual − expected| ≤ slack · eps · scale; the message has the worst difference."""
    difference = float(np.max(np.abs(np.asarray(actual, float) - np.asarray(expected, float))))
    allowed = slack * float(np.finfo(dtype).eps) * max(scale, np.finfo(float).tiny)
    assert difference <= allowed, f"{message}: off by {difference:.3g}, allowed {allowed:.3g}"
