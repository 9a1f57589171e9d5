"""Every source gives the rows of the array that it was made of, in blocks."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from kernelmaps.data import open_source
from kernelmaps.data.sources import RowSample

N, D = 103, 6


@pytest.fixture
def table(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.uniform(size=(N, D)) < 0.7)
    return X, rng.integers(0, 3, N), rng.uniform(0.5, 2, N)


def memmap(X, y, w, path):
    mapped = np.lib.format.open_memmap(path / "m.npy", mode="w+", dtype=X.dtype, shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return open_source(mapped, y, w)


def npy(X, y, w, path):
    np.save(path / "X.npy", X)
    np.save(path / "y.npy", y)
    return open_source(path / "X.npy", path / "y.npy", w)


def fortran_npy(X, y, w, path):
    np.save(path / "X.npy", np.asfortranarray(X))
    return open_source(path / "X.npy", y, w)


def hdf5_dataset(X, y, w, path):
    """Anything with a shape that can be sliced is an array; the file stays open meanwhile."""
    file = pytest.importorskip("h5py").File(path / "d.h5", "w")
    file["X"], file["y"] = X, y
    return open_source(file["X"], file["y"], w)


def zarr_array(X, y, w, path):
    zarr = pytest.importorskip("zarr")
    stored = zarr.open_array(path / "a.zarr", mode="w", shape=X.shape, dtype=X.dtype)
    stored[:] = X
    return open_source(stored, y, w)


def parquet_table(X, y, w):
    columns = {f"x{j}": X[:, j] for j in range(D)}
    return pa.table(columns | {"target": y, "w": w})


def parquet(X, y, w, path):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(parquet_table(X, y, w), path / "d.parquet", row_group_size=40)
    return open_source(path / "d.parquet", "target", "w")


def parquet_directory(X, y, w, path):
    pq = pytest.importorskip("pyarrow.parquet")
    whole = parquet_table(X, y, w)
    for i in range(3):
        (path / "parts").mkdir(exist_ok=True)
        pq.write_table(whole.slice(40 * i, 40), path / "parts" / f"{i}.parquet")
    return open_source(path / "parts", "target", "w")


def arrow_dataset(X, y, w, path):
    parquet_directory(X, y, w, path)
    dataset = pytest.importorskip("pyarrow.dataset").dataset(path / "parts")
    return open_source(dataset, "target", "w")


def pandas(X, y, w, path):
    pd = pytest.importorskip("pandas")
    return open_source(pd.DataFrame(X), pd.Series(y), pd.Series(w))


def generator(X, y, w, path):
    cuts = [0, 30, 30, 31, 90, N]  # one chunk is empty
    return open_source((X[a:b], y[a:b], w[a:b]) for a, b in pairwise(cuts))


def function(X, y, w, path):
    return open_source(lambda: ((X[a : a + 20], y[a : a + 20]) for a in range(0, N, 20)), None, w)


def chunk_list(X, y, w, path):
    return open_source([X[:50], sp.csr_array(X[50:])], y, w)


MAKERS = [
    lambda X, y, w, path: open_source(X, y, w),
    lambda X, y, w, path: open_source(X.tolist(), y.tolist(), w.tolist()),
    lambda X, y, w, path: open_source(sp.csr_array(X), y, w),
    lambda X, y, w, path: open_source(sp.coo_matrix(X), y, w),
    lambda X, y, w, path: open_source(open_source(X, y, w)),
    memmap, npy, fortran_npy, hdf5_dataset, zarr_array, parquet, parquet_directory,
    arrow_dataset, pandas, generator, function, chunk_list,
]  # fmt: skip


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_source_gives_its_rows_in_order(make, table, tmp_path):
    X, y, w = table
    blocks = list(make(X, y, w, tmp_path).blocks(16))
    assert max(block.X.shape[0] for block in blocks) <= 16
    assert [b.start for b in blocks] == np.cumsum([0, *(b.X.shape[0] for b in blocks)])[
        :-1
    ].tolist()
    np.testing.assert_allclose(np.vstack([dense(block.X) for block in blocks]), X, rtol=1e-14)
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    np.testing.assert_allclose(np.concatenate([block.w for block in blocks]), w)


def write(path, text):
    path.write_bytes(text)
    return path


WIDE, LONG = np.ones((3, 2)), np.ones(4)
NOT_OPENED = {
    "no file": (lambda p: open_source(p / "none.npy"), "none.npy"),
    "suffix": (lambda p: open_source(write(p / "a.xls", b"")), r"a.xls' is not .* .npy are read"),
    "bytes": (lambda p: open_source(write(p / "d.npy", b"hello")), "d.npy' is not a readable .npy"),
    "dimensions": (lambda p: open_source(np.ones(3)), "two dimensions"),
    "targets": (lambda p: open_source(WIDE, LONG), "inconsistent.*3 and 4"),
    "weights": (lambda p: open_source(WIDE, None, LONG), "sample_weight have inconsistent"),
    "two targets": (lambda p: open_source(open_source(WIDE), [1, 2, 3]), "its own"),
    "name": (lambda p: open_source(pa.table({"x": [1.0, 2.0]}), "nothing"), "no column"),
    "text": (lambda p: open_source(pa.table({"n": ["a", "b"]})), "column 'n' holds text"),
}


@pytest.mark.parametrize("name", NOT_OPENED)
def test_what_cannot_be_opened_is_refused(name, tmp_path):
    make, message = NOT_OPENED[name]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make(tmp_path)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], "chunk 1 has 4 columns, the chunks before it had 3"),
        ([(np.ones((2, 3)), [1])], "chunk 0 has 2 rows but 1 targets"),
        ([(np.ones((2, 3)), [1, 2], [1])], "chunk 0 has 2 rows but 1 weights"),
        ([(np.ones((2, 3)), 1, 2, 3)], "tuple of 4"),
        (iter([np.ones(3)]), "chunk 0 must have two dimensions"),
        ([np.array([["a", "b"]])], "column 0 of X holds the text"),
    ],
)
def test_bad_chunks_are_refused(chunks, message):
    with pytest.raises(ValueError, match=message):
        list(open_source(chunks).blocks(10))


def test_chunks_may_be_lists(table):
    """As the loaders of other libraries give them."""
    X, y, _ = table
    for chunks in ([[X[:9], y[:9]], [X[9:], y[9:]]], iter([[X[:9], y[:9]], [X[9:], y[9:]]])):
        blocks = list(open_source(chunks).blocks(1000))
        np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)


@pytest.mark.parametrize("rows", [5, 7])
def test_targets_beside_a_stream_are_counted(rows):
    source = open_source(iter([np.ones((4, 2)), np.ones((2, 2))]), np.ones(rows))
    with pytest.raises(ValueError, match=r"rows: 6 and 7|2 rows but 1 targets"):
        list(source.blocks(10))


def test_columns_of_lists_are_refused():
    column = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))
    with pytest.raises(TypeError, match="column 'X' holds values that are neither numbers nor"):
        open_source(pa.table({"X": column}))


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_chunks_are_targets_by_their_name(table, library):
    X, y, w = table
    names = ["f", "g", "h", "i", "j", "k"]
    columns = dict(zip(names, X.T, strict=True)) | {"label": y, "years": w}
    module = pytest.importorskip(library)
    made = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    chunks = [made[0:40], made[40:N]]
    for blocks in (
        list(open_source(chunks, "label", exposure="years", frames=True).blocks(30)),
        list(open_source(chunks, "label", exposure=w, frames=True).blocks(30)),
    ):
        assert [block.chunk for block in blocks] == [0, 0, 1, 1, 1]
        assert [block.start for block in blocks] == [0, 30, 40, 70, 100]
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
        np.testing.assert_array_equal(np.concatenate([block.exposure for block in blocks]), w)
    source, sample = open_source(chunks, "label", exposure="years", frames=True), RowSample(50)
    for block in source.blocks(30):
        sample.update(block)
    named = sample.shrink()
    assert sum(map(len, named)) == 50
    assert [str(name) for name in getattr(named[0].X, "column_names", named[0].X.columns)] == names
    columns_read = [np.asarray(block.X[names[0]]) for block in source.column(0)]
    np.testing.assert_array_equal(np.concatenate(columns_read), np.asarray(made[names[0]]))


def test_exposures_of_a_stream_leave_its_first_chunks_to_be_read_again():
    X, years = np.arange(60.0).reshape(30, 2), np.arange(30.0)
    source = open_source(open_source(iter([X[:10], X[10:]])), exposure=years, frames=True)
    assert len(source.head(5)) == 5
    blocks = list(source.blocks(10))
    np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block.exposure for block in blocks]), years)


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_any_sparse_format_is_read_as_csr(form):
    X = sp.eye_array(6, 4, format=form)
    (block,) = open_source(X).blocks(6)
    assert block.X.format == "csr"
    np.testing.assert_array_equal(block.X.toarray(), X.toarray())


def test_exposures_of_arrays_go_with_their_rows(table, tmp_path):
    X, y, w = table
    np.save(tmp_path / "X.npy", X)
    source = open_source(tmp_path / "X.npy", y, exposure=w, frames=True)
    np.testing.assert_array_equal(np.concatenate([b.exposure for b in source.blocks(20)]), w)
    with pytest.raises(ValueError, match="X and exposure have inconsistent numbers of rows"):
        list(open_source(tmp_path / "X.npy", y, exposure=w[1:], frames=True).blocks(20))
    with pytest.raises(ValueError, match="exposure='w' names a column, but X has no names"):
        open_source(tmp_path / "X.npy", y, exposure="w", frames=True)


def test_targets_of_another_length_than_parquet_are_refused_before_a_row_is_read(table):
    pytest.importorskip("pyarrow")
    X, y, w = table
    made = parquet_table(X, y, w)
    with pytest.raises(ValueError, match=f"sample_weight have inconsistent numbers of rows: {N}"):
        open_source(made, "target", np.ones(N + 1))
