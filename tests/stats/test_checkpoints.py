"""Checkpoints of a fold: kills, damage, other rows, and other numbers of threads."""

import multiprocessing
import os
import signal
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks.attack_files import Mutator
from kernelmaps._util import storage
from kernelmaps.data import open_source
from kernelmaps.exceptions import FileFormatError
from kernelmaps.stats import FoldMoments, Moments, fold

ROWS, BLOCK = 200, 10
STAGES = ("before", "written", "replaced")


class Stop(Exception):
    pass


def data():
    numbers = np.arange(float(ROWS))
    return np.column_stack([numbers, np.sin(numbers), np.cos(3 * numbers)]), numbers % 3


def folded(path=None, n_jobs=1, function=None, every=1):
    X, y = data()
    stats = FoldMoments.empty(Moments("class"), 3)
    options = {} if path is None else {"checkpoint": path, "checkpoint_every": every}
    return fold(open_source(X, y), stats, function, block_rows=BLOCK, n_jobs=n_jobs, **options)


def assert_same_sums(found, expected):
    for own, other in zip(found.parts, expected.parts, strict=True):
        for name in ("n", "weight", "m", "H", "V", "b", "yy"):
            np.testing.assert_array_equal(getattr(own, name), getattr(other, name))


def killed_while_writing(path, number, stage, n_jobs):
    """Fold in another process, which dies at a stage of its checkpoint `number`."""

    def work():
        count, replace = 0, os.replace

        def end():
            os.kill(os.getpid(), signal.SIGKILL)

        def counted(descriptor):  # storage calls it before a file is moved into place
            nonlocal count
            count += 1
            if count == number and stage == "before":
                end()

        def move(source, target):
            if count == number and stage == "written":
                end()
            replace(source, target)
            if count == number and stage == "replaced":
                end()

        os.fsync, os.replace = counted, move
        folded(path, n_jobs)
        os._exit(1)  # it was not killed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent stay there
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
    process.join(60)
    return process.exitcode


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("stage", STAGES)
def test_a_fold_that_is_killed_again_and_again_gives_the_same_sums(tmp_path, stage):
    """Each process finds the checkpoint of the one before, and dies at its third one."""
    path, expected, kills = tmp_path / "fold.km", folded(), 0
    for turn in range(ROWS // BLOCK):
        existed, n_jobs = path.exists(), 1 + turn % 3
        exitcode = killed_while_writing(path, 3, stage, n_jobs)
        if exitcode == 1:
            break
        assert exitcode == -signal.SIGKILL
        kills += existed
    assert kills >= 5  # after a checkpoint existed
    assert_same_sums(folded(path, n_jobs=2), expected)
    assert (tmp_path / "fold.km").exists()


def stop(X):
    if X[0, 0] >= ROWS / 2:
        raise Stop
    return X


@pytest.mark.parametrize(("first", "second"), [(1, 4), (2, 1), (4, 2)])
@pytest.mark.parametrize("every", [1, 3])
def test_a_fold_goes_on_with_any_number_of_threads(tmp_path, first, second, every):
    path, expected = tmp_path / "fold.km", folded()
    with pytest.raises(Stop):
        folded(path, first, stop, every)
    assert path.exists()
    mapped = []
    resumed = folded(path, second, lambda X: mapped.append(X[0, 0]) or X, every)
    assert_same_sums(resumed, expected)
    assert ROWS / 2 - 10 * BLOCK <= min(mapped) <= ROWS / 2  # at most the blocks in flight
    again = folded(path, second, lambda X: pytest.fail("mapped again"), every)
    assert_same_sums(again, expected)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "fold.km"
    with pytest.raises(Stop):
        folded(path, 1, stop)
    return path


@pytest.mark.filterwarnings("ignore")
def test_tampered_checkpoints_are_refused_or_of_use(checkpoint, seed):
    """With a right checksum: the sums may be others, but nothing else may go wrong."""
    header, arrays = storage.from_bytes(checkpoint.read_bytes())
    kind = header.pop("kind")
    ends = {"refused": 0, "works": 0}
    for index in range(100):
        mutant = Mutator(np.random.default_rng([seed, index])).mutant(kind, header, arrays)
        checkpoint.write_bytes(mutant)
        try:
            folded(checkpoint)
            ends["works"] += 1
        except (FileFormatError, ValueError):
            ends["refused"] += 1
    assert ends["refused"] > 25
    assert ends["works"] > 2


# ---- other rows, another fold -------------------------------------------------------------------


def stored_rows(kind, X, folder):
    """A source of the rows of X, which may be written again with others."""
    y = np.arange(len(X)) % 2
    if kind == "array":
        return open_source(X.copy(), y)
    if kind == "npy":
        np.save(folder / "X.npy", X)
        return open_source(folder / "X.npy", y)
    if kind == "parquet":
        table = {"a": X[:, 0], "b": X[:, 1], "y": y}
        pd.DataFrame(table).to_parquet(folder / "rows.parquet")
        return open_source(folder / "rows.parquet")
    chunks = [(X[a : a + 20], y[a : a + 20]) for a in range(0, len(X), 20)]
    return open_source(iter(chunks) if kind == "generator" else chunks)


def fold_rows(source, path=None, function=None, **options):
    options |= {"checkpoint": path, "block_rows": BLOCK, "n_jobs": 1}
    return fold(source, Moments("class"), function, **options)


def changed(X, row):
    X = X.copy()
    X[row, 1] += 0.5
    return X


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", ["array", "list", "generator", "npy", "parquet"])
def test_a_changed_row_anywhere_before_the_stopping_point_is_noticed(tmp_path, kind, every):
    """Not only in the last block; what comes after the stopping point may be other data."""
    path, X = tmp_path / "fold.km", data()[0][:, :2]
    with pytest.raises(Stop):
        fold_rows(stored_rows(kind, X, tmp_path), path, stop, checkpoint_every=every)
    with pytest.raises(ValueError, match=r"another fold \(the first \d+ blocks have other rows"):
        fold_rows(stored_rows(kind, changed(X, 13), tmp_path), path)
    later = changed(X, ROWS - 7)
    resumed = fold_rows(stored_rows(kind, later, tmp_path), path)
    np.testing.assert_array_equal(resumed.H, fold_rows(stored_rows(kind, later, tmp_path)).H)


@pytest.mark.parametrize("n", [120, 125])
@pytest.mark.parametrize("kind", ["array", "list", "npy", "parquet"])
def test_rows_behind_a_finished_fold_are_added_or_refused(tmp_path, kind, n):
    """Never left out: a finished fold of 100 rows is not the answer for 120."""
    path, X = tmp_path / "fold.km", data()[0][:, :2]
    fold_rows(stored_rows(kind, X[:100], tmp_path), path)
    grown = stored_rows(kind, X[:n], tmp_path)
    if kind != "list":  # their length is part of what they are
        with pytest.raises(ValueError, match=f"belongs to another fold.*100 rows.*now.*{n} rows"):
            fold_rows(grown, path)
        return
    actual = fold_rows(grown, path)
    assert actual.n == n
    np.testing.assert_array_equal(actual.H, fold_rows(grown).H)


def test_a_grown_last_block_and_missing_rows_are_refused(tmp_path):
    path, X = tmp_path / "fold.km", data()[0]
    fold_rows(stored_rows("list", X[:95], tmp_path), path)
    with pytest.raises(ValueError, match="the first 10 blocks have other rows"):
        fold_rows(stored_rows("list", X[:100], tmp_path), path)
    with pytest.raises(ValueError, match="the data end after 6 of 10 blocks"):
        fold_rows(stored_rows("list", X[:60], tmp_path), path)
