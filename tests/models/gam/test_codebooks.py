"""Codes keep what a column says: numbers in at most 256 of them."""

import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from table_columns import columns_of

import kernelmaps as km
from kernelmaps.data.columns import Column
from kernelmaps.models.gam import codebooks, design
from kernelmaps.models.gam.codebooks import MISSING, OTHER, encode_columns, fit_codebook


def number(values):
    return Column("a", np.asarray(values, float), None, [])


def fitted(column, weight=None, frequency=False):
    weight = np.ones(len(column)) if weight is None else weight
    book = fit_codebook(column, weight, frequency)
    return book, coded(book, column)


def coded(book, column):
    return encode_columns([book], [column], "Model")[0]


def expected(book, column):
    """Codes by their definition."""
    if book.kind == "category":
        names = [column.levels[k] if k >= 0 else None for k in column.codes]
        own = {None: MISSING, **{level: k + 2 for k, level in enumerate(book.levels)}}
        return [own.get(name, OTHER) for name in names]
    if not len(book.nodes):
        return np.full(len(column), MISSING)
    bins = np.searchsorted(book.edges, column.values, side="right")
    return np.where(np.isnan(column.values), MISSING, bins + 1)


def test_bins_of_many_values_hold_about_as_many_each(seed):
    values = np.random.default_rng(seed).lognormal(size=20000)
    book, codes = fitted(number(values))
    counts = np.bincount(codes, minlength=book.n_codes)
    assert book.n_codes == 256
    assert counts[MISSING] == 0
    inner = 255 - 2 * 6  # the outer bin of each side is halved six times
    share = 20000 / inner
    np.testing.assert_allclose(counts[8:-7], share, atol=2)
    np.testing.assert_allclose(counts[2:8], share / 2.0 ** np.arange(6, 0, -1), atol=2)
    np.testing.assert_allclose(counts[-7:-1], share / 2.0 ** np.arange(1, 7), atol=2)
    means = np.bincount(codes - 1, values) / counts[1:]
    np.testing.assert_allclose(book.nodes, means, rtol=1e-12)
    assert (np.diff(book.nodes) > 0).all()


@pytest.mark.parametrize("scale", [lambda m: m, lambda m: np.cos(np.pi * m / 6), lambda m: 1e9 * m])
def test_values_that_differ_by_rounding_errors_have_one_code(seed, scale):
    """Errors of 1e-13 of months are none; small steps of large numbers are not taken for errors."""
    rng = np.random.default_rng(seed)
    months = rng.integers(1, 13, 3000)
    noisy = scale(months + 1e-13 * rng.normal(size=3000))
    book, codes = fitted(number(noisy))
    clean, expected_codes = fitted(number(scale(months.astype(float)).round(10)))
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(book.nodes, clean.nodes, rtol=1e-12, atol=1e-10)
    assert book.exact


@pytest.mark.parametrize(
    "values",
    [1.7e9 + np.arange(200), np.append(np.arange(200), 1e12), [0, 5e-324], [-1e308, 1e308]],
)
def test_values_that_are_not_errors_have_codes_of_their_own(values):
    """Seconds since 1970, amounts with a large one, the ends of floating-point numbers."""
    assert len(np.unique(fitted(number(values))[1])) == len(values)


@pytest.mark.parametrize(("n_values", "exact"), [(255, True), (256, False)])
def test_255_values_have_codes_of_their_own(seed, n_values, exact):
    values = np.random.default_rng(seed).permutation(np.arange(n_values) / 7)
    book, codes = fitted(number(values))
    assert book.exact == exact
    assert len(np.unique(codes)) == len(book.nodes)
    if exact:
        np.testing.assert_array_equal(book.nodes[codes - 1], values)


@pytest.mark.parametrize("n", [60, 700])
def test_another_unit_of_a_column_changes_no_prediction(seed, n):
    """Values of single rows in the tails of a skewed column, ties and whole numbers included."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.lognormal(0, 2, n), "b": rng.integers(0, 90, n), "c": rng.random(n)})
    y = np.log(X["a"]) + np.sin(X["b"] / 9) + rng.normal(size=n)
    expected = km.AdditiveRegressor().fit(X, y).predict(X)
    for unit in (1e-3, 1e6):
        predicted = km.AdditiveRegressor().fit(unit * X, y).predict(unit * X)
        np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6 * np.ptp(y))


def test_a_frequency_is_a_row_that_occurs_so_often(seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.normal(size=300), rng.integers(1, 5, 300)
    one, _ = fitted(number(values), weight.astype(float))
    other, _ = fitted(number(np.repeat(values, weight)))
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_allclose(one.nodes, other.nodes, rtol=1e-12)


@pytest.mark.parametrize("values", [[3.0, 3.0], [np.nan, np.nan], []])
def test_nothing_to_tell_apart(values):
    book, codes = fitted(number(values))
    assert len(set(codes)) <= 1
    assert book.n_codes <= 2


def test_rows_without_weight_have_no_say():
    book, _ = fitted(number([1.0, 1.0, 2.0, 2.0, 99.0]), np.array([1.0, 1, 1, 1, 0]))
    assert book.nodes.max() == 2


@pytest.mark.parametrize(("n_levels", "dtype"), [(254, np.uint8), (300, np.uint16)])
def test_codes_of_many_levels_are_wider(n_levels, dtype):
    column = words([f"l{k}" for k in range(n_levels) for _ in range(3)])
    book, codes = fitted(column)
    assert (book.n_codes, book.exact, codes.dtype) == (n_levels + 2, True, dtype)
    assert book.is_large == (dtype != np.uint8)
    np.testing.assert_array_equal(np.bincount(codes)[2:], 3)


def test_levels_beyond_the_most_frequent_are_other():
    names = [f"l{k}" for k in range(300) for _ in range(3 + (k < 254))]
    X = np.array(names, dtype=object)[:, None]
    column = columns_of(X)[0]
    book = fit_codebook(column, np.ones(len(names)), max_levels=254)
    codes = coded(book, column)
    assert book.n_codes == 256
    assert not book.exact
    rare = np.array([int(name[1:]) >= 254 for name in names])
    assert (codes[rare] == OTHER).all()
    assert (codes[~rare] > OTHER).all()
    unseen = columns_of(np.array([["new"], [None]], dtype=object))[0]
    assert list(coded(book, unseen)) == [OTHER, MISSING]


def words(names):
    return columns_of(np.array(names, dtype=object)[:, None])[0]


def test_levels_of_one_or_two_rows_are_other():
    book, codes = fitted(words(["one", "two", "two", *["three"] * 3]))
    assert book.levels == ("three",)
    assert not book.exact
    assert list(codes) == [OTHER] * 3 + [OTHER + 1] * 3
    names, codes = fitted(words([f"name {k}" for k in range(50)]))
    assert names.levels == ()
    assert (codes == OTHER).all()


def test_rows_of_a_level_are_counted_by_whole_frequencies():
    column = words(["a", "b", "b", "b", "c", "c", "c", "c"])
    counts = np.array([3.0, 1, 1, 0, 1, 1, 1, 0])
    assert fitted(column, counts, frequency=True)[0].levels == ("a", "c")
    # Other weights, however large or small, say nothing of how many rows there are.
    for scale in (0.001, 0.5, 10.5):
        assert fitted(column, np.full(8, scale))[0].levels == ("b", "c")


def test_all_columns_are_coded_as_each_alone(seed):
    """Ties with edges, values beyond the range, gaps and extreme sizes included."""
    rng = np.random.default_rng(seed)
    n = 5000
    parts = [
        rng.normal(size=n),
        np.round(rng.lognormal(0, 2, n), 1),
        rng.integers(0, 7, n).astype(float),
        np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 900, n) / 7),
        np.concatenate([[1e300, -1e300, 5e-324, 0.0], rng.normal(size=n - 4) * 1e-200]),
        rng.choice([-1.0, 1.0], n),  # the only edge is zero, next to which numbers have no room
        rng.choice([-1.0, 1.0], n) * 1e-300,
        rng.integers(0, 9, n) * 1e-310,
        rng.integers(0, 9, n) * 5e-324,
        np.ones(n),
        np.full(n, np.nan),
    ]
    columns = [Column(f"x{j}", values, None, []) for j, values in enumerate(parts)]
    levels = ["a", "b", "c"]
    columns.append(Column("words", None, rng.integers(-1, 3, n), levels))
    books = [fit_codebook(column, np.ones(n)) for column in columns]
    later = []
    for book in books[:-1]:
        below = np.nextafter(book.edges, -np.inf)
        values = np.concatenate([book.edges, book.nodes, below, [1e308, -1e308, np.nan]])
        later.append(Column(book.name, np.resize(values, 800), None, []))
    later.append(Column("words", None, rng.integers(-1, 4, 800), [*levels, "unseen"]))
    for rows in (columns, later):
        found = encode_columns(books, rows, "test")
        for book, column, codes in zip(books, rows, found, strict=True):
            np.testing.assert_array_equal(codes, expected(book, column))
            assert codes.dtype == np.uint8


@pytest.mark.parametrize("n_rows", [60, 300, 1001])
@pytest.mark.parametrize("digits", [1, 9])
def test_mirrored_values_have_mirrored_bins(seed, n_rows, digits):
    """Also if they share values; a middle row, of an odd number of rows, may change its bin."""
    values = np.round(np.random.default_rng(seed).normal(size=n_rows), digits)
    book, codes = fitted(number(values))
    mirrored, other = fitted(number(-values))
    assert len(book.nodes) == len(mirrored.nodes)
    changed = len(book.nodes) + 1 - other.astype(int) != codes
    assert changed.sum() <= (n_rows % 2) * np.unique(values, return_counts=True)[1].max()


@pytest.mark.parametrize("beside", [False, True])
def test_levels_that_share_a_code_are_named(seed, monkeypatch, beside):
    """Beside a larger factor, the message says what share of the rows has no effect of its own."""
    monkeypatch.setattr(design, "MAX_FURTHER_LEVELS", 254)
    rng = np.random.default_rng(seed)
    town = np.repeat(np.arange(300), 4)
    X = pd.DataFrame({"town": [f"t{k}" for k in town], "x": rng.random(len(town))})
    if beside:
        X["customer"] = [f"c{k}" for k in rng.permutation(len(town)) // 3]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        km.AdditiveRegressor().fit(X, rng.normal(size=len(town)))
    messages = [str(item.message) for item in caught if "levels" in str(item.message)]
    if not beside:
        assert messages == []
    else:
        (message,) = messages
        assert "'town' has more than 254 levels, and 'customer' more still" in message
        assert "15% of the rows" in message  # 46 of 300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        km.AdditiveRegressor(terms={"town": None}).fit(X, rng.normal(size=len(town)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_edges", [1, 2, 254])
def test_many_values_have_the_bins_of_a_search(dtype, n_edges):
    rng = np.random.default_rng(n_edges)
    edges = np.sort(rng.lognormal(sigma=5, size=n_edges))
    n = codebooks.CODING.few_values + 1
    values = rng.lognormal(sigma=6, size=n) * rng.choice([-1, 1], n)
    values[: 3 * n_edges] = np.concatenate([edges, np.nextafter(edges, 0), -edges])
    values[-5:] = np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).max
    values = values.astype(dtype)
    with patch.object(codebooks, "encode_into", wraps=codebooks.encode_into) as engine:
        bins = codebooks._find_bins(edges, values)
    assert engine.called
    assert_array_equal(bins, np.searchsorted(edges, values, side="right"))
