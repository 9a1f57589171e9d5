"""The table of a fitted model says what its terms say, value by value."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps._util.schema import SchemaError
from kernelmaps.data.columns import Column
from kernelmaps.engine import record_paths
from kernelmaps.models.gam.codebooks import MISSING, OTHER, Codebook, fit_codebook
from kernelmaps.models.gam.pairs import bin_means, coarse_codes
from kernelmaps.models.gam.predictor import AdditivePredictor, FittedTerm, Posterior

LEVELS = ["a", "b", "c", "new"]
HUGE = 1.7e308


def books(rng, n=3000):
    columns = {
        "even": rng.normal(size=n),
        "ties": np.round(rng.lognormal(0, 2, n), 1),
        "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 900, n) / 7),
        "sizes": np.concatenate([[1e300] * 3, [-1e300] * 3, [5e-324] * 3, rng.normal(size=n - 9)]),
        "ends": np.repeat([-HUGE, 0.0, HUGE], n // 3),
        "flat": np.ones(n),
        "void": np.full(n, np.nan),
    }
    found = [fit_codebook(Column(k, own, None, []), np.ones(n)) for k, own in columns.items()]
    none = np.zeros(0)
    found.append(Codebook("words", "category", none, none, ("c", "a"), True))
    return (*found, Codebook("names", "category", none, none, (), False))


def term(rng, kind, columns, shape, coarse=()):
    values, few = rng.normal(size=shape), np.zeros(shape[-1])
    return FittedTerm(
        "t", kind, columns, values, rng.random(shape), np.ones(shape[:-1]), few, few, few,
        np.zeros((1, shape[-1])), few, coarse,
    )  # fmt: skip


def interpolated_pair(rng, own, columns, outputs, linear=()):
    """A pair that is interpolated between the means of coarse bins, of columns of numbers."""
    counts = [rng.integers(1, 9, own[j].n_codes).astype(float) for j in columns]
    coarse = [coarse_codes(own[j], weight, 6) for j, weight in zip(columns, counts, strict=True)]
    positions = tuple(
        bin_means(c, own[j].nodes, w) for j, c, w in zip(columns, coarse, counts, strict=True)
    )
    shape, codes = tuple(c.size for c in coarse), tuple(c.of_code for c in coarse)
    pair = term(rng, "pair", columns, (*shape, outputs), codes)
    return replace(pair, positions=positions, linear=linear)


def model(rng, outputs):
    """Functions of every kind of column, and pairs of them between."""
    own, terms = books(rng), []
    for j, book in enumerate(own):
        terms.append(term(rng, "category", (j,), (book.n_codes, outputs)))
        k = (j + 3) % len(own)
        sizes = (5, 4)
        pair = [rng.integers(0, s, own[i].n_codes).astype(np.uint8) for s, i in zip(sizes, (j, k))]
        terms.append(term(rng, "pair", (j, k), (*sizes, outputs), tuple(pair)))
        linear = (own[j].name == "even", own[k].name in ("even", "gaps"))
        terms.append(interpolated_pair(rng, own, (j, k), outputs, linear))
    nodes = own[0].nodes
    line = term(rng, "linear", (0,), (own[0].n_codes, outputs))
    line = replace(line, extrapolation="linear")
    line.values[1:] = np.outer(nodes - nodes.mean(), rng.normal(size=outputs))
    intercept, posterior = rng.normal(size=outputs), Posterior((), np.zeros((outputs, 1), "f4"))
    return AdditivePredictor(None, own, (*terms, line), intercept, posterior, "squared_error")


def rows(rng, own, n):
    """Edges, nodes and their neighbours, values beyond, gaps, levels that training did not have."""
    out = []
    for book in own:
        if book.kind == "category":
            out.append(Column(book.name, None, rng.integers(-1, len(LEVELS), n), LEVELS))
            continue
        known = np.concatenate([book.edges, book.nodes, np.nextafter(book.edges, -np.inf)])
        far = 1e9 if book.name == "even" else HUGE  # it has the line, which goes on
        some = np.concatenate([known, rng.normal(size=9), [far, -far, 0, np.nan]])
        out.append(Column(book.name, rng.permutation(np.resize(some, n)), None, []))
    return out


def code(book, column, i):
    """Code of a row, by what a codebook says of itself."""
    if book.kind == "category":
        name = LEVELS[column.codes[i]] if column.codes[i] >= 0 else None
        known = {level: k + 2 for k, level in enumerate(book.levels)}
        return MISSING if name is None else known.get(name, OTHER)
    x = column.values[i]
    return MISSING if np.isnan(x) or not len(book.nodes) else 1 + int(np.sum(book.edges <= x))


def value(fitted, own, columns, i):
    """A term's value for a row, by what a term says of itself."""
    at = [code(fitted.books[j], columns[j], i) for j in own.columns]
    if own.coarse:
        table, codes = own.values, [c[k] for c, k in zip(own.coarse, at, strict=True)]
        for axis, (j, nodes) in enumerate(zip(own.columns, own.positions)):
            if len(nodes) > 1 and own.linear[axis]:
                weight = own.counts.sum(axis=1 - axis)[1:]
                x = weight @ nodes / weight.sum() if at[axis] == MISSING else columns[j].values[i]
                share = (x - nodes[0]) / (nodes[-1] - nodes[0])
                first, last = np.take(table, 1, axis), np.take(table, -1, axis)
                table = np.expand_dims((1 - share) * first + share * last, axis)
                codes[axis] = 0
            elif codes[axis] != MISSING and len(nodes) > 1:  # of the place among the nodes
                x = np.clip(columns[j].values[i], nodes[0], nodes[-1])
                left = min(int(np.sum(nodes[1:] <= x)), len(nodes) - 2)
                share = (x / 2 - nodes[left] / 2) / (nodes[left + 1] / 2 - nodes[left] / 2)
                ends = np.take(table, [left + 1, left + 2], axis)
                table = np.tensordot([1 - share, share], np.moveaxis(ends, axis, 0), 1)
                table, codes[axis] = np.expand_dims(table, axis), 0
        return table[codes[0], codes[1]]
    book, column = fitted.books[own.columns[0]], columns[own.columns[0]]
    if at[0] == MISSING or len(book.nodes) < 2:
        return own.values[at[0]]
    x, nodes, values = column.values[i], book.nodes, own.values[1:]
    if own.kind == "linear":
        share = (x - nodes[0]) / (nodes[-1] - nodes[0])
        return values[0] + share * (values[-1] - values[0])
    return [np.interp(x, nodes, out) for out in values.T]


@pytest.mark.compiled
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("path", ["reference:table", "table:edges:dense"])
def test_scores_and_contributions_are_those_of_the_terms(seed, outputs, path):
    rng = np.random.default_rng(seed)
    fitted = model(rng, outputs)
    n = 200 if path.startswith("reference") else 450 if outputs > 1 else 1500
    columns = rows(rng, fitted.books, n)
    with record_paths() as taken:
        found = fitted.contributions(columns)
    assert set(taken) == {path}
    assert found.shape == (n, len(fitted.terms), outputs)
    some = rng.choice(n, 200, replace=False)
    wanted = [[value(fitted, own, columns, i) for own in fitted.terms] for i in some]
    np.testing.assert_allclose(found[some], wanted, rtol=1e-12, atol=1e-12)
    scores = fitted.intercept + found.sum(axis=1)
    np.testing.assert_allclose(fitted.scores(columns), scores, rtol=1e-12, atol=1e-12)


def test_what_prediction_keeps_is_not_pickled(seed):
    rng = np.random.default_rng(seed)
    fitted = model(rng, 1)
    before = pickle.dumps(fitted)
    fitted.scores(rows(rng, fitted.books, 5))
    assert "_prediction_terms" in vars(fitted)
    assert len(pickle.dumps(fitted)) == len(before)
    assert "_prediction_terms" not in vars(pickle.loads(pickle.dumps(fitted)))


def test_a_file_without_terms_is_refused():
    with pytest.raises(SchemaError, match="must be a tuple"):
        AdditivePredictor._state.required["terms"]((), "terms", {})


def test_curves_continue_with_their_slope_if_asked_for(seed):
    """Beyond the training rows: constant by default, else a straight line with growing errors."""
    rng = np.random.default_rng(seed)
    X = rng.random((300, 1))
    y = 3 * X[:, 0] + np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=300)
    beyond = np.array([[-2.0], [-1.0], [1.5], [2.0], [2.5]])
    constant = km.AdditiveRegressor().fit(X, y).predict(beyond)
    assert constant[0] == constant[1]
    assert constant[2] == constant[4]
    model = km.AdditiveRegressor(terms=[km.Term(0, extrapolation="linear")]).fit(X, y)
    predictions, std = model.predict(beyond, return_std=True)
    shape = model.shape_functions_[0]
    slope = shape.derivative().values
    end = model.intercept_ + shape.values[-1] + slope[-1] * (beyond[2:, 0] - shape.grid[-1])
    np.testing.assert_allclose(predictions[2:], end)
    start = model.intercept_ + shape.values[0] + slope[0] * (beyond[:2, 0] - shape.grid[0])
    np.testing.assert_allclose(predictions[:2], start)
    assert std[4] > std[3] > std[2] > 2 * model.predict(X, return_std=True)[1].max()
    inside = np.linspace(shape.grid[0], shape.grid[-1], 50)[:, None]
    terms = model.intercept_ + np.interp(inside[:, 0], shape.grid, shape.values)
    np.testing.assert_allclose(model.predict(inside), terms)


def test_means_of_coarse_bins_are_those_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.lognormal(0, 2, 3000))
    book = fit_codebook(Column("x", values, None, []), np.ones(3000))
    codes = 1 + np.searchsorted(book.edges, values, side="right")
    values = book.nodes[codes - 1]
    counts = np.bincount(codes, minlength=book.n_codes).astype(float)
    coarse = coarse_codes(book, counts, 20)
    assert coarse.size <= 20
    of_rows = coarse.of_code[codes]
    means = [values[of_rows == k].mean() for k in range(1, coarse.size)]
    np.testing.assert_allclose(bin_means(coarse, book.nodes, counts), means, rtol=1e-12)


def restore(term):
    """Hold a term to its schema, as one that is read from a file."""
    term._state.check(vars(term), "term")
    term._check_state()


def test_positions_of_another_pair_are_refused(seed):
    rng = np.random.default_rng(seed)
    pair = interpolated_pair(rng, books(rng), (0, 1), 1)
    restore(pair)
    first, second = pair.positions
    for positions, problem in (
        ((first,), "of other columns"),
        ((first[::-1], second), "increasing numbers|2 dimensions"),
        ((first[1:], second), "of other cells"),
    ):
        with pytest.raises(SchemaError, match=problem):
            restore(replace(pair, positions=positions))
    with pytest.raises(SchemaError, match="of other columns"):
        restore(replace(pair, linear=(True,)))
