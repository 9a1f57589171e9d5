"""Maps and additive SVMs for tests that are not about loops: nothing is compiled for them."""

from importlib import import_module

import numpy as np

from kernelmaps.models.rows.map_basis import make_basis
from kernelmaps.models.solvers.dual import Solution


def draw_weights(X, problem, fitted, options, alpha, intercept, rounded):
    """What the solver returns, with weights and intercepts at random: any are those of a model."""
    rng = np.random.default_rng([options.seed, int(problem.positive.flat[0])])
    basis, lanes = make_basis(fitted.spec, X, np.dtype(np.float64)), problem.positive.size
    weights = rng.normal(size=(fitted.n_columns, lanes)) / X.shape[1]
    return Solution(
        weights=basis.transform_weights(weights),
        intercept=rng.normal(size=lanes),
        alpha=np.zeros_like(alpha),
        primal=np.ones(lanes),
        gap=np.zeros(lanes),
        n_iter=1,
        converged=True,
    )


def take_readable_forms(patch):
    """Let maps and codes run in their readable form, as without a compiler."""
    for name in ("apply", "encode"):
        module = import_module(f"kernelmaps.engine.{name}")  # its name is that of a function
        patch.setattr(module, "is_interpreted", lambda: True)
