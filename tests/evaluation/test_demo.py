"""The demonstration is one comparison on all bundled digits."""

import pytest

import kernelmaps
from kernelmaps.cli import demo

pytestmark = pytest.mark.usefixtures("few_trees")


def test_it_is_on_all_digits_and_its_program_loads_them(monkeypatch):
    monkeypatch.setattr(demo, "compare", lambda X, y, **options: (X, y, options))
    X, y, options = demo.demonstrate()
    assert options["budget"] is None  # a limit leaves methods out on a slow machine
    assert X.shape == (1797, 64)
    scope = {"km": kernelmaps}
    exec(options["loading_code"], scope)
    assert (scope["X"] == X).all()
    assert (scope["y"] == y).all()


def test_it_runs():
    result = demo.demonstrate(budget=0.5)
    assert len(result.finished()) >= 2
    assert result.task == "classification"
    assert {row.kernel for row in result.rows} >= {"chi2", "exp_chi2", "gaussian", "basis"}
