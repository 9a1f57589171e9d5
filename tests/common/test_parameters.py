"""Wrong parameters and rows are refused in words that name them, by every estimator."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from fitted_examples import (
    MAP_SETTINGS,
    MAPS,
    MODELS,
    fitted_map,
    fitted_model,
    labels,
    model_of,
    rows,
)

import kernelmaps as km
from kernelmaps._util.arguments import with_parameter

pandas = pytest.importorskip("pandas")

DRAWS = 12  # of each estimator: some hundred in all
WILD = [
    None, True, False, 0, 1, -1, 3, 0.5, -0.5, float("nan"), float("inf"), 1e308, -1e308, 1e-320,
    2**31, 2**63, -(2**63), 10**30, "", "x", "auto", b"x", [], (), {}, [1, 2], (0, 1), [None],
    range(3), np.array(3), np.array([1.0, 2.0]), np.zeros((2, 2)), np.float32(0.5), np.int8(3),
    pandas.NA, pandas.NaT, object(), 1j, Decimal(1), Fraction(1, 2), np.datetime64("2020-01-01"),
    {"a": 1}, set(), np.array(["a"], dtype=object),
]  # fmt: skip


def unfitted(name):
    return getattr(km, name)(**MAP_SETTINGS[name]) if name in MAPS else model_of(name)


def targets(name):
    regression = name.endswith(("Survival", "Regressor", "SVR", "Ridge", "Lasso"))
    return rows() @ np.arange(6.0) if regression else labels()


def fit_and_use(model, name):
    model.fit(rows(), targets(name))
    (model.predict if hasattr(model, "predict") else model.transform)(rows()[:3])


def refusal_of(model, name):
    """What a model says of its parameters; None if it works. Other errors are not expected."""
    try:
        fit_and_use(model, name)
    except (ValueError, TypeError, MemoryError, ImportError) as error:
        return str(error)
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*MAPS, *MODELS])
def test_parameters_at_random_work_or_are_named(name, seed):
    rng = np.random.default_rng([seed, len(name), ord(name[0])])
    parameters = sorted(unfitted(name).get_params(deep=False))
    for _ in range(DRAWS):
        parameter = parameters[rng.integers(len(parameters))]
        value = WILD[rng.integers(len(WILD))]
        refusal = refusal_of(unfitted(name).set_params(**{parameter: value}), name)
        assert refusal is None or parameter in refusal, f"{name}({parameter}={value!r}): {refusal}"


def test_only_what_is_not_named_yet_is_named():
    model = km.SplineMap(n_bases="x", degree=3)
    plain = ValueError("n_bases is wrong")
    assert with_parameter(model, plain) is plain
    named = with_parameter(model, KeyError(3))
    assert str(named) == "SplineMap: n_bases must be an integer, got 'x'."
    assert with_parameter(km.SplineMap(), plain) is plain
    assert with_parameter(object(), plain) is plain
    short = with_parameter(km.SplineMap(n_bases=2**31), MemoryError("too large."))
    assert isinstance(short, MemoryError)
    assert str(short) == "SplineMap: too large. Is the reason n_bases=2147483648?"


# ---- rows ---------------------------------------------------------------------------------------


GAMS = ("AdditiveClassifier", "AdditiveRegressor", "AdditiveSurvival")  # which take text


@pytest.mark.parametrize("name", [*MAPS, *(name for name in MODELS if name not in GAMS)])
def test_the_column_of_text_is_named(name):
    fitted = fitted_map(name) if name in MAPS else fitted_model(name)
    frame = pandas.DataFrame(rows(), columns=list("abcdef")).astype(object)
    frame.loc[2, "c"] = "u"
    use = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    as_frame = [] if name in ("AdditiveSVC", "AdditiveSVR") else [(frame, "'c'")]
    for X, column in (*as_frame, (frame.to_numpy(), "2"), (frame.to_numpy().tolist(), "2")):
        words = rf"column {column} of X holds the text 'u' \(row 2\)"
        with pytest.raises(ValueError, match=words):
            unfitted(name).fit(X, targets(name))
        if column != "'c'":  # the model knows no names
            with pytest.raises(ValueError, match=words):
                use(X)


@pytest.mark.parametrize("cv", [range(3), 0])
def test_folds_that_are_none_name_the_parameter(cv):
    model = km.AdditiveSVC(km.HomogeneousMap(), [0.1, 1], cv=cv)
    with pytest.raises(ValueError, match=r"AdditiveSVC: cv=.* gives no folds"):
        model.fit(rows(), labels())
