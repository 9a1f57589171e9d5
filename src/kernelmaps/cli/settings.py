"""Options of `kernelmaps fit` as an unfitted estimator: maps, and terms of a GAM.

Nothing in a text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from sklearn.base import clone

import kernelmaps

from .._util.arguments import check_choice, check_positive
from .._util.display import shorten
from ..export.files import load
from ..maps.base import PLUGINS, AdditiveMap, FeatureMap
from ..models.gam.terms import Term
from ..models.losses import parse_loss
from . import application as cli

MODELS = ("gam", "svm", "ridge")
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
            f"{shorten(text, 201)!r} is not a map: write Name or Name(setting=value, …), with "
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
        parameters = ", ".join(classes[name]._get_param_names())
        raise ValueError(f"{name}: {error}. It has the settings {parameters}.") from None


def _read_literal(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


@dataclass(frozen=True)
class FitSettings(cli.FileOptions):
    """The options of `kernelmaps fit`, as they are typed; None: not asked for.

    The model is by default an SVM where a map or C is given, and else a GAM.
    """

    model: Annotated[
        str | None,
        typer.Option(
            help="gam: a sum of functions of single columns and pairs, whose smoothness is "
            "estimated; svm: such a sum on a map, with a fixed C; ridge: linear on any map. "
            "Default: gam; with --map or --C: svm.",
            show_default=False,
        ),
    ] = None
    map: Annotated[
        str | None,
        typer.Option(
            "--map",
            help="Map and settings, e.g. HomogeneousMap(kernel=chi2,n_components=5), or a map's "
            ".kmap file. Default: SplineMap (svm), none (ridge).",
        ),
    ] = None
    task: cli.TaskOption = "auto"
    C: Annotated[
        float | None,
        typer.Option(
            "--C", help="Inverse strength of the regularisation, on a map; 1.", show_default=False
        ),
    ] = None
    interactions: Annotated[
        str | None,
        typer.Option(help="GAM: pairs of columns, as auto, a number, or hour:load,age:income."),
    ] = None
    terms: Annotated[
        str | None,
        typer.Option(
            help="GAM: terms of single columns, e.g. hour=periodic:24,load=linear,zip=category, "
            "east:north=surface; none leaves a column out."
        ),
    ] = None
    constraints: Annotated[
        str | None,
        typer.Option(
            help="GAM: shapes, e.g. area=increasing+concave, or along a column of a pair: "
            "age:power=increasing in age."
        ),
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(help="Loss: log_loss, poisson, tweedie, quantile:0.9, …; of an SVM hinge, …"),
    ] = None
    event: Annotated[
        str | None,
        typer.Option(
            help="GAM of survival: column that says whether the time in --target ended with an "
            "event (1) or was censored (0).",
        ),
    ] = None
    exposure: cli.Exposure = None
    sample_weight: Annotated[
        str | None, typer.Option(help="GAM: column of weights of the rows.")
    ] = None
    holdout: Annotated[
        str,
        typer.Option(
            help="Rows that are scored, one in five, by a model that has not seen them: the last "
            "ones, random ones, or none (then the training rows are scored). auto: last, where a "
            "date orders the rows, else random. The saved model is fitted on all rows.",
        ),
    ] = "auto"
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--in-memory",
            help="GAM: read the file block by block, so that it may be larger than memory. "
            "Default: from 256 MiB on.",
            show_default=False,
        ),
    ] = None
    normalize: cli.Normalize = "none"

    def check(self) -> FitSettings:
        """The settings with the model, after those that contradict each other were refused."""
        if self.model is not None:
            check_choice("fit", "model", self.model, MODELS)
        check_choice("fit", "holdout", self.holdout, ("auto", "last", "random", "none"))
        check_choice("fit", "normalize", self.normalize, cli.NORMS)
        check_positive("fit", "C", 1.0 if self.C is None else self.C)
        uses_map = self.map is not None or self.C is not None
        model = self.model or ("svm" if uses_map else "")
        table_options: tuple[str, ...] = ("interactions", "terms", "constraints")
        table_options += ("event", "exposure", "sample_weight")
        refused = {
            "gam": ("map", "C"),
            "svm": table_options,
            "ridge": (*table_options, "loss"),
        }.get(model, ())
        stated = [f"--{n.replace('_', '-')}" for n in refused if getattr(self, n) is not None]
        if stated:
            why = " (a map, or --C, asks for an SVM)" if self.model is None else ""
            raise ValueError(f"{', '.join(stated)} means nothing for --model {model}{why}.")
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
        options: dict[str, Any] = {} if self.loss is None else {"loss": self.loss}
        C = 1.0 if self.C is None else self.C
        if self.model == "gam":
            kind = "AdditiveClassifier" if labels else "AdditiveRegressor"
            kind = "AdditiveSurvival" if task == "survival" else kind
            if self.loss is not None:
                options["loss"] = parse_loss(self.loss)
            return getattr(kernelmaps, kind)(**self._gam_parameters(columns), **options)
        if self.model == "svm":
            kind = "AdditiveSVC" if labels else "AdditiveSVR"
            return getattr(kernelmaps, kind)(feature_map, C, random_state=0, **options)
        kind = "StreamingRidgeClassifier" if labels else "StreamingRidge"
        return getattr(kernelmaps, kind)(feature_map=feature_map, alpha=1 / C)

    def _gam_parameters(self, columns: Sequence[str] | None) -> dict[str, Any]:
        terms: dict[Any, Any] = dict.fromkeys(columns or (), "auto")
        for name, kind in items(self.terms, "terms"):
            is_surface = kind == "surface"
            key = tuple(map(str.strip, name.split(":"))) if is_surface else name
            terms[key] = kind if is_surface else _parse_term(name, kind)
        shapes: dict[Any, tuple[str, ...]] = {}
        for name, shape in items(self.constraints, "constraints"):
            columns_of_pair = tuple(map(str.strip, name.split(":")))
            shapes[columns_of_pair if " in " in shape else name] = tuple(shape.split("+"))
        return {
            "terms": terms or None,
            "interactions": _parse_interactions(self.interactions),
            "constraints": shapes or None,
        }


def items(text: str | None, option: str) -> list[tuple[str, str]]:
    """Names and values between commas: ``a=b,c=d``."""
    items = []
    for item in filter(str.strip, (text or "").split(",")):
        name, equals, value = (part.strip() for part in item.rpartition("="))
        if not (equals and name and value):
            raise ValueError(f"--{option} must be COLUMN=VALUE with commas between; got {text!r}.")
        items.append((name, value))
    return items


def numbers_between_commas(text: str, option: str, kind: Callable[[str], Any] = float) -> list[Any]:
    """Numbers between commas, which `kind` reads."""
    try:
        return [kind(item.strip()) for item in text.split(",")]
    except ValueError:
        raise ValueError(f"--{option} must be numbers with commas, got {text!r}.") from None


def numbers_by_name(text: str, option: str) -> float | dict[str, float]:
    """A number, or numbers by column or level."""
    try:
        if "=" not in text:
            return float(text)
        return {name: float(value) for name, value in items(text, option)}
    except ValueError:
        raise ValueError(f"--{option} must be a number, or NAME=NUMBER, got {text!r}.") from None


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
