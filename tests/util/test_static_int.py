"""Whole numbers whose values compiled code knows."""

import pickle
from typing import NamedTuple

import numba as nb
import pytest

import kernelmaps._util.static_types
from kernelmaps._util.static_int import StaticInt
from kernelmaps._util.static_types import static_field

THREE = StaticInt(3)


class Sizes(NamedTuple):
    lanes: StaticInt
    rows: int


def _uses(sizes, n):
    """Everything that loops do with static integers."""
    total = 0
    for k in range(0, n, sizes.lanes):
        total += k * sizes.lanes + sizes.rows
    if sizes.lanes:
        total -= 1
    if sizes.lanes == THREE:
        total += 1000
    return total, sizes.lanes << 2, n % sizes.lanes, n // THREE


@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_compiled_code_computes_with_them_as_python_does(lanes):
    sizes = Sizes(StaticInt(lanes), 5)
    assert nb.njit(_uses)(sizes, 50) == _uses(Sizes(lanes, 5), 50)


def test_zero_is_false_and_other_numbers_are_true():
    truth = nb.njit(lambda sizes: 10 if sizes.lanes else 20)
    assert [truth(Sizes(StaticInt(lanes), 1)) for lanes in (0, 1, 2)] == [20, 10, 10]


def test_every_value_is_a_variant_of_its_own_and_an_integer_another():
    seen = []

    def flagged(sizes):
        return 0

    @nb.extending.overload(flagged)
    def _flagged(sizes):
        seen.append(static_field(sizes, "lanes"))
        return (lambda sizes: 10) if seen[-1] else (lambda sizes: 20)

    loop = nb.njit(lambda sizes: flagged(sizes))
    assert [loop(Sizes(StaticInt(flag), 1)) for flag in (True, False, True)] == [10, 20, 10]
    assert set(seen) == {0, 1}
    assert len(loop.signatures) == 2
    assert nb.typeof(StaticInt(1)) != nb.typeof(StaticInt(2))
    assert nb.typeof(StaticInt(1)) != nb.typeof(1)


def test_they_are_integers_that_can_be_pickled():
    value = pickle.loads(pickle.dumps(THREE))
    assert type(value) is StaticInt
    assert (value, repr(value), {value: 1}[3]) == (3, "StaticInt(3)", 1)
    kind = pickle.loads(pickle.dumps(nb.typeof(THREE)))  # as an index of numba's disk cache has it
    assert kind == nb.typeof(THREE)
    assert isinstance(kind, kernelmaps._util.static_types.StaticType)
