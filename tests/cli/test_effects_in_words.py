"""What a term adds, in a line of text."""

import numpy as np
import pytest

from kernelmaps.cli.explain import describe_effect
from kernelmaps.models.shapes import PairFunction, ShapeFunction


def shape(grid, values, levels=None, missing=None):
    grid = np.asarray(grid, dtype=float)
    density = np.full(len(grid) - 1, 1 / (len(grid) - 1)) if len(grid) > 1 else np.ones(0)
    return ShapeFunction("f", grid, np.asarray(values, float), grid, density, None, levels, missing)


def test_a_curve_goes_from_its_first_to_its_last_value():
    text = describe_effect(shape([18, 54, 90], [-1, 0, 1]))
    assert text == "18 ▁▁▂▂▃▃▄▄▅▅▆▆▇▇██ 90, -1 to +1"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((1.6e9, 1.6e9 + 5000), ("1600000000", "1600005000")),
        ((2021.2, 2023.7), ("2021.2", "2023.7")),
    ],
)
def test_ends_far_from_zero_are_told_apart(ends, said):
    text = describe_effect(shape(np.linspace(*ends, 3), [0, 0.5, 1]))
    assert text.startswith(f"{said[0]} ▁")
    assert f"█ {said[1]}," in text


def test_levels_come_in_the_order_of_their_effects():
    found = describe_effect(shape([0, 1, 2], [0.1, -2, 1], ("u", "v", "w"), np.array([0.5, 0.1])))
    assert found == "w +1, u +0.1, v -2; missing +0.5"
    many = describe_effect(shape(range(9), np.arange(9.0), tuple("abcdefghi")))
    assert many == "i +8, h +7, g +6, f +5, e +4, d +3, c +2, … (2 more)"


def test_two_values_are_two_levels():
    assert describe_effect(shape([0, 1], [0.5, -0.2])) == "0 +0.5, 1 -0.2"


def test_a_pair_names_its_highest_and_lowest_cell_that_had_rows():
    values = np.array([[1.0, -3.0], [0.5, 9.0]])
    density = np.array([[0.4, 0.3], [0.3, 0.0]])
    pair = PairFunction("a × b", ("0", "1"), ("x", "y"), values, values, density)
    assert describe_effect(pair) == "0 × x +1, 0 × y -3"


def test_large_effects_have_no_exponent():
    assert describe_effect(shape([0, 1, 2], [-8670, 0, 10930])).endswith("-8670 to +10930")
