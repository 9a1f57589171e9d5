"""Base class of AdditiveSVC and AdditiveSVR: parameters, checks, fits and what is saved.

An estimator turns its parameters and data into plain arguments (:mod:`.problem`), calls a solver
(:mod:`.training`) and holds one fitted object, an `AdditiveMachine`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from ..._util.arguments import check_choice, check_count, check_positive, generator
from ..._util.devices import is_foreign, memory_named, refuse_gpu_array
from ..._util.schema import State, array, instance, integer, names, number, text
from ..._util.threads import resolve_threads
from ...data import Source
from ...data.columns import without_named
from ...data.tables import is_in_memory
from ...maps.base import AdditiveMap
from ...maps.codes import Codes
from ..inputs import refuse_training_on_gpu, weights_of
from ..losses import SVM, find_loss, svm_loss
from ..shapes import Explanation, ShapeFunction
from . import inputs, problem
from .fitted import AdditiveMachine, FittedMap, sample_rows
from .problem import Options, Targets

_TIE = 1e-12  # mean scores that differ by less are equal: the smaller C is taken


@dataclass(eq=False, repr=False)
class AdditiveSVM(BaseEstimator):
    """What `AdditiveSVC` and `AdditiveSVR` have in common."""

    feature_map: AdditiveMap | None = None
    C: Any = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    cv: Any = 5
    solver: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None

    _state: ClassVar[State] = State(
        required={
            "predictor_": instance((AdditiveMachine,)),
            "n_features_in_": integer(1),
            "C_": number(above=0),
        },
        allowed={
            "feature_names_in_": names,
            "n_rows": integer(1),
            "Cs_": array("f8", "sizes", low=0),
            "cv_scores_": array("f8", "folds sizes", finite=False),
            "objective_": array("f8", "outputs", finite=False),
            "duality_gap_": array("f8", "outputs", finite=False),
            "n_iter_": integer(),
            "solver_": text(("dual", "primal")),
        },
        private=True,
    )

    # -- what differs between a classifier and a regressor -----------------------------------------

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> Targets:
        """Targets as solvers take them; what is learned of them is set."""
        raise NotImplementedError

    def _score_of_fold(self, scores: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
        """How good scores of held-out rows are."""
        raise NotImplementedError

    def _kind_of_outputs(self) -> tuple[str, np.ndarray | None]:
        """What the outputs of a machine stand for, and labels."""
        return "numbers", None

    # -- parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> np.ndarray | None:
        """Refuse parameters that have no meaning; the values of C, if there are several."""
        check_positive(self, "tol", self.tol)
        check_count(self, "max_iter", self.max_iter)
        check_choice(self, "solver", self.solver, ("auto", "dual", "primal"))
        name = type(self).__name__
        find_loss(name, self.loss, is_classifier(self), SVM)
        return problem.check_C(name, self.C)

    def _options(self) -> Options:
        return Options(
            owner=type(self).__name__,
            loss=self.loss,
            epsilon=float(getattr(self, "epsilon", 0.0)),
            fit_intercept=bool(self.fit_intercept),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            solver=self.solver,
            seed=int(generator(self.random_state).integers(2**31 - 1)),
            n_threads=resolve_threads(self.n_jobs),
            progress=self.progress,
        )

    # -- fit --------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Train on rows in memory, or on rows that come in blocks."""
        name = type(self).__name__
        X, y, sample_weight = without_named(name, X, y, sample_weight)
        refuse_training_on_gpu(self, "fit", X, y, sample_weight)
        Cs = self._check_parameters()
        inputs.refuse_table(name, X)
        # A memory map is an array, unless it was opened as a source.
        is_array = isinstance(X, Codes | np.memmap)
        if is_array or (not isinstance(X, Source) and is_in_memory(X)):
            self._fit_rows(X, y, sample_weight, Cs)
            return
        if Cs is not None:
            raise ValueError(
                f"{name}: C is chosen among several values for rows in memory only, not for files "
                "and streams. Pass one C, or choose it on a part of the rows."
            )
        self._fit_source(X, y, sample_weight)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, Cs: np.ndarray | None) -> None:
        from .training import cross_validate, train

        name, options = type(self).__name__, self._options()
        with inputs.naming_gams():
            X, y = inputs.check_rows_and_targets(self, X, y)
            counts = weights_of(self, sample_weight, len(y))
            targets = self._targets(y, counts)
            rows, fitted = inputs.fit_map(name, self.feature_map, X, targets.weight, self.n_jobs)
        problem.check_size(rows, targets, options)
        self._forget()
        if Cs is None:
            C = self._C_for(fitted, rows, targets, options)
        else:
            folds = problem.held_out_folds(name, self.cv, targets.y, counts, is_classifier(self))
            self.Cs_, self.cv_scores_ = Cs, cross_validate(
                Cs, folds, rows, targets, counts, self._score_of_fold, fitted, options
            )  # fmt: skip
            means = self.cv_scores_.mean(axis=0)
            C = float(Cs[np.argmax(means > means.max() - _TIE)])  # the smallest of the best
        solution = train(rows, targets, C, fitted, options)
        problem.warn_unless_converged(solution, options)
        self._keep(solution, targets, fitted, C, sample_rows(rows, targets.weight))

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> None:
        from .training import open_rereadable, read_once, train_on_blocks

        name, options = type(self).__name__, self._options()
        source = open_rereadable(name, X, y, sample_weight)
        y, weight, sampled, outline = read_once(name, source)
        self.n_features_in_ = outline.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if source.names is not None:  # of a stream: known by now
            self.feature_names_in_ = np.asarray(source.names, dtype=object)
        targets = self._targets(y, weights_of(self, weight, len(y)))
        if targets.pairwise:
            refuse_pairs(name, "rows that come in blocks")
        problem.check_size(outline, targets, options)
        self._forget()
        # All rows are in blocks: the map is fitted to a sample with the ends of all ranges.
        outline, fitted = inputs.fit_map(name, self.feature_map, outline, None, self.n_jobs)
        C = self._C_for(fitted, outline[:-2], targets.select(sampled), options)
        cost = problem.weigh_costs(name, C, targets.weight)
        solution = train_on_blocks(source, outline, targets, cost, fitted, options)
        problem.warn_unless_converged(solution, options)
        self._keep(solution, targets, fitted, C, sample_rows(outline[:-2], targets.weight[sampled]))

    def _C_for(self, fitted: FittedMap, rows: Any, targets: Targets, options: Options) -> float:
        """C as a number; "scale" is one for the scale of the map's columns."""
        if not isinstance(self.C, str):
            return float(self.C)
        loss = svm_loss(self.loss, options.epsilon)
        square = problem.mean_square(fitted.spec, rows, targets.weight)
        if not square:  # all rows are mapped alike
            return 1.0
        curvature = problem.max_curvature(loss, targets.y, targets.weight)
        return problem.SCALED_CURVATURE_RATIO / (curvature * square)

    def _forget(self) -> None:
        """Discard what only a choice among several C leaves."""
        for name in ("Cs_", "cv_scores_"):
            self.__dict__.pop(name, None)

    def _keep(self, solution: Any, targets: Targets, fitted: Any, C: float, sample: Any) -> None:
        """Set the attributes of a fit."""
        self._n_rows, self.C_ = len(solution.alpha), C
        self.dual_coef_, self.objective_ = solution.alpha, solution.primal
        self.duality_gap_, self.n_iter_ = solution.gap, solution.n_iter
        self.solver_ = solution.solver
        outputs, classes = self._kind_of_outputs()
        self.predictor_ = AdditiveMachine.from_fit(
            sample, feature_map=fitted.feature_map, on_codes=fitted.on_codes,
            weights=solution.weights, offset=solution.intercept + targets.centre,
            tol=float(self.tol), outputs=outputs, classes=classes,
            log_odds=self.loss == "log_loss",
            feature_names=getattr(self, "feature_names_in_", None),
        )  # fmt: skip

    # -- what a fitted model says -----------------------------------------------------------------

    @property
    def _model(self) -> AdditiveMachine:
        """The fitted object; NotFittedError without one."""
        check_is_fitted(self)
        return self.predictor_

    def _scores(self, X: Any) -> Any:
        """Scores of rows as a user passes them, one column per output."""
        machine = self._model
        if is_foreign(X):
            with memory_named(type(self).__name__, "Pass fewer rows at a time."):
                return machine.foreign_scores(X)
        rows = inputs.native_rows(self, machine, X)
        machine.check(rows)
        return machine.scores(rows, self.n_jobs)

    def eval_terms(self, X: Any) -> np.ndarray:
        """Compute the contribution of each feature to the score.

        The score (the prediction of a regressor, the value of `decision_function` of a classifier)
        equals ``eval_terms(X).sum(axis=1) + intercept_``. Each term has mean zero over (a sample
        of) the training data; the means are in the intercept.

        Parameters
        ----------
        X : array-like, CSR matrix, Codes or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
            One column for each feature; for one output without the last axis.
        """
        machine = self._model
        refuse_gpu_array(X, f"{type(self).__name__}.eval_terms", "Pass X.cpu().numpy().")
        rows = inputs.native_rows(self, machine, X)
        machine.check(rows)
        terms = machine.centred_terms(rows, self.n_jobs)
        return terms[:, :, 0] if terms.shape[2] == 1 else terms

    def explain(self, x: Any, output: int | None = None) -> Explanation:
        """Explain one row: what each feature adds to its score.

        Parameters
        ----------
        x : array-like or frame of shape (1, n_features)
            One row.
        output : int, optional
            For more than two classes: which one's score, by default that of the predicted class.
            One against one: which pair's, by default the closest one that the predicted class won.

        Returns
        -------
        Explanation
            Prints as text; `plot` draws it as bars.
        """
        terms = self.eval_terms(x)  # which says first if the model is not fitted
        return self.predictor_.explain_terms(terms, x, output)

    @property
    def feature_map_(self) -> AdditiveMap:
        """The fitted map."""
        return self._model.feature_map

    @property
    def term_names_(self) -> list[str]:
        """Names of the features, in the order of `eval_terms`."""
        return self._model.term_names_

    @property
    def shape_functions_(self) -> list[ShapeFunction]:
        """The g_j on a grid, with the density of the data below them: one for each feature."""
        return self._model.shape_functions_

    @property
    def feature_importances_(self) -> np.ndarray:
        """Standard deviations of the functions over (a sample of) the training data."""
        return self._model.summary.importances.copy()

    # -- what is saved ----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The state without numbers of single rows."""
        state = super().__getstate__().copy()
        state.pop("dual_coef_", None)
        return state

    def _check_state(self) -> None:
        """Raise ValueError or TypeError if entries that were loaded contradict each other."""
        self._check_parameters()
        resolve_threads(self.n_jobs)
        if not hasattr(self, "predictor_"):
            return
        if len(self.predictor_.weights) != self.n_features_in_:
            raise ValueError("predictor_ has another number of features")
        machine, (outputs, classes) = self.predictor_, self._kind_of_outputs()
        if outputs != machine.outputs or not np.array_equal(classes, machine.classes):
            raise ValueError("predictor_ has other outputs")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = bool(
            getattr(inputs.unwrap_map(self.feature_map), "_non_negative", False)
        )
        return tags


def refuse_pairs(owner: str, what: str) -> None:
    """Refuse pairs of classes where they are not available."""
    raise ValueError(
        f"{owner}: multi_class='ovo' is not available for {what}. Use multi_class='ovr', or "
        f"sklearn.multiclass.OneVsOneClassifier({owner}())."
    )
