"""Additive models and scikit-learn's checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelmaps as km

# loss="log_loss": its sigmoid has the threshold of the scores; that of Platt has its own.
MODELS = [
    km.AdditiveClassifier(loss="log_loss", n_jobs=1),
    km.AdditiveRegressor(n_jobs=1),
    km.AdditiveClassifierCV(loss="log_loss", Cs=[0.1, 10.0], cv=2, n_jobs=1),
]

WEIGHTS = (
    "training ends at a certified gap, not at the last digit, and rows of weight 0 still belong to "
    "the range of the knots; test_weight_zero_is_absence_and_weight_two_is_repetition has it right"
)


def expected(model):
    return dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        WEIGHTS,
    )


# The checks predict beyond the rows that they fit, and weigh classes 10 000 000 to 1.
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(MODELS, expected_failed_checks=expected)
def test_estimator_checks(estimator, check):
    check(estimator)
