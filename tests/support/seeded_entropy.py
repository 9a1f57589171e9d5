"""What stands for fresh entropy in tests."""

import zlib
from collections.abc import Callable

import numpy as np


def entropy_of(name: str, seed: int) -> Callable[[], np.random.SeedSequence]:
    """For the test of that name in a run with that seed; another sequence at each call."""
    sequence = np.random.SeedSequence([seed, zlib.crc32(name.encode())])
    return lambda: sequence.spawn(1)[0]
