"""Streaming models on a torch device; without a GPU, on torch's own tensors in memory."""

import sys

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km


def problem(seed, rows=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=rows)


def features():
    return km.RandomFourierMap("gaussian", 60, random_state=0)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1.0},
        {"alpha": [0.01, 1.0, 100.0]},
        {"alpha": [0.01, 1.0], "validation": "gcv"},
        {"alpha": 1.0, "n_components": 20},
    ],
)
def test_ridge_on_a_device_is_ridge(torch, options, seed):
    X, y = problem(seed)
    here = km.StreamingRidge(feature_map=features(), **options).fit(X, y)
    there = km.StreamingRidge(feature_map=features(), device="cpu", **options).fit(X, y)
    assert there.alpha_ == here.alpha_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-9)
    assert isinstance(there.stats_.m if hasattr(there.stats_, "m") else 0.0, np.ndarray | float)


def test_pca_on_a_device_keeps_the_precision_of_the_rows(torch, seed):
    X, _ = problem(seed)
    here = km.StreamingPCA(4, features()).fit(X)
    there = km.StreamingPCA(4, features(), device="cpu", block_rows=400).fit(X)
    np.testing.assert_allclose(there.components_, here.components_, rtol=0, atol=1e-9)
    narrow = km.StreamingPCA(4, features(), device="cpu").fit(X.astype(np.float32))
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    wide = km.StreamingPCA(4, features(), device="cpu", precision="float64")
    assert wide.fit(X.astype(np.float32)).transform(X.astype(np.float32)).dtype == np.float64


def test_merge_and_file_as_on_the_processor(torch, tmp_path, seed):
    X, y = problem(seed)
    whole = km.StreamingRidge(feature_map=features().fit(X)).fit(X, y)
    parts = [
        km.StreamingRidge(feature_map=features().fit(X), device=device).fit(X[rows], y[rows])
        for device, rows in (("cpu", slice(0, 700)), (None, slice(700, None)))
    ]
    merged = parts[0].merge(parts[1])
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=0, atol=1e-8)
    model = km.StreamingRidge(feature_map=features().fit(X), device="cpu", block_rows=256)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-8)
    km.save(model, tmp_path / "model.kmap")
    np.testing.assert_allclose(km.load(tmp_path / "model.kmap").coef_, model.coef_, rtol=0)


def test_memory_that_runs_out_halves_the_block(torch, monkeypatch, seed):
    from kernelmaps.stats.folding import OnDevice

    X, y = problem(seed)
    whole = km.StreamingRidge(feature_map=features().fit(X)).fit(X, y)
    call, longest = OnDevice.__call__, []

    def small_gpu(self, rows):
        if len(rows) > 500:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        longest.append(len(rows))
        return call(self, rows)

    monkeypatch.setattr(OnDevice, "__call__", small_gpu)
    model = km.StreamingRidge(feature_map=features().fit(X), device="cpu", block_rows=1200)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-8)
    assert max(longest) <= 500
    assert sum(longest) == 300 + len(X)  # the shift is the mean of the first piece


class OutOfMemoryError(RuntimeError):
    """As torch and CuPy call theirs."""


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        ("kernelmaps.stats.moments.Moments.merge", "use fewer components"),
        ("torch.linalg.cholesky", "use fewer components"),
        ("kernelmaps.stats.folding.OnDevice.__call__", "smaller block_rows"),
    ],
)
def test_what_does_not_fit_names_the_parameter(torch, monkeypatch, seed, step, advice):
    X, y = problem(seed, 100)
    model = km.StreamingRidge(feature_map=features(), device="cpu").fit(X, y)

    def small_gpu(*_):
        raise OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(step, small_gpu)
    with pytest.raises(MemoryError, match=rf"StreamingRidge: the GPU .* {advice}"):
        model.predict(X) if "block" in advice else model.fit(X, y)


def test_halves_join_and_give_up_with_a_reason():
    from kernelmaps._util.devices import run_in_halves

    def work(limit):
        def on(rows):
            if rows.stop - rows.start > limit:
                raise OutOfMemoryError("CUDA out of memory")
            return [(rows.start, rows.stop)]

        return on

    pieces = run_in_halves(work(3), slice(0, 10), lambda a, b: a + b, "test", "")
    assert [p[0] for p in pieces] == sorted(p[0] for p in pieces)
    assert sum(b - a for a, b in pieces) == 10
    with pytest.raises(MemoryError, match=r"Fold: the GPU does not have enough memory.*Buy one"):
        run_in_halves(work(0), slice(0, 10), lambda a, b: a + b, "Fold", "Buy one")


def test_tf32_is_asked_for_or_absent(torch):
    from kernelmaps._util.devices import multiply, precision

    before = torch.backends.cuda.matmul.allow_tf32
    seen = []
    A = torch.ones(2, 2)

    class Spy:
        def __matmul__(self, other):
            seen.append(torch.backends.cuda.matmul.allow_tf32)
            return A

    multiply(Spy(), A)
    with precision("tf32"):
        multiply(Spy(), A)
    assert seen == [False, True]
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_a_missing_gpu_is_named(torch):
    X, y = problem(0, 50)
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="device='cuda', but torch sees no CUDA GPUs"):
        km.StreamingRidge(device="cuda").fit(X, y)


def test_bad_devices_and_rows_are_refused(torch):
    X, y = problem(0, 50)
    with pytest.raises(ValueError, match="device must be None, 'cpu'"):
        km.StreamingRidge(device="gpu7").fit(X, y)
    with pytest.raises(ValueError, match="precision must be None or one of float64"):
        km.StreamingRidge(device="cpu", precision="half").fit(X, y)
    with pytest.raises(TypeError, match="sparse rows are not folded on a device"):
        km.StreamingPCA(2, device="cpu").fit(sparse.csr_matrix(np.abs(X)))
    from sklearn.kernel_approximation import RBFSampler

    with pytest.raises(TypeError, match="RBFSampler does not run on device='cpu'"):
        km.StreamingPCA(2, RBFSampler(n_components=5), device="cpu").fit(X)


def test_without_torch_the_extra_is_named(monkeypatch):
    X, y = problem(0, 50)
    model = km.StreamingRidge(device="cuda")  # its imports look for torch, too
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'kernelmaps\[gpu\]"):
        model.fit(X, y)


@pytest.mark.parametrize("options", [{}, {"validation": "gcv", "alpha": [0.1, 1.0]}])
def test_tensors_are_folded_where_they_are(torch, options, seed, monkeypatch):
    from kernelmaps._util import devices

    X, y = problem(seed, 6000)  # more than the sample that the map is fitted on
    w = np.random.default_rng(seed).random(len(y))
    here = km.StreamingRidge(feature_map=features(), **options).fit(X, y, w)
    rows = torch.asarray(X)
    before = rows.clone()
    there = km.StreamingRidge(feature_map=features(), device="cpu", **options)
    copied, copy = [], devices.to_device
    monkeypatch.setattr(devices, "to_device", lambda A, *to: copied.append(A) or copy(A, *to))
    there.fit(rows, torch.asarray(y), torch.asarray(w))
    assert all(A.dtype.kind == "i" for A in copied)  # numbers of rows: no row leaves the device
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)
    found = there.predict(rows)
    assert type(found) is torch.Tensor
    np.testing.assert_allclose(found.numpy(), here.predict(X), rtol=0, atol=1e-9)
    assert torch.equal(rows, before)


@pytest.fixture
def explicit(torch, monkeypatch):
    """Tensors that NumPy cannot read by itself, like those on a GPU."""

    def refused(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refused)


def test_halves_are_folded(torch, explicit, seed):
    X, y = problem(seed)
    fitted = features().fit(X)
    whole = km.StreamingRidge(feature_map=fitted).fit(X, y)
    model = km.StreamingRidge(feature_map=fitted, device="cpu").fit(torch.asarray(X), y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-8)
    km.StreamingPCA(2, fitted, device="cpu").fit(torch.asarray(X).bfloat16())


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_of_tensors_are_tensors(torch, classes, seed):
    X, y = problem(seed)
    labels = 5 * np.digitize(y, [0.5, 1.5][: classes - 1])
    here = km.StreamingRidgeClassifier(feature_map=features()).fit(X, labels)
    rows = torch.asarray(X)
    there = km.StreamingRidgeClassifier(feature_map=features(), device="cpu")
    there.fit(rows, torch.asarray(labels))
    assert type(there.predict(rows)) is torch.Tensor
    np.testing.assert_array_equal(there.predict(rows).numpy(), here.predict(X))
    assert there.decision_function(rows).shape == here.decision_function(X).shape
    voting = km.StreamingRidgeClassifier(feature_map=features(), device="cpu", multi_class="ovo")
    voting.fit(rows, labels)
    np.testing.assert_array_equal(np.asarray(voting.predict(rows)), voting.predict(X))


def test_tensors_that_are_no_rows_are_refused(torch, monkeypatch):
    X, y = problem(0, 50)
    model = km.StreamingRidge(device="cpu")
    with pytest.raises(ValueError, match=r"two dimensions .* found shape \(50,\)"):
        model.fit(torch.asarray(y), y)
    with pytest.raises(ValueError, match=r"found shape \(0, 6\)"):
        model.fit(torch.zeros((0, 6)), y[:0])
    with pytest.raises(ValueError, match=r"dtype torch\.complex64"):
        model.fit(torch.zeros((3, 2), dtype=torch.complex64), y[:3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(torch.asarray(X), y[:-1])
    with pytest.raises(ValueError, match=r"StreamingRidge: X is on cpu, but device='meta'"):
        km.StreamingRidge(device="meta").fit(torch.asarray(X), y)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: chunk 0, row 7 .*column 2"):
        model.fit(torch.asarray(X), y)
    with pytest.raises(ValueError, match="X has 5 features"):
        model.fit(torch.asarray(X[:, :6]).nan_to_num(), y).predict(torch.asarray(X[:, :5]))
