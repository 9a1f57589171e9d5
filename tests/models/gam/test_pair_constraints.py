"""Shapes along the columns of pairs: predictions keep them, wherever they are looked at."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.models.solvers import linear_systems

PAIR = ("age", "power")
pytestmark = pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")


def training_rows(n=900):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, n),
            "power": np.where(rng.random(n) < 0.05, np.nan, rng.integers(1, 12, n)),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n),
        }
    )
    score = np.tanh((X["age"] - 45) / 10) * np.where(X["power"] > 6, 1, 0.05)
    return X, score + 0.3 * (X["town"] == "Ulm"), rng


def along_age(model, others):
    """Scores along age, beyond the training rows, too: one line for each value of the other."""
    ages, lines = np.linspace(10, 90, 1501), []
    for values in others:
        scores = model.predictor_.scores(
            model.reader_.read(pd.DataFrame({"age": ages, **values}), "test")
        )
        lines.append(scores[:, 0])
    return ages, np.array(lines)


POWERS = [{"power": p, "town": "Bonn"} for p in (-5, 1, 1.5, 4.3, 6.5, 9, 11, 30, np.nan)]
TOWNS = [{"power": 5.0, "town": t} for t in ("Ulm", "Bonn", "Kiel", "Rome", None)]


@pytest.mark.parametrize(
    ("loss", "pair", "others"),
    [
        ("poisson", PAIR, POWERS),
        ("squared_error", ("town", "age"), TOWNS),
    ],
)
def test_predictions_increase_for_every_value_of_the_other_column(loss, pair, others):
    X, score, rng = training_rows()
    y = rng.poisson(np.exp(score)) if loss == "poisson" else score + 0.6 * rng.normal(size=len(X))
    options = {"loss": loss, "interactions": [pair]}
    free = km.AdditiveRegressor(**options).fit(X, y)
    _, lines = along_age(free, others)
    assert np.diff(lines).min() < -1e-4  # without the constraint it falls somewhere
    model = km.AdditiveRegressor(**options, constraints={pair: "increasing in age"}).fit(X, y)
    _, lines = along_age(model, others)
    assert np.diff(lines).min() > -1e-9 * np.ptp(lines)
    assert np.ptp(lines, axis=1).max() > 0.5  # and it still rises
    assert model.objective_[0] >= free.objective_[0] * (1 - 1e-6)


def test_shapes_of_both_columns_and_of_curvature():
    X, score, rng = training_rows()
    y = score + 0.6 * rng.normal(size=len(X))
    shapes = {PAIR: ("concave in age", "decreasing in power")}
    model = km.AdditiveRegressor(interactions=[PAIR], constraints=shapes).fit(X, y)
    ages, lines = along_age(model, POWERS)
    inside = (ages > X["age"].min()) & (ages < X["age"].max())
    assert np.diff(lines[:, inside], 2).max() < 1e-9 * np.ptp(lines)
    assert np.diff(lines[:-1], axis=0).max() < 1e-9 * np.ptp(lines)


@pytest.mark.parametrize(("at_once", "rounds"), [(7, 1000), (7, 1)])  # active sets, interior point
@pytest.mark.parametrize("equality", [False, True])  # no point is inside of all constraints
def test_every_method_finds_the_same_minimum(seed, monkeypatch, at_once, rounds, equality):
    """The minimum under Cβ ≥ 0 is unique: it depends neither on the order nor on the method."""
    rng = np.random.default_rng(seed)
    root, constraints = rng.normal(size=(12, 8)), rng.normal(size=(300, 8))
    inverse = linear_systems.BlockCovariance(root.T @ root)
    inside = rng.normal(size=8)
    constraints *= np.sign(constraints @ inside)[:, None]  # some point meets them all
    if equality:
        plane = rng.normal(size=8)
        plane -= (plane @ inside) / (inside @ inside) * inside
        constraints = np.concatenate([constraints, [plane, -plane]])
    free = rng.normal(size=8) - 2 * inside
    expected = linear_systems.constrained_minimum(free, inverse, constraints)
    assert (constraints @ expected).min() > -1e-9
    interior = linear_systems._interior_minimum
    calls = []
    monkeypatch.setattr(
        linear_systems, "_interior_minimum", lambda *args: calls.append(args) or interior(*args)
    )
    monkeypatch.setattr(linear_systems, "_CONSTRAINTS_AT_ONCE", at_once)
    monkeypatch.setattr(linear_systems, "_MAX_ACTIVE_SET_ROUNDS", rounds)
    found = linear_systems.constrained_minimum(free, inverse, constraints)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(free).max())
    assert len(calls) == (rounds == 1)


SHAPE, TOWN = {PAIR: "increasing in age"}, ("age", "town")
NO_ORDER = {TOWN: "convex in town"}
REFUSED = [  # constraints, pairs, terms
    (SHAPE, None, None, "the model has no such pair: list it in interactions="),
    ({PAIR: "increasing"}, None, None, "must say along which of them, such as 'increasing in"),
    ({PAIR: "increasing in town"}, None, None, "must say along which of them"),
    ({PAIR: "up in age"}, None, None, "'age' in the pair .* must be one of increasing"),
    ({PAIR: ("convex in age", "concave in age")}, None, None, "age × power' cannot be both"),
    (NO_ORDER, [TOWN], None, "the values of 'town' have no order"),
    (SHAPE, [PAIR, TOWN], None, "cannot be kept: another pair with 'age' would undo it"),
    (SHAPE, [PAIR], {"age": "linear"}, "a curve in both, neither a line nor a circle"),
    (SHAPE, [(km.Term("age", "linear"), "power")], None, "must be a curve in both"),
    (SHAPE, [PAIR], {"age": km.Term("age", extrapolation="linear")}, "the pair does not"),
    (SHAPE | {"age": "increasing"}, [PAIR], None, "which a pair with another column would undo"),
]  # fmt: skip


@pytest.mark.parametrize(("constraints", "interactions", "terms", "message"), REFUSED)
def test_what_cannot_be_kept_is_refused(constraints, interactions, terms, message):
    X, score, _ = training_rows(60)
    model = km.AdditiveRegressor(terms=terms, interactions=interactions, constraints=constraints)
    with pytest.raises(ValueError, match=message):
        model.fit(X, score)
