"""Rows as solvers see them: scores, gradient, Gram matrix, restriction to some coefficients."""
