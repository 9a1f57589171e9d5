"""How long designs take: one-dimensional ones up to 11 columns, tables, two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernelmaps as km
from kernelmaps.design.joint import design_joint_map

from .harness import Bench
from .machine import best_seconds


def run(bench: Bench) -> None:
    """Fresh designs, without ready ones and without the cache."""

    def seconds(*arguments: Any, **options: Any) -> float:
        return best_seconds(lambda: km.design_map(*arguments, cache=False, **options), 2)

    for kernel in ("chi2", "jensen_shannon", "intersection"):
        for columns in (5, 11):
            bench.measure(
                f"cosines, {kernel}, {columns} columns, certificate included",
                seconds(kernel, columns), "s", at_most=1.5,
                note="bounded by HiGHS calls for kernels with a kink, else by the rank bound",
            )  # fmt: skip
    bench.measure("cosines, χ², relative error, 11 columns", seconds("chi2", 11, error="relative"),
                  "s", at_most=1.5)  # fmt: skip
    for kernel in ("chi2", "intersection"):
        took = seconds(kernel, 5, method="minimax")
        bench.measure(f"minimax table, {kernel}, 5 columns", took, "s",
                      note="L-BFGS on p-norms")  # fmt: skip
    ready = best_seconds(lambda: km.design_map("intersection", 11), 3)
    bench.measure("a ready design (intersection, 11 columns), certificate included", ready, "s",
                  at_most=0.2)  # fmt: skip
    square = [(0, np.pi)] * 2
    rbf = km.kernels.Gaussian(np.sqrt(0.1))
    sizes = (31,) if bench.quick else (31, 101)
    for columns in sizes:
        took = best_seconds(lambda c=columns: design_joint_map(rbf, c, square, cache=False), 1)
        bench.measure(
            f"two dimensions, both forms, {columns} columns, certificate included",
            took, "s", at_most=240.0,
            note="bounded by the p-norm descents, then by HiGHS in the Taylor programs",
        )  # fmt: skip
