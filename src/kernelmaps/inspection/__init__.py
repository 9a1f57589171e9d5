"""Displays: computed once, drawn later; matplotlib is imported only when something is drawn."""

from .kernel_error import KernelErrorDisplay
from .shape_functions import ShapeFunctionDisplay

__all__ = ["KernelErrorDisplay", "ShapeFunctionDisplay"]
