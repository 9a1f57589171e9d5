"""What a `random_state` stands for."""

import numpy as np
import pytest
from seeded_entropy import entropy_of

from kernelmaps._util.arguments import generator, seed_of


def draw(random_state) -> list[float]:
    return generator(random_state).random(4).tolist()


def test_an_integer_gives_the_same_numbers_every_time():
    assert draw(3) == draw(np.int64(3)) != draw(4)
    assert seed_of(3) == 3


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_drawn_from(make):
    own = make(0)
    assert draw(own) != draw(own)
    assert draw(make(0)) == draw(make(0))


def test_none_gives_new_numbers_each_time():
    assert draw(None) != draw(None)
    assert seed_of(None) != seed_of(None)


def test_in_tests_none_follows_the_seed_of_the_run(seed, monkeypatch):
    """A test draws the same numbers in each run; another test draws others."""
    monkeypatch.setattr("kernelmaps._util.arguments.fresh_entropy", entropy_of("one test", seed))
    first = draw(None)
    monkeypatch.setattr("kernelmaps._util.arguments.fresh_entropy", entropy_of("one test", seed))
    assert draw(None) == first
    monkeypatch.setattr("kernelmaps._util.arguments.fresh_entropy", entropy_of("another", seed))
    assert draw(None) != first


@pytest.mark.parametrize("wrong", [True, "0", 1.5])
def test_others_are_refused(wrong):
    with pytest.raises(ValueError, match="random_state must be None, an integer"):
        generator(wrong)
