"""Fit a model on a file of rows, score it on rows that it has not seen, print and save it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps

from ..arguments import check_positive
from ..data import Rows, Source, read_rows
from ..data.columns import Wanted, no_target
from ..data.kinds import Kind
from ..data.reading import PartOfSource, PreparedSource, held_out, open_rows, read_columns
from ..data.sources import SlicedSource
from ..data.suffixes import is_csv, is_parquet
from ..data.table_files import TableFile, file_size, prepare_table, read_table
from ..display import two_columns
from ..evaluation.candidates import expression
from ..evaluation.checks import Task, check_targets, decide_task, suspect_columns
from ..evaluation.methods import behind_scaler
from ..evaluation.scoring import Judged
from ..maps.base import AdditiveMap, FeatureMap
from ..sparse_rows import dense
from .exporting import AnyPath, write_model
from .parsing import TableOptions, parse_map


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows, scores.
    scores : dict of str to float
        Accuracy or R² first, then others.
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
        known = {k: v for k, v in self.metadata.items() if k not in ("range", "held_out")}
        return {
            "model": expression(self.model),
            "score": self.score,
            "scores": self.scores,
            "scored_on": "held-out rows" if self.scored_rows else "training rows",
            "scored_rows": self.scored_rows or self.metadata["rows"],
            "streamed": self.streamed,
            **known,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        where = f"{shown.pop('scored_rows'):,} {shown.pop('scored_on')}"
        first = _first_lines(shown.pop("scores"), shown.pop("score"), shown["task"], where)
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if shown["normalize"] == "none":
            del shown["normalize"]
        kinds = shown.pop("kinds", None)
        if kinds:
            shown |= {"model": _in_words(self.model), "columns": _in_kinds(kinds)}
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            change = f"; otherwise: --task {other}" if self._is_numeric() else ""
            shown["task"] += f" ({self.reason}{change})"
        return two_columns(first | shown, f"{type(self.model).__name__}")


def _in_words(model: Any) -> str:
    """A model of a table: its terms and its loss."""
    names = model.term_names_
    pairs = len(model.pair_functions_)
    terms = f"{len(names) - pairs} terms" + (f" and {pairs} pairs" if pairs else "")
    return f"{terms}, {model.loss}, {float(model.edf_.sum()):.1f} degrees of freedom"


def _first_lines(scores: dict[str, float], score: float, task: str, where: str) -> dict[str, Any]:
    """The scores that a person asks for first."""
    if task == "regression":
        worse = f"{score:.4g} (worse than always predicting their mean)"
        shown = worse if score < 0 else score
        return {f"R² on {where}": shown, "root mean square error": scores["rmse"]}
    words = f"{score:.4g} (most frequent class: {scores['most_frequent_class']:.4g})"
    return {f"accuracy on {where}": words, "area under ROC": scores.get("roc_auc")}


def _in_kinds(kinds: dict[str, dict[str, Any]]) -> str:
    """Columns by what they hold, one line for each kind."""
    lines = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        names = [name for name, own in kinds.items() if own["name"] == kind]
        if kind == "date":
            names = [f"{name} ({', '.join(['trend', *kinds[name]['parts']])})" for name in names]
        if names:
            more = f", … ({len(names)})" if len(names) > 12 else ""
            lines.append(f"{plural}: {', '.join(names[:12])}{more}")
    return "\n".join(lines)


MODELS = ("additive", "table", "ridge")
_LOOK = 16384  # rows that are looked at together
_ALMOST_ONE = 0.999  # rank correlation with the target that is pointed out
_LARGE = 1 << 28  # bytes of a file beyond which it is read block by block
_FEWEST = 20  # rows below which none are held out


@dataclass(frozen=True)
class FitSettings:
    """What to fit.

    Attributes
    ----------
    model : {"additive", "table", "ridge"}
        "table" is an additive model whose smoothness is chosen column by column; "additive" takes
        it for tables with text, dates or missing values, and a map for plain numbers.
    feature_map : str, map or None
        See :func:`parse_map`; None takes the model's own default.
    task : {"auto", "classification", "regression"}
        "auto" looks at the target, see :func:`decide_task`.
    C : float
        Inverse strength of the regularisation, of models on a map.
    normalize : str
        How the rows were scaled, to be repeated when predicting.
    holdout : bool
        Whether to score on one in five rows, held out from a first fit; the model that is kept is
        fitted on all rows. False scores on the training rows.
    say : callable
        Called with a line of text when a long step begins.
    loss : str, optional
        Of additive models; by default the estimator's own, and "log_loss" for classes in a table.
    max_iter, tol : number, optional
        When the solver of an additive model stops; by default as the estimator has them.
    table : TableOptions
        What is asked of the terms of a table.
    stream : bool, optional
        Whether a CSV or Parquet file is fitted as a table that is read block by block and never
        held in memory; by default files of more than 256 MiB.
    """

    model: str = "additive"
    feature_map: str | FeatureMap | None = None
    task: str = "auto"
    C: float = 1.0
    normalize: str = "none"
    holdout: bool = True
    say: Callable[[str], None] = field(default=lambda line: None, compare=False)
    loss: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    table: TableOptions = field(default_factory=TableOptions)
    stream: bool | None = None


def fit_rows(rows: Rows, settings: FitSettings) -> FittedModel:
    """Fit an additive or a ridge model on rows of numbers with a target."""
    for sentence in suspect_columns(rows.X, rows.y, rows.columns):
        settings.say(f"warning: {sentence}")
    return _fit_in_memory(rows, settings, _checked_map(settings))


def _check_for_table(name: str, settings: FitSettings) -> None:
    """Refuse settings that mean nothing for the terms of a table."""
    if settings.normalize != "none":
        raise ValueError(
            f"{name}: normalize={settings.normalize} scales rows of numbers, and the "
            "columns of this table hold other things, too. Leave it out."
        )
    if settings.C != 1.0:
        raise ValueError(
            f"{name}: C={settings.C:g} has no meaning for the terms of a table, whose "
            "smoothness is chosen from the data. Leave it out, or use smoothing=."
        )


def _fit_in_memory(
    rows: Rows, settings: FitSettings, chosen: Any, kinds: dict[str, Kind] | None = None
) -> FittedModel:
    task, X = _task(rows.y, settings), rows.X
    labels = task.name == "classification"
    y = np.asarray(rows.y) if labels else _real_targets(rows.y, rows.name)
    unfitted = _estimator(settings, task.name, _scaled(chosen, settings, X), kinds)
    held = held_out(0, X.shape[0])

    def part(name: str | None = None) -> SlicedSource:
        taken = {None: slice(None), "held": held, "fitted": ~held}[name]
        return SlicedSource(X[taken], y[taken], frames=kinds is not None)

    facts = {"target": rows.target, "columns": rows.columns, "ids": _ids(rows.kept)}
    return _fit_parts(unfitted, part, settings, task, y[~held], facts, kinds)


def fit_file(
    data: AnyPath,
    settings: FitSettings,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> FittedModel:
    """Fit a model on a file: a ridge model block by block, so that memory does not limit it.

    CSV, npz, and the data of additive models on maps, whose solver goes over the rows many times,
    are read into memory. Columns that are excluded (`drop`, or because they name the rows) and
    whose values all differ are noted as IDs, which predictions then carry along.

    An additive model without a map is fitted to CSV and Parquet as a table where they hold text,
    dates or missing values, or where the settings ask for it; block by block where they are large
    (`FitSettings.stream`).
    """
    path, wanted = Path(data), Wanted(target, columns, drop)
    named = is_csv(path) or is_parquet(path)
    settings.say(f"reading {path.name}")
    if settings.model != "ridge" and settings.feature_map is None and named and path.exists():
        return _fit_named(path, settings, wanted)
    if settings.model == "table" or settings.table.asked:
        raise ValueError(
            f"{path.name}: {', '.join(f'{name}=' for name in settings.table.asked) or 'a table'} "
            "is for an additive model of a CSV or Parquet file, without a map."
        )
    streamed = settings.model == "ridge" and path.exists() and not is_csv(path)
    if streamed and path.suffix.lower() != ".npz":
        source = open_rows(path, wanted, normalize=settings.normalize)
        kept = read_columns(path, drop, _LOOK) if drop and named else {}
        return fit_source(source, settings, kept)
    keep = drop if named else ()
    rows = read_rows(data, target=target, columns=columns, drop=drop, keep=keep, need_target=True)
    return fit_rows(rows.normalized(settings.normalize), settings)


def _fit_named(path: Path, settings: FitSettings, wanted: Wanted) -> FittedModel:
    """An additive model of a CSV or Parquet file, by the route that its columns ask for."""
    _checked_map(settings)
    options = settings.table
    if settings.stream or (settings.stream is None and file_size(path) > _LARGE):
        return _fit_large(path, settings, wanted)
    table = read_table(path, wanted, keep=wanted.drop, categories=options.categories())
    for remark in [*table.remarks, *_same_order(table)]:
        settings.say(remark)
    if table.is_plain and settings.model == "additive" and not options.asked:
        rows = replace(table.rows, X=table.matrix())
        return fit_rows(rows.normalized(settings.normalize), settings)
    _check_for_table(table.rows.name, settings)  # text, dates and missing values are welcome
    return _fit_in_memory(replace(table.rows, X=table.frame()), settings, None, table.kinds)


def _fit_large(path: Path, settings: FitSettings, wanted: Wanted) -> FittedModel:
    """An additive model of a table whose file is read block by block.

    The model is that of the same rows in memory; of more than 200,000 rows, codes of the columns
    come from a sample of so many.
    """
    _check_for_table(path.name, settings)
    settings.say("block by block: columns are kept in a temporary file, the model is a table's")
    with TemporaryDirectory() as folder:
        table = prepare_table(path, Path(folder), wanted, settings.table.categories())
        for remark in table.remarks:
            settings.say(remark)
        look = table.first.astype(np.int64) if table.whole else table.first
        task = _task(look, settings, whole=table.rows == len(look))
        if task.name == "regression":
            _real_targets(look, path.name)
        unfitted = _estimator(settings, task.name, None, table.kinds)
        part = partial(table.source, labels=task.name == "classification")
        ids = [*table.ids, *_ids(read_columns(path, wanted.drop, _LOOK) if wanted.drop else {})]
        facts = {"target": table.target, "columns": table.columns, "ids": ids}
        return _fit_parts(unfitted, part, settings, task, look, facts, table.kinds)


def fit_source(source: PreparedSource, settings: FitSettings, kept: dict[str, Any]) -> FittedModel:
    """Fit a ridge model on blocks of rows: a pass each for the held-out score, and for the model.

    What the target is ("auto") is told from a sample of the rows.
    """
    chosen = _checked_map(settings)
    look = source.sample(_LOOK)
    if look is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if look.y is None:
        raise no_target(source.describe(), source.columns)
    task = _task(look.y, settings, whole=len(look.y) == source.n_rows)
    unfitted = _estimator(settings, task.name, _scaled(chosen, settings, look.X))

    def part(name: str | None = None) -> Source:
        return source if name is None else PartOfSource(source, held=name == "held")

    facts = {"target": source.target, "columns": source.columns, "ids": _ids(kept)}
    return _fit_parts(unfitted, part, settings, task, look.y, facts)


def _fit_parts(
    unfitted: Any, part: Callable[..., Source], settings: FitSettings, task: Task,
    look: np.ndarray, facts: dict[str, Any], kinds: dict[str, Kind] | None = None,
) -> FittedModel:  # fmt: skip
    """Fit a model, score it, and note the ranges of columns (not of tables, which have `kinds`).

    ``part()`` are all rows, ``part("fitted")`` and ``part("held")`` four in five of them and the
    others; `look` are targets of some. Rows in memory are fitted as they are, others in blocks.
    """
    source, holds_out = part(), settings.holdout and _can_hold_out(look, task.name)
    if holds_out:
        settings.say("fitting on four in five rows, the others are held out")
        judged = _judged(_fitted(clone(unfitted), part("fitted")), part("held"))
        strange = int((judged.truth < 0).sum()) if judged.classes is not None else 0
        if strange:
            settings.say(
                f"{strange:,} of {judged.rows:,} held-out rows are of classes that no other row "
                "has: they count as wrong"
            )
    count = "" if source.n_rows is None else f" {source.n_rows:,}"
    settings.say(f"fitting {type(unfitted).__name__} on all{count} rows")
    fitted = _fitted(unfitted, source)
    if not holds_out:
        judged = _judged(fitted, source)
    n, ends = 0, None
    for block in source.blocks(_LOOK) if kinds is None else ():
        n, ends = n + len(block), _range(block.X, ends)
    metadata: dict[str, Any] = {"task": task.name, **facts, "rows": n or source.n_rows}
    metadata |= {"features": int(fitted.n_features_in_), "range": ends}
    if kinds is not None:
        metadata["kinds"] = {name: kind.to_dict() for name, kind in kinds.items()}
    held, scores = judged.rows if holds_out else 0, judged.scores()
    metadata["normalize"] = settings.normalize
    metadata["held_out"] = {"rows": held, "scores": scores} if held else None
    streamed = not isinstance(source, SlicedSource)
    return FittedModel(fitted, metadata, scores, held, task.reason, streamed)


def _fitted(model: Any, source: Source) -> Any:
    if isinstance(source, SlicedSource):  # rows in memory
        return model.fit(source.X, source.y)
    return model.fit(source)


def _judged(model: Any, source: Source) -> Judged:
    judged = Judged(model, refuse=False)
    for block in source.blocks(_LOOK):
        judged.add(block.X, block.y)
    return judged


def _can_hold_out(y: np.ndarray, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes."""
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


def _same_order(table: TableFile) -> list[str]:
    """Point out columns that order the rows as the target does: is it known of new rows?"""
    from scipy.stats import spearmanr

    y = table.rows.y
    if y is None or y.dtype.kind not in "iuf" or len(np.unique(y)) < _FEWEST:
        return []
    words = f"orders the rows as {table.rows.target!r} does: leave it out if new rows lack it"
    return [
        f"column {name!r} {words}"
        for name, values in table.values.items()
        if values.dtype.kind == "f"
        and np.isfinite(values).all()
        and np.ptp(values) > 0
        and abs(spearmanr(values, y).statistic) > _ALMOST_ONE
    ]


def _task(y: Any, settings: FitSettings, whole: bool = True) -> Task:
    """What is predicted; refuses targets of one value, unless `y` is only a sample of them."""
    task = decide_task(y, settings.task, owner="fit")
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


def _real_targets(y: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"{name}: the target holds text, which a regression cannot predict: use "
            "task=classification, or name another target."
        ) from None


def _checked_map(settings: FitSettings) -> FeatureMap | None:
    """The map, after what was asked for has been looked at."""
    model, feature_map = settings.model, settings.feature_map
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}.")
    chosen = parse_map(feature_map) if isinstance(feature_map, str) else feature_map
    if model != "ridge" and chosen is not None and not isinstance(chosen, AdditiveMap):
        raise ValueError(
            f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
            "one: use model=ridge, or a map such as SplineMap or HomogeneousMap."
        )
    if chosen is not None and chosen.get_params().get("random_state", 0) is None:
        chosen.set_params(random_state=0)  # the same file gives the same model
    return chosen


def _scaled(chosen: FeatureMap | None, settings: FitSettings, X: Any) -> Any:
    """The map, behind the scaler of columns that its kernel needs; additive models know none."""
    if chosen is None or settings.model != "ridge":
        return chosen
    found = behind_scaler(chosen, bool(sparse.issparse(X)))
    if found is not chosen:
        settings.say(f"columns are standardised in front of {type(chosen).__name__}")
    return found


def _estimator(
    settings: FitSettings, task: str, feature_map: Any, kinds: dict[str, Kind] | None = None
) -> Any:
    """The model to fit, unfitted; of a table where columns have kinds."""
    model, C = settings.model, settings.C
    options = {} if kinds is None else settings.table.parameters(kinds)
    check_positive(f"{model} model", "C", C)
    if model != "ridge":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        numbers: dict[str, Any] = {"C": C, "random_state": 0, **options}
        numbers |= {"loss": "log_loss"} if options and task == "classification" else {}
        given = {name: getattr(settings, name) for name in ("loss", "max_iter", "tol")}
        numbers |= {name: value for name, value in given.items() if value is not None}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        numbers = {"alpha": 1 / C}
    return getattr(kernelmaps, kind)(feature_map=feature_map, **numbers)


def _range(X: Any, before: list[list[float]] | None) -> list[list[float]] | None:
    """Smallest and largest value of each column so far, for drawing; not for very wide data."""
    if X.shape[1] > 10_000:
        return None
    low, high = (np.ravel(dense(end)).astype(float) for end in (X.min(axis=0), X.max(axis=0)))
    if before is not None:
        low, high = np.minimum(low, before[0]), np.maximum(high, before[1])
    return [low.tolist(), high.tolist()]
