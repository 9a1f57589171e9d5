"""The bundled digits, synthetic data, and files."""

from .data.datasets import Dataset, load, make_histograms
from .data.reading import Rows, read_rows
from .data.table_files import open_table

__all__ = ["Dataset", "Rows", "load", "make_histograms", "open_table", "read_rows"]
