"""Data behind one loader: bundled, synthetic, and a folder of ``.npz`` files."""

from .fetching import fetch, fetch_letter, fetch_mnist, fetch_spambase
from .loader import Dataset, data_folder, load, names, read_npz
from .reading import Rows, read_rows
from .synthetic import make_bag_of_words, make_histograms

__all__ = [
    "Dataset",
    "Rows",
    "data_folder",
    "fetch",
    "fetch_letter",
    "fetch_mnist",
    "fetch_spambase",
    "load",
    "make_bag_of_words",
    "make_histograms",
    "names",
    "read_npz",
    "read_rows",
]
