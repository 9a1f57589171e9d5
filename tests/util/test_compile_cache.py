"""Compiled code on disk is used if it is whole, and compiled again if it is not."""

import importlib.util
import pickle
import random
import shutil
from pathlib import Path

import pytest

from kernelmaps._util import compile_cache

DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "random": lambda content: random.Random(0).randbytes(len(content)),
    "one byte": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "missing module": lambda content: with_digest(b"cno_such_module\nname\n."),
    "no pair": lambda content: with_digest(pickle.dumps(3)),
    "no pickle": lambda content: with_digest(b"text"),
    "other parts": lambda content: with_digest(other_parts(pickle.loads(content[32:]))),
}


def with_digest(code):
    return compile_cache._digest(code) + code


def other_parts(content):
    """A version or owner as it was, with content that no writer writes."""
    first, second = content
    if not isinstance(second, bytes):
        return pickle.dumps((first, 3))
    stamp, _ = pickle.loads(second)
    return pickle.dumps((first, pickle.dumps((stamp, 3))))


@pytest.fixture
def function(tmp_path):
    """Imports a compiled function anew and calls it: how often its code was read from disk."""
    source = tmp_path / "kept.py"
    source.write_text(
        "from kernelmaps._util.compiling import njit\n\n\n"
        "@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
    )

    def load(*values):
        compile_cache._reported.clear()
        spec = importlib.util.spec_from_file_location("kept", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for value in values:
            assert module.twice(value) == 2 * value
        return sum(module.twice.stats.cache_hits.values())

    return load


def files(folder, suffix):
    return sorted(folder.rglob(f"*.{suffix}"))


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_compiled_again_with_one_line(function, tmp_path, capsys, suffix, damage):
    assert function(1.5) == 0
    assert function(1.5) == 1
    (path,) = files(tmp_path, suffix)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert capsys.readouterr().err == ""
    assert function(1.5) == 0
    (said,) = capsys.readouterr().err.splitlines()
    assert "cannot be read" in said
    assert "is damaged); it is compiled again" in said
    assert function(1.5) == 1
    assert capsys.readouterr().err == ""


def test_code_of_another_signature_is_not_run(function, tmp_path):
    """A writer that is killed after the index was written leaves one that names other code."""
    assert function(1.5, 3) == 0
    first, second = files(tmp_path, "nbc")
    shutil.copy(first, second)
    assert function(1.5, 3) == 1
    assert function(1.5, 3) == 2


def test_what_cannot_be_written_is_compiled_in_every_process(function, tmp_path, capsys):
    function(1.5)
    (index,) = files(tmp_path, "nbi")
    index.unlink()
    index.mkdir()  # as one that another user made: it cannot be read, nor replaced
    for _ in range(2):
        assert function(1.5) == 0
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2
        assert "cannot be read or written (IsADirectoryError" in said[1]
    assert not list(Path(index.parent).glob("*.tmp.*"))
