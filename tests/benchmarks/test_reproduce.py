"""Parts of the reproductions: small cases with known answers."""

import numpy as np
import pytest


def test_stored_tables_are_printed(capsys):
    from benchmarks.reproduce import main

    main(["chebyshev-figure-1", "--stored"])
    assert "C at x = 0.5" in capsys.readouterr().out


def test_votes_of_pairs_are_counted():
    from benchmarks.reproduce_compressive_rf import counted

    y = np.array([0, 1, 2])
    pairs = {(0, 1): "010", (0, 2): "001", (1, 2): "001"}
    items = [{"job": {"pair": list(pair)}, "found": votes} for pair, votes in pairs.items()]
    assert counted(items, (None, y, None, y)) == 100.0
    items[1]["found"] = "101"  # the first row now has one vote for each class: the first wins
    assert counted(items, (None, y, None, np.array([0, 1, 1]))) == pytest.approx(200 / 3)


def test_the_machine_of_crammer_and_singer_is_liblinears(seed):
    from benchmarks import crammer_singer

    rng = np.random.default_rng(seed)
    X = rng.random((300, 8)).astype(np.float32)
    y = (X[:, :4] + 0.2 * rng.random((300, 4))).argmax(axis=1)
    apart, largest = crammer_singer.difference(X, y)
    assert apart < 0.02 * largest


def test_aligned_scores_are_positive_for_as_many_rows_of_each_class(seed):
    from benchmarks.score_alignment import align_scores

    scores = np.random.default_rng(seed).normal(size=(200, 5)) + np.arange(5)
    aligned = align_scores(scores, 40)
    assert ((aligned > 0).sum(axis=0) == 39).all()
    # A shift of a class alone: its order of rows stays, and another shift of it does nothing.
    assert np.ptp(aligned - scores, axis=0) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(align_scores(scores + np.arange(5), 40), aligned, atol=1e-12)


def test_exchanges_find_frequencies_of_a_grid():
    """As fine a grid as one likes reaches the continuous optimum; a coarse one cannot be better."""
    from benchmarks.reproduce_low_dim_maps import RBF, minimax_weights, on_a_grid

    free = np.array([0.0, 1.629643, 3.269270, 4.924294])
    lag = np.linspace(0, np.pi, 161)
    best = minimax_weights(free, RBF.signature(lag), lag)[1]
    assert best < 0.0522
    assert best <= on_a_grid(free, 0.025) < 0.0540
