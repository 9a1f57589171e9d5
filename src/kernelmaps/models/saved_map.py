"""The fitted map of a file that is read to predict: its spec, and what it says of values.

Neither scikit-learn nor a compiler is imported. Values that the map refuses, or that are outside
its domain, are spoken of in its words. Values beyond the usual sizes, and more rows than NumPy
should take, are for the estimator: `EstimatorNeeded` is raised.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .._util.schema import (
    State,
    array,
    boolean,
    instance,
    integer,
    names,
    optional,
    pair,
)
from ..engine.extent import EXACT_SIZES, column_range, first_not_finite
from ..engine.row_checks import (
    OUT_OF_DOMAIN,
    negative_message,
    not_finite_message,
    outside_domain,
)
from ..engine.schema import check_width
from ..engine.spec import Spec
from ..exceptions import OutOfDomainWarning

# Rows times features times outputs, for which NumPy takes about 2 seconds (0.11 µs each); the
# imports of the estimator and its compiled loops take 3.
MOST_VALUES = 2**24


class EstimatorNeeded(Exception):
    """The estimator of a saved model has to be loaded, to predict these rows or to refuse them."""


class SavedMap:
    """The spec of a fitted additive map, and what the map says of the values of rows."""

    saved_class: str  # name of the class that was saved, for messages
    saved_parameters: frozenset[str]  # names of its parameters
    used_parameters = ("out_of_domain",)
    _state: ClassVar[State] = State(
        required={"spec_": instance((Spec,)), "n_features_in_": integer(1)},
        allowed={
            "domain_": optional(pair(array("f8 f4", "domain", finite=False))),
            "feature_names_in_": names,
            "refuses_negative": optional(boolean),
        },
    )
    spec_: Spec
    n_features_in_: int
    domain_: tuple[np.ndarray, np.ndarray] | None = None
    feature_names_in_: np.ndarray | None = None
    refuses_negative: bool | None = None
    column_names: Sequence[str] | None = None  # of a file or a model, if the map has none itself
    _warned = False

    def __init__(self, out_of_domain: str = "clip") -> None:
        self.out_of_domain = out_of_domain

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The spec, which alone determines the map, and what concerns the values of rows."""
        stated = {**cls._state.required, **cls._state.allowed}
        return {key: item for key, item in entries.items() if key in stated}

    def check(self, X: np.ndarray) -> None:
        """Refuse values of float64 rows, or warn of them, in the words of the map."""
        low, high = column_range(X)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = first_not_finite(X)
            raise ValueError(not_finite_message(self.saved_class, X[row, column], row, column))
        self._check_sign(low)
        if max(-low.min(), high.max()) > EXACT_SIZES[1]:  # some maps take such values
            raise EstimatorNeeded
        self._check_domain(low, high)

    def _check_domain(self, low: np.ndarray, high: np.ndarray) -> None:
        if self.domain_ is None or self.out_of_domain == "extrapolate":
            return
        lower, upper = (np.asarray(end, np.float64) for end in self.domain_)
        names = self.column_names if self.feature_names_in_ is None else self.feature_names_in_
        message = outside_domain(
            self.saved_class, (low, high), (lower, upper), self.out_of_domain, names
        )
        if message is not None and not self._warned:
            self._warned = True
            warnings.warn(message, OutOfDomainWarning, stacklevel=2)

    def _check_state(self) -> None:
        if self.out_of_domain not in ("auto", *OUT_OF_DOMAIN):
            raise ValueError("out_of_domain is unknown")
        if self.domain_ is not None and len(self.domain_[0]) not in (1, self.n_features_in_):
            raise ValueError("domain_ must have one range, or one for each feature")
        named = self.feature_names_in_
        if named is not None and len(named) != self.n_features_in_:
            raise ValueError("feature_names_in_ must have one name for each feature")
        check_width(self.spec_, self.n_features_in_)

    def _check_sign(self, low: np.ndarray) -> None:
        """Refuse negative values of a map for x >= 0; a file may not say whether it is one."""
        if self.refuses_negative is None and (low < 0).any():
            raise EstimatorNeeded
        if self.refuses_negative and (low < 0).any():
            has_signed = "signed" in self.saved_parameters
            raise ValueError(negative_message(self.saved_class, float(low.min()), has_signed))
