"""Base class of the additive classifier and regressor: training, checks and state."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from ...arguments import check_choice, check_count, check_positive
from ...engine import code_spec
from ...engine.compile import has_table, zero_at_zero
from ...maps.base import EXACT_SIZES, AdditiveMap
from ...maps.codes import Codes, codes_of
from ...schema import State, array, boolean, instance, integer, names, number, text
from ...seeding import generator
from ...threads import resolve_threads, together
from ..losses import LOSSES, Loss, find_loss
from .describing import AdditiveShapes
from .inputs import map_of, not_additive
from .scoring import MOST_LANES, SMALL
from .summary import Progress, Summary

_COSTS = (1e-30, 1e30)  # of one example; beyond, weights in float32 may overflow
_ROUGH = 1e-5  # tolerances from which on rounded rows are worth a start
_SHARED = 1.5  # lanes that take as long as what is done once for all of them
_PATIENCE = 100  # epochs of coordinate descent before Newton's method takes over


class AdditiveModel(AdditiveShapes):
    """A linear model on an additive map, trained on the fly; `AdditiveClassifier` documents it."""

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
        private=True,
    )

    _of_labels = True  # whether targets are labels or numbers

    @property
    def _loss_name(self) -> str:
        """The entry of `LOSSES` that `loss` names."""
        return find_loss(type(self).__name__, self.loss, self._of_labels)

    @property
    def _loss(self) -> type[Loss]:
        return LOSSES[self._loss_name]

    @property
    def _link(self) -> str:
        """ "log" where predictions are exp(f), else "identity"."""
        return self._loss.link

    def _prepare(self, X: Any, weight: np.ndarray | None = None) -> Any:
        """Fit the map to the rows of positive weight; all rows as the loops take them."""
        X, self.feature_map_ = self._fitted_map(X, weight)
        if sparse.issparse(X) and not zero_at_zero(self._spec):
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
        """Solve for all outputs, in groups of lanes, one thread each."""
        groups = self._lane_groups(len(positive), X.size)
        if start is None and self.warm_start and hasattr(self, "dual_coef_"):
            start = self._start(len(y), len(positive))
        settings = self._settings(len(groups))
        near = self._rounded(X) if start is None else None

        def work(group: slice) -> Any:
            own, wanted = self._taking_part(y, positive[group])
            rows, targets, costs = (X, y, cost) if own is None else (X[own], y[own], cost[own])
            beta, intercept = np.zeros((len(targets), group.stop - group.start)), None
            if not costs.any():
                return self._nothing(len(y), beta.shape[1])
            if start is not None:
                # Of rows that do not take part now, nothing may be left.
                before = start[0][:, group] if own is None else start[0][own, group]
                beta[:] = np.where(costs[:, None] > 0, before, 0)
                intercept = start[1][group] if self.fit_intercept else None
            problem = self._asked(targets, wanted, costs)
            quiet = settings if group.start == 0 else replace(settings, progress=False)
            codes = near if near is None or own is None else (near[0][own], near[1])
            solution = self._solve(rows, problem, quiet, beta, intercept, codes)
            return solution if own is None else solution.among(own, len(y))

        self._keep(together(work, groups, resolve_threads(self.n_jobs)))

    def _taking_part(
        self, y: np.ndarray, outputs: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """The rows that some outputs are trained on, None for all; the codes they call +1."""
        return None, outputs

    def _nothing(self, n: int, count: int) -> Any:
        """The solution of outputs without rows: no weights."""
        from .dual import Solution

        shape = (self.n_features_in_, max(self.feature_map_._columns_per_feature()), count)
        none = np.zeros(count)
        return Solution(np.zeros(shape), none, np.zeros((n, count)), none, none, 0, 0, True)

    def _rounded(self, X: Any) -> tuple[np.ndarray, int] | None:
        """Rows in a compact form, on which a first solution takes less time (see `rounded`)."""
        from .basis import rounded

        if not self.compact or self.solver == "primal" or X.size < SMALL or self.tol < _ROUGH:
            return None
        precision = np.dtype(self._precision(X))
        return rounded(self._spec, X, precision, resolve_threads(self.n_jobs))

    def _solve(
        self,
        X: Any,
        problem: Any,
        settings: Any,
        beta: np.ndarray,
        intercept: np.ndarray | None,
        codes: tuple[np.ndarray, int] | None = None,
    ) -> Any:
        from .basis import compile_basis, lanes_for, of_fractions, rows_of
        from .dual import solve

        used = problem.positive.size
        compiled = compile_basis(self._spec, X, self._precision(X), lanes_for(used))
        examples = np.flatnonzero(problem.cost > 0).astype(np.int32)
        rows, turn = rows_of(X), self._turn(settings, len(examples))
        if turn > 0:
            first, near = replace(settings, max_iter=turn), None
            if codes is not None:
                near = of_fractions(compiled, codes[1]), rows_of(codes[0])
            solution = solve(compiled, rows, problem, examples, first, beta, intercept, near)
        if turn == 0 or (turn < settings.max_iter and not solution.converged):
            return self._newton(X, problem, examples, settings, compiled.bands)
        solution.weights = self._cells(solution.weights, compiled, used)
        return solution

    def _turn(self, settings: Any, n_examples: int) -> int:
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
        from .primal import Columns, minimise

        columns = Columns(
            self.feature_map_.transform, X[examples], self._n_columns(), settings.fit_intercept
        )
        found = minimise(columns, problem, examples, settings.tol)
        return replace(found, weights=bands.cells(found.weights))

    @staticmethod
    def _cells(flat: np.ndarray, compiled: Any, used: int) -> np.ndarray:
        """Weights of the loops as [feature][basis][output]."""
        stride, lanes = compiled.stride, len(compiled.lanes)
        width = int(compiled.bands.table.width.max())
        cells = flat[: compiled.n_weights * lanes].reshape(-1, stride, lanes)
        return cells[:, :width, :used].copy()

    def _lane_groups(self, count: int, values: float = np.inf) -> list[slice]:
        """Classes that are trained together, so that the busiest thread has the least to do.

        Lanes of a group are a power of two; idle ones cost as much as those in use. Few values are
        trained on for all classes together: groups have loops of their own to compile, and their
        last digits depend on how many processors there are.
        """
        from .basis import lanes_for

        def groups(size: int) -> list[slice]:
            return [slice(k, min(k + size, count)) for k in range(0, count, size)]

        if values * count <= SMALL:
            return groups(-(-count // -(-count // MOST_LANES)))
        threads = resolve_threads(self.n_jobs)

        def busiest(size: int) -> float:
            """Time of the thread that has the most to do, in units of a lane."""
            loads = np.zeros(threads)
            for group in groups(size):
                loads[loads.argmin()] += _SHARED + len(lanes_for(group.stop - group.start))
            return float(loads.max())

        sizes = range(min(count, MOST_LANES), 0, -1)
        return groups(min(sizes, key=busiest))

    def _default_part(self, name: str) -> Any:
        return map_of(None) if name == "feature_map" else None

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

        if self._loss.rules is None:
            raise ValueError(
                f"{type(self).__name__}: loss={self.loss!r} is for tables alone. Use "
                f"{type(self).__name__} without a feature_map, which chooses the smoothness of "
                "each column itself, or another loss."
            )
        return Problem(
            loss=(0,) * list(LOSSES).index(self._loss_name),
            of_labels=self._of_labels,
            epsilon=float(getattr(self, "epsilon", 0.0)),
            y=np.ascontiguousarray(y, np.float64),
            positive=np.ascontiguousarray(positive, np.float64),
            cost=np.ascontiguousarray(cost, np.float64),
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
            # Newton's method ends where rounding errors do not let it go on, not at max_iter.
            primal = self.solver_ == "primal"
            ended = f"{self.n_iter_} Newton steps" if primal else f"max_iter={self.max_iter} epochs"
            warnings.warn(
                f"{type(self).__name__} stopped after {ended} with a relative duality gap of "
                f"{worst:.2g} > tol={self.tol:g}: {'' if primal else 'raise max_iter= or '}"
                f"{'raise ' if primal else ''}tol=, or lower a large C=.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _start(self, n: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The last solution, scaled to the new C: duals are proportional to it far from 0."""
        if self.dual_coef_.shape != (n, n_outputs):
            return None
        return self.dual_coef_ * min(self.C / self._C, 1.0), self._offset

    # -- checking -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if self.C is not None:  # else strengths are chosen
            check_positive(self, "C", self.C)
        check_positive(self, "tol", self.tol)
        check_count(self, "max_iter", self.max_iter)
        check_choice(self, "solver", self.solver, ("auto", "dual", "primal"))
        if self._loss_name != self.loss:
            warnings.warn(
                f"{name}: loss={self.loss!r} is now spelled {self._loss_name!r}, as in "
                "scikit-learn; the old name will be removed in a later version.",
                FutureWarning,
                stacklevel=3,
            )

    def _fitted_map(self, X: Any, weight: np.ndarray | None) -> tuple[Any, AdditiveMap]:
        """Rows for the loops and the fitted map; sets what the rows mean (`_spec`).

        Rows of weight 0 count as absent: the map's domain is neither learned from them nor checked
        against them.
        """
        given = map_of(self.feature_map)
        if not isinstance(given, AdditiveMap):
            raise TypeError(not_additive(type(self).__name__, given))
        if isinstance(X, Codes):
            return self._codes(X, given), given
        some = None
        if weight is not None and weight.any() and not weight.all():
            some = np.flatnonzero(weight > 0)
        fitted, known = given, False
        try:
            check_is_fitted(given)
        except NotFittedError:
            fitted = clone(given).set_params(n_jobs=self.n_jobs).fit(X if some is None else X[some])
            known = some is None  # the values were looked at
        if known:
            rows = fitted._native_rows(X, reset=False)
        else:
            rows, _ = fitted._check_rows(X, reset=False)
        fitted._check_domain(rows if some is None else rows[some])
        self._on_codes, self._spec = False, fitted.spec_
        return rows, fitted

    def _codes(self, X: Codes, given: AdditiveMap) -> Any:
        codes = codes_of(given, X, type(self).__name__)
        self._on_codes, self._spec = True, code_spec(given.spec_)
        self.n_features_in_ = X.shape[1]
        return codes

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
        seen = self._seen()
        if len(seen.low) != shape[0]:
            raise ValueError("summary has another number of features")
        ends = np.abs([seen.low, seen.high])
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
        given = map_of(self.feature_map)
        tabular = self.feature_map is None and bool(self._asks_for_table())
        tags.input_tags.sparse = not tabular
        tags.input_tags.allow_nan = tags.input_tags.string = tabular
        tags.input_tags.categorical = tabular
        tags.input_tags.positive_only = bool(getattr(given, "_non_negative", False))
        return tags
