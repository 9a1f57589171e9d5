"""Displays: computed once, drawn later; matplotlib is imported only when something is drawn."""

from .kernel_error import KernelErrorDisplay

__all__ = ["KernelErrorDisplay"]
