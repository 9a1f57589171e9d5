"""Displays of fitted maps and models; matplotlib is imported only when something is drawn."""

from .plots.kernel_error import KernelErrorDisplay, kernel_error_grid
from .plots.model_check import CheckDisplay
from .plots.panels import PairFunctionDisplay, ShapeFunctionDisplay
from .plots.shapes import importance, shape_functions

__all__ = [
    "CheckDisplay",
    "KernelErrorDisplay",
    "PairFunctionDisplay",
    "ShapeFunctionDisplay",
    "importance",
    "kernel_error_grid",
    "shape_functions",
]
