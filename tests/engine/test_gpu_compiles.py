"""Kernels for a GPU, compiled for one by Triton itself, where it is installed; none is run."""

import sys
from contextlib import suppress

import numpy as np
import pytest
from gpu_cases import MAPS, histograms, smooth_cubics

import kernelmaps as km

pytest.importorskip("triton", reason="the stand-in runs the kernels without it")

KERNELS = ("transform", "dot", "encode")


class Hopper:
    """What Triton asks its driver for before it compiles: an H100 or H200."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)


class Compiler:
    """Compiles a kernel where it would be launched."""

    def __init__(self, kernel, seen):
        self.kernel, self.seen = kernel, seen

    def __getitem__(self, grid):
        return self

    def __call__(self, *args, **options):
        made = self.kernel.warmup(*map(_with_addresses, args), grid=(1,), **options)
        self.seen.append((self.kernel.fn.__name__, made.asm["ptx"]))


def _with_addresses(value):
    """Arrays as tensors, which tell where they lie; those in tuples, too."""
    if isinstance(value, np.ndarray):
        return pytest.importorskip("torch").from_numpy(value)
    if isinstance(value, tuple):
        fields = [_with_addresses(field) for field in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value


@pytest.fixture
def compiled(monkeypatch):
    """Names and code of the kernels that were compiled."""
    from triton.runtime.driver import driver

    from kernelmaps.engine import gpu
    from kernelmaps.engine.gpu import dispatch, kernels

    seen = []
    driver.set_active(Hopper())
    for name in KERNELS:
        monkeypatch.setattr(kernels, name, Compiler(getattr(kernels, name), seen))
    yield seen
    monkeypatch.undo()
    with suppress(RuntimeError):  # where there is no GPU to go back to
        driver.reset_active()
    dispatch._put_table.cache_clear()
    # Other tests import them with the stand-in underneath.
    sys.modules.pop("kernelmaps.engine.gpu.kernels")
    del gpu.kernels


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", ["homogeneous", "anchor, k-means", "spline, banded"])
def test_maps_compile(compiled, name, dtype):
    from kernelmaps.engine import gpu

    X = histograms(0)
    with np.errstate(all="ignore"):  # results are memory that nobody has written to
        gpu.apply(MAPS[name].fit(X).spec_, X.astype(dtype), check=gpu.NON_NEGATIVE)
    assert [kernel for kernel, _ in compiled] == ["transform"]


def test_sums_compile(compiled):
    from kernelmaps.engine import gpu

    table = smooth_cubics(np.random.default_rng(0), 13, 7, 10)
    for dtype in (np.float32, np.float64):
        X = histograms(0).astype(dtype)
        with np.errstate(all="ignore"):  # as above
            gpu.sums(table, X, gpu.FINITE)
    assert [kernel for kernel, _ in compiled] == ["dot", "dot"]


@pytest.mark.parametrize("anchors", ["uniform", "kmeans"])
def test_codes_compile(compiled, anchors, monkeypatch):
    from kernelmaps.engine import gpu
    from kernelmaps.engine.encode import _encode_array_api

    monkeypatch.setattr(gpu, "usable_for", lambda X: True)
    X = histograms(0).astype(np.float32)
    spec = km.AnchorMap("chi2", 12, anchors=anchors, n_neighbors=2).fit(X).spec_
    _encode_array_api(spec, X, -np.inf, np.inf)
    ((kernel, code),) = compiled
    assert kernel == "encode"
    assert "fma" not in code  # products are rounded as on the processor
    assert "div.full" not in code  # and so are quotients
