"""kernelmaps fit: a model of a file, its score on rows that it has not seen, and its file.

`fit_file` opens the rows (in memory, or block by block), decides what is predicted, and hands both
to `_fit_and_score`, which all models share.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone

from .._util.display import two_columns
from .._util.storage import AnyPath
from .._util.threads import mixed_bits
from ..data import Source
from ..data.columns import ColumnSelection, column_positions, no_target
from ..data.reading import open_rows, read_rows
from ..data.sources import RowFilter, SlicedSource, values_at
from ..data.table_files import has_column_names, is_parquet
from ..data.table_reader import uninformative_columns
from ..data.tables import (
    TableSource,
    fits_in_memory,
    load_table,
    open_large_table,
    read_complete_column,
)
from ..evaluation.candidates import expression
from ..evaluation.checks import Task, check_targets, decide_task
from ..evaluation.methods import add_column_scaler
from ..evaluation.scores import METRICS, PredictionScores
from ..exceptions import SuspectColumnWarning, UnreadableCellWarning
from ..models.gam.model_check import advise_log_link
from ..models.losses import GAM, LOSSES, SVM, list_losses
from ..plots.shapes import n_features_used
from . import application as cli
from .export import MODEL_SUFFIXES, write_model
from .settings import FitSettings

BLOCK_ROWS = 16384  # rows that are read at a time
FEWEST_ROWS = 20  # training rows below which none are held out
ONE_IN = 5  # rows, of which one is held out: the 80/20 split that is usual
_ALMOST_ONE = 0.999  # rank correlation with the target that is pointed out
_MOST_RANGES = 10_000  # columns whose ranges are noted
_RARE_CLASS = 0.1  # share of a class below which its average precision is shown
_SHOWN_NAMES = 12  # names of columns that a line shows


@cli.command
@cli.take_settings(FitSettings)
def fit(
    settings: FitSettings,
    data: cli.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The model to write: .kmap, .onnx, or .h for C; without it none is."
        ),
    ] = None,
    target: cli.Target = None,
    columns: cli.Columns = None,
    drop: cli.Drop = None,
    json: cli.AsJson = False,
) -> None:
    """Fit a model, score it on held-out rows, and save it with `--out`.

    A CSV or Parquet file is fitted as a table, by a GAM: the model is that of
    `AdditiveRegressor().fit(file, target)` or `AdditiveClassifier` in Python. Text becomes
    categories, a date a trend and its cycles (year, week, day), a missing value a level of its own.
    IDs are left out. With `--map` or `--C` the file must hold numbers, such
    as histograms, and an additive SVM is fitted.

    CSV and Parquet files of more than 256 MiB are read block by block, and a ridge model reads
    Parquet and npy so: they may be larger than memory.

    Examples:

    `kernelmaps fit mine.csv --target label --drop id --out model.kmap`

    `kernelmaps fit flats.csv -t rent --interactions auto --constraints area=increasing
    -o model.kmap`

    `kernelmaps fit claims.csv -t claims --loss poisson --exposure years -o model.kmap`

    `kernelmaps fit mine.parquet -t price --model ridge --map "RandomFourierMap(n_components=500)"
    -o model.kmap`
    """
    cli.check_out(out, "a model", MODEL_SUFFIXES)
    selection = ColumnSelection(target, cli.names(columns), cli.names(drop) or [])
    result = fit_file(data, settings, selection)
    if out is not None:
        write_model(result.model, out, result.metadata)
    saved = "not saved: name a file, --out model.kmap" if out is None else f"saved: {out}"
    cli.show(result, json, saved)


def fit_file(data: AnyPath, settings: FitSettings, selection: ColumnSelection) -> FittedModel:
    """Fit a model on a file.

    CSV and Parquet files are tables for GAMs: the model is that of ``fit(path, target)`` in Python.
    SVMs and ridge models take numbers. A GAM reads large tables block by block, a ridge model all
    files but CSV; everything else is read into memory.
    """
    settings, path, data = settings.check(), Path(data), settings.open(data)
    feature_map, has_names = settings.read_map(), has_column_names(path)
    cli.note(f"reading {path.name}")
    if settings.model in (None, "gam") and has_names and path.exists():
        return _fit_table(data, replace(settings, model="gam"), selection)
    for option in ("exposure", "sample_weight"):
        if getattr(settings, option) is not None and path.exists():
            shown = option.replace("_", "-")
            raise ValueError(f"{path.name}: --{shown} is a column of a CSV or Parquet file.")
    if settings.model == "ridge" and path.exists() and (is_parquet(path) or not has_names):
        source: Any = open_rows(data, selection, normalize=settings.normalize)
        facts = {"target": source.target, "columns": source.columns}
        sample = source.sample(BLOCK_ROWS)
        if sample is None:
            raise ValueError(f"{source.describe()} has no rows.")
        if sample.y is None:
            raise no_target(source.describe(), source.columns)
        X, sample_y = sample.X, sample.y
        task = _decide_task(sample_y, settings, complete=len(sample_y) == source.n_rows)
    else:
        rows = read_rows(data, **vars(selection), need_target=True)
        rows = rows.normalized(settings.normalize)
        X, facts, sample_y = rows.X, {"target": rows.target, "columns": rows.columns}, None
        if settings.model is None:
            settings = replace(settings, model="gam").check()
            cli.note("an array: a GAM; --model chooses another one")
        if rows.columns is not None:
            for name, reason in uninformative_columns(rows.columns, X).items():
                cli.note(f"warning: column {name!r} may be no feature: {reason}.")
        task = _decide_task(rows.y, settings)
        source = SlicedSource(X, _convert_targets(rows.y, task, rows.name))
    if feature_map is not None and settings.model == "ridge":  # SVMs take no scaler
        scaled = add_column_scaler(feature_map, sparse=False)
        if scaled is not feature_map:
            cli.note(f"columns are standardised in front of {type(feature_map).__name__}")
        feature_map = scaled
    unfitted = settings.make_estimator(task.name, feature_map)
    return _fit_and_score(unfitted, source, settings, task, facts, sample_y)


def _fit_table(file: Any, settings: FitSettings, selection: ColumnSelection) -> FittedModel:
    """A GAM of a table in a file: in memory, or block by block where it is large."""
    path = file.path
    if settings.normalize != "none":
        raise ValueError(
            f"{path.name}: --normalize {settings.normalize} scales rows of numbers, which "
            "--model svm and --model ridge take. Leave it out for a GAM."
        )
    header, weight, exposure = file.names, settings.sample_weight, settings.exposure
    event = settings.event
    for option in ("sample_weight", "exposure", "event"):
        if (column := getattr(settings, option)) is not None:
            role = f"column for --{option.replace('_', '-')}"
            column_positions(header, [column], path.name, role)
    drop = [*selection.drop, *filter(None, [weight, exposure, event])]
    target = selection.find_target(header, str(path), required=True)
    features = TableSource.assign(file, target, columns=selection.columns, drop=drop).features
    used = {*features, target, weight, exposure, event}
    facts = {
        "target": target, "unused": [column for column in header if column not in used],
        "sample_weight": weight, "exposure": exposure, "event": event,
        "na_values": list(file.na_values) or None,
    }  # fmt: skip
    if fits_in_memory(path) if settings.stream is None else not settings.stream:
        columns = [*features, *filter(None, [event])]
        X, y, w, exposures = load_table(file, target, weight, exposure, columns=columns)
        task = _decide_task(y, settings)
        y = _convert_targets(y, task, str(path))
        if event is not None:
            y = np.column_stack([y, read_complete_column(X, event, file.locate_row)])
            X = X.select(features)
        table = SlicedSource(X, y, w, exposure=exposures, frames=True)
        unfitted = settings.make_estimator(task.name, None, selection.columns)
        return _fit_and_score(unfitted, table, settings, task, facts)
    if event is not None:
        raise ValueError(
            f"{path.name}: the risk sets of --event need all rows in memory: use --in-memory."
        )
    cli.note("block by block: the columns of text are kept in a temporary file")
    with open_large_table(file, target, weight, exposure, features) as source:
        head = source.head(BLOCK_ROWS)
        if head is None:
            raise ValueError(f"{path} has no rows.")
        task = _decide_task(head.y, settings, complete=len(head.y) == source.n_rows)
        _convert_targets(head.y, task, path.name)  # refuses text before a pass
        unfitted = settings.make_estimator(task.name, None, selection.columns)
        return _fit_and_score(unfitted, source, settings, task, facts, head.y)


# ---- fitting and scoring ------------------------------------------------------------------------


@dataclass(frozen=True)
class Holdout:
    """The rows that are held out to score a model: one in five.

    Attributes
    ----------
    order : {"random", "last", "first"}
        Random rows, the last ones of the file, or the first ones.
    n_rows : int
    """

    order: str
    n_rows: int

    def mask_rows(self, start: int, n: int) -> np.ndarray:
        """Whether rows `start` to `start + n` are held out.

        A random choice depends on the row's number alone: the same for a table in memory and for a
        file read in blocks, and unrelated to the order of the rows. The upper bits are taken
        because the lower ones choose the folds of a cross-validation.
        """
        rows, count = np.arange(start, start + n), self.n_rows // ONE_IN
        if self.order == "random":
            return (mixed_bits(rows) >> np.uint64(32)) % np.uint64(ONE_IN) == 0
        return rows >= self.n_rows - count if self.order == "last" else rows < count


def _fit_and_score(
    unfitted: Any, source: Source, settings: FitSettings, task: Task, facts: dict[str, Any],
    sample_y: np.ndarray | None = None,
) -> FittedModel:  # fmt: skip
    """Fit a model on all rows, and score one that was fitted on four in five on the others.

    `facts` are entries of the metadata, `sample_y` targets of some rows, where not all of them are
    in memory.
    """
    count = "" if source.n_rows is None else f" {source.n_rows:,}"
    cli.note(f"fitting {type(unfitted).__name__} on all{count} rows")
    model = _fit(clone(unfitted), source)
    metadata = {
        "task": task.name, **facts, **_describe_rows(model, source, facts),
        "normalize": settings.normalize, "held_out": None,
    }  # fmt: skip
    scores, n_scored = None, 0
    if settings.holdout != "none":
        holdout, held_rows = _choose_holdout(settings.holdout, model, source, metadata["rows"])
        if sample_y is None and isinstance(source, SlicedSource):
            sample_y = source.y[~holdout.mask_rows(0, source.n_rows)]
        n_sampled = 0 if sample_y is None else len(sample_y)
        if n_sampled >= FEWEST_ROWS and (
            task.name != "classification" or len(np.unique(sample_y)) > 1
        ):
            cli.note(f"fitting on four in five rows; {held_rows} are held out")
            trained = _fit(clone(unfitted), _split_rows(source, holdout, held=False))
            predictions = _predict(trained, _split_rows(source, holdout, held=True))
            scores, n_scored = predictions.scores(), predictions.rows
            if predictions.classes is not None and (predictions.truth < 0).any():
                cli.note(
                    f"{(predictions.truth < 0).sum():,} of {n_scored:,} held-out rows are of "
                    "classes that no other row has: they count as wrong"
                )
            if n_scored:
                metadata["held_out"] = {"rows": n_scored, "scores": scores, "which": held_rows}
    if scores is None:
        predictions = _predict(model, source)
        scores = predictions.scores()
    if task.name == "regression" and hasattr(model, "loss_"):
        for advice in advise_log_link(model.loss_, predictions.truth, predictions.predicted):
            cli.note(advice)
    streamed = not isinstance(source, SlicedSource)
    return FittedModel(model, metadata, scores, n_scored, task.reason, streamed)


def _choose_holdout(option: str, model: Any, source: Source, n_rows: int) -> tuple[Holdout, str]:
    """The rows that are held out, and in words which ones.

    `option` is "auto", "last" or "random". Rows that a column of dates orders are held out from the
    end where the latest are; `model` is fitted, and a GAM knows what columns are dates.
    """
    if option != "random" and hasattr(model, "reader_"):
        ordered = _find_ordering_date(model.reader_, (b.X for b in source.blocks(BLOCK_ROWS)))
        if ordered is not None:
            name, end = ordered
            return Holdout(end, n_rows), f"the latest rows by {name!r}"
    option = "last" if option == "last" else "random"
    return Holdout(option, n_rows), "the last rows" if option == "last" else "random rows"


def _find_ordering_date(reader: Any, tables: Iterable[Any]) -> tuple[str, str] | None:
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


def _split_rows(source: Source, holdout: Holdout, *, held: bool) -> Source:
    """The rows that are held out, or those that are not."""
    if not isinstance(source, SlicedSource):
        share = "one in five rows" if held else "four in five rows"
        return RowFilter(source, lambda start, n: holdout.mask_rows(start, n) == held, share)
    mask = holdout.mask_rows(0, source.n_rows) == held
    y, w, exposure = (values_at(v, mask) for v in (source.y, source.w, source.exposure))
    X = source.X.filter(mask) if hasattr(source.X, "filter") else source.X[mask]  # pyarrow
    return replace(source, X=X, y=y, w=w, exposure=exposure)


def _describe_rows(model: Any, source: Source, facts: dict[str, Any]) -> dict[str, Any]:
    """Number of rows and features and, of a GAM, the columns that it uses and those that are IDs.

    What a GAM remarks about columns is said. Other models have the ranges of their features, for
    drawing; very wide data have none.
    """
    described = {"rows": source.n_rows, "features": n_features_used(model), "range": None}
    reader = getattr(model, "reader_", None)
    if reader is not None:
        doubts = {*reader.notes.doubtful, *reader.notes.remarks}
        for remark in [*reader.remarks, *_find_columns_like_target(model, source, facts["target"])]:
            cli.note(f"warning: {remark}" if remark in doubts else remark)
        ids = [column.name for column in reader.columns if column.is_id]
        used = [column.name for column in reader.columns if column.features]
        return {**described, "columns": used, "ids": ids}
    n, ends = 0, None
    for block in source.blocks(BLOCK_ROWS):
        n += len(block)
        if block.X.shape[1] > _MOST_RANGES:
            continue
        low, high = (np.ravel(e).astype(float) for e in (block.X.min(0), block.X.max(0)))
        if ends is not None:
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        ends = [low, high]
    return {**described, "rows": n, "range": None if ends is None else [e.tolist() for e in ends]}


def _find_columns_like_target(model: Any, source: Source, target: str | None) -> list[str]:
    """Point out columns that order the rows as the target does: is it known of new rows?"""
    from scipy.stats import spearmanr

    head = source.head(BLOCK_ROWS)
    y = np.asarray(None if head is None else head.y)
    y = y[:, 0] if y.ndim == 2 else y  # times, next to which events stand
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
        row_values = {"sample_weight": source.w, "exposure": source.exposure}
        options = {name: values for name, values in row_values.items() if values is not None}
        return model.fit(source.X, source.y, **options)


def _predict(model: Any, source: Source) -> PredictionScores:
    predictions = PredictionScores(model, refuse=False)
    with _quiet():
        for block in source.blocks(BLOCK_ROWS):
            predictions.add(block.X, block.y, block.exposure)
    return predictions


def _decide_task(y: Any, settings: FitSettings, complete: bool = True) -> Task:
    """What is predicted; targets of one value are refused, if `y` has all of them."""
    if settings.event is not None:
        if settings.exposure is not None or settings.task != "auto":
            raise ValueError("--event is for a survival model: leave out --exposure and --task.")
        return Task("survival")
    loss = LOSSES.get((settings.loss or "").partition(":")[0])
    is_numeric = settings.exposure is not None or (loss is not None and not loss.has_labels)
    if settings.task == "auto" and is_numeric:
        task = Task("regression")
    elif settings.task == "auto" and loss is not None and loss.is_ordered:
        task = Task("classification")
    else:
        task = decide_task(y, settings.task, owner="fit")
    _check_loss(settings, task)
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


def _check_loss(settings: FitSettings, task: Task) -> None:
    """Refuse a loss that is not one of the task, with those of both tasks."""
    name, kind = (settings.loss or "").partition(":")[0], SVM if settings.model == "svm" else GAM
    losses = {"regression": list_losses(kind, False), "classification": list_losses(kind, True)}
    if settings.loss is None or settings.model == "ridge" or name in losses[task.name]:
        return
    if name in list_losses(GAM, False, times=True):
        raise ValueError(f"--loss {name} is for times: name the column of events with --event.")
    if name in LOSSES and not any(name in item for item in losses.values()):
        return  # a loss of SVMs or of GAMs alone, which the estimator refuses
    numbers, classes = (", ".join(losses[item]) for item in losses)
    message = f"--loss must be one of {numbers} for numbers, or {classes} for classes, got {name!r}"
    for other in losses:
        if name in losses[other]:
            noun = "numbers" if other == "classification" else "classes"
            remark = f"the target looks like {noun} ({task.reason})" if task.reason else ""
            message += f"; {remark or f'the target is taken as {noun}'}: if not, add --task {other}"
    raise ValueError(f"{message}.")


def _convert_targets(y: Any, task: Task, name: str) -> np.ndarray:
    """Labels as they are, or numbers."""
    try:
        return np.asarray(y, dtype=None if task.name == "classification" else np.float64)
    except ValueError:
        raise ValueError(
            f"{name}: the target holds text, which a regression cannot predict: use "
            "--task classification without a --loss for numbers, or name another target."
        ) from None


# ---- what was fitted ----------------------------------------------------------------------------


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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        hidden = ("range", "held_out", "unused")
        shown = {k: v for k, v in self.metadata.items() if k not in hidden and v is not None}
        reader = getattr(self.model, "reader_", None)
        if reader is not None:
            shown["kinds"] = {column.name: column.kind for column in reader.columns}
        return {
            "model": expression(self.model),
            "score": next(iter(self.scores.values())),
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
        lines = _describe_scores(shown.pop("scores"), shown.pop("score"), shown["task"], where)
        lines["held out"] = shown.pop("held_out")
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if shown["normalize"] == "none":
            del shown["normalize"]
        model = self.model
        if shown.pop("kinds", None):
            pairs = len(model.pair_functions_)
            terms = _count(len(model.term_names_) - pairs, "term")
            terms += f" and {_count(pairs, 'pair')}" if pairs else ""
            degrees = f"{float(model.edf_.sum()):.1f} degrees of freedom"
            shown["model"] = f"{terms}, {model.loss}, {degrees}"
            shown["columns"] = _describe_columns(model.reader_.columns)
        classes: Any = getattr(model, "classes_", ())
        if len(classes) == 2:
            shown["positive class"] = str(classes[1])
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            is_number = np.asarray(getattr(model, "classes_", 0)).dtype.kind in "iuf"
            change = f"; otherwise: --task {other}" if is_number else ""
            shown["task"] += f" ({self.reason}{change})"
        return two_columns(lines | shown, type(model).__name__)


def _describe_scores(
    scores: dict[str, float], score: float, task: str, where: str
) -> dict[str, Any]:
    """The scores, in words, that stand at the top of the table."""
    if task == "survival":
        return {f"{METRICS['concordance']} on {where}": scores["concordance"]}
    if task == "regression":
        r2 = scores["r2"]
        worse = f"{r2:.4g} (worse than always predicting their mean)"
        shown = {f"{METRICS['d2']} on {where}": scores["d2"]} if "d2" in scores else {}
        return shown | {f"R² on {where}": worse if r2 < 0 else r2, METRICS["rmse"]: scores["rmse"]}
    words = f"{score:.4g} (most frequent class: {scores['most_frequent_class']:.4g})"
    lines: dict[str, Any] = {f"accuracy on {where}": words}
    lines |= {METRICS[name]: scores.get(name) for name in ("roc_auc", "log_loss")}
    if scores.get("rarer_class", 1.0) < _RARE_CLASS:
        rare = f"{scores['average_precision']:.4g} (its share: {scores['rarer_class']:.3g})"
        lines[METRICS["average_precision"]] = rare
    return lines


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _describe_columns(columns: Iterable[Any]) -> str:
    """Names of the columns of a table, one line for each kind."""
    names: dict[str, list[str]] = {}
    for column in columns:
        parts = f" ({', '.join(['trend', *column.parts])})" if column.kind == "date" else ""
        names.setdefault(column.kind, []).append(column.name + parts)
    lines = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        if kind in names:
            more = f", … ({len(names[kind])})" if len(names[kind]) > _SHOWN_NAMES else ""
            lines.append(f"{plural}: {', '.join(names[kind][:_SHOWN_NAMES])}{more}")
    return "\n".join(lines)
