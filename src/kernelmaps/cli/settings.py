"""Options of the command line as settings: maps, terms of a GAM, and what to fit.

Nothing in a text is executed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import clone

import kernelmaps

from .._util.arguments import check_positive
from .._util.display import shortened
from ..maps.base import PLUGINS, AdditiveMap, FeatureMap
from ..model_files import load
from ..models.gam.terms import Term

MODELS = ("gam", "svm", "ridge")
HOLDOUTS = ("auto", "last", "random", "none")


def parse_map(text: str) -> FeatureMap:
    """A map from text such as ``HomogeneousMap("chi2", n_components=5)``, or from a ``.kmap`` file.

    Values are literals of Python, or bare words (``kernel=chi2``); nothing is executed. Of a file,
    the class and the settings of the map that it holds are taken.
    """
    if text.lower().endswith(".kmap"):
        saved = load(text)
        if not isinstance(saved, FeatureMap):
            raise ValueError(f"{text!r} holds no map but {type(saved).__name__}.")
        return clone(saved)
    try:
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if not isinstance(call.func, ast.Name) or any(item.arg is None for item in call.keywords):
            raise ValueError
        unnamed = [_read_literal(item) for item in call.args]
        settings = {str(item.arg): _read_literal(item.value) for item in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError(
            f"{shortened(text, 201)!r} is not a map: write Name or Name(setting=value, …), with "
            "numbers, words and lists as values, or name a .kmap file."
        ) from None
    return _make_map(call.func.id, unnamed, settings)


def _read_literal(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _make_map(name: str, unnamed: Sequence[Any], settings: dict[str, Any]) -> FeatureMap:
    modules = kernelmaps._MODULE_OF.items()
    public = [
        getattr(kernelmaps, public_name)
        for public_name, room in modules
        if room.startswith("kernelmaps.maps.")
    ]
    classes = {cls.__name__: cls for cls in public if issubclass(cls, FeatureMap)} | PLUGINS
    if name not in classes:
        raise ValueError(f"there is no map {name!r}; there are {', '.join(classes)}.")
    names: Sequence[str] = classes[name]._get_param_names()
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise ValueError(f"{name} has no setting {', '.join(unknown)}; it has {', '.join(names)}.")
    signature = inspect.signature(classes[name])
    try:
        signature.bind(*unnamed, **settings)
    except TypeError as error:
        raise ValueError(
            f"{name}: {error}. Write settings with their names, such as "
            f"{next(iter(signature.parameters))}=…; it has {', '.join(names)}."
        ) from None
    return classes[name](*unnamed, **settings)


@dataclass(frozen=True)
class TableOptions:
    """Options as text; None: not asked for.

    Attributes
    ----------
    terms : str
        ``"hour=periodic:24,load=linear,zip=category"``.
    interactions : str
        ``"auto"``, a number of pairs, or ``"hour:load,age:income"``.
    constraints : str
        ``"area=increasing+concave,age=convex"``.
    smoothing : str
        ``"auto"``, a number, or ``"area=100,age=10"``.
    """

    terms: str | None = None
    interactions: str | None = None
    constraints: str | None = None
    smoothing: str | None = None

    def parameters(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """Parameters of a GAM; `columns` that were asked for by name are used in any case."""
        terms: dict[str, Any] = dict.fromkeys(columns or (), "auto")
        terms |= {name: _term(name, kind) for name, kind in _items(self.terms, "terms")}
        shapes = _items(self.constraints, "constraints")
        constraints = {name: tuple(shape.split("+")) for name, shape in shapes}
        return {
            "terms": terms or None,
            "interactions": self._interactions(),
            "constraints": constraints or None,
            "smoothing": self._smoothing(),
        }

    def _interactions(self) -> Any:
        text = self.interactions
        if text is None or text == "auto":
            return text
        if text.strip().isdecimal():
            return int(text)
        pairs = [tuple(map(str.strip, item.split(":"))) for item in text.split(",") if item.strip()]
        if not pairs or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise ValueError(
                "--interactions must be auto, a number of pairs, or pairs of columns such as "
                f"hour:load,age:income; got {text!r}."
            )
        return pairs

    def _smoothing(self) -> Any:
        text = self.smoothing
        if text is None or text == "auto":
            return "auto"
        if "=" in text:
            return {name: _smoothing_parameter(value) for name, value in _items(text, "smoothing")}
        return _smoothing_parameter(text)


def _items(text: str | None, option: str) -> list[tuple[str, str]]:
    """Names and values between commas: ``a=b,c=d``."""
    items = []
    for item in (text or "").split(","):
        name, equals, value = (text_part.strip() for text_part in item.rpartition("="))
        if not item.strip():
            continue
        if not (equals and name and value):
            raise ValueError(f"--{option} must be COLUMN=VALUE with commas between; got {text!r}.")
        items.append((name, value))
    return items


def _term(name: str, text: str) -> Term | str | None:
    """``linear``, ``trend``, ``periodic:24``, or ``none`` to leave the column out."""
    kind, _, period = text.partition(":")
    if not period:
        return None if text == "none" else kind
    try:
        return Term(name, kind, period=float(period))
    except ValueError:
        raise ValueError(f"--terms: the period of {name!r} is not a number: {period!r}.") from None


def _smoothing_parameter(text: str) -> Any:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--smoothing must be auto or numbers, got {text!r}.") from None


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
        rows, else random ones. "none" scores the training rows.
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

    def check(self) -> FitSettings:
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
        return replace(self, model=model, feature_map=self._check_map(model))

    def _check_map(self, model: str | None) -> FeatureMap | None:
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
