"""Checkpoints of a fold under kills, damage and other numbers of threads: counted cases."""

import multiprocessing
import os
import signal
import sys
import warnings

import numpy as np
import pytest
from mutations import Mutator

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
    stats = FoldMoments.of(Moments("class"), 3)
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
    assert [item.name for item in tmp_path.iterdir()] == ["fold.km"]


@pytest.mark.parametrize("first", [1, 2, 4])
@pytest.mark.parametrize("second", [1, 2, 4])
@pytest.mark.parametrize("every", [1, 3])
def test_a_fold_goes_on_with_any_number_of_threads(tmp_path, first, second, every):
    def stop(X):
        if X[0, 0] >= ROWS / 2:
            raise Stop
        return X

    path, expected = tmp_path / "fold.km", folded()
    with pytest.raises(Stop):
        folded(path, first, stop, every)
    assert path.exists()
    assert_same_sums(folded(path, second, every=every), expected)


@pytest.fixture
def checkpoint(tmp_path):
    def stop(X):
        if X[0, 0] >= ROWS / 2:
            raise Stop
        return X

    path = tmp_path / "fold.km"
    with pytest.raises(Stop):
        folded(path, 1, stop)
    return path


def test_every_damaged_checkpoint_is_refused(checkpoint):
    content, refused = checkpoint.read_bytes(), 0
    changes = [content[:length] for length in range(0, len(content), len(content) // 100)]
    for place in range(0, len(content), len(content) // 300):
        changes.append(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
    for changed in changes:
        checkpoint.write_bytes(changed)
        with pytest.raises(FileFormatError, match="Delete it to start again"):
            folded(checkpoint)
        refused += 1
    assert refused > 400
    checkpoint.write_bytes(content)
    assert_same_sums(folded(checkpoint), folded())


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
