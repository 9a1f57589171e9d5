"""Random generators from `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """Return the NumPy Generator that a `random_state` stands for.

    Parameters
    ----------
    random_state : None, int >= 0, RandomState or Generator
        None draws fresh entropy; an int gives the same numbers every time; a RandomState or a
        Generator is drawn from, so that two calls give different numbers.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None:
        return np.random.default_rng(fresh_entropy())
    if _is_seed(random_state):
        return np.random.default_rng(int(random_state))
    raise ValueError(
        "random_state must be None, an integer >= 0, a RandomState or a Generator; got "
        f"{random_state!r}"
    )


def fresh_entropy() -> np.random.SeedSequence:
    """Return what ``random_state=None`` draws from: the one source that nobody chose."""
    return np.random.SeedSequence()


def seed_of(random_state: Any) -> int:
    """Return an integer seed for parts that take one; an integer stands for itself."""
    if _is_seed(random_state):
        return int(random_state)
    return int(generator(random_state).integers(2**31 - 1))


def _is_seed(random_state: Any) -> bool:
    is_integer = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    return is_integer and random_state >= 0
