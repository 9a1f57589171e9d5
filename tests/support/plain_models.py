"""Additive SVMs for tests that are not about training: nothing is compiled for them."""

import numpy as np
from scipy import sparse

from kernelmaps.engine.reference import evaluate_table
from kernelmaps.models.rows.map_tables import bands_of
from kernelmaps.models.solvers.dual import Solution


def draw_weights(X, problem, fitted, options, settings, alpha, intercept, codes):
    """What the solver returns, with weights and intercepts at random: any are those of a model."""
    rng = np.random.default_rng([settings.seed, int(problem.positive.flat[0])])
    bands, lanes = bands_of(fitted.spec, X, np.dtype(np.float64)), problem.positive.size
    weights = rng.normal(size=(fitted.n_columns, lanes)) / X.shape[1]
    return Solution(
        weights=bands.band_weights(weights),
        intercept=rng.normal(size=lanes),
        alpha=np.zeros_like(alpha),
        primal=np.ones(lanes),
        gap=np.zeros(lanes),
        n_iter=1,
        converged=True,
    )


def evaluate_plainly(machine, X, out, some_rows, n_jobs):
    """Scores [row][0][output] or terms [row][feature][output]: each feature's columns, weighted."""
    X = X if some_rows is None else X[some_rows]
    rows = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
    table = bands_of(machine.fitted.spec, X, np.dtype(np.float64)).table
    phi = np.split(evaluate_table(table, rows, np), table.column[1:-1], axis=1)
    terms = [own @ weight[: own.shape[1]] for own, weight in zip(phi, machine.weights, strict=True)]
    terms = np.stack(terms, axis=1)
    out[...] = terms if out.shape[1] == terms.shape[1] else terms.sum(axis=1, keepdims=True)
    return out
