"""Fit a model on a file of rows, score it on rows that it has not seen, and save it."""

from __future__ import annotations

import os
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
from ..data import Block, Rows, Source, read_rows
from ..data.columns import Wanted, no_target
from ..data.large_tables import file_size, prepare_table
from ..data.prepared import PartOfSource, PreparedSource, held_out, open_rows
from ..data.reading import read_columns
from ..data.suffixes import is_csv, is_parquet
from ..data.table_files import TableFile, read_table
from ..evaluation.checks import check_targets, suspect_columns
from ..evaluation.methods import behind_scaler
from ..evaluation.scoring import predicted, prediction_scores, scores_of
from ..evaluation.task import Task, decide_task
from ..maps.base import AdditiveMap, FeatureMap
from .fitted_model import FittedModel
from .parsing import parse_map
from .table_options import TableOptions

MODELS = ("additive", "table", "ridge")
_LOOK = 16384  # rows that are looked at together
_ALMOST_ONE = 0.999  # rank correlation with the target that is pointed out
_LARGE = 1 << 28  # bytes of a file beyond which it is read block by block
_FEWEST = 20  # rows below which none are held out


def _silent(line: str) -> None:
    """What a long work says about its progress, to nobody."""


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
    say: Callable[[str], None] = field(default=_silent, compare=False)
    loss: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    table: TableOptions = field(default_factory=TableOptions)
    stream: bool | None = None


def fit_rows(rows: Rows, settings: FitSettings | None = None) -> FittedModel:
    """Fit an additive or a ridge model on rows of numbers with a target."""
    settings = settings or FitSettings()
    for sentence in suspect_columns(rows.X, rows.y, rows.columns):
        settings.say(f"warning: {sentence}")
    return _fit_in_memory(rows, settings, _checked_map(settings), {}, {})


def fit_table(table: TableFile, settings: FitSettings | None = None) -> FittedModel:
    """Fit an additive model on a table: text, dates and missing values are welcome."""
    settings = settings or FitSettings()
    _check_for_table(table.rows.name, settings)
    rows = replace(table.rows, X=table.frame())
    options = settings.table.parameters(table.kinds)
    kinds = {name: kind.to_dict() for name, kind in table.kinds.items()}
    return _fit_in_memory(rows, settings, None, options, {"kinds": kinds})


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
    rows: Rows,
    settings: FitSettings,
    chosen: FeatureMap | None,
    options: dict[str, Any],
    facts: dict[str, Any],
) -> FittedModel:
    task = _task(rows.y, settings)
    X = rows.X
    labels = task.name == "classification"
    y = np.asarray(rows.y) if labels else _real_targets(rows.y, rows.name)
    chosen = _scaled(chosen, settings, X)
    unfitted = _estimator(settings, task.name, chosen, options)
    held = held_out(0, X.shape[0])
    scores, scored = None, 0
    if settings.holdout and _can_hold_out(y[~held], task.name) and held.any():
        settings.say(f"fitting on {int((~held).sum()):,} rows, {int(held.sum()):,} are held out")
        first = clone(unfitted).fit(X[~held], y[~held])
        scores, scored = _held_out_scores(first, X[held], y[held], settings), int(held.sum())
    settings.say(f"fitting {type(unfitted).__name__} on all {X.shape[0]:,} rows")
    fitted = unfitted.fit(X, y)
    if scores is None:
        scores = scores_of(fitted, X, y)
    return _finished(
        fitted,
        settings,
        task,
        scores,
        scored,
        target=rows.target,
        columns=rows.columns,
        ids=_ids(rows.kept),
        rows=int(X.shape[0]),
        features=int(X.shape[1]),
        range=None if options else _range(X),
        **facts,
    )


def _finished(
    fitted: Any,
    settings: FitSettings,
    task: Task,
    scores: dict[str, float],
    held_out: int,
    *,
    streamed: bool = False,
    **facts: Any,
) -> FittedModel:
    """The model with its scores on so many held-out rows (0: on those of the fit) and facts."""
    metadata = {"task": task.name, **facts, "normalize": settings.normalize}
    metadata["held_out"] = {"rows": held_out, "scores": scores} if held_out else None
    return FittedModel(fitted, metadata, scores, held_out, task.reason, streamed)


def _held_out_scores(first: Any, X: Any, y: np.ndarray, settings: FitSettings) -> dict[str, float]:
    """Scores of the first fit; probabilities are scored on the classes that it knows alone."""
    known = _of_known_classes(first, y, settings)
    if known.all():
        return scores_of(first, X, y)
    chances = scores_of(first, X[known], y[known]) if known.any() else {}
    return chances | prediction_scores("classification", y, predicted(first, X))


def _of_known_classes(first: Any, y: np.ndarray, settings: FitSettings) -> np.ndarray:
    """Held-out rows whose class the first fit has seen; says how many others there are."""
    classes = getattr(first, "classes_", None)
    known = np.ones(len(y), dtype=bool) if classes is None else np.isin(y, classes)
    if not known.all():
        settings.say(
            f"{int((~known).sum()):,} of {len(y):,} held-out rows are of classes that no other row "
            "has: they count as wrong"
        )
    return known


def fit_file(
    data: str | os.PathLike[str],
    settings: FitSettings | None = None,
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
    settings = settings or FitSettings()
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
    return fit_table(table, settings)


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
        unfitted = _estimator(settings, task.name, None, settings.table.parameters(table.kinds))
        part = partial(table.source, labels=task.name == "classification")
        fitted, seen = _fit_parts(unfitted, part, settings, task, look, False)
    dropped = read_columns(path, wanted.drop, _LOOK) if wanted.drop else {}
    return _finished(
        fitted,
        settings,
        task,
        *seen.scores(task.name),
        target=table.target,
        columns=table.columns,
        ids=[*table.ids, *_ids(dropped)],
        rows=table.rows,
        features=fitted.n_features_in_,
        range=None,
        kinds={name: kind.to_dict() for name, kind in table.kinds.items()},
        streamed=True,
    )


def fit_source(
    source: PreparedSource, settings: FitSettings | None = None, kept: dict[str, Any] | None = None
) -> FittedModel:
    """Fit a ridge model on blocks of rows: a pass each for the held-out score, and for the model.

    What the target is ("auto") is told from a sample of the rows.
    """
    settings = settings or FitSettings(model="ridge")
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

    fitted, seen = _fit_parts(unfitted, part, settings, task, look.y, True)
    return _finished(
        fitted,
        settings,
        task,
        *seen.scores(task.name),
        target=source.target,
        columns=source.columns,
        ids=_ids(kept or {}),
        rows=seen.rows,
        features=int(look.X.shape[1]),
        range=seen.ends,
        streamed=True,
    )


def _fit_parts(
    unfitted: Any, part: Callable[..., Source], settings: FitSettings, task: Task,
    look: np.ndarray, ranges: bool,
) -> tuple[Any, _Seen]:  # fmt: skip
    """Fit a model on blocks of rows, and tell what was seen of them: `ranges` of columns, too.

    ``part()`` are all rows, ``part("fitted")`` and ``part("held")`` four in five of them and the
    others; `look` are targets of some.
    """
    seen = _Seen(settings.holdout and _can_hold_out(look, task.name))
    if seen.held_out:
        settings.say("fitting on four in five rows, the others are held out")
        first = clone(unfitted).fit(part("fitted"))
        for block in part("held").blocks(_LOOK):
            seen.predicted(block, predicted(first, block.X))
        _of_known_classes(first, np.concatenate(seen.targets), settings)
    source = part()
    count = "" if source.n_rows is None else f" {source.n_rows:,}"
    settings.say(f"fitting {type(unfitted).__name__} on all{count} rows")
    fitted = unfitted.fit(source)
    for block in source.blocks(_LOOK) if ranges or not seen.held_out else ():
        if ranges:
            seen.add(block)
        if not seen.held_out:
            seen.predicted(block, predicted(fitted, block.X))
    return fitted, seen


@dataclass
class _Seen:
    """What passes over the rows gather: how many, their range, targets and predictions."""

    held_out: bool  # whether predictions are of held-out rows
    rows: int = 0
    ends: Any = None  # least and largest value of each column
    targets: list[np.ndarray] = field(default_factory=list)
    predictions: list[np.ndarray] = field(default_factory=list)

    def add(self, block: Block) -> None:
        self.rows += len(block)
        found = _range(block.X)
        if found is not None and self.ends is not None:
            low, high = np.minimum(self.ends[0], found[0]), np.maximum(self.ends[1], found[1])
            found = [low.tolist(), high.tolist()]
        self.ends = found

    def predicted(self, block: Block, predictions: np.ndarray) -> None:
        self.targets.append(np.asarray(block.y))
        self.predictions.append(predictions)

    def scores(self, task: str) -> tuple[dict[str, float], int]:
        """Scores of the predictions, and of how many held-out rows they are."""
        truth, found = np.concatenate(self.targets), np.concatenate(self.predictions)
        return prediction_scores(task, truth, found), len(truth) if self.held_out else 0


def _can_hold_out(y: np.ndarray, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes."""
    return len(y) >= _FEWEST and (task == "regression" or len(np.unique(y)) > 1)


def _ids(kept: dict[str, Any]) -> list[str]:
    """Columns whose values name the rows: all different, and no measurements."""
    return [name for name, cells in kept.items() if _are_ids(cells)]


def _are_ids(cells: Sequence[Any]) -> bool:
    if len(set(cells)) < len(cells):
        return False
    return not all(isinstance(cell, float) or _is_fraction(cell) for cell in cells)


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
    return None if chosen is None else _seeded(chosen)


def _scaled(chosen: FeatureMap | None, settings: FitSettings, X: Any) -> Any:
    """The map, behind the scaler of columns that its kernel needs; additive models know none."""
    if chosen is None or settings.model != "ridge":
        return chosen
    found = behind_scaler(chosen, bool(sparse.issparse(X)))
    if found is not chosen:
        settings.say(f"columns are standardised in front of {type(chosen).__name__}")
    return found


def _seeded(feature_map: FeatureMap) -> FeatureMap:
    """The same file gives the same model: whatever is drawn at random is drawn from seed 0."""
    if feature_map.get_params().get("random_state", 0) is None:
        feature_map.set_params(random_state=0)
    return feature_map


def _estimator(
    settings: FitSettings,
    task: str,
    feature_map: Any,
    options: dict[str, Any] | None = None,
) -> Any:
    """The model to fit, unfitted."""
    model, C = settings.model, settings.C
    check_positive(f"{model} model", "C", C)
    if model != "ridge":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        numbers: dict[str, Any] = {"C": C, "random_state": 0, **(options or {})}
        numbers |= {"loss": "log_loss"} if options and task == "classification" else {}
        given = {name: getattr(settings, name) for name in ("loss", "max_iter", "tol")}
        numbers |= {name: value for name, value in given.items() if value is not None}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        numbers = {"alpha": 1 / C}
    return getattr(kernelmaps, kind)(feature_map=feature_map, **numbers)


def _range(X: Any) -> list[list[float]] | None:
    """Smallest and largest value of each column, for drawing; not for very wide data."""
    if X.shape[1] > 10_000:
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(low):
        low, high = low.toarray(), high.toarray()
    return [np.ravel(end).astype(float).tolist() for end in (low, high)]
