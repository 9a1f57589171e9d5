"""The README's table: classifiers of simulated word counts, all at their default settings.

    python -m benchmarks.word_counts

Test accuracy, and processor seconds of training, the best of two fits (of one, where it takes more
than ten seconds).
"""

from __future__ import annotations

from time import process_time

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Shares of 100 words in 24,000 texts about ten topics, and the topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.ones(100), size=10)
    y = rng.integers(10, size=24_000)
    rates = rng.gamma(10 * topics[y])
    return rng.multinomial(50, rates / rates.sum(axis=1, keepdims=True)) / 50, y


def main() -> None:
    shares, y = texts()
    roots = np.sqrt(shares)
    chi2_map = km.DesignedMap("chi2", 3)
    for name, model, X in (
        ("LinearSVC, shares", LinearSVC(), shares),
        ("LinearSVC, square roots", LinearSVC(), roots),
        ("LinearSVC, χ² map", make_pipeline(chi2_map, LinearSVC()), shares),
        ("SVC, Gaussian kernel", SVC(), shares),
        ("SVC, exact χ² kernel", SVC(kernel=km.kernels.chi2), shares),
    ):
        seconds: list[float] = []
        while not seconds or (len(seconds) < 2 and seconds[0] < 10):
            start = process_time()
            model.fit(X[:20_000], y[:20_000])
            seconds.append(process_time() - start)
        accuracy = 100 * model.score(X[20_000:], y[20_000:])
        print(f"{name}: {accuracy:.1f} %, {min(seconds):.1f} s", flush=True)


if __name__ == "__main__":
    main()
