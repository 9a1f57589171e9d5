"""Parts of scikit-learn that stand before our maps in a pipeline: what files hold of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schema import (
    Check,
    State,
    anything,
    array,
    either,
    integer,
    labels,
    names,
    number,
    optional,
    text,
)

# Where the classes are, by the names that files use.
SKLEARN = {
    "Pipeline": "sklearn.pipeline",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "LinearSVC": "sklearn.svm",
    "Ridge": "sklearn.linear_model",
    "LogisticRegression": "sklearn.linear_model",
}

_SCALED: dict[str, Check] = {
    "n_features_in_": integer(1),
    "n_samples_seen_": either((integer(), anything)),
}
_PER_FEATURE = array("f8 f4", "features", finite=False)
_LINEAR: dict[str, Check] = {
    "coef_": either((array("f8 f4", "outputs features"), array("f8 f4", "features"))),
    "intercept_": either((array("f8 f4", "outputs"), array("f8 f4", "1"), number())),
    "n_features_in_": integer(1),
}
_LINEAR_MORE: dict[str, Check] = {
    "feature_names_in_": names,
    "n_iter_": anything,
    "solver_": text(),
}
SKLEARN_STATES = {
    "Pipeline": State(),
    "Normalizer": State({"n_features_in_": integer(1)}, {"feature_names_in_": names}),
    "StandardScaler": State(
        {**_SCALED, **{name: optional(_PER_FEATURE) for name in ("mean_", "var_", "scale_")}},
        {"feature_names_in_": names},
    ),
    "MinMaxScaler": State(
        {
            **_SCALED,
            **dict.fromkeys(
                ("min_", "scale_", "data_min_", "data_max_", "data_range_"), _PER_FEATURE
            ),
        },
        {"feature_names_in_": names},
    ),
    "MaxAbsScaler": State(
        {**_SCALED, "max_abs_": _PER_FEATURE, "scale_": _PER_FEATURE}, {"feature_names_in_": names}
    ),
    "LinearSVC": State({**_LINEAR, "classes_": labels}, _LINEAR_MORE),
    "Ridge": State(_LINEAR, _LINEAR_MORE),
    "LogisticRegression": State({**_LINEAR, "classes_": labels}, _LINEAR_MORE),
}
"""What the parts of scikit-learn save: what their predictions need."""


def check_sklearn(value: Any) -> None:
    """Raise ValueError or TypeError if the parts of a scikit-learn estimator do not fit."""
    value._validate_params()  # as its own fit does
    if type(value).__name__ == "Pipeline":
        _check_steps(value.steps)
    if not hasattr(value, "n_features_in_") or type(value).__name__ == "Pipeline":
        return
    for asked, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(value, asked, False) and getattr(value, name) is None:
            raise ValueError(f"{name} is missing, but {asked} is true")
    for name in ("coef_", "mean_", "var_", "scale_", "min_", "max_abs_"):
        found = getattr(value, name, None)
        if found is None:
            continue
        if found.shape[-1] != value.n_features_in_:
            raise ValueError(f"{name} has another number of features than n_features_in_")
        magnitudes = np.abs(found[np.isfinite(found)])
        if (magnitudes > 1e150).any() or (name == "scale_" and (magnitudes < 1e-150).any()):
            raise ValueError(f"{name} reaches beyond the sizes 1e-150 to 1e+150")
    if hasattr(value, "classes_"):
        outputs = 1 if len(value.classes_) == 2 else len(value.classes_)
        if value.coef_.shape != (outputs, value.n_features_in_) or len(value.classes_) < 2:
            raise ValueError("coef_ does not fit the classes")


def _check_steps(steps: Any) -> None:
    """Steps are pairs of a name and an estimator, and each takes what the one before gives."""
    if not isinstance(steps, list) or not steps:
        raise TypeError("the steps of a pipeline must be a list")
    width = None
    for step in steps:
        if not isinstance(step, tuple) or len(step) != 2 or not isinstance(step[0], str):
            raise TypeError("a step of a pipeline must be a pair of a name and an estimator")
        if step[1] in ("passthrough", None) and isinstance(step[1], str | None):
            continue
        if not hasattr(step[1], "get_params"):
            raise TypeError("a step of a pipeline must be an estimator")
        taken = getattr(step[1], "n_features_in_", None)
        if None not in (width, taken) and width != taken:
            raise ValueError(f"a step takes {taken} features, but the one before gives {width}")
        width = getattr(step[1], "_n_features_out", taken) if taken is not None else None
