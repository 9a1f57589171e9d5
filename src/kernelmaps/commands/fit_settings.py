"""What `fit` is asked to do, and the estimator that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import kernelmaps

from .._util.arguments import check_positive
from ..maps.base import AdditiveMap, FeatureMap
from .parsing import TableOptions, parse_map

MODELS = ("gam", "svm", "ridge")
HOLDOUTS = ("auto", "last", "random", "none")


@dataclass(frozen=True)
class FitSettings:
    """What to fit.

    Attributes
    ----------
    model : {"gam", "svm", "ridge"}, optional
        A generalised additive model, an additive support vector machine on a map, or ridge
        regression on any map. By default an SVM where a map or C is given, or the rows are sparse,
        and else a GAM.
    feature_map : str, map or None
        See :func:`parse_map`; None takes the model's own default.
    task : {"auto", "classification", "regression"}
        "auto" looks at the target, see :func:`decide_task`.
    C : float, optional
        Inverse strength of the regularisation, of models on a map; 1 by default.
    normalize : str
        How the rows were scaled, to be repeated when predicting.
    holdout : {"auto", "last", "random", "none"}
        The one in five rows that a first fit does not see and that are scored; the model that is
        kept is fitted on all rows. "auto" takes the last ones where a column of dates orders the
        rows, else some all over the file. "none" scores the training rows.
    say : callable
        Called with a line of text when a long step begins.
    loss : str, optional
        Of GAMs and SVMs; by default the estimator's own.
    max_iter, tol : number, optional
        When a solver stops; by default as the estimator has them.
    table : TableOptions
        What is asked of the terms of a GAM.
    stream : bool, optional
        Whether a GAM reads a CSV or Parquet file block by block, so that it may be larger than
        memory; by default files of more than 256 MiB.
    exposure : str, optional
        Column of exposures, for the losses "poisson" and "gamma".
    sample_weight : str, optional
        Column of weights of the rows.
    encoding : str
        Of CSV text.
    """

    model: str | None = None
    feature_map: str | FeatureMap | None = None
    task: str = "auto"
    C: float | None = None
    normalize: str = "none"
    holdout: str = "auto"
    say: Callable[[str], None] = field(default=lambda line: None, compare=False)
    loss: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    table: TableOptions = field(default_factory=TableOptions)
    stream: bool | None = None
    exposure: str | None = None
    sample_weight: str | None = None
    encoding: str = "utf-8"

    def checked(self) -> FitSettings:
        """The settings, after those that contradict each other were refused; the map is one."""
        if self.model not in (None, *MODELS):
            raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {self.model!r}.")
        if self.holdout not in HOLDOUTS:
            raise ValueError(f"--holdout must be {', '.join(HOLDOUTS)}, got {self.holdout!r}.")
        on_map = self.feature_map is not None or self.C is not None
        model = self.model or ("svm" if on_map else None)
        check_positive("the model", "C", 1.0 if self.C is None else self.C)
        beside = {"exposure": self.exposure, "sample_weight": self.sample_weight}
        refused = {
            "gam": {"map": self.feature_map, "C": self.C, "tol": self.tol},
            "svm": {**vars(self.table), **beside},
            "ridge": {
                **vars(self.table), **beside, "loss": self.loss, "max_iter": self.max_iter,
                "tol": self.tol,
            },
        }.get(model or "", {})  # fmt: skip
        given = [
            f"--{name.replace('_', '-')}" for name, value in refused.items() if value is not None
        ]
        if given:
            why = " (a map, or --C, asks for an SVM)" if self.model is None else ""
            raise ValueError(f"{', '.join(given)} means nothing for --model {model}{why}.")
        return replace(self, model=model, feature_map=self._checked_map(model))

    def _checked_map(self, model: str | None) -> FeatureMap | None:
        given = self.feature_map
        feature_map = parse_map(given) if isinstance(given, str) else given
        if model == "svm" and feature_map is not None and not isinstance(feature_map, AdditiveMap):
            raise ValueError(
                "an additive model needs an additive map, and "
                f"{type(feature_map).__name__} is a joint one: use --model ridge, or a map such as "
                "SplineMap or HomogeneousMap."
            )
        if feature_map is not None and feature_map.get_params().get("random_state", 0) is None:
            feature_map.set_params(random_state=0)  # the same file gives the same model
        return feature_map

    def estimator(self, task: str, feature_map: Any, columns: Sequence[str] | None = None) -> Any:
        """The model to fit, unfitted; a GAM uses the `columns` that were asked for by name."""
        labels = task == "classification"
        given = {name: getattr(self, name) for name in ("loss", "max_iter", "tol")}
        options = {name: value for name, value in given.items() if value is not None}
        C = 1.0 if self.C is None else self.C
        if self.model == "gam":
            kind = "AdditiveClassifier" if labels else "AdditiveRegressor"
            return getattr(kernelmaps, kind)(**self.table.parameters(columns), **options)
        if self.model == "svm":
            kind = "AdditiveSVC" if labels else "AdditiveSVR"
            return getattr(kernelmaps, kind)(feature_map, C, random_state=0, **options)
        kind = "StreamingRidgeClassifier" if labels else "StreamingRidge"
        return getattr(kernelmaps, kind)(feature_map=feature_map, alpha=1 / C)
