"""Data behind one loader: bundled, synthetic, and a folder of ``.npz`` files."""

from .loader import Dataset, data_folder, load, names, read_npz
from .reading import Rows, read_rows
from .synthetic import make_bag_of_words, make_histograms

__all__ = [
    "Dataset",
    "Rows",
    "data_folder",
    "load",
    "make_bag_of_words",
    "make_histograms",
    "names",
    "read_npz",
    "read_rows",
]
