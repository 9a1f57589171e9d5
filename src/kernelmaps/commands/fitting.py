"""Fit a model on a file of rows, score it on rows that it has not seen, print and save it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps

from ..arguments import check_positive
from ..data import Rows, Source, read_rows
from ..data.columns import Wanted, no_target
from ..data.reading import (
    Holdout,
    PartOfSource,
    PreparedSource,
    open_rows,
    read_columns,
    rows_where,
)
from ..data.reading import column_names as names_in
from ..data.sources import SlicedSource, values_at
from ..data.suffixes import is_csv, is_parquet
from ..data.table_in_memory import IN_MEMORY_BYTES, TableFile, file_bytes, load_table
from ..data.table_stream import Learning, open_large_table
from ..display import two_columns
from ..evaluation.candidates import expression
from ..evaluation.checks import Task, check_targets, decide_task, suspect_columns
from ..evaluation.methods import behind_scaler
from ..evaluation.scoring import Judged
from ..exceptions import SuspectColumnWarning, UnreadableCellWarning
from ..maps.base import AdditiveMap, FeatureMap
from ..models.gam.codebooks import SAMPLE_ROWS
from ..models.losses import LOSSES
from ..sparse_rows import dense
from .exporting import AnyPath, write_model
from .parsing import TableOptions, parse_map

MODELS = ("gam", "svm", "ridge")
HOLDOUTS = ("auto", "last", "random", "none")
_LOOK = 16384  # rows that are looked at together
_ALMOST_ONE = 0.999  # rank correlation with the target that is pointed out
_FEWEST = 20  # rows below which none are held out
_WIDEST = 10_000  # columns whose ranges are noted
_RARE = 0.1  # share of a class below which its average precision is shown


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows, scores.
    scores : dict of str to float
        Accuracy, R² or the share of the deviance explained first, then others.
    scored_rows : int
        Number of held-out rows that the scores are of; 0: they are of the training rows.
    reason : str
        Why the task was taken to be what it is.
    streamed : bool
        Whether the rows were read block by block, never all at once.
    """

    model: Any
    metadata: dict[str, Any]
    scores: dict[str, float]
    scored_rows: int = 0
    reason: str = ""
    streamed: bool = False

    @property
    def score(self) -> float:
        """The main score: accuracy, R² or the share of the deviance explained."""
        return next(iter(self.scores.values()))

    def _is_numeric(self) -> bool:
        """Whether the target holds numbers, so that it could be taken for either."""
        return np.asarray(getattr(self.model, "classes_", 0)).dtype.kind in "iuf"

    def save(self, path: AnyPath) -> None:
        """Write the model in the format that the suffix names; see :func:`write_model`."""
        write_model(self.model, path, self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        hidden = ("range", "held_out", "unused")
        shown = {k: v for k, v in self.metadata.items() if k not in hidden and v is not None}
        reader = getattr(self.model, "reader_", None)
        if reader is not None:
            shown["kinds"] = {own.name: own.kind for own in reader.columns}
        return {
            "model": expression(self.model),
            "score": self.score,
            "scores": self.scores,
            "scored_on": "held-out rows" if self.scored_rows else "training rows",
            "scored_rows": self.scored_rows or self.metadata["rows"],
            "held_out": self.metadata["held_out"]["which"] if self.scored_rows else None,
            "streamed": self.streamed,
            **shown,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        where = f"{shown.pop('scored_rows'):,} {shown.pop('scored_on')}"
        first = _first_lines(shown.pop("scores"), shown.pop("score"), shown["task"], where)
        first["held out"] = shown.pop("held_out")
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if shown["normalize"] == "none":
            del shown["normalize"]
        if shown.pop("kinds", None):
            shown |= {"model": _in_words(self.model), "columns": _in_kinds(self.model.reader_)}
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            change = f"; otherwise: --task {other}" if self._is_numeric() else ""
            shown["task"] += f" ({self.reason}{change})"
        return two_columns(first | shown, f"{type(self.model).__name__}")


def _in_words(model: Any) -> str:
    """A GAM: its terms and its loss."""
    names = model.term_names_
    pairs = len(model.pair_functions_)
    terms = f"{len(names) - pairs} terms" + (f" and {pairs} pairs" if pairs else "")
    return f"{terms}, {model.loss}, {float(model.edf_.sum()):.1f} degrees of freedom"


def _first_lines(scores: dict[str, float], score: float, task: str, where: str) -> dict[str, Any]:
    """The scores that a person asks for first."""
    if task == "regression":
        r2 = scores["r2"]
        worse = f"{r2:.4g} (worse than always predicting their mean)"
        shown = {f"deviance explained on {where}": scores["d2"]} if "d2" in scores else {}
        return shown | {
            f"R² on {where}": worse if r2 < 0 else r2,
            "root mean square error": scores["rmse"],
        }
    words = f"{score:.4g} (most frequent class: {scores['most_frequent_class']:.4g})"
    lines: dict[str, Any] = {f"accuracy on {where}": words, "area under ROC": scores.get("roc_auc")}
    if scores.get("rarer_class", 1.0) < _RARE:
        rare = f"{scores['average_precision']:.4g} (its share: {scores['rarer_class']:.3g})"
        lines["average precision of the rarer class"] = rare
    return lines


def _in_kinds(reader: Any) -> str:
    """Columns by what they hold, one line for each kind."""
    lines = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        columns = [own for own in reader.columns if own.kind == kind]
        names = [own.name for own in columns]
        if kind == "date":
            names = [f"{own.name} ({', '.join(['trend', *own.parts])})" for own in columns]
        if names:
            more = f", … ({len(names)})" if len(names) > 12 else ""
            lines.append(f"{plural}: {', '.join(names[:12])}{more}")
    return "\n".join(lines)


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
            raise ValueError(f"holdout= must be {', '.join(HOLDOUTS)}, got {self.holdout!r}.")
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
        given = [f"{name}=" for name, value in refused.items() if value is not None]
        if given:
            why = " (a map, or C=, asks for an SVM)" if self.model is None else ""
            raise ValueError(f"{', '.join(given)} means nothing for model={model}{why}.")
        return replace(self, model=model, feature_map=self._checked_map(model))

    def _checked_map(self, model: str | None) -> FeatureMap | None:
        given = self.feature_map
        chosen = parse_map(given) if isinstance(given, str) else given
        if model == "svm" and chosen is not None and not isinstance(chosen, AdditiveMap):
            raise ValueError(
                f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
                "one: use model=ridge, or a map such as SplineMap or HomogeneousMap."
            )
        if chosen is not None and chosen.get_params().get("random_state", 0) is None:
            chosen.set_params(random_state=0)  # the same file gives the same model
        return chosen

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


def fit_file(
    data: AnyPath,
    settings: FitSettings,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> FittedModel:
    """Fit a model on a file.

    CSV and Parquet files are tables for GAMs: the model is that of ``fit(path, target)`` in Python.
    SVMs and ridge models take numbers. A GAM reads large tables block by block, a ridge model all
    files but CSV and npz; everything else is read into memory. Columns that are excluded (`drop`,
    or because they name the rows) and whose values all differ are noted as IDs, which predictions
    then carry along.
    """
    settings, path, wanted = settings.checked(), Path(data), Wanted(target, columns, drop)
    named = is_csv(path) or is_parquet(path)
    settings.say(f"reading {path.name}")
    if settings.model in (None, "gam") and named and path.exists():
        return _fit_table(path, replace(settings, model="gam"), wanted)
    for name in ("exposure", "sample_weight"):
        if getattr(settings, name) is not None and path.exists():
            raise ValueError(f"{path.name}: {name}= is a column of a CSV or Parquet file.")
    streamed = settings.model == "ridge" and path.exists() and not is_csv(path)
    if streamed and path.suffix.lower() != ".npz":
        source = open_rows(path, wanted, normalize=settings.normalize)
        kept = read_columns(path, drop, _LOOK) if drop and named else {}
        return fit_source(source, settings, kept)
    keep = drop if named else ()
    rows = read_rows(
        data, target=target, columns=columns, drop=drop, keep=keep, need_target=True,
        encoding=settings.encoding,
    )  # fmt: skip
    return fit_rows(rows.normalized(settings.normalize), settings)


def fit_rows(rows: Rows, settings: FitSettings) -> FittedModel:
    """Fit a model on rows of numbers with a target."""
    settings, X = settings.checked(), rows.X
    if settings.model is None:
        is_sparse = sparse.issparse(X)
        settings = replace(settings, model="svm" if is_sparse else "gam").checked()
        what = "sparse rows: an additive SVM" if is_sparse else "dense rows: a GAM"
        settings.say(f"{what}; --model chooses another one")
    for sentence in suspect_columns(X, rows.y, rows.columns):
        settings.say(f"warning: {sentence}")
    task = _task(rows.y, settings)
    y = _targets(rows.y, task, rows.name)
    unfitted = settings.estimator(task.name, _scaled(settings, X))
    facts = {"target": rows.target, "columns": rows.columns, "ids": _ids(rows.kept)}
    return _fit_parts(unfitted, SlicedSource(X, y), settings, task, facts)


def fit_source(source: PreparedSource, settings: FitSettings, kept: dict[str, Any]) -> FittedModel:
    """Fit a ridge model on blocks of rows: a pass each for the held-out score, and for the model.

    What the target is ("auto") is told from a sample of the rows.
    """
    look = source.sample(_LOOK)
    if look is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if look.y is None:
        raise no_target(source.describe(), source.columns)
    task = _task(look.y, settings, whole=len(look.y) == source.n_rows)
    unfitted = settings.estimator(task.name, _scaled(settings, look.X))
    facts = {"target": source.target, "columns": source.columns, "ids": _ids(kept)}
    return _fit_parts(unfitted, source, settings, task, facts, look.y)


# ---- tables -------------------------------------------------------------------------------------


def _fit_table(path: Path, settings: FitSettings, wanted: Wanted) -> FittedModel:
    """A GAM of a CSV or Parquet file: in memory, or block by block where it is large."""
    if settings.normalize != "none":
        raise ValueError(
            f"{path.name}: normalize={settings.normalize} scales rows of numbers, which model=svm "
            "and model=ridge take. Leave it out for a GAM."
        )
    large = settings.stream or (settings.stream is None and file_bytes(path) > IN_MEMORY_BYTES)
    encoding, chosen = settings.encoding, wanted.columns
    file = None if large else TableFile.read(path, encoding)
    header = (names_in(path, encoding) or []) if file is None else file.table.column_names
    named = filter(None, [settings.sample_weight, settings.exposure])
    taken = replace(wanted, drop=[*wanted.drop, *named])
    features, target = taken.found_in(header, str(path), need_target=True)
    beside = target, settings.sample_weight, settings.exposure
    used = {*features, *beside}
    facts: dict[str, Any] = {"target": target, "unused": [n for n in header if n not in used]}
    facts |= {"sample_weight": settings.sample_weight, "exposure": settings.exposure}
    if file is not None:
        X, y, w, exposure = load_table(file, *beside, columns=features)
        facts["ids"] = _ids(file.table.select(wanted.drop).to_pydict())
        task = _task(y, settings)
        source: Source = SlicedSource(
            X, _targets(y, task, file.name), w, exposure=exposure, frames=True
        )
        unfitted = settings.estimator(task.name, None, chosen)
        return _fit_parts(unfitted, source, settings, task, facts)
    settings.say("block by block: the columns of text are kept in a temporary file")
    facts["ids"] = _ids(read_columns(path, wanted.drop, _LOOK, encoding) if wanted.drop else {})
    terms = settings.table.parameters(chosen)["terms"]
    learning = Learning(path.name, SAMPLE_ROWS, terms=terms)
    with open_large_table(path, *beside, learning, features, encoding) as source:
        look = source.head(_LOOK)
        if look is None:
            raise ValueError(f"{path} has no rows.")
        task = _task(look.y, settings, whole=len(look.y) == source.n_rows)
        _targets(look.y, task, path.name)
        unfitted = settings.estimator(task.name, None, chosen)
        return _fit_parts(unfitted, source, settings, task, facts, look.y)


# ---- fitting and scoring ------------------------------------------------------------------------


def _fit_parts(
    unfitted: Any, source: Source, settings: FitSettings, task: Task, facts: dict[str, Any],
    look: np.ndarray | None = None,
) -> FittedModel:  # fmt: skip
    """Fit a model on all rows, and one on four in five to be scored on the others.

    `look` are targets of some rows, where not all are in memory.
    """
    count = "" if source.n_rows is None else f" {source.n_rows:,}"
    settings.say(f"fitting {type(unfitted).__name__} on all{count} rows")
    fitted = _fitted(clone(unfitted), source)
    metadata: dict[str, Any] = {"task": task.name, **facts, "rows": source.n_rows}
    metadata |= {"features": int(fitted.n_features_in_), "range": None}
    if settings.model == "gam":
        reader = fitted.reader_
        for remark in [*reader.remarks, *_same_order(fitted, source, facts["target"])]:
            settings.say(remark)
        metadata["columns"] = [own.name for own in reader.columns if own.features]
        metadata["ids"] = [*(own.name for own in reader.columns if own.names_rows), *facts["ids"]]
    else:
        metadata["rows"], metadata["range"] = _count_and_range(source)
    metadata["normalize"] = settings.normalize
    holdout, words = _holdout(settings, fitted, source, metadata["rows"])
    if holdout is not None and _can_hold_out(source, holdout, look, task.name):
        settings.say(f"fitting on four in five rows; {words} are held out")
        judged = _judged(
            _fitted(clone(unfitted), _part(source, holdout, held=False)),
            _part(source, holdout, held=True),
        )
        _say_strange(judged, settings)
        held = judged.rows
    else:
        judged, held = _judged(fitted, source), 0
    scores = judged.scores()
    metadata["held_out"] = {"rows": held, "scores": scores, "which": words} if held else None
    streamed = not isinstance(source, SlicedSource)
    return FittedModel(fitted, metadata, scores, held, task.reason, streamed)


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings about columns and cells, which are said in lines of their own."""
    with warnings.catch_warnings():
        for category in (SuspectColumnWarning, UnreadableCellWarning):
            warnings.simplefilter("ignore", category)
        yield


def _fitted(model: Any, source: Source) -> Any:
    """Fit to rows in memory as they are, to others block by block."""
    with _quiet():
        if not isinstance(source, SlicedSource):
            return model.fit(source)
        beside = {"sample_weight": source.w, "exposure": source.exposure}
        options = {name: values for name, values in beside.items() if values is not None}
        return model.fit(source.X, source.y, **options)


def _judged(model: Any, source: Source) -> Judged:
    judged = Judged(model, refuse=False)
    with _quiet():
        for block in source.blocks(_LOOK):
            judged.add(block.X, block.y, block.exposure)
    return judged


def _say_strange(judged: Judged, settings: FitSettings) -> None:
    strange = int((judged.truth < 0).sum()) if judged.classes is not None else 0
    if strange:
        settings.say(
            f"{strange:,} of {judged.rows:,} held-out rows are of classes that no other row has: "
            "they count as wrong"
        )


def _holdout(
    settings: FitSettings, model: Any, source: Source, n_rows: int
) -> tuple[Holdout | None, str]:
    """The rows that are held out, and in words which ones."""
    if settings.holdout == "none":
        return None, ""
    if settings.holdout != "random" and settings.model == "gam":
        ordered = ordering_date(model.reader_, (block.X for block in source.blocks(_LOOK)))
        if ordered is not None:
            name, side = ordered
            return Holdout(side, n_rows), f"the latest rows by {name!r}"
    if settings.holdout == "last":
        return Holdout("last", n_rows), "the last rows"
    return Holdout("random", n_rows), "rows all over the file"


def ordering_date(reader: Any, tables: Iterable[Any]) -> tuple[str, str] | None:
    """The column of dates that rows are sorted by, and where the latest are: "last" or "first"."""
    names = [column.name for column in reader.columns if column.kind == "date"]
    sides = {name: {"last", "first"} for name in names}
    before: dict[str, np.ndarray] = {}
    for table in tables if names else ():
        for name, dates in reader.dates(table, "fit").items():
            known = dates[~np.isnat(dates)]
            steps = np.diff(np.concatenate([before.get(name, known[:1]), known])).astype(np.int64)
            sides[name] -= {"last"} if (steps < 0).any() else set()
            sides[name] -= {"first"} if (steps > 0).any() else set()
            before[name] = known[-1:] if len(known) else before.get(name, known)
    return next(((name, max(own)) for name, own in sides.items() if own), None)


def _part(source: Source, holdout: Holdout, *, held: bool) -> Source:
    """The rows that are held out, or those that are not."""
    if not isinstance(source, SlicedSource):
        return PartOfSource(source, holdout, held=held)
    mask = holdout.held(0, source.n_rows) == held
    y, w, exposure = (values_at(own, mask) for own in (source.y, source.w, source.exposure))
    return replace(source, X=rows_where(source.X, mask), y=y, w=w, exposure=exposure)


def _can_hold_out(source: Source, holdout: Holdout, look: np.ndarray | None, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes."""
    if look is None and isinstance(source, SlicedSource):
        look = source.y[~holdout.held(0, source.n_rows)]
    y = np.asarray(look)
    return len(y) >= _FEWEST and (task == "regression" or len(np.unique(y)) > 1)


def _ids(kept: dict[str, Any]) -> list[str]:
    """Columns whose values name the rows: all different, and no measurements."""
    return [
        name
        for name, cells in kept.items()
        if len(set(cells)) == len(cells)
        and not all(isinstance(cell, float) or _is_fraction(cell) for cell in cells)
    ]


def _is_fraction(cell: Any) -> bool:
    """Whether a cell of text is a number with a fraction."""
    try:
        return isinstance(cell, str) and not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False


def _same_order(model: Any, source: Source, target: str | None) -> list[str]:
    """Point out columns that order the rows as the target does: is it known of new rows?"""
    from scipy.stats import spearmanr

    head = source.head(_LOOK)
    y = np.asarray(None if head is None else head.y)
    if head is None or y.dtype.kind not in "iuf" or len(np.unique(y)) < _FEWEST:
        return []
    with _quiet():
        columns = model.reader_.read(head.X, "fit")
    words = f"orders the rows as {target or 'y'!r} does: leave it out if new rows lack it"
    return [
        f"column {column.name!r} {words}"
        for column in columns
        if not column.is_category
        and np.isfinite(column.values).all()
        and np.ptp(column.values) > 0
        and abs(spearmanr(column.values, y).statistic) > _ALMOST_ONE
    ]


def _task(y: Any, settings: FitSettings, whole: bool = True) -> Task:
    """What is predicted; refuses targets of one value, unless `y` is only a sample of them."""
    loss = LOSSES.get(settings.loss or "")
    of_numbers = settings.exposure is not None or (loss is not None and not loss.of_labels)
    if settings.task == "auto" and of_numbers:
        task = Task("regression")
    else:
        task = decide_task(y, settings.task, owner="fit")
    if task.name == "classification" and settings.exposure is not None:
        raise ValueError("exposure= is for numbers to predict, not for task=classification.")
    values = np.asarray(y)
    if whole:
        check_targets(values, task.name, "fit")
    if task.name == "classification" and values.dtype.kind not in "iufb":
        classes = len(np.unique(values))
        if 2 * classes > len(values) >= _FEWEST:
            raise ValueError(
                f"the target has {classes:,} different texts in {len(values):,} rows, so that no "
                "class can be learned: name another target."
            )
    return task


def _targets(y: Any, task: Task, name: str) -> np.ndarray:
    """Labels as they are, or numbers."""
    if task.name == "classification":
        return np.asarray(y)
    try:
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"{name}: the target holds text, which a regression cannot predict: use "
            "task=classification, or name another target."
        ) from None


def _scaled(settings: FitSettings, X: Any) -> Any:
    """The map, behind the scaler of columns that its kernel needs; additive models know none."""
    chosen = settings.feature_map
    if chosen is None or settings.model != "ridge":
        return chosen
    scaled = behind_scaler(chosen, bool(sparse.issparse(X)))
    if scaled is not chosen:
        settings.say(f"columns are standardised in front of {type(chosen).__name__}")
    return scaled


def _count_and_range(source: Source) -> tuple[int, list[list[float]] | None]:
    """Number of rows, and the smallest and largest value of each column, for drawing.

    Very wide data have no such range.
    """
    n, ends = 0, None
    for block in source.blocks(_LOOK):
        n += len(block)
        if block.X.shape[1] > _WIDEST:
            continue
        low, high = (np.ravel(dense(end)) for end in (block.X.min(axis=0), block.X.max(axis=0)))
        low, high = low.astype(float), high.astype(float)
        if ends is not None:
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        ends = [low.tolist(), high.tolist()]
    return n, ends
