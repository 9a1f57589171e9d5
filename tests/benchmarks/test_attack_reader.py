"""Columns of known numbers and dates, in the styles that people write: none is misread silently."""

import numpy as np
import pytest

from benchmarks import attack_reader
from benchmarks.attack_reader import ROWS, STYLES, attack, attack_style, attack_target


@pytest.mark.parametrize("style", STYLES)
def test_no_style_is_misread_without_a_word(style, seed):
    counts, broken = attack_style(style, 1, seed)
    assert not broken
    assert counts.total() >= 2


def test_the_attack_sees_what_is_wrong():
    """A wrong value, and one that was written in other digits; sizes include one row and many."""
    wrong = "WRONG WITHOUT A WORD"
    assert attack(["1.5", "2.5"], np.array([1.5, 3.5]))[0] == wrong
    assert attack(["1.5", "2.5"], np.array([1.5, 2.5]))[0] == "right"
    assert attack_target(["1.5", "2.5"], np.array([1.5, 3.5]))[0] == wrong
    assert attack(["1,250", "2,500"], np.array([1.25, 2.5]))[0] == "wrong, warned of"
    assert (min(ROWS), max(ROWS), len(STYLES) >= 40) == (1, 200, True)


def test_the_command_fails_where_a_column_is_misread(monkeypatch, capsys):
    assert attack_reader.main(["--styles", "1,234", "--attacks", "2"]) == 0
    monkeypatch.setitem(STYLES, "1,234", lambda rng, n: (["1.5"], np.array([15.0])))
    assert attack_reader.main(["--styles", "1,234", "--attacks", "2"]) == 1
    assert "1,234 as a feature: WRONG WITHOUT A WORD: ['1.5']" in capsys.readouterr().out
