"""Scores and terms of rows, by compiled tables that are kept for the next rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from ...blocks import row_blocks
from ...device import is_foreign, memory_named, refuse_card
from ...engine import Spec
from ...engine.compile import zero_at_zero
from ...engine.piecewise import table_of
from ...maps.base import AdditiveMap
from ...maps.codes import Codes, refuse_plain_codes
from ...threads import resolve_threads
from ..gam.route import TableRoute

MOST_LANES = 16  # classes whose weights are the lanes of one vector
SMALL = 2_000_000  # values to look up below which threads do not pay


class AdditiveScores(TableRoute):
    """A fitted sum of functions: what it says of rows."""

    feature_map_: AdditiveMap
    term_means_: np.ndarray
    _spec: Spec  # of what the rows mean: values or codes
    _on_codes: bool
    _weights: np.ndarray  # [feature][basis][output]
    _offset: np.ndarray
    _fast: dict  # compiled tables of the last predictions; not part of the model

    def _rows(self, X: Any) -> Any:
        """Rows to predict for; their values are still to be looked at."""
        name = type(self).__name__
        if isinstance(X, Codes):
            if not self._on_codes:
                raise ValueError(f"{name} was fitted on values, but X holds codes: decode them.")
            return self.feature_map_.check_codes(X)
        if self._on_codes:
            refuse_plain_codes(X, name)
            return self.feature_map_.encode(X).values
        shape = getattr(X, "shape", (0, 0))
        if len(shape) != 2:
            raise ValueError(
                f"{name}: X must have two dimensions, found shape {tuple(shape)}. Reshape your "
                "data: X.reshape(1, -1) for one row, X.reshape(-1, 1) for one column."
            )
        if not hasattr(self, "feature_names_in_") and self.feature_map_._takes_as_it_is(X):
            return X
        validate_data(self, X, reset=False, skip_check_array=True)
        if hasattr(X, "columns") and not hasattr(self.feature_map_, "feature_names_in_"):
            X = np.asarray(X)  # the names are checked; the map was fitted without them
        return self._whole(self.feature_map_._native_rows(X, reset=False))

    def _whole(self, rows: Any) -> Any:
        """Sparse rows as dense ones, where the map does not take 0 to 0."""
        return rows.toarray() if sparse.issparse(rows) and not zero_at_zero(self._spec) else rows

    def _look_at(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        if not self._on_codes:
            # The map saw an array; the names that the model saw are for its messages. A model of an
            # array leaves those that were read from a file.
            if hasattr(self, "feature_names_in_"):
                self.feature_map_._known_names = self.feature_names_in_
            self.feature_map_._check_rows(rows, reset=False)
            self.feature_map_._check_domain(rows)

    def _precision(self, X: Any) -> type:
        """float32 where the data are no finer and the tolerance does not ask for more."""
        return np.float64 if X.dtype == np.float64 or self.tol < 1e-5 else np.float32

    def _compiled(self, X: Any, lanes: tuple) -> Any:
        from .basis import compile_basis

        precision = self._precision(X)
        known = "mix" in self._spec.arrays or self._spec.family == "piecewise"
        key = (X.dtype, sparse.issparse(X), precision, len(lanes))
        if not known or key not in self._fast:
            self._fast[key] = compile_basis(self._spec, X, precision, lanes, whole=True)
        return self._fast[key]

    def _groups(self) -> list[tuple[slice, tuple]]:
        from .basis import lanes_for

        count = self._weights.shape[2]
        steps = range(0, count, MOST_LANES)
        slices = [slice(k, min(k + MOST_LANES, count)) for k in steps]
        return [(part, lanes_for(part.stop - part.start)) for part in slices]

    def _placed(self, compiled: Any, part: slice) -> Any:
        """The weights of some classes where the loops expect them, by address."""
        from ...engine.table.update import weights_of

        key = ("weights", compiled.basis.values.coef.dtype, len(compiled.lanes), part.start)
        if key not in self._fast or self._fast[key][0] is not compiled:
            basis, w = compiled.basis, self._laid_out(compiled, part)
            self._fast[key] = (compiled, weights_of(basis, basis.values, compiled.lanes, w))
        return self._fast[key][1]

    def _laid_out(
        self, compiled: Any, part: slice, weights: np.ndarray | None = None
    ) -> np.ndarray:
        from ...engine.table.memory import aligned

        stride, lanes = compiled.stride, len(compiled.lanes)
        flat = aligned((compiled.n_weights + 64) * lanes, compiled.basis.values.coef.dtype)
        cells = flat[: compiled.n_weights * lanes].reshape(-1, stride, lanes)
        own = (self._weights if weights is None else weights)[:, :, part]
        cells[:, : own.shape[1], : own.shape[2]] = own
        return flat

    def _evaluate(self, X: Any, out: np.ndarray, some_rows: np.ndarray | None = None) -> np.ndarray:
        """Scores [row][0][class] or terms [row][feature][class] of (some) rows, group by group."""
        from ...engine.table.update import work_of
        from ._loops import evaluate
        from .basis import room_for, rows_of
        from .dual import in_blocks

        rows, no_norms = rows_of(X), np.zeros(0)
        examples = np.arange(X.shape[0]) if some_rows is None else some_rows
        examples = np.ascontiguousarray(examples, np.int64)
        groups = [(part, self._compiled(X, lanes)) for part, lanes in self._groups()]
        placed = [self._placed(compiled, part) for part, compiled in groups]
        direct = len(groups) == 1  # the loop writes there

        def some(begin: int, end: int) -> None:
            for (part, compiled), weights in zip(groups, placed, strict=True):
                count, room = part.stop - part.start, room_for(compiled, rows)
                shape = (end - begin, out.shape[1], count)
                own = out[begin:end] if direct else np.zeros(shape, out.dtype)
                work = work_of(compiled.basis, rows, room, scored=weights)
                evaluate(*work, examples[begin:end], no_norms, own)
                if not direct:
                    out[begin:end, :, part] = own

        def work(begin: int, end: int) -> None:
            for part in row_blocks(end - begin, 0 if direct else 8 * out.shape[1] * MOST_LANES):
                some(begin + part.start, begin + part.stop)

        size = X.size * out.shape[-1] * len(out) // max(1, X.shape[0])
        in_blocks(resolve_threads(self.n_jobs) if size > SMALL else 1, len(out), work)
        return out

    def _compiled_terms(self, X: Any) -> Any:
        """The model as polynomials for rows like these; None if the basis has to be evaluated."""
        from .basis import bands_of
        from .prediction import compiled_terms
        from .terms import summed

        key = ("terms", X.dtype)
        if key not in self._fast:
            self._fast[key] = None
            if "mix" in self._spec.arrays or self._spec.family == "piecewise":
                table = summed(bands_of(self._spec, X, np.dtype(np.float64)).table, self._weights)
                self._fast[key] = compiled_terms(table, X.dtype, np.dtype(self._precision(X)))
        return self._fast[key]

    def _scores(self, X: Any, *, look: bool = False) -> np.ndarray:
        """Scores of rows, one column per output.

        With `look` the values have not been checked: the loops of the compiled form notice what is
        not finite or outside the domain on their way, and only then they are searched.
        """
        from .prediction import sums

        compiled, fitted = self._compiled_terms(X), self.feature_map_
        # Values outside the domain are clipped, with one warning; more has to be said of others.
        silent = fitted.out_of_domain == "clip" and getattr(fitted, "_warned", False)
        silent &= not fitted._non_negative
        if look and (compiled is None or not (silent or self._notices(X))):
            self._look_at(X)
            look = False
        if compiled is None:
            return self._trained_scores(X)
        out = np.zeros((X.shape[0], self._weights.shape[2]), np.float64)
        beyond = sums(compiled, X, out, self.n_jobs)
        if look and beyond != 0 and not (silent and np.isfinite(beyond)):
            self._look_at(X)
        return (out + self._offset).astype(self._precision(X), copy=False)

    def _all_scores(self, X: Any) -> Any:
        """Scores of rows as a user passes them, one column per output."""
        check_is_fitted(self)
        if is_foreign(X):
            from .elsewhere import scores

            with memory_named(type(self).__name__, "Pass fewer rows at a time."):
                return scores(self, X)
        if self._tabular:
            return self.table_.scores(self._columns(X, reset=False), type(self).__name__)
        return self._scores(self._rows(X), look=True)

    def _trained_scores(self, X: Any, some_rows: np.ndarray | None = None) -> np.ndarray:
        """The same in the form of the training, for which nothing has to be compiled first."""
        count = X.shape[0] if some_rows is None else len(some_rows)
        out = np.zeros((count, 1, self._weights.shape[2]), self._precision(X))
        out = self._evaluate(X, out, some_rows)[:, 0]
        return (out + self._offset).astype(self._precision(X), copy=False)

    def _notices(self, X: Any) -> bool:
        """Whether the compiled form sees all values that have to be spoken of.

        It looks up codes blindly, and bins of look-up maps have no outer ends.
        """
        fitted = self.feature_map_
        if self._on_codes or (fitted.domain_ is None and not fitted._non_negative):
            return True
        low, high = (0.0, np.inf) if fitted.domain_ is None else fitted.domain_
        if X.dtype.kind == "u":
            return bool(np.max(low) <= 0 and np.min(high) >= np.iinfo(X.dtype).max)
        if fitted.out_of_domain == "extrapolate" and not fitted._non_negative:
            return True
        if "ends" not in self._fast:
            table = table_of(self._spec)
            ends = table.low[table.set_of], table.high[table.set_of]
            self._fast["ends"] = bool(np.all(ends[0] >= low) and np.all(ends[1] <= high))
        return self._fast["ends"]

    def _terms(self, X: Any) -> np.ndarray:
        return self._evaluate(
            X, np.zeros((X.shape[0], *self._weights.shape[::2]), self._precision(X))
        )

    def eval_terms(self, X: Any) -> np.ndarray:
        """Compute the contribution of each feature to the score.

        ``decision_function(X)`` (or ``predict``, for a regressor) equals
        ``eval_terms(X).sum(axis=1) + intercept_``.  Each term has mean zero over the (sample of
        the) training data; the means are in the intercept.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            For a table, one column for each term of ``term_names_``, pairs included.
        """
        check_is_fitted(self)
        refuse_card(X, f"{type(self).__name__}.eval_terms", "Pass X.cpu().numpy().")
        if self._tabular:
            columns = self._columns(X, reset=False)
            terms = self.table_.contributions(columns, type(self).__name__)
        else:
            rows = self._rows(X)
            self._look_at(rows)
            terms = self._terms(rows)
            terms -= self.term_means_.astype(terms.dtype)
        return terms[:, :, 0] if terms.shape[2] == 1 else terms
