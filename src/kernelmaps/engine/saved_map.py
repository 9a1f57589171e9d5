"""What fitted maps say of values, and the fitted map of a file that is read to predict.

Neither scikit-learn nor a compiler is imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from .._util import schema
from .._util.devices import numpy_dtype
from .._util.schema import saved
from .._util.sparse import find_not_finite, is_sparse
from ..exceptions import OutOfDomainWarning
from . import extent
from .apply import apply, stage_columns
from .extent import ColumnRange, Extent
from .reference import evaluate
from .spec import Spec, check_width

MOST_READABLE = (
    2**22
)  # values of φ below which compiled loops, whose import takes a second, are slower


class ValueChecks:
    """What a fitted map refuses, and what it warns of."""

    _class_name: str  # of the map, for messages
    _parameters: Container[str]  # their names
    n_jobs: int | None = None
    domain_: tuple[np.ndarray, np.ndarray] | None = None
    out_of_domain: str = "clip"
    _known_names: Sequence[str] | None = None  # of the columns, from a file: for messages
    _warned = False  # whether a warning about values outside the domain was given
    _non_negative = False  # whether the map is defined for x >= 0 only

    def _check_values(self, X: Any, fitting: bool = False) -> Extent:
        """The range of native rows; what φ is not defined for is refused."""
        find_extent = extent.extent_of if is_sparse(X) else extent.extent_of_rows
        bounds = find_extent(X.data if is_sparse(X) else X, self.n_jobs)
        place = None if bounds.is_finite else find_not_finite(X)
        if place is not None:
            raise ValueError(extent.describe_not_finite(self._class_name, X[place], *place))
        self._check_extent(bounds.minimum, bounds.maximum, X.dtype, fitting)
        return bounds

    def _check_extent(self, low: float, high: float, dtype: np.dtype, fitting: bool) -> None:
        """Refuse negative values of a map for x >= 0, and sizes whose squares or differences leave
        the floating-point numbers."""
        if self._non_negative and low < 0:
            has_signed = "signed" in self._parameters
            raise ValueError(extent.describe_negative(self._class_name, low, has_signed))
        largest = max(abs(low), abs(high))
        lower, upper = extent.EXACT_SIZES
        if np.dtype(dtype) == np.float32:
            lower, upper = float(np.finfo(np.float32).tiny), np.inf
        small = fitting and 0 < largest < lower
        if not small and largest <= upper:
            return
        problem = "no value is larger in size than" if small else "values reach the size"
        raise ValueError(
            f"{self._class_name}: {problem} {largest:g}, outside the sizes {lower:g} to "
            f"{upper:g} for which its results are exact. Divide X by a constant of that order."
        )

    def _check_domain(self, X: Any, columns: ColumnRange | None = None) -> None:
        """Warn of values outside the domain, or refuse them; `columns` are their known ranges."""
        if self.domain_ is None or self.out_of_domain == "extrapolate" or X.shape[0] == 0:
            return
        names = getattr(self, "feature_names_in_", None)
        message = extent.describe_outside_domain(
            self._class_name,
            columns or self._column_range(X),
            self._domain_for(X.dtype),
            self.out_of_domain,
            self._known_names if names is None else names,
        )
        if message is not None and not self._warned:
            vars(self)["_warned"] = True
            warnings.warn(message, OutOfDomainWarning, stacklevel=3)

    def _domain_for(self, dtype: np.dtype) -> ColumnRange:
        """The domain in the precision of the rows: rounding to float32 leaves no domain."""
        assert self.domain_ is not None
        kind = numpy_dtype(dtype)
        kind = kind if kind.kind == "f" else np.dtype(np.float64)
        lower, upper = (np.asarray(end).astype(kind).astype(np.float64) for end in self.domain_)
        return lower, upper

    def _column_range(self, X: Any) -> ColumnRange:
        """Smallest and largest value of each column."""
        return extent.column_range(X, self.n_jobs)


def transformer(value: Any, where: str, lengths: schema.Lengths) -> None:
    """The check of a map."""
    if not hasattr(value, "transform"):
        raise schema.SchemaError(f"{where} must be a map, found a {type(value).__name__}")


@schema.record
class SavedMap(ValueChecks):
    """The fitted map of a file that is read to predict: its spec, and what it says of values.

    Attributes
    ----------
    _class_name, _parameters : str and tuple of str
        The map that was saved, and the names of its parameters.
    spec_ : Spec
        It alone determines the map.
    n_features_in_ : int
    refuses_negative : bool
        Of a map whose columns differ in it, the map itself knows which.
    out_of_domain, domain_, feature_names_in_
        As those of the map.
    additive_map_ : SavedMap or None
        The first stage, if it has the domain.
    """

    _class_name: str = saved(schema.text())
    _parameters: tuple[str, ...] = saved(schema.several(schema.text()))
    spec_: Spec = saved(schema.instance((Spec,)))
    n_features_in_: int = saved(schema.size("features"))
    refuses_negative: bool = saved(schema.boolean)
    out_of_domain: str = saved(schema.text(("auto", *extent.OUT_OF_DOMAIN)), default="clip")
    domain_: Any = saved(schema.optional(extent.DOMAIN), default=None)
    feature_names_in_: Any = saved(schema.optional(schema.names), default=None)
    additive_map_: Any = saved(schema.optional(transformer), default=None)

    _non_negative = property(lambda self: self.refuses_negative)

    def check(self, X: np.ndarray) -> None:
        """Refuse values of float64 rows, or warn of them, in the words of the map."""
        (self.additive_map_ or self)._check_domain(X, self._check_values(X).columns)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """φ of float64 rows."""
        self.check(X)
        n_values = len(X) * stage_columns(self.spec_, X.shape[1])
        return (evaluate if n_values <= MOST_READABLE else apply)(self.spec_, X)

    def _check_state(self) -> None:
        check_width(self.spec_, self.n_features_in_)
