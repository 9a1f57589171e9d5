"""A first solution on rounded rows: nothing of it is left in the end."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import kernelmaps as km
from kernelmaps.models.rows import map_tables
from kernelmaps.models.rows.map_basis import make_basis
from kernelmaps.models.solvers import dual
from kernelmaps.models.svm import training


@pytest.fixture
def small_is_large(monkeypatch):
    """Few values count as many."""
    monkeypatch.setattr(training, "SMALL", 1000)
    monkeypatch.setattr(map_tables, "_FEWEST_FEATURES", 2)


@pytest.fixture
def went_over(monkeypatch):
    """How often training went over from rounded rows to the rows themselves."""
    times = []
    switch_rows = dual.CoordinateDescent.switch_rows

    def counted(self, tables, rows):
        times.append(self.rows.data.dtype)
        switch_rows(self, tables, rows)

    monkeypatch.setattr(dual.CoordinateDescent, "switch_rows", counted)
    return times


def data(n=600, d=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) * [1, 10, 0.1, 3, 7][:d]
    score = np.sin(6 * X[:, 0]) + X[:, 1] / 5 + 0.3 * rng.standard_normal(n)
    return X.astype(dtype), score


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positions_are_those_of_the_readable_form_to_half_a_fraction(dtype, monkeypatch):
    from kernelmaps.engine.reference import positions
    from kernelmaps.engine.table.layout import bins_of

    monkeypatch.setattr(map_tables, "_FEWEST_FEATURES", 2)
    X, _ = data(d=3, dtype=dtype)
    spec = km.SplineMap(8).fit(X).spec_
    X[0], X[1] = -1e3, 1e3  # outside the range: the ends
    basis = make_basis(spec, X, np.dtype(dtype))
    codes, bits = map_tables.round_rows(basis, X, 1)
    assert codes.dtype == np.uint16
    assert codes.nbytes <= X.nbytes / 2
    bins = bins_of(basis.table.astype(dtype), np.zeros(len(basis.table.origin), np.int64))
    low, high = basis.table.clip_low[basis.table.set_of], basis.table.clip_high[basis.table.set_of]
    b, u = positions(bins, np.clip(X, low, high).astype(dtype))
    exact = np.clip(b + u.astype(np.float64), 0, 5)
    error = np.abs(codes / 2.0**bits - exact)
    assert error.max() <= 0.5**bits / 2 + 1e-5
    assert error.max() > 0.5**bits / 4  # and not by accident the values themselves


def certificate(model, X, y):
    """Primal value and gap from the duals alone, in NumPy, by the features that nobody stores."""
    psi = model.feature_map_.transform(X.astype(np.float64))
    sign = np.where(y, 1.0, -1.0)
    alpha = model.dual_coef_[:, 0]
    w = psi.T @ alpha
    margin = sign * model.decision_function(X)
    a = sign * alpha
    if model.loss == "squared_hinge":
        losses, conjugates = np.maximum(1 - margin, 0) ** 2, a**2 / (4 * model.C) - a
    else:
        losses, conjugates = np.maximum(1 - margin, 0), -a
    primal = 0.5 * w @ w + model.C * losses.sum()
    assert abs(alpha.sum()) < 1e-9 * np.abs(alpha).sum()
    return primal, primal + 0.5 * w @ w + conjugates.sum()


@pytest.mark.parametrize(("loss", "dtype"), [("squared_hinge", np.float64), ("hinge", np.float32)])
def test_the_gap_of_the_rows_themselves_is_certified(
    small_is_large, went_over, monkeypatch, loss, dtype
):
    """With fractions so coarse that the solution on them is none of the rows."""
    monkeypatch.setattr(map_tables, "_FRACTIONS", 2**7)
    X, score = data(dtype=dtype)
    y = score > np.median(score)
    machine = km.AdditiveSVC(C=1.0, loss=loss, solver="dual", random_state=0)
    model = clone(machine).fit(X, y)
    assert went_over == [np.uint16]
    primal, gap = certificate(model, X, y)
    rounding = 1e-5 if dtype == np.float32 else 1e-9
    assert gap <= (model.tol + rounding) * primal
    assert gap == pytest.approx(model.duality_gap_[0], abs=1e-3 * rounding**0.5 * primal)
    monkeypatch.setattr(training, "_round_rows", lambda *arguments: None)
    plain = machine.fit(X, y)
    assert len(went_over) == 1
    assert model.objective_[0] == pytest.approx(plain.objective_[0], rel=2e-3)
    both = model.decision_function(X), plain.decision_function(X)
    assert np.abs(both[0] - both[1]).max() < 0.1 * np.abs(both[1]).max()


@pytest.mark.parametrize("options", [{"tol": 1e-6}, {"solver": "primal"}])
def test_exact_and_newton_fits_take_rows_as_they_are(small_is_large, went_over, options):
    X, score = data()
    km.AdditiveSVC(C=0.01, random_state=0, **options).fit(X, score > 0)
    assert went_over == []


@pytest.mark.parametrize(
    ("rows", "feature_map"),
    [
        (lambda X: X, km.SplineMap(8, zero_at_zero=True)),
        (lambda X: X, km.SplineMap(300, order=0)),  # too many bins
        (lambda X: X, km.AnchorMap(n_anchors=8)),  # look-ups
        # Values may lie outside the bins: rounded ones would be far from them.
        (lambda X: X, km.SplineMap(8, out_of_domain="extrapolate")),
        (lambda X: X, km.HermiteMap()),
        (lambda X: (X * 20).astype(np.uint8), km.SplineMap(8)),
        (sparse.csr_matrix, km.SplineMap(8, zero_at_zero=True)),
    ],
)
def test_rows_without_a_rounded_form(small_is_large, rows, feature_map):
    X, _ = data()
    plain = make_basis(km.SplineMap(8).fit(X).spec_, X, np.dtype(np.float64))
    assert map_tables.round_rows(plain, X, 1) is not None
    basis = make_basis(feature_map.fit(rows(X)).spec_, X, np.dtype(np.float64))
    assert map_tables.round_rows(basis, rows(X), 1) is None
