"""Tables of least mean square error: found at once, for tests that need any table."""

import numpy as np

from kernelmaps.design.rank_tables import _fit_table, _leading


def eigen_table(kernel, n_columns):
    """Rank-D map of least mean square error on the fine grid, extended to the nodes by Nyström."""
    points = kernel.fine
    d = np.ones(points.size) if kernel.values is not None else np.sqrt(np.gradient(points))
    values, vectors = _leading(kernel.gram(points), d, n_columns)
    cross = kernel.component(kernel.nodes[:, None], points[None, :])
    some = values > points.size * np.finfo(float).eps * np.max(values)
    root = np.where(some, np.sqrt(np.where(some, values, 1.0)), np.inf)
    return _fit_table(kernel, cross @ (d[:, None] * vectors) / root, kernel.nodes)
