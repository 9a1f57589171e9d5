r"""Base class of the additive classifier and regressor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ...default_parts import DefaultParts
from ...device import is_foreign, refuse_card
from ...engine import code_spec
from ...engine.compile import has_table
from ...engine.piecewise import table_of
from ...maps.base import EXACT_SIZES, AdditiveMap, JointMap
from ...maps.codes import Codes
from ...maps.spline import SplineMap
from ...schema import State, array, boolean, instance, integer, names, number, text
from ...seeding import generator
from ...sparse_rows import check_sparse
from ...threads import resolve_threads, together
from ..shapes import ShapeFunction
from ..tables.route import TableRoute
from .losses import LOSSES, Loss, find_loss
from .summary import Progress, Summary, density_edges, summarise

__all__ = ["AdditiveModel", "ShapeFunction", "checked", "refuse_training_on_card"]
__all__ += ["targets_of", "weights_of"]

_MOST_LANES = 16
_COSTS = (1e-30, 1e30)  # of one example; beyond, weights in float32 may overflow
_SMALL = 2_000_000  # values to look up below which threads do not pay
_GRID = 101
_BLOCK_OF_TERMS = 2**14  # terms at a time
_PATIENCE = 100  # epochs of coordinate descent before Newton's method takes over


class AdditiveModel(DefaultParts, TableRoute, BaseEstimator):
    """A linear model on an additive map, trained on the fly."""

    _state: ClassVar[State] = State(
        required={
            "feature_map_": instance((AdditiveMap,)),
            "n_features_in_": integer(1),
            "on_codes": boolean,
            "weights": array("f8 f4", "features bases outputs"),
            "offset": array("f8", "outputs"),
            "term_means_": array("f8", "features outputs"),
            "summary": instance((Summary,)),
            "C": number(above=0),
        },
        allowed={
            "feature_names_in_": names,
            "n_rows": integer(1),
            "objective_": array("f8", "outputs", finite=False),
            "duality_gap_": array("f8", "outputs", finite=False),
            "n_iter_": integer(),
            "solver_": text(("dual", "primal")),
            "n_visits_": integer(),
            "n_samples_seen_": integer(1),
            "progress": instance((Progress,)),
        },
        attributes={
            "on_codes": "_on_codes",
            "weights": "_weights",
            "offset": "_offset",
            "summary": "_summary",
            "C": "_C",
            "n_rows": "_n_rows",
            "progress": "_progress",
        },
    )

    _fast: dict  # compiled tables of the last predictions; not part of the model
    _of_labels = True  # whether targets are labels or numbers

    @property
    def _loss(self) -> Loss:
        """The entry of `LOSSES` that `loss` names."""
        return find_loss(type(self).__name__, self.loss, self._of_labels, self._table_losses)

    @property
    def _loss_name(self) -> str:
        return self.loss if self.loss in self._table_losses else self._loss.name

    _summary: Summary | None = None  # made of `_sample` when it is first asked for

    def _prepare(self, X: Any) -> Any:
        """Fit the map; the rows as the loops take them."""
        from .basis import vanishes

        X, self.feature_map_ = self._fitted_map(X)
        if sparse.issparse(X) and not vanishes(self._spec):
            raise ValueError(
                f"{type(self).__name__}: X is sparse, but {type(self.feature_map_).__name__} as "
                "given does not map 0 to 0, so that its rows are not sparse. Use a map with "
                "zero_at_zero=True (SplineMap, TrigonometricMap, HermiteMap), a homogeneous map, "
                "AnchorMap(anchor_zero=True), or pass dense rows, X.toarray() (for codes: "
                "encode(X.toarray()))."
            )
        return X

    def _train(
        self,
        X: Any,
        y: np.ndarray,
        positive: np.ndarray,
        cost: np.ndarray,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Solve for all classes, in groups of lanes, one thread each."""
        groups = self._lane_groups(len(positive))
        if start is None and self.warm_start and hasattr(self, "dual_coef_"):
            start = self._start(len(y), len(positive))
        settings = self._settings(len(groups))

        def work(group: slice) -> Any:
            count, intercept = group.stop - group.start, None
            beta = np.zeros((len(y), count))
            if start is not None:
                # Of rows that do not take part now, nothing may be left.
                beta[:] = np.where(cost[:, None] > 0, start[0][:, group], 0)
                intercept = start[1][group] if self.fit_intercept else None
            problem = self._asked(y, positive[group], cost)
            quiet = settings if group.start == 0 else replace(settings, progress=False)
            return self._solve(X, problem, quiet, beta, intercept)

        self._keep(together(work, groups, resolve_threads(self.n_jobs)))

    def _solve(
        self, X: Any, problem: Any, settings: Any, beta: np.ndarray, intercept: np.ndarray | None
    ) -> Any:
        from .basis import compile_basis, lanes_for, rows_of
        from .dual import solve

        used = problem.positive.size
        compiled = compile_basis(self._spec, X, self._precision(X), lanes_for(used))
        examples = np.flatnonzero(problem.cost > 0).astype(np.int32)
        rows, turn = rows_of(X), self._turn(X, settings, len(examples))
        if turn > 0:
            first = replace(settings, max_iter=turn)
            solution = solve(compiled, rows, problem, examples, first, beta, intercept)
        if turn == 0 or (turn < settings.max_iter and not solution.converged):
            return self._newton(X, problem, examples, settings, compiled.bands)
        solution.weights = self._cells(solution.weights, compiled, used)
        return solution

    def _turn(self, X: Any, settings: Any, n_examples: int) -> int:
        """Epochs of coordinate descent before Newton's method takes over; 0 for none."""
        from .primal import is_feasible

        able = not self._on_codes and is_feasible(self._n_columns(), n_examples)
        if self.solver == "primal" and not able:
            raise ValueError(
                f"{type(self).__name__}: solver='primal' is for at most 3000 columns of the map "
                f"(and values, not codes); here are {self._n_columns()} columns and {n_examples} "
                "rows. Use solver='dual', or a smaller map."
            )
        if self.solver == "primal":
            return 0
        patient = self.solver == "dual" or not able
        return settings.max_iter if patient else min(_PATIENCE, settings.max_iter)

    def _n_columns(self) -> int:
        return sum(self.feature_map_._columns_per_feature())

    def _newton(self, X: Any, problem: Any, examples: np.ndarray, settings: Any, bands: Any) -> Any:
        """The solution by Newton's method on the weights."""
        from .dual import Solution
        from .primal import Columns, minimise

        columns = Columns(
            self.feature_map_.transform, X[examples], self._n_columns(), settings.fit_intercept
        )
        found = minimise(columns, problem, examples, settings.tol)
        return Solution(
            bands.cells(found.weights), found.intercept, found.beta, found.primal, found.gap,
            found.n_iter, found.n_iter * len(examples),
            found.holds(settings.tol), "primal",
        )  # fmt: skip

    @staticmethod
    def _cells(flat: np.ndarray, compiled: Any, used: int) -> np.ndarray:
        """Weights of the loops as [feature][basis][output]."""
        stride, lanes = int(compiled.stride[0]), len(compiled.lanes)
        width = int(compiled.bands.table.width.max())
        cells = flat[: compiled.n_weights * lanes].reshape(-1, stride, lanes)
        return cells[:, :width, :used].copy()

    def _lane_groups(self, count: int) -> list[slice]:
        """Classes that are trained together, one thread each: at most as many as lanes."""
        groups = max(-(-count // _MOST_LANES), min(resolve_threads(self.n_jobs), count))
        size = -(-count // groups)
        return [slice(k, min(k + size, count)) for k in range(0, count, size)]

    def _default_part(self, name: str) -> Any:
        return _map_of(None) if name == "feature_map" else None

    def _settings(self, n_groups: int) -> Any:
        from .dual import Settings

        seed = int(generator(self.random_state).integers(2**31 - 1))
        threads = max(1, resolve_threads(self.n_jobs) // n_groups)
        return Settings(
            bool(self.fit_intercept), float(self.tol), int(self.max_iter), seed, threads,
            bool(self.progress),
        )  # fmt: skip

    def _costs(self, weight: np.ndarray) -> np.ndarray:
        """C times the weights, which has to lie where the solver's numbers are exact."""
        cost = self.C * weight
        wrong = (weight > 0) & ~((cost >= _COSTS[0]) & (cost <= _COSTS[1]))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"{type(self).__name__}: C times the weight of row {at} is {cost[at]:g} (C = "
                f"{self.C:g}, weight {weight[at]:g}), and must lie between {_COSTS[0]:g} and "
                f"{_COSTS[1]:g}. Change C, scale the weights, or give rows that do not count the "
                "weight 0."
            )
        return cost

    def _asked(self, y: np.ndarray, positive: np.ndarray, cost: np.ndarray) -> Any:
        from ._loops import Problem

        loss = self._loss
        return Problem(
            loss=(0,) * LOSSES.index(loss),
            of_labels=loss.of_labels,
            epsilon=float(getattr(self, "epsilon", 0.0)),
            y=np.asarray(y, np.float64),
            positive=np.asarray(positive, np.float64),
            cost=cost,
        )

    def _keep(self, found: list) -> None:
        self._C, self._n_rows = self.C, len(found[0].beta)
        self._weights = np.concatenate([s.weights for s in found], axis=2)
        self._offset = np.concatenate([s.intercept for s in found])
        self.dual_coef_ = found[0].beta if len(found) == 1 else np.hstack([s.beta for s in found])
        self.objective_ = np.concatenate([s.primal for s in found])
        self.duality_gap_ = np.concatenate([s.gap for s in found])
        self.n_iter_ = max(s.n_iter for s in found)
        self.n_visits_ = sum(s.n_visits for s in found)
        self.solver_ = "primal" if any(s.solver == "primal" for s in found) else "dual"
        self._fast = {}
        if not all(s.converged for s in found):
            worst = float(np.max(self.duality_gap_ / np.maximum(self.objective_, 1e-300)))
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} epochs with a "
                f"relative duality gap of {worst:.2g} > tol={self.tol:g}: raise max_iter= or "
                "tol=, or lower a large C=.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _start(self, n: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The last solution, scaled to the new C: duals are proportional to it far from 0."""
        if self.dual_coef_.shape != (n, n_outputs):
            return None
        return self.dual_coef_ * min(self.C / self._C, 1.0), self._offset

    # -- checking -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        name = type(self).__name__
        for parameter in ("C", "tol"):
            value = getattr(self, parameter)
            if parameter == "C" and value is None:  # strengths are chosen
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0:
                raise ValueError(f"{name}: {parameter} must be a positive number, got {value!r}.")
        if self.C is not None and not np.isfinite(self.C):
            raise ValueError(f"{name}: C must be finite, got {self.C!r}.")
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, Integral):
            raise ValueError(f"{name}: max_iter must be an integer, got {self.max_iter!r}.")
        if self.max_iter < 1:
            raise ValueError(f"{name}: max_iter must be at least 1, got {self.max_iter!r}.")
        if self.solver not in ("auto", "dual", "primal"):
            raise ValueError(
                f"{name}: solver must be 'auto', 'dual' or 'primal', got {self.solver!r}."
            )
        if self._loss_name != self.loss:
            warnings.warn(
                f"{name}: loss={self.loss!r} is now spelled {self._loss_name!r}, as in "
                "scikit-learn; the old name will be removed in a later version.",
                FutureWarning,
                stacklevel=3,
            )

    def _fitted_map(self, X: Any) -> tuple[Any, AdditiveMap]:
        """Rows for the loops and the fitted map; sets what the rows mean (`_spec`)."""
        given = _map_of(self.feature_map)
        if not isinstance(given, AdditiveMap):
            raise TypeError(_not_additive(type(self).__name__, given))
        if isinstance(X, Codes):
            return self._codes(X, given), given
        try:
            check_is_fitted(given)
            fitted = given
        except NotFittedError:
            fitted = clone(given).set_params(n_jobs=self.n_jobs).fit(X)
        rows, _ = fitted._check_rows(X, reset=False)
        fitted._check_domain(rows)
        self._on_codes, self._spec = False, fitted.spec_
        return rows, fitted

    def _codes(self, X: Codes, given: AdditiveMap) -> Any:
        if not hasattr(given, "check_codes"):
            raise TypeError(
                f"{type(self).__name__}: X holds codes of an AnchorMap, but feature_map is a "
                f"{type(given).__name__}. Pass the AnchorMap that encoded them."
            )
        try:
            check_is_fitted(given)
        except NotFittedError:
            raise NotFittedError(
                f"{type(self).__name__}: X holds codes, so that feature_map must be the fitted "
                "AnchorMap that encoded them (it is not fitted, or a clone that lost its fit: in a "
                "search or cross-validation pass sklearn.frozen.FrozenEstimator(feature_map))."
            ) from None
        self._on_codes, self._spec = True, code_spec(given.spec_)
        self.n_features_in_ = X.shape[1]
        return given.check_codes(X)

    def _rows(self, X: Any) -> Any:
        """Rows to predict for; their values are still to be looked at."""
        check_is_fitted(self)
        name = type(self).__name__
        if isinstance(X, Codes):
            if not self._on_codes:
                raise ValueError(f"{name} was fitted on values, but X holds codes: decode them.")
            return self.feature_map_.check_codes(X)
        if self._on_codes:
            kind = getattr(X, "dtype", None)
            if getattr(kind, "kind", "f") == "u":  # codes, or pixels? Both are such bytes
                raise ValueError(
                    f"{name} was fitted on codes, and X is a plain array of {kind}: nothing tells "
                    "codes from values. Pass what feature_map_.encode gives (for codes from "
                    "elsewhere, Codes(X, feature_map_.spec_.hash)), or the values as floats."
                )
            return self.feature_map_.encode(X).values
        if len(getattr(X, "shape", (0, 0))) == 1:
            raise ValueError(
                f"{name}: X must have two dimensions, found one. Reshape your data: "
                "X.reshape(1, -1) for one row, X.reshape(-1, 1) for one column."
            )
        validate_data(self, X, reset=False, skip_check_array=True)
        if hasattr(X, "columns") and not hasattr(self.feature_map_, "feature_names_in_"):
            X = np.asarray(X)  # the names are checked; the map was fitted without them
        return self._whole(self.feature_map_._native_rows(X, reset=False))

    def _whole(self, rows: Any) -> Any:
        """Sparse rows as dense ones, where the map does not take 0 to 0."""
        from .basis import vanishes

        return rows.toarray() if sparse.issparse(rows) and not vanishes(self._spec) else rows

    def _look_at(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        if not self._on_codes:
            self.feature_map_._check_rows(rows, reset=False)
            self.feature_map_._check_domain(rows)

    def _precision(self, X: Any) -> type:
        """float32 where the data are no finer and the tolerance does not ask for more."""
        return np.float64 if X.dtype == np.float64 or self.tol < 1e-5 else np.float32

    # -- scoring --------------------------------------------------------------------------------

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
        steps = range(0, count, _MOST_LANES)
        slices = [slice(k, min(k + _MOST_LANES, count)) for k in steps]
        return [(part, lanes_for(part.stop - part.start)) for part in slices]

    def _placed(self, compiled: Any, part: slice) -> np.ndarray:
        """The weights of some classes where the loops expect them."""
        key = ("weights", compiled.basis.values.coef.dtype, len(compiled.lanes), part.start)
        if key not in self._fast or self._fast[key][0] is not compiled:
            self._fast[key] = (compiled, self._laid_out(compiled, part))
        return self._fast[key][1]

    def _laid_out(
        self, compiled: Any, part: slice, weights: np.ndarray | None = None
    ) -> np.ndarray:
        from ...engine.table.memory import aligned

        stride, lanes = int(compiled.stride[0]), len(compiled.lanes)
        flat = aligned((compiled.n_weights + 64) * lanes, compiled.basis.values.coef.dtype)
        cells = flat[: compiled.n_weights * lanes].reshape(-1, stride, lanes)
        own = (self._weights if weights is None else weights)[:, :, part]
        cells[:, : own.shape[1], : own.shape[2]] = own
        return flat

    def _each(self, X: Any, out: np.ndarray, loop: Any) -> np.ndarray:
        """Run a loop over rows and groups of classes; the last axis of `out` is the classes'."""
        from .basis import room_for, rows_of
        from .dual import in_blocks

        rows = rows_of(X)
        groups = [(part, self._compiled(X, lanes)) for part, lanes in self._groups()]
        placed = [self._placed(compiled, part) for part, compiled in groups]

        def work(begin: int, end: int) -> None:
            for (part, compiled), weights in zip(groups, placed, strict=True):
                own = out[begin:end]
                if len(groups) > 1:
                    own = np.zeros((*own.shape[:-1], part.stop - part.start), out.dtype)
                room = room_for(compiled, rows)
                loop(compiled.basis, rows, compiled.lanes, room, begin, weights, own)
                if len(groups) > 1:
                    out[begin:end, ..., part] = own

        n_threads = resolve_threads(self.n_jobs) if X.size * out.shape[-1] > _SMALL else 1
        in_blocks(n_threads, X.shape[0], work)
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

            return scores(self, X)
        if self._tabular:
            return self._table_scores(X)
        return self._scores(self._rows(X), look=True)

    def _trained_scores(self, X: Any) -> np.ndarray:
        """The same in the form of the training, for which nothing has to be compiled first."""
        from . import _loops

        out = np.zeros((X.shape[0], self._weights.shape[2]), np.float64)
        self._each(X, out, _loops.scores)
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
        from . import _loops

        out = np.zeros((X.shape[0], *self._weights.shape[::2]), self._precision(X))
        return self._each(X, out, _loops.terms)

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
            terms = self._table_terms(X)
            return terms[:, :, 0] if terms.shape[2] == 1 else terms
        rows = self._rows(X)
        self._look_at(rows)
        terms = self._terms(rows)
        terms -= self.term_means_.astype(terms.dtype)
        return terms[:, :, 0] if terms.shape[2] == 1 else terms

    # -- shapes ---------------------------------------------------------------------------------

    def _describe(self, X: Any, weight: np.ndarray) -> None:
        """Take a sample of the rows, for densities and means of the terms."""
        size = np.count_nonzero(weight > 0)
        whole = size in (0, len(weight))  # in a chunk of weight 0, all rows
        size = len(weight) if whole else size
        step = max(1, -(-size // max(256, min(2000, size // 32))))
        # One of each `step` rows, at random: every step-th may be of one kind.
        taken = np.arange(0, size, step)
        taken += np.random.default_rng(0).integers(np.minimum(step, size - taken))
        taken = taken if whole else np.flatnonzero(weight > 0)[taken]
        self._sample, self._summary = X[taken], None
        means = self._mean_over_sample(lambda terms: terms)
        # In the precision of the terms, so that these and the intercept have the same sum.
        self.term_means_ = means.astype(self._precision(X)).astype(np.float64)
        intercept = self._offset + self.term_means_.sum(axis=0)
        self.intercept_ = float(intercept[0]) if isinstance(self, RegressorMixin) else intercept

    @property
    def feature_importances_(self) -> np.ndarray:
        """Standard deviations of the functions over (a sample of) the training data."""
        check_is_fitted(self)
        if self._tabular:
            return self._table_importances()
        return self._seen().importances.copy()

    def _seen(self) -> Summary:
        """What is kept of the training rows."""
        if self._summary is None:
            spread = np.sqrt(self._mean_over_sample(lambda t: (t - self.term_means_) ** 2))
            self._summary = summarise(self._sample, spread.mean(axis=-1))
        return self._summary

    def _mean_over_sample(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Mean of a function of the terms, some rows at a time."""
        means = (
            function(t).sum(axis=0, dtype=np.float64) for t in self._blocks_of_terms(self._sample)
        )
        return sum(means) / self._sample.shape[0]

    def _blocks_of_terms(self, X: Any) -> Iterator[np.ndarray]:
        """Terms of rows, as many at a time as a cache holds."""
        n_rows = max(16, _BLOCK_OF_TERMS // (X.shape[1] * self._weights.shape[2]))
        return (self._terms(X[k : k + n_rows]) for k in range(0, X.shape[0], n_rows))

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """The g_j on a grid, with the density of the data below them: one for each feature."""
        check_is_fitted(self)
        if self._tabular:
            return self._table_shapes()
        if "shapes" not in self._fast:
            self._fast["shapes"] = self._shapes()
        return self._fast["shapes"]

    def _shapes(self) -> list[ShapeFunction]:
        seen = self._seen()
        low, high, dtype = seen.low, seen.high, np.dtype(seen.dtype)
        share = np.linspace(0, 1, _GRID)[:, None]
        whole = self._on_codes or dtype.kind == "u"
        grid = low + share * (high - low)
        grid = np.round(grid) if whole else grid
        terms = self._terms(grid.astype(dtype)) - self.term_means_
        names = getattr(self.feature_map_, "feature_names_in_", None)
        names = getattr(self, "feature_names_in_", names)
        shapes = []
        for j in range(grid.shape[1]):
            edges = density_edges(float(low[j]), float(high[j]))
            values = terms[:, j, 0] if terms.shape[2] == 1 else terms[:, j]
            name = f"x{j}" if names is None else str(names[j])
            points = np.unique(grid[:, j], return_index=True)[1]
            density = seen.density[j]
            shapes.append(ShapeFunction(name, grid[points, j], values[points], edges, density))
        return shapes

    def _saved(self) -> dict[str, Any]:
        """What a file holds."""
        if hasattr(self, "_weights"):
            self._seen()
        return self._state.of(self)

    def _check_state(self) -> None:
        """Raise ValueError or TypeError if entries that were loaded contradict each other."""
        self._check_parameters()
        resolve_threads(self.n_jobs)
        classes = getattr(self, "classes_", None)
        if classes is not None and len(np.unique(classes)) != max(2, len(classes)):
            raise ValueError("classes_ must have at least two entries, all different")
        if self._tabular:
            self._check_table()
        if not hasattr(self, "_weights"):
            return
        fitted, shape = self.feature_map_, self._weights.shape
        if fitted.n_features_in_ != self.n_features_in_ or shape[0] != self.n_features_in_:
            raise ValueError("feature_map_ or weights has another number of features")
        if shape[1] != max(fitted._columns_per_feature()) or shape[2] != self._n_outputs():
            raise ValueError(f"weights of shape {shape} do not fit the map and the outputs")
        if len(self._summary.low) != shape[0]:
            raise ValueError("summary has another number of features")
        ends = np.abs([self._summary.low, self._summary.high])
        if ((ends > 0) & (ends < EXACT_SIZES[0])).any() or (ends > EXACT_SIZES[1]).any():
            raise ValueError("summary reaches beyond the sizes for which maps are exact")
        if self._on_codes and not hasattr(fitted, "check_codes"):
            raise ValueError("on_codes is true, but feature_map_ has no codes")
        if hasattr(self, "_progress") and self._progress.weights.shape != shape:
            raise ValueError("progress has weights of another shape")
        if not has_table(fitted.spec_):
            raise ValueError("no table follows the curves of feature_map_")
        self._spec = code_spec(fitted.spec_) if self._on_codes else fitted.spec_
        self._fast = {}

    def __getstate__(self) -> dict[str, Any]:
        """The state without rows, and without numbers of single rows.

        A copy or a pickle predicts as the model does, and `partial_fit` continues from it; with
        ``warm_start`` its next `fit` starts from scratch.
        """
        if hasattr(self, "_weights"):
            self._seen()
        state = super().__getstate__().copy()
        for name in ("_sample", "dual_coef_"):
            state.pop(name, None)
        if "_fast" in state:
            state["_fast"] = {}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = _map_of(self.feature_map)
        tabular = self.feature_map is None and bool(self._asks_for_table())
        tags.input_tags.sparse = not tabular
        tags.input_tags.allow_nan = tags.input_tags.string = tabular
        tags.input_tags.categorical = tabular
        tags.input_tags.positive_only = bool(getattr(given, "_non_negative", False))
        return tags


def _map_of(feature_map: Any) -> Any:
    """The map that was meant: splines by default, and what is in a FrozenEstimator."""
    if feature_map is None:
        return SplineMap()
    return feature_map.estimator if isinstance(feature_map, FrozenEstimator) else feature_map


def _not_additive(owner: str, given: Any) -> str:
    known = (
        "SplineMap, TrigonometricMap, HermiteMap, HomogeneousMap, DesignedMap, AnchorMap, "
        "ChebyshevMap and SeriesMap"
    )
    what = f"{type(given).__name__} acts on whole rows" if isinstance(given, JointMap) else (
        f"{given!r} is none"
    )  # fmt: skip
    return (
        f"{owner}: feature_map must be an additive map, one that acts on each feature alone; "
        f"{what}. Additive are {known}. For other maps put a linear model behind them: "
        "make_pipeline(feature_map, LinearSVC())."
    )


def refuse_training_on_card(owner: Any, X: Any, call: str) -> None:
    """Training is for the processor; nothing is copied there unasked."""
    refuse_card(
        X,
        f"{type(owner).__name__}.{call}",
        "Train on rows in ordinary memory (X.cpu().numpy() of a torch tensor); "
        "decision_function and predict take rows where they are.",
    )


def checked(owner: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X untouched (its map checks the values), y one-dimensional and of its length."""
    if isinstance(X, Codes):
        y = column_or_1d(y, warn=True)
    else:
        numeric = isinstance(owner, RegressorMixin)
        check_sparse(X, type(owner).__name__)
        X, y = validate_data(
            owner, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            y_numeric=numeric, multi_output=False,
        )  # fmt: skip
    if X.shape[0] != len(y):
        raise ValueError(f"{type(owner).__name__}: X has {X.shape[0]} rows, y has {len(y)}.")
    return X, y


def targets_of(owner: Any, y: Any, n: int) -> np.ndarray:
    """Targets of the rows of a table."""
    name = type(owner).__name__
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: pass a value for each row."
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y", estimator_name=name)
    if len(y) != n:
        raise ValueError(
            f"{name}: found input variables with inconsistent numbers of samples: X has {n} rows, "
            f"y has {len(y)}."
        )
    return y


def weights_of(owner: Any, sample_weight: Any, n: int) -> np.ndarray:
    like = np.empty((n, 1))
    weight = _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError(f"{type(owner).__name__}: all sample weights are zero.")
    return weight
