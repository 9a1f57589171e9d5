"""What a `random_state` stands for."""

import pickle

import numpy as np
import pytest
from seeded_entropy import entropy_of
from sklearn.base import clone

import kernelmaps as km
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


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_copies_of_an_estimator_have_the_numbers_of_their_own_copy_of_a_generator(make, tmp_path):
    """As in scikit-learn: a clone copies the generator, a fit draws from it, a file needs none."""
    X = np.random.default_rng(0).random((30, 4))
    unfitted = km.RandomFourierMap(n_components=4, random_state=make(3))
    first, second = clone(unfitted).fit_transform(X), clone(unfitted).fit_transform(X)
    np.testing.assert_array_equal(first, second)
    again = clone(unfitted)
    assert (again.fit_transform(X) != again.fit_transform(X)).any()
    pickled = pickle.loads(pickle.dumps(unfitted))
    np.testing.assert_array_equal(pickled.fit_transform(X), first)
    path = tmp_path / "map.kmap"
    km.save(pickled, path)
    loaded = km.load(path)
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.transform(X), first)
