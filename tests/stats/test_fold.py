"""The fold: threads, checkpoints, progress, and what it says about bad rows."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmaps._util import storage
from kernelmaps._util.threads import limit_blas, ordered_map
from kernelmaps.exceptions import FileFormatError
from kernelmaps.stats import (
    FoldMoments,
    Moments,
    checkpoint,  # the module
    choose_block_rows,
    fold,
    load_stats,
    open_source,
)
from kernelmaps.stats.checkpoint import DIGESTS, _digest


def rows(seed, n=500, d=5, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.integers(0, 4, n)


def cosines(X):
    return np.cos(X @ np.linspace(-1, 1, X.shape[1] * 8).reshape(-1, 8).astype(X.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_bitwise_the_same_for_any_number_of_threads(seed, dtype):
    X, y = rows(seed, 2000, dtype=dtype)
    one, two, five = (
        fold(open_source(X, y), Moments("class"), cosines, block_rows=64, n_jobs=n)
        for n in (1, 2, 5)
    )
    np.testing.assert_array_equal(one.H, two.H)
    np.testing.assert_array_equal(one.V, five.V)
    assert one.H.dtype == np.float64
    exact = Moments("class").update(cosines(X.astype(np.float64)), y)
    tolerance = 1e-13 if dtype == np.float64 else 2.0**-24 * 64
    np.testing.assert_allclose(one.scatter(), exact.scatter(), atol=tolerance * one.n)


def test_at_most_threads_plus_one_items_are_alive():
    started, alive = 0, []

    def items():
        nonlocal started
        for i in range(20):
            started += 1
            yield i

    for finished, _ in enumerate(ordered_map(lambda i: i, items(), 3)):
        alive.append(started - finished)
    assert max(alive) == 4


def test_results_come_in_order_even_if_the_first_is_slow():
    actual = list(ordered_map(lambda i: time.sleep(0.05 * (i == 0)) or i, range(6), 2))
    assert actual == [0, 1, 2, 3, 4, 5]


def test_blas_limit_is_lifted_by_the_last_fold():
    from threadpoolctl import threadpool_info

    def threads():
        return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

    before = threads()
    first, second = limit_blas(1), limit_blas(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_own_threads_of_a_map_are_one_inside_the_fold():
    from kernelmaps._util.threads import resolve_threads

    seen = []
    X = np.ones((8, 2))
    fold(open_source(X), Moments(), lambda X: seen.append(resolve_threads(None)) or X, block_rows=2)
    assert set(seen[1:]) == {1}  # the first call finds the shift, before the threads start


def test_input_is_never_changed(seed):
    X, y = rows(seed)
    before = X.copy()
    fold(open_source(X, y), Moments("class"), lambda X: X, block_rows=100)
    fold(open_source(X, y), Moments("class"), None, block_rows=100)
    fold(open_source(X, y), Moments("class"), lambda X: X[:, 1:], block_rows=100)
    np.testing.assert_array_equal(X, before)


def test_block_rows_fill_about_64_mebibytes():
    assert choose_block_rows(784, 2000, 4) == 4096
    assert choose_block_rows(10, 20, 8) == 8192  # bounded: float32 products stay accurate
    assert choose_block_rows(784, 50_000, 4) == 2048


# ---- bad rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf")])
def test_bad_value_names_chunk_row_and_column(value, word, sparse):
    chunks = [np.ones((10, 4)) for _ in range(30)]
    chunks[17][3, 2] = value
    if sparse:
        chunks = [sp.csr_array(chunk) for chunk in chunks]
    with pytest.raises(ValueError, match=rf"ridge: input X contains .*{word}.*chunk 17, row 3 "
                                         r"\(row 173 of the data\), column 2"):  # fmt: skip
        fold(open_source(iter(chunks)), Moments(), block_rows=4, name="ridge")


@pytest.mark.parametrize("where", ["y", "sample_weight"])
def test_bad_target_or_weight_names_chunk_and_row(where):
    values = np.ones(100)
    values[57] = np.nan
    source = open_source(np.ones((100, 2)), **{"y": np.ones(100), where: values})
    with pytest.raises(ValueError, match=rf"{where} contains NaN or inf: chunk 5, row 7 \(row 57"):
        fold(source, Moments("real"), block_rows=10)


def test_negative_weight_is_refused():
    source = open_source(np.ones((10, 2)), None, np.linspace(1, -1, 10))
    with pytest.raises(ValueError, match="sample_weight is negative in chunk 0, row 5"):
        fold(source, Moments(), block_rows=10)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_map_that_overflows_is_named(value):
    def overflows(X):
        Z = X.copy()
        Z[X == 7] = value
        return Z

    X = np.arange(20.0).reshape(10, 2)
    message = r"fold: chunk 1: features are NaN, inf or too large to square \(column 1\)"
    with pytest.raises(ValueError, match=message):
        fold(open_source(X), Moments(), overflows, block_rows=3)


def test_error_of_the_map_says_which_chunk():
    def picky(X):
        if X[0, 0] == 6:
            raise ValueError("six is not a good number")
        return X

    source = open_source(np.arange(10.0)[:, None])
    with pytest.raises(ValueError, match="fold: chunk 3: six is not"):
        fold(source, Moments(), picky, block_rows=2)


def test_empty_chunks_are_the_identity(seed):
    X, y = rows(seed)
    none = (np.empty((0, 5)), np.empty(0, dtype=int))
    chunks = [none, (X[:100], y[:100]), none, (X[100:], y[100:]), none]
    actual = fold(open_source(chunks), Moments("class"))
    exact = Moments("class").update(X, y)
    np.testing.assert_allclose(actual.scatter(), exact.scatter(), rtol=1e-12, atol=1e-12)


# ---- progress -----------------------------------------------------------------------------------


def test_progress_bar_knows_its_length(seed, tmp_path, monkeypatch):
    bars = []

    def watched(iterable, description, total=None, enabled=None):
        items = list(iterable)
        bars.append((description, total, enabled, len(items)))
        return iter(items)

    monkeypatch.setattr("kernelmaps.stats.folding.track", watched)
    X = rows(seed)[0]
    fold(open_source(X), Moments(), name="array", block_rows=64)
    fold(open_source(iter([X, X])), Moments(), progress=True, name="stream")
    assert bars == [("array", 8, None, 8), ("stream", None, True, 2)]
    fold(open_source(X[:, :2]), Moments(), block_rows=64, checkpoint=tmp_path / "c")
    header, arrays = storage.read(tmp_path / "c")
    first = Moments().update(X[:64, :2])
    block = next(open_source(X[:, :2]).blocks(64))
    content = dict(header)
    content["stats"], arrays = first.state()
    arrays[DIGESTS] = np.frombuffer(_digest(block), np.uint8)[None]
    storage.write(tmp_path / "c", content.pop("kind"), content, arrays)
    fold(open_source(X[:, :2]), Moments(), block_rows=64, checkpoint=tmp_path / "c")
    assert bars[-1] == ("fold", 7, None, 7)  # a resumed fold counts what remains


# ---- checkpoints --------------------------------------------------------------------------------


class Stop(Exception):
    pass


def stop_at(value):
    def function(X):
        if X[0, 0] >= value:
            raise Stop
        return X

    return function


def counted(n=100):
    return np.column_stack([np.arange(n, dtype=float), np.sin(np.arange(n))])


@pytest.mark.parametrize("stats", [Moments("class"), FoldMoments.of(Moments("class"), 3)])
@pytest.mark.parametrize("stream", [False, True])
def test_resumed_fold_is_bitwise_the_fold(tmp_path, stream, stats):
    X, y = counted(), np.arange(100) % 3

    def source():
        parts = ((X[a : a + 20], y[a : a + 20]) for a in range(0, 100, 20))
        return open_source(parts) if stream else open_source(X, y)

    path = tmp_path / "fold.km"
    options = {"block_rows": 10, "n_jobs": 1}
    with pytest.raises(Stop):
        fold(source(), stats.zero(), stop_at(50), checkpoint=path, **options)
    mapped = []
    resumed = fold(
        source(), stats.zero(), lambda X: mapped.append(X[0, 0]) or X, checkpoint=path, **options
    )
    assert 30 <= min(mapped) <= 50  # at most the blocks in flight were done again
    whole = fold(source(), stats.zero(), None, **options)
    for a, b in zip(getattr(resumed, "parts", [resumed]), getattr(whole, "parts", [whole])):
        np.testing.assert_array_equal(a.H, b.H)
        np.testing.assert_array_equal(a.V, b.V)
    again = fold(source(), stats.zero(), lambda X: pytest.fail("read again"), checkpoint=path,
                 **options)  # fmt: skip
    assert again.n == 100


def test_killed_process_loses_at_most_the_blocks_in_flight(tmp_path):
    np.save(tmp_path / "X.npy", counted(4000))
    log = tmp_path / "log"

    def slow(X):
        with log.open("a") as stream:
            print(int(X[0, 0]), file=stream)
        time.sleep(0.02)
        return X

    def work():
        source, path = open_source(tmp_path / "X.npy"), tmp_path / "fold.km"
        done = fold(source, Moments(), slow, block_rows=10, n_jobs=2, checkpoint=path)
        done.save(tmp_path / "result.km")

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    deadline = time.monotonic() + 300
    while not (log.exists() and log.read_text().count("\n") > 20):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    begun = max(int(line) for line in log.read_text().split())
    assert not (tmp_path / "result.km").exists()

    first = []
    result = fold(
        open_source(tmp_path / "X.npy"),
        Moments(),
        lambda X: first.append(int(X[0, 0])) or X,
        block_rows=10,
        n_jobs=2,
        checkpoint=tmp_path / "fold.km",
    )
    # Two threads and one waiting block; the write of one more may have been under way.
    assert begun - 40 <= min(first) <= begun + 10
    whole = fold(open_source(tmp_path / "X.npy"), Moments(), block_rows=10)
    np.testing.assert_array_equal(result.H, whole.H)
    assert result.n == 4000


def stopped(tmp_path, X=None):
    path = tmp_path / "fold.km"
    with pytest.raises(Stop):
        fold(open_source(counted() if X is None else X), Moments(tag="map"), stop_at(50),
             block_rows=10, checkpoint=path)  # fmt: skip
    return path


def test_checkpoint_of_other_data_is_refused(tmp_path):
    path = stopped(tmp_path)
    other = counted()
    other[0:60, 1] += 1
    with pytest.raises(ValueError, match=r"belongs to another fold.*rows 0 to 10.*Delete it"):
        fold(open_source(other), Moments(tag="map"), checkpoint=path, block_rows=10)


@pytest.mark.parametrize(
    ("X", "tag", "block_rows", "message"),
    [
        (counted(90), "map", 10, "100 rows.*now.*90 rows"),
        (counted(), "other map", 10, "map: 'map', now 'other map'"),
        (counted(), "map", 20, "block_rows: 10, now 20"),
    ],
)
def test_checkpoint_of_another_fold_is_refused(tmp_path, X, tag, block_rows, message):
    path = stopped(tmp_path)
    with pytest.raises(ValueError, match=message):
        fold(open_source(X), Moments(tag=tag), checkpoint=path, block_rows=block_rows)


def stored_rows(kind, X, folder):
    """A source of the rows of X, which may be written again with others."""
    y = np.arange(len(X)) % 2
    if kind == "array":
        return open_source(X.copy(), y)
    if kind in ("list", "callable"):
        chunks = [(X[a : a + 20], y[a : a + 20]) for a in range(0, len(X), 20)]
        return open_source(chunks if kind == "list" else lambda: iter(chunks))
    if kind == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        return open_source(folder / "X.npy", folder / "y.npy")
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
        pytest.importorskip("pyarrow.parquet").write_table(table, folder / "rows.parquet")
        return open_source(folder / "rows.parquet")
    raise ValueError(kind)


KINDS = ["array", "list", "callable", "npy", "parquet"]
OPTIONS = {"block_rows": 10, "n_jobs": 1}


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_row_anywhere_before_the_stopping_point_is_noticed(tmp_path, kind, every):
    """Not only in the last block; what comes after the stopping point may be other data."""
    path, X = tmp_path / "fold.km", counted()
    with pytest.raises(Stop):
        fold(stored_rows(kind, X, tmp_path), Moments("class"), stop_at(50), checkpoint=path,
             checkpoint_every=every, **OPTIONS)  # fmt: skip
    other = X.copy()
    other[13, 1] += 0.5
    with pytest.raises(ValueError, match=r"fold: the checkpoint .*rows 10 to 20 are not those"):
        fold(stored_rows(kind, other, tmp_path), Moments("class"), checkpoint=path, **OPTIONS)
    later = X.copy()
    later[93, 1] += 0.5
    resumed = fold(stored_rows(kind, later, tmp_path), Moments("class"), checkpoint=path, **OPTIONS)
    whole = fold(stored_rows(kind, later, tmp_path), Moments("class"), **OPTIONS)
    np.testing.assert_array_equal(resumed.H, whole.H)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [120, 125])
def test_rows_behind_a_finished_fold_are_added_or_refused(tmp_path, kind, n):
    """Never left out: a finished fold of 100 rows is not the answer for 120."""
    path = tmp_path / "fold.km"
    fold(stored_rows(kind, counted(), tmp_path), Moments("class"), checkpoint=path, **OPTIONS)
    grown = stored_rows(kind, counted(n), tmp_path)
    if kind not in ("list", "callable"):  # their length is part of what they are
        with pytest.raises(ValueError, match=f"belongs to another fold.*100 rows.*now.*{n} rows"):
            fold(grown, Moments("class"), checkpoint=path, **OPTIONS)
        return
    actual = fold(grown, Moments("class"), checkpoint=path, **OPTIONS)
    whole = fold(grown, Moments("class"), **OPTIONS)
    assert actual.n == whole.n == n
    np.testing.assert_array_equal(actual.H, whole.H)


@pytest.mark.parametrize("kind", ["list", "callable"])
def test_a_grown_last_block_and_missing_rows_are_refused(tmp_path, kind):
    path = tmp_path / "fold.km"
    options = {**OPTIONS, "checkpoint": path}
    fold(stored_rows(kind, counted(95), tmp_path), Moments("class"), **options)
    with pytest.raises(ValueError, match=r"rows 90 to 100 are not those"):
        fold(stored_rows(kind, counted(100), tmp_path), Moments("class"), **options)
    with pytest.raises(ValueError, match="the data end before block 6, and 10 blocks were added"):
        fold(stored_rows(kind, counted(60), tmp_path), Moments("class"), **options)


@pytest.mark.parametrize(("kind", "all_read"), [("npy", False), ("array", True)])
def test_untouched_files_are_not_read_again_as_a_whole(tmp_path, kind, all_read, monkeypatch):
    path, X = tmp_path / "fold.km", counted(1000)
    with pytest.raises(Stop):
        fold(stored_rows(kind, X, tmp_path), Moments("class"), stop_at(800), checkpoint=path,
             **OPTIONS)  # fmt: skip
    source, compared = stored_rows(kind, X, tmp_path), []
    if not all_read:  # as it was: with the times that it had
        header, arrays = storage.read(path)
        kept = dict(header, files=checkpoint._states(source.files()))
        storage.write(path, kept.pop("kind"), kept, arrays)
    digest = checkpoint._digest
    monkeypatch.setattr(checkpoint, "_digest", lambda b: compared.append(b.start) or digest(b))
    assert fold(source, Moments("class"), checkpoint=path, **OPTIONS).n == 1000
    before = [start for start in compared if start < 790]
    assert len(set(before)) == (79 if all_read else checkpoint.SAMPLES)


def test_a_map_in_memory_that_can_be_written_is_read_again(tmp_path):
    """Writing through it may leave the times of its file alone."""
    np.save(tmp_path / "X.npy", counted())
    X = np.load(tmp_path / "X.npy", mmap_mode="r+")
    assert open_source(X).files() is None
    path = stopped(tmp_path, X)
    X[3, 1] += 1
    with pytest.raises(ValueError, match="rows 0 to 10 are not those"):
        fold(open_source(X), Moments(tag="map"), checkpoint=path, block_rows=10)


def test_a_checkpoint_of_an_earlier_version_is_refused(tmp_path):
    path = stopped(tmp_path)
    header, arrays = storage.read(path)
    storage.write(
        path, header.pop("kind"), header, {k: v for k, v in arrays.items() if k != DIGESTS}
    )
    with pytest.raises(FileFormatError, match=r"earlier version.*Delete it to start again"):
        fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10)
    storage.write(path, "fold-checkpoint", header, arrays | {DIGESTS: np.zeros((3, 5), np.uint8)})
    with pytest.raises(FileFormatError, match=r"digests have the shape \(3, 5\)"):
        fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10)


def test_damaged_checkpoint_is_refused(tmp_path):
    path = stopped(tmp_path)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"damaged.*Delete it to start again"):
        fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="Delete it to start again"):
        fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10)


@pytest.mark.parametrize(
    ("key", "value"), [("stats", None), ("identity", "x"), ("files", 3), ("more", 1)]
)
def test_checkpoint_with_another_header_is_refused(tmp_path, key, value):
    path, (X, _) = tmp_path / "sums", rows(0)
    fold(open_source(X), Moments(), block_rows=100, checkpoint=path)
    header, arrays = storage.read(path)
    kind = header.pop("kind")
    storage.write(path, kind, {**header, key: value}, arrays)
    with pytest.raises(FileFormatError, match=f"cannot be used: the checkpoint.*{key}"):
        fold(open_source(X), Moments(), block_rows=100, checkpoint=path)


def test_checkpoint_whose_sums_overflow_is_refused(tmp_path):
    path, (X, _) = tmp_path / "sums", rows(0)
    fold(open_source(X), Moments(), block_rows=100, checkpoint=path)
    header, arrays = storage.read(path)
    kind = header.pop("kind")
    storage.write(path, kind, header, arrays | {"m": np.full_like(arrays["m"], 1e200)})
    with pytest.raises(FileFormatError, match="the sums overflow"):
        fold(open_source(X), Moments(), block_rows=100, checkpoint=path)


def test_interrupted_write_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    path = stopped(tmp_path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert fold(open_source(counted()), Moments(tag="map"), checkpoint=path, block_rows=10).n == 100


def test_checkpoint_is_not_statistics(tmp_path):
    path = stopped(tmp_path)
    with pytest.raises(FileFormatError, match="not statistics"):
        load_stats(path)


def test_checkpoint_every_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="checkpoint_every"):
        fold(open_source(counted()), Moments(), checkpoint="x", checkpoint_every=0)
