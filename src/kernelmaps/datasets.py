"""Datasets by name: bundled, synthetic, fetched, and files."""

from .data.fetching import fetch, fetch_letter, fetch_mnist, fetch_spambase
from .data.loader import Dataset, data_folder, load, names, read_npz
from .data.reading import Rows, read_rows
from .data.synthetic import make_bag_of_words, make_histograms

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
