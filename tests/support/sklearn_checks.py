"""scikit-learn's checks of an estimator within one test: hundreds of short tests take longer."""

import traceback
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import estimator_checks_generator


def broken(
    estimator: BaseEstimator, settings: Callable[[str], dict[str, Any]] | None = None
) -> dict[str, str]:
    """What goes wrong, by the name of the check; all checks run, each on a copy of its own.

    `settings` gives parameters for the check of a name.
    """
    wrong, ran = {}, 0
    for own, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        model = clone(own).set_params(**({} if settings is None else settings(name)))
        try:
            check(model)
            ran += 1
        except SkipTest:  # it needs a package or a setting that is not here
            continue
        except Exception:
            wrong[f"{name} {check.keywords or ''}"] = traceback.format_exc()
    assert ran + len(wrong) > 40
    return wrong
