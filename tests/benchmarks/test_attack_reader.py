"""Columns of known numbers and dates, in the styles that people write: none is misread silently."""

import pytest

from benchmarks.attack_reader import STYLES, attack_style


@pytest.mark.parametrize("style", STYLES)
def test_no_style_is_misread_without_a_word(style, seed):
    counts, broken = attack_style(style, 1, seed)
    assert not broken
    assert counts.total() >= 2
