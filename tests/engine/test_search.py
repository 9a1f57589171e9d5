"""The search tables find the bin that a full search finds, for edges of every kind."""

from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from kernelmaps.engine import encode
from kernelmaps.engine.apply import stored_columns
from kernelmaps.engine.encode import _encode_by_formula, encode_within, fraction_bits
from kernelmaps.engine.piecewise import spec_of, table_of
from kernelmaps.engine.table import AFFINE, EDGES, Table
from kernelmaps.engine.table.layout import code_bins

ENCODING = import_module("kernelmaps.engine.encode")  # whose name is that of a function, too


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Few values, too, are encoded by the compiled loop."""
    monkeypatch.setattr(ENCODING, "_MAX_READABLE", 0)


KINDS = {
    "even": lambda rng: np.linspace(-1, 3, 41),
    "quadratic": lambda rng: np.linspace(0, 2, 65) ** 2,
    "geometric": lambda rng: np.append(0, np.geomspace(1e-9, 1e3, 200)),
    "far": lambda rng: 1e6 + np.sort(rng.random(30)),
    "crowded": lambda rng: np.unique(np.append(rng.random(500) * 1e-5, [1.0, 2.0])),
    "random": lambda rng: np.sort(rng.standard_normal(300)),
    "one bin": lambda rng: np.array([0.5, 1.5]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finds_what_a_full_search_finds(dtype, seed):
    rng = np.random.default_rng(seed)
    edges = [make(rng).astype(dtype).astype(float) for make in KINDS.values()]
    edges = [np.unique(e) for e in edges]
    table = _table(edges, np.tile(np.arange(len(edges)), 3))  # whole vectors, and what is left
    X = np.column_stack([rng.uniform(e[0] - 0.1, e[-1] + 0.1, 2000) for e in edges]).astype(dtype)
    for j, e in enumerate(edges):  # the edges themselves, and their neighbours
        near = np.concatenate([e, np.nextafter(dtype(e), dtype(np.inf))])[:900]
        X[: len(near), j] = near
        X[1000:1500, j] = rng.choice(e, 500) + np.diff(e).min() * rng.random(500)
    spec = spec_of(table)
    found = encode(spec, np.tile(X, 3))
    for j, e in enumerate(edges * 3):
        expected = np.clip(np.searchsorted(e, X[:, j % 7], side="right") - 1, 0, len(e) - 2)
        assert (found[:, j] == expected).all(), list(KINDS)[j % 7]
    rows = sparse.csr_matrix(np.tile(X, 3))
    stored = stored_columns(table.astype(dtype), rows.data, rows.indices, rows.indptr, 1)
    np.testing.assert_array_equal(stored.data, found[rows.nonzero()])


def _table(edges, set_of, degree=0):
    d = len(edges)
    coef = [np.zeros((len(e) - 1, degree + 1, 1)) for e in edges]
    for numbers in coef:  # a value is the number of its bin
        numbers[:, 0, 0] = np.arange(len(numbers))
    return Table.build(
        EDGES, degree, coef, set_of, origin=np.zeros(d), resolution=np.ones(d), edges=edges
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positions_are_those_of_their_rule(dtype, seed):
    """Bit by bit: at edges and next to them, outside, and infinite."""
    rng = np.random.default_rng(seed)
    merged = 1 + np.arange(40) * 2.0**-26  # by float32
    for edges in (*(KINDS[kind](rng) for kind in KINDS), merged):
        edges = np.unique(edges)
        spec = spec_of(_table([edges], np.zeros(19, int), degree=1))
        near = rng.choice(edges, 19 * 50).astype(dtype)
        x = [near, np.nextafter(near, dtype(-np.inf)), np.nextafter(near, dtype(np.inf))]
        x.append(rng.uniform(edges[0] - 1, edges[-1] + 1, 19 * 50).astype(dtype))
        x = np.concatenate(x)
        x[:2] = -np.inf, np.inf
        wide = np.float64(x)
        b = np.searchsorted(edges[1:-1], wide, side="right")
        position = b + (wide - edges[b]) / (edges[b + 1] - edges[b])
        unit = 2 ** fraction_bits(table_of(spec))
        expected = np.floor(np.clip(position, 0, len(edges) - 1) * unit + 0.5)
        assert (encode(spec, x.reshape(-1, 19)) == expected.reshape(-1, 19)).all()


@pytest.mark.parametrize("kind", ["even", "quadratic", "geometric"])
def test_cells_have_one_edge_at_most_and_are_not_many(kind):
    edges = KINDS[kind](None)
    bins = code_bins(_table([edges], np.zeros(3, int)))
    assert np.diff(bins.before).max() == 1
    assert len(bins.before) <= 64 * len(edges)


@pytest.mark.parametrize("degree", [0, 1])
def test_nan_is_reported_and_stays_within_the_tables(degree):
    edges = KINDS["quadratic"](None)
    spec = spec_of(_table([edges], np.zeros(17, int), degree))
    X = np.full((3, 17), 1, np.float32)
    assert encode_within(spec, X, 0, 4)[1]
    X[1, 5] = X[2, 16] = np.nan
    codes, inside = encode_within(spec, X, 0, 4)
    assert not inside
    assert (np.delete(codes[1], 5) == codes[0, 0]).all()
    assert codes.max() <= (len(edges) - 1) << 8 * degree


@pytest.mark.parametrize("degree", [0, 1])
def test_whole_numbers_have_the_codes_of_floats(degree):
    edges = np.array([-0.5, 3, 10.5, 100.25, 101, 255])
    spec = spec_of(_table([edges], np.zeros(2, int), degree))
    X = np.arange(256, dtype=np.uint8).reshape(-1, 2)
    codes = encode(spec, X)
    assert (codes == encode(spec, X.astype(float))).all()


@pytest.mark.parametrize(
    ("dtype", "bins", "degree"),
    [
        *((np.float32, bins, degree) for bins in (40, 3000, 65_000) for degree in (0, 1)),
        *((np.float64, 40, degree) for degree in (0, 1)),
    ],
)
def test_even_codes_of_any_number_are_those_of_the_readable_form(seed, dtype, bins, degree):
    """At the ends, next to them and as far away as numbers go; codes of one, two and four bytes."""
    lo, scale = np.array([0.0, -3.0, 1e4, 1e-7]), bins / np.array([1.0, 7.3, 0.25, 1e-9])
    sets = np.zeros((bins, degree + 1, 1))
    table = Table.build(
        AFFINE, degree, [sets] * 4, np.arange(4),
        origin=lo, resolution=scale, clip_low=lo, clip_high=lo + bins / scale,
    )  # fmt: skip
    ends = np.stack([table.clip_low, table.clip_high]).astype(dtype)
    far = np.array([np.inf, np.finfo(dtype).max, 1e30, 1e12, 1e3])
    X = np.concatenate([
        ends, np.nextafter(ends, dtype(np.inf)), np.nextafter(ends, dtype(-np.inf)),
        np.outer([*far, *-far], np.ones(4)),
        lo + np.random.default_rng(seed).random((200, 4)) * bins / scale,
    ]).astype(dtype)  # fmt: skip
    spec = spec_of(table)
    with np.errstate(over="ignore"):
        expected, _ = _encode_by_formula(spec, X, -np.inf, np.inf)
    np.testing.assert_array_equal(encode(spec, X), expected)
    for k in range(len(X)):  # what is outside is noticed, one number at a time
        inside = (X[k] >= ends[0]) & (X[k] <= ends[1])
        assert encode_within(spec, X[k : k + 1], *ends)[1] == inside.all()


@pytest.mark.parametrize("degree", [0, 1])
def test_even_codes_do_not_depend_on_the_range_that_is_asked_for(degree):
    """Values outside have the codes that they have without a range."""
    table = Table.build(
        AFFINE, degree, [np.zeros((200, degree + 1, 1))], [0],
        origin=np.zeros(1), resolution=np.array([200.0]), clip_low=0.0, clip_high=1.0,
    )  # fmt: skip
    spec, X = spec_of(table), np.array([[0.1], [0.5], [0.9], [1e5], [-1e5], [np.inf], [-np.inf]])
    codes, inside = encode_within(spec, X, 0.4, 0.6)
    assert not inside
    np.testing.assert_array_equal(codes, _encode_by_formula(spec, X, 0, 1)[0])
    assert encode_within(spec, X, -np.inf, np.inf)[1]


@pytest.mark.parametrize("bits", [20, 30, 38, 40, 42, 44])
def test_even_codes_where_float32_is_coarser_than_bins(seed, bits):
    rng = np.random.default_rng(seed)
    lo = 10.0 ** rng.uniform(-3, 6, 60) * rng.choice([-1, 1], 60)
    scale = 250 / (np.abs(lo) * 2.0**-bits)
    table = Table.build(
        AFFINE, 1, [np.zeros((250, 2, 1))] * 60, np.arange(60),
        origin=lo, resolution=scale, clip_low=lo, clip_high=lo + 250 / scale,
    )  # fmt: skip
    near = lo.astype(np.float32)
    X = np.stack([near, np.nextafter(near, np.float32(1e9)), np.nextafter(near, np.float32(-1e9))])
    X = np.concatenate([X, 2 * X, -X, 0 * X])
    spec = spec_of(table)
    np.testing.assert_array_equal(encode(spec, X), _encode_by_formula(spec, X, -np.inf, np.inf)[0])
