"""Mergeable statistics and folding them over arrays, files, streams and Dask."""

from .composite import FoldMoments, KernelMoments, load_stats
from .folding import choose_block_rows, fold
from .moments import Moments
from .sources import Source, open_source

__all__ = [
    "FoldMoments",
    "KernelMoments",
    "Moments",
    "Source",
    "choose_block_rows",
    "fold",
    "load_stats",
    "open_source",
]
