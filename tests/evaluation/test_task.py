"""Classification or regression, decided as a person would."""

import numpy as np
import pytest

from kernelmaps.evaluation.checks import decide_task

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("targets", "task", "because"),
    [
        (["a", "b", "a"], "classification", "not a number"),
        (np.array([True, False, True]), "classification", "not a number"),
        (np.array([0.0, 1.0] * 5), "classification", "2 different values"),
        (np.array([0.25, 0.75] * 5), "classification", "2 different values"),
        (RNG.normal(size=50), "regression", "fractions"),
        (np.repeat([1, 2, 3, 4, 5, 7], 20), "classification", "6 different"),  # satimage
        (RNG.integers(26, size=500), "classification", "without gaps"),  # letter
        (np.repeat(np.arange(102), 30), "classification", "counted from 0"),  # caltech101
        (np.round(np.exp(RNG.normal(6, 0.5, size=5000))), "regression", "with gaps"),  # price
        (RNG.integers(326, 18823, size=50_000), "regression", "from 326"),
        (np.arange(40), "regression", "value of their own"),
        (RNG.integers(17, 91, size=30_000), "regression", "from 17 to 90"),  # age
        (RNG.integers(1922, 2012, size=30_000), "regression", "from 1922 to 2011"),  # year
        (RNG.poisson(60, size=30_000), "regression", "from"),  # a count
        (RNG.poisson(3, size=2000), "regression", "as counts are"),
        (RNG.negative_binomial(0.6, 0.4, size=5000), "regression", "most often 0"),  # visits
        (
            np.minimum(RNG.geometric(0.4, size=5000), 10) - 1,
            "regression",
            "towards 9",
        ),  # "9 or more"
        (RNG.negative_binomial(12, 0.55, size=4000) + 1, "regression", "as counts are"),  # rings
        (np.repeat(np.arange(5), [164, 55, 36, 35, 13]), "classification", "5 different"),  # grades
        (np.repeat(np.arange(1, 8), [45586, 50, 171, 8903, 3267, 10, 13]), "classification", "7"),
        (np.repeat(np.arange(3, 9), [10, 53, 681, 638, 199, 18]), "classification", "6"),  # wine
        (np.repeat(np.arange(10), 50), "classification", "10 different"),  # digits
        (
            np.repeat(np.arange(10), [463, 5, 35, 44, 51, 163, 244, 429, 20, 30]),
            "classification",
            "1",
        ),
    ],
)
def test_tasks_are_decided_as_a_person_would(targets, task, because):
    found = decide_task(targets)
    assert (found.name, because in found.reason) == (task, True), found


def test_integers_and_floats_of_the_same_values_are_the_same_task():
    y = RNG.integers(1000, 9000, size=400)
    assert decide_task(y) == decide_task(y.astype(float))
    assert decide_task(y % 5) == decide_task((y % 5).astype(np.float32))


def test_a_given_task_is_taken_and_no_target_is_no_task():
    assert decide_task(np.arange(40), "classification").name == "classification"
    assert decide_task(["1", "2"], "regression").name == "regression"
    assert decide_task(None).name == "none"


def test_bad_targets_and_tasks_are_refused():
    with pytest.raises(ValueError, match="fit: the target is nan in row 1; drop the rows"):
        decide_task([1.0, np.nan, 2.0], owner="fit")
    with pytest.raises(ValueError, match="task must be one of 'auto', 'classification', "):
        decide_task([1, 2], "clustering")
