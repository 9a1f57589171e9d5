"""Without numba's compiler everything runs in its readable form, and says the same."""

import sys

import fresh_process
import numpy as np
from fitted_examples import (
    MAP_SETTINGS,
    fitted_map_of_the_plane,
    labels,
    rows,
    structured_projection,
)
from scipy import sparse

import kernelmaps as km
from kernelmaps import kernels
from kernelmaps.engine import apply

KERNELS = {
    **{name: getattr(kernels, name) for name in ("chi2", "intersection", "hellinger")},
    "jensen_shannon": kernels.jensen_shannon,
    "signed": kernels.chi2.replace(signed=True, gamma=0.5),
    "exponential": kernels.Exponential(kernels.chi2, gamma=0.5),
    "exponential of intersection": kernels.Exponential(kernels.intersection, gamma=0.5),
    "gaussian": kernels.Gaussian(0.5),
    "laplacian": kernels.Laplacian(0.5),
    "cauchy": kernels.Cauchy(0.5),
    "matern": kernels.Matern(1.5, 0.5),
}
# name -> (model, kind of rows, settings): every loop of the training, few of its variants
MODELS = {
    "splines": (km.AdditiveSVC, "float64", {}),
    "logistic": (km.AdditiveSVC, "float64", {"loss": "log_loss"}),
    "bytes": (km.AdditiveSVC, "uint8", {"feature_map": km.SplineMap(order=0)}),
    "octaves": (
        km.AdditiveSVC,
        "negative",
        {"feature_map": km.HomogeneousMap(n_components=3, signed=True)},
    ),
    "anchors": (km.AdditiveSVC, "positive", {"feature_map": km.AnchorMap(n_anchors=6, rank=1)}),
    "squares": (km.AdditiveSVR, "csr", {"loss": "squared_error"}),
}


def kinds(X):
    """The same rows in the forms that have paths of their own."""
    return {"float64": X, "uint8": X.astype(np.uint8), "csr": sparse.csr_matrix(X)}


def plain(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def of_kernels():
    X = rows(12)
    for name, kernel in KERNELS.items():
        for kind, own in kinds(X).items():
            if kind != "uint8":
                yield f"{name} {kind}", kernel(own)
                yield f"{name} {kind} of two", kernel(own, own[:3])


def of_maps():
    X = 20 * rows()
    fitted = {name: getattr(km, name)(**own).fit(X) for name, own in MAP_SETTINGS.items()}
    fitted["sparse splines"] = km.SplineMap(order=0, sparse_output=True).fit(X)
    fitted["k-means"] = km.AnchorMap(n_anchors=5, anchors="kmeans", energy=1).fit(X)
    fitted["weights"] = km.AnchorMap(n_anchors=6, n_neighbors=2, anchors="kmeans").fit(X)
    for name, one in fitted.items():
        for kind, own in kinds(X).items():
            yield f"{name} {kind}", plain(one.transform(own))
            if hasattr(one, "encode"):
                codes = one.encode(own)
                yield f"codes {name} {kind}", plain(codes.values)
                yield f"decoded {name} {kind}", plain(one.decode(codes))
    for kind, own in kinds(X).items():
        yield f"Hadamard {kind}", apply(structured_projection(6, 4), own)
    plane = fitted_map_of_the_plane()
    for kind, own in kinds(rows()[:, :2]).items():
        yield f"joint {kind}", plain(plane.transform(own))


def of_models():
    X = 20 * rows(27)  # a vector and a rest: most of the time goes into training by readable loops
    X[-1] = 0  # a row of CSR without values, where they end
    for name, (model, kind, settings) in MODELS.items():
        own = {**kinds(X), "negative": -X, "positive": X + 1}[kind]
        y = labels(27) if kind == "float64" else np.where(X[:, 0] > X[:, 1], "first", "second")
        y = y if model is km.AdditiveSVC else X @ np.arange(6.0)
        one = model(random_state=0, **settings).fit(own, y)
        yield name, (one.decision_function if y.dtype.kind == "U" else one.predict)(own)
        yield f"terms of {name}", one.eval_terms(own)


def everything():
    with np.errstate(all="raise", under="ignore"):
        return {**dict(of_kernels()), **dict(of_maps()), **dict(of_models())}


# As with NUMBA_DISABLE_JIT=1, which numba reads when it is imported.
INTERPRETED = """
import runpy, sys, warnings
import numba
numba.config.DISABLE_JIT = 1
warnings.simplefilter("error")
sys.modules.pop("fitted_examples", None)
sys.argv[1:] = [{path!r}]
sys.path[:0] = {folders!r}
runpy.run_path({file!r}, run_name="__main__")
"""


def test_all_results_are_those_of_the_compiled_form(tmp_path):
    """To rounding, models too: both forms take the same steps in the same order."""
    path = tmp_path / "interpreted.npz"
    code = INTERPRETED.format(file=__file__, path=str(path), folders=sys.path)
    done = fresh_process.run(code, fork=False)
    assert done.status == 0, done.stderr
    compiled, found = everything(), np.load(path)
    assert set(found) == set(compiled)
    for name, expected in compiled.items():
        assert found[name].dtype == expected.dtype, name
        single = expected.dtype == np.float32
        tolerance = (2e-5 if single else 1e-9) * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=tolerance, err_msg=name)


if __name__ == "__main__":
    from kernelmaps._util.compiling import is_interpreted

    assert is_interpreted()
    np.savez(sys.argv[1], **everything())
