"""Options of `kernelmaps fit` as an unfitted estimator: maps, and terms of a GAM.

Nothing in a text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

import kernelmaps

from .._util.arguments import check_positive
from .._util.display import shortened
from ..export.files import load
from ..maps.base import PLUGINS, AdditiveMap, FeatureMap
from ..models.gam.terms import Term
from ..models.losses import parse_loss

MODELS = ("gam", "svm", "ridge")
HOLDOUTS = ("auto", "last", "random", "none")
_MAPS = "kernelmaps.maps."  # where public maps are defined


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
        node: Any = ast.parse(text.strip(), mode="eval").body
        call: Any = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        name, unnamed = call.func.id, [_read_literal(item) for item in call.args]
        settings = {str(item.arg): _read_literal(item.value) for item in call.keywords}
    except (AttributeError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError(
            f"{shortened(text, 201)!r} is not a map: write Name or Name(setting=value, …), with "
            "numbers, words and lists as values, or name a .kmap file."
        ) from None
    names = [key for key, room in kernelmaps._MODULE_OF.items() if room.startswith(_MAPS)]
    public = {key: getattr(kernelmaps, key) for key in names}
    classes = {key: cls for key, cls in public.items() if issubclass(cls, FeatureMap)} | PLUGINS
    if name not in classes:
        raise ValueError(f"there is no map {name!r}; there are {', '.join(classes)}.")
    try:
        return classes[name](*unnamed, **settings)
    except TypeError as error:
        known = ", ".join(classes[name]._get_param_names())
        raise ValueError(f"{name}: {error}. It has the settings {known}.") from None


def _read_literal(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


@dataclass(frozen=True)
class FitSettings:
    """The options of `kernelmaps fit`, as they are typed; None: not asked for.

    The model is by default an SVM where a map or C is given, or the rows are sparse, and else a
    GAM.
    """

    model: str | None = None
    map: str | None = None
    task: str = "auto"
    C: float | None = None
    interactions: str | None = None
    terms: str | None = None
    constraints: str | None = None
    smoothing: str | None = None
    loss: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    exposure: str | None = None
    sample_weight: str | None = None
    holdout: str = "auto"
    stream: bool | None = None
    normalize: str = "none"
    encoding: str = "utf-8"

    def check(self) -> FitSettings:
        """The settings with the model, after those that contradict each other were refused."""
        if self.model not in (None, *MODELS):
            raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {self.model!r}.")
        if self.holdout not in HOLDOUTS:
            raise ValueError(f"--holdout must be {', '.join(HOLDOUTS)}, got {self.holdout!r}.")
        check_positive("the model", "C", 1.0 if self.C is None else self.C)
        on_map = self.map is not None or self.C is not None
        model = self.model or ("svm" if on_map else "")
        of_tables: tuple[str, ...] = ("interactions", "terms", "constraints", "smoothing")
        of_tables += ("exposure", "sample_weight")
        refused = {
            "gam": ("map", "C", "tol"),
            "svm": of_tables,
            "ridge": (*of_tables, "loss", "max_iter", "tol"),
        }.get(model, ())
        given = [f"--{n.replace('_', '-')}" for n in refused if getattr(self, n) is not None]
        if given:
            why = " (a map, or --C, asks for an SVM)" if self.model is None else ""
            raise ValueError(f"{', '.join(given)} means nothing for --model {model}{why}.")
        return replace(self, model=model or None)

    def read_map(self) -> FeatureMap | None:
        """The map; an SVM takes an additive one."""
        if self.map is None:
            return None
        feature_map = parse_map(self.map)
        if self.model == "svm" and not isinstance(feature_map, AdditiveMap):
            raise ValueError(
                "an additive model needs an additive map, and "
                f"{type(feature_map).__name__} is a joint one: use --model ridge, or a map such as "
                "SplineMap or HomogeneousMap."
            )
        if feature_map.get_params().get("random_state", 0) is None:
            feature_map.set_params(random_state=0)  # the same file gives the same model
        return feature_map

    def make_estimator(
        self, task: str, feature_map: Any, columns: Sequence[str] | None = None
    ) -> Any:
        """The model to fit, unfitted; a GAM uses the `columns` that were asked for by name."""
        labels = task == "classification"
        given = {name: getattr(self, name) for name in ("loss", "max_iter", "tol")}
        options: dict[str, Any] = {name: v for name, v in given.items() if v is not None}
        C = 1.0 if self.C is None else self.C
        if self.model == "gam":
            kind = "AdditiveClassifier" if labels else "AdditiveRegressor"
            if self.loss is not None:
                options["loss"] = parse_loss(self.loss)
            return getattr(kernelmaps, kind)(**self._gam_parameters(columns), **options)
        if self.model == "svm":
            kind = "AdditiveSVC" if labels else "AdditiveSVR"
            return getattr(kernelmaps, kind)(feature_map, C, random_state=0, **options)
        kind = "StreamingRidgeClassifier" if labels else "StreamingRidge"
        return getattr(kernelmaps, kind)(feature_map=feature_map, alpha=1 / C)

    def _gam_parameters(self, columns: Sequence[str] | None) -> dict[str, Any]:
        terms: dict[str, Any] = dict.fromkeys(columns or (), "auto")
        terms |= {name: _parse_term(name, kind) for name, kind in _items(self.terms, "terms")}
        shapes = _items(self.constraints, "constraints")
        smoothing: Any = self.smoothing or "auto"
        if "=" in smoothing:
            pairs = _items(smoothing, "smoothing")
            smoothing = {name: _parse_smoothing(value) for name, value in pairs}
        else:
            smoothing = _parse_smoothing(smoothing)
        return {
            "terms": terms or None,
            "interactions": _parse_interactions(self.interactions),
            "constraints": {name: tuple(shape.split("+")) for name, shape in shapes} or None,
            "smoothing": smoothing,
        }


def _items(text: str | None, option: str) -> list[tuple[str, str]]:
    """Names and values between commas: ``a=b,c=d``."""
    items = []
    for item in filter(str.strip, (text or "").split(",")):
        name, equals, value = (part.strip() for part in item.rpartition("="))
        if not (equals and name and value):
            raise ValueError(f"--{option} must be COLUMN=VALUE with commas between; got {text!r}.")
        items.append((name, value))
    return items


def _parse_term(name: str, text: str) -> Term | str | None:
    """``linear``, ``trend``, ``periodic:24``, or ``none`` to leave the column out."""
    kind, _, period = text.partition(":")
    if not period:
        return None if text == "none" else kind
    try:
        return Term(name, kind, period=float(period))
    except ValueError:
        raise ValueError(f"--terms: the period of {name!r} is not a number: {period!r}.") from None


def _parse_interactions(text: str | None) -> Any:
    """``auto``, a number of pairs, or ``hour:load,age:income``."""
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


def _parse_smoothing(text: str) -> Any:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ValueError(f"--smoothing must be auto or numbers, got {text!r}.") from None
