"""Fit a model on a file of rows, and score it on rows that it has not seen.

`fit_file` opens the rows (in memory, or block by block), decides what is predicted, and hands both
to `_fit_and_score`, which all models share.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from .._util.sparse import dense
from .._util.storage import AnyPath
from ..data import Rows, Source, read_rows
from ..data.columns import ColumnSelection, no_target
from ..data.files import is_csv, is_parquet
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
from ..data.tables import TableFile, fits_in_memory, load_table, open_large_table
from ..evaluation.checks import Task, check_targets, decide_task, suspect_columns
from ..evaluation.methods import add_column_scaler
from ..evaluation.scores import PredictionScores
from ..exceptions import SuspectColumnWarning, UnreadableCellWarning
from ..models.losses import LOSSES
from .fit_summary import FittedModel
from .settings import FitSettings

BLOCK_ROWS = 16384  # rows that are read at a time
FEWEST_ROWS = 20  # training rows below which none are held out
_ALMOST_ONE = 0.999  # rank correlation with the target that is pointed out
_MOST_RANGES = 10_000  # columns whose ranges are noted


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
    files but CSV; everything else is read into memory. Columns that are excluded (`drop`,
    or because they name the rows) and whose values all differ are noted as IDs, which predictions
    then carry along.
    """
    settings, path, selection = (
        settings.check(),
        Path(data),
        ColumnSelection(target, columns, drop),
    )
    has_names = is_csv(path) or is_parquet(path)
    settings.say(f"reading {path.name}")
    if settings.model in (None, "gam") and has_names and path.exists():
        return _fit_table(path, replace(settings, model="gam"), selection)
    for name in ("exposure", "sample_weight"):
        if getattr(settings, name) is not None and path.exists():
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{path.name}: {option} is a column of a CSV or Parquet file.")
    if settings.model == "ridge" and not is_csv(path) and path.exists():
        source = open_rows(path, selection, normalize=settings.normalize)
        dropped = read_columns(path, drop, BLOCK_ROWS) if drop and has_names else {}
        return fit_source(source, settings, dropped)
    rows = read_rows(
        data, target=target, columns=columns, drop=drop, keep=drop if has_names else (),
        need_target=True, encoding=settings.encoding,
    )  # fmt: skip
    return fit_rows(rows.normalized(settings.normalize), settings)


def fit_rows(rows: Rows, settings: FitSettings) -> FittedModel:
    """Fit a model on rows of numbers with a target."""
    settings, X = settings.check(), rows.X
    if settings.model is None:
        is_sparse = sparse.issparse(X)
        settings = replace(settings, model="svm" if is_sparse else "gam").check()
        what = "sparse rows: an additive SVM" if is_sparse else "dense rows: a GAM"
        settings.say(f"{what}; --model chooses another one")
    for sentence in suspect_columns(X, rows.y, rows.columns):
        settings.say(f"warning: {sentence}")
    task = _decide_task(rows.y, settings)
    source = SlicedSource(X, _convert_targets(rows.y, task, rows.name))
    unfitted = settings.estimator(task.name, _scale_map(settings, X))
    facts = {"target": rows.target, "columns": rows.columns, "ids": _find_ids(rows.extra_columns)}
    return _fit_and_score(unfitted, source, settings, task, facts)


def fit_source(
    source: PreparedSource, settings: FitSettings, dropped: dict[str, Any]
) -> FittedModel:
    """Fit a ridge model on blocks of rows: a pass each for the held-out score, and for the model.

    A sample of the rows says what the target is. `dropped` are cells of excluded columns.
    """
    sample = source.sample(BLOCK_ROWS)
    if sample is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if sample.y is None:
        raise no_target(source.describe(), source.columns)
    task = _decide_task(sample.y, settings, complete=len(sample.y) == source.n_rows)
    unfitted = settings.estimator(task.name, _scale_map(settings, sample.X))
    facts = {"target": source.target, "columns": source.columns, "ids": _find_ids(dropped)}
    return _fit_and_score(unfitted, source, settings, task, facts, sample.y)


# ---- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TableRoles:
    """What the columns of a table are: features, the target, weights, exposures, unused."""

    features: list[str]
    target: str
    weight: str | None
    exposure: str | None
    unused: list[str]

    @classmethod
    def of(
        cls, header: list[str], selection: ColumnSelection, settings: FitSettings, name: str
    ) -> _TableRoles:
        """The features are all columns that have no other role."""
        weight, exposure = settings.sample_weight, settings.exposure
        drop = [*selection.drop, *filter(None, [weight, exposure])]
        features, target = replace(selection, drop=drop).resolve_in(header, name, need_target=True)
        used = {*features, target, weight, exposure}
        unused = [column for column in header if column not in used]
        return cls(features, target, weight, exposure, unused)

    @property
    def beside(self) -> tuple[str, str | None, str | None]:
        """Target, weight and exposure, in the order in which readers take them."""
        return self.target, self.weight, self.exposure

    def facts(self, ids: list[str]) -> dict[str, Any]:
        """Entries of a model's metadata."""
        return {
            "target": self.target, "unused": self.unused, "sample_weight": self.weight,
            "exposure": self.exposure, "ids": ids,
        }  # fmt: skip


def _fit_table(path: Path, settings: FitSettings, selection: ColumnSelection) -> FittedModel:
    """A GAM of a CSV or Parquet file: in memory, or block by block where it is large."""
    if settings.normalize != "none":
        raise ValueError(
            f"{path.name}: --normalize {settings.normalize} scales rows of numbers, which "
            "--model svm and --model ridge take. Leave it out for a GAM."
        )
    is_large = not fits_in_memory(path) if settings.stream is None else settings.stream
    file = None if is_large else TableFile.read(path, settings.encoding)
    if file is None:
        header = names_in(path, settings.encoding) or []
    else:
        header = file.table.column_names
    roles = _TableRoles.of(header, selection, settings, str(path))
    if file is None:
        return _fit_large_table(path, settings, selection, roles)
    X, y, w, exposure = load_table(file, *roles.beside, columns=roles.features)
    facts = roles.facts(_find_ids(file.table.select(selection.drop).to_pydict()))
    task = _decide_task(y, settings)
    y = _convert_targets(y, task, file.name)
    source = SlicedSource(X, y, w, exposure=exposure, frames=True)
    unfitted = settings.estimator(task.name, None, selection.columns)
    return _fit_and_score(unfitted, source, settings, task, facts)


def _fit_large_table(
    path: Path, settings: FitSettings, selection: ColumnSelection, roles: _TableRoles
) -> FittedModel:
    settings.say("block by block: the columns of text are kept in a temporary file")
    dropped: dict[str, Any] = {}
    if selection.drop:
        dropped = read_columns(path, selection.drop, BLOCK_ROWS, settings.encoding)
    with open_large_table(path, *roles.beside, roles.features, settings.encoding) as source:
        head = source.head(BLOCK_ROWS)
        if head is None:
            raise ValueError(f"{path} has no rows.")
        task = _decide_task(head.y, settings, complete=len(head.y) == source.n_rows)
        _convert_targets(head.y, task, path.name)  # refuses text before a pass
        unfitted = settings.estimator(task.name, None, selection.columns)
        return _fit_and_score(
            unfitted, source, settings, task, roles.facts(_find_ids(dropped)), head.y
        )


# ---- fitting and scoring ------------------------------------------------------------------------


def _fit_and_score(
    unfitted: Any, source: Source, settings: FitSettings, task: Task, facts: dict[str, Any],
    sample_y: np.ndarray | None = None,
) -> FittedModel:  # fmt: skip
    """Fit a model on all rows, and score one that was fitted on four in five on the others.

    `facts` are entries of the metadata, `sample_y` targets of some rows, where not all of them are
    in memory.
    """
    count = "" if source.n_rows is None else f" {source.n_rows:,}"
    settings.say(f"fitting {type(unfitted).__name__} on all{count} rows")
    model = _fit(clone(unfitted), source)
    metadata = {
        "task": task.name, **facts, **_describe_rows(model, source, settings, facts),
        "normalize": settings.normalize, "held_out": None,
    }  # fmt: skip
    scores, n_scored = None, 0
    if settings.holdout != "none":
        gam = model if settings.model == "gam" else None
        holdout, which = choose_holdout(settings.holdout, gam, source, metadata["rows"])
        if can_hold_out(source, holdout, sample_y, task.name):
            settings.say(f"fitting on four in five rows; {which} are held out")
            trained = _fit(clone(unfitted), split_rows(source, holdout, held=False))
            predictions = _predict(trained, split_rows(source, holdout, held=True))
            _report_unknown_classes(predictions, settings)
            scores, n_scored = predictions.scores(), predictions.rows
            if n_scored:
                metadata["held_out"] = {"rows": n_scored, "scores": scores, "which": which}
    if scores is None:
        scores = _predict(model, source).scores()
    streamed = not isinstance(source, SlicedSource)
    return FittedModel(model, metadata, scores, n_scored, task.reason, streamed)


def choose_holdout(option: str, model: Any, source: Source, n_rows: int) -> tuple[Holdout, str]:
    """The rows that are held out, and in words which ones.

    `option` is "auto", "last" or "random". Rows that a column of dates orders are held out from the
    end where the latest are; `model` is a fitted GAM, which says what columns are dates, or None.
    """
    if option != "random" and model is not None:
        blocks = (block.X for block in source.blocks(BLOCK_ROWS))
        ordered = find_ordering_date(model.reader_, blocks)
        if ordered is not None:
            name, end = ordered
            return Holdout(end, n_rows), f"the latest rows by {name!r}"
    if option == "last":
        return Holdout("last", n_rows), "the last rows"
    return Holdout("random", n_rows), "random rows"


def find_ordering_date(reader: Any, tables: Iterable[Any]) -> tuple[str, str] | None:
    """The column of dates that rows are sorted by, and where the latest are: "last" or "first"."""
    names = [column.name for column in reader.columns if column.kind == "date"]
    possible_ends = {name: {"last", "first"} for name in names}
    previous: dict[str, np.ndarray] = {}
    for table in tables if names else ():
        for name, dates in reader.dates(table, "fit").items():
            present = dates[~np.isnat(dates)]
            if not len(present):
                continue
            steps = np.diff(np.concatenate([previous.get(name, present[:1]), present]))
            steps = steps.astype(np.int64)
            possible_ends[name] -= {"last"} if (steps < 0).any() else set()
            possible_ends[name] -= {"first"} if (steps > 0).any() else set()
            previous[name] = present[-1:]
    return next(((name, max(ends)) for name, ends in possible_ends.items() if ends), None)


def split_rows(source: Source, holdout: Holdout, *, held: bool) -> Source:
    """The rows that are held out, or those that are not."""
    if not isinstance(source, SlicedSource):
        return PartOfSource(source, holdout, held=held)
    mask = holdout.held(0, source.n_rows) == held
    y, w, exposure = (values_at(v, mask) for v in (source.y, source.w, source.exposure))
    return replace(source, X=rows_where(source.X, mask), y=y, w=w, exposure=exposure)


def can_hold_out(source: Source, holdout: Holdout, sample_y: np.ndarray | None, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes.

    `sample_y` are targets of some rows, where not all are in memory.
    """
    if sample_y is None and isinstance(source, SlicedSource):
        sample_y = source.y[~holdout.held(0, source.n_rows)]
    y = np.asarray(sample_y)
    return len(y) >= FEWEST_ROWS and (task == "regression" or len(np.unique(y)) > 1)


def _describe_rows(
    model: Any, source: Source, settings: FitSettings, facts: dict[str, Any]
) -> dict[str, Any]:
    """Number of rows and features and, of a GAM, the columns that it uses and those that are IDs.

    What a GAM remarks about columns is said. Other models have the ranges of their features.
    """
    n_rows, ranges, columns = source.n_rows, None, {}
    if settings.model == "gam":
        reader = model.reader_
        doubts = {*reader.notes.doubtful, *reader.notes.remarks}
        for remark in [*reader.remarks, *_find_columns_like_target(model, source, facts["target"])]:
            settings.say(f"warning: {remark}" if remark in doubts else remark)
        names_rows = [column.name for column in reader.columns if column.names_rows]
        used = [column.name for column in reader.columns if column.features]
        columns = {"columns": used, "ids": [*names_rows, *facts["ids"]]}
    else:
        n_rows, ranges = _count_and_range(source)
    return {"rows": n_rows, "features": int(model.n_features_in_), "range": ranges, **columns}


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings about columns and cells, which are said in lines of their own."""
    with warnings.catch_warnings():
        for category in (SuspectColumnWarning, UnreadableCellWarning):
            warnings.simplefilter("ignore", category)
        yield


def _fit(model: Any, source: Source) -> Any:
    """Fit to rows in memory as they are, to others block by block."""
    with _quiet():
        if not isinstance(source, SlicedSource):
            return model.fit(source)
        beside = {"sample_weight": source.w, "exposure": source.exposure}
        options = {name: values for name, values in beside.items() if values is not None}
        return model.fit(source.X, source.y, **options)


def _predict(model: Any, source: Source) -> PredictionScores:
    predictions = PredictionScores(model, refuse=False)
    with _quiet():
        for block in source.blocks(BLOCK_ROWS):
            predictions.add(block.X, block.y, block.exposure)
    return predictions


def _report_unknown_classes(predictions: PredictionScores, settings: FitSettings) -> None:
    unknown = 0 if predictions.classes is None else int((predictions.truth < 0).sum())
    if unknown:
        settings.say(
            f"{unknown:,} of {predictions.rows:,} held-out rows are of classes that no other row "
            "has: they count as wrong"
        )


def _find_ids(dropped: dict[str, Any]) -> list[str]:
    """Excluded columns whose values name the rows: all different, and no measurements."""
    return [
        name
        for name, cells in dropped.items()
        if len(set(cells)) == len(cells)
        and not all(isinstance(cell, float) or _is_fraction(cell) for cell in cells)
    ]


def _is_fraction(cell: Any) -> bool:
    """Whether a cell of text is a number with a fraction."""
    try:
        return isinstance(cell, str) and not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False


def _find_columns_like_target(model: Any, source: Source, target: str | None) -> list[str]:
    """Point out columns that order the rows as the target does: is it known of new rows?"""
    from scipy.stats import spearmanr

    head = source.head(BLOCK_ROWS)
    y = np.asarray(None if head is None else head.y)
    if head is None or y.dtype.kind not in "iuf" or len(np.unique(y)) < FEWEST_ROWS:
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


def _decide_task(y: Any, settings: FitSettings, complete: bool = True) -> Task:
    """What is predicted; targets of one value are refused, if `y` has all of them."""
    loss = LOSSES.get(settings.loss or "")
    of_numbers = settings.exposure is not None or (loss is not None and not loss.of_labels)
    if settings.task == "auto" and of_numbers:
        task = Task("regression")
    else:
        task = decide_task(y, settings.task, owner="fit")
    if task.name == "classification" and settings.exposure is not None:
        raise ValueError("--exposure is for numbers to predict, not for --task classification.")
    values = np.asarray(y)
    if complete:
        check_targets(values, task.name, "fit")
    if task.name == "classification" and values.dtype.kind not in "iufb":
        classes = len(np.unique(values))
        if 2 * classes > len(values) >= FEWEST_ROWS:
            raise ValueError(
                f"the target has {classes:,} different texts in {len(values):,} rows, so that no "
                "class can be learned: name another target."
            )
    return task


def _convert_targets(y: Any, task: Task, name: str) -> np.ndarray:
    """Labels as they are, or numbers."""
    if task.name == "classification":
        return np.asarray(y)
    try:
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"{name}: the target holds text, which a regression cannot predict: use "
            "--task classification, or name another target."
        ) from None


def _scale_map(settings: FitSettings, X: Any) -> Any:
    """The map, behind the scaler of columns that its kernel needs; SVMs take none."""
    feature_map = settings.feature_map
    if feature_map is None or settings.model != "ridge":
        return feature_map
    scaled = add_column_scaler(feature_map, bool(sparse.issparse(X)))
    if scaled is not feature_map:
        settings.say(f"columns are standardised in front of {type(feature_map).__name__}")
    return scaled


def _count_and_range(source: Source) -> tuple[int, list[list[float]] | None]:
    """Number of rows, and the smallest and largest value of each column, for drawing.

    Very wide data have no such range.
    """
    n, ends = 0, None
    for block in source.blocks(BLOCK_ROWS):
        n += len(block)
        if block.X.shape[1] > _MOST_RANGES:
            continue
        low, high = (np.ravel(dense(end)) for end in (block.X.min(axis=0), block.X.max(axis=0)))
        low, high = low.astype(float), high.astype(float)
        if ends is not None:
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        ends = [low.tolist(), high.tolist()]
    return n, ends
