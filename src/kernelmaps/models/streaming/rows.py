"""Rows of any source, the features that maps make of them, and passes over all of them.

The features are those of no map, of one transformer, or of one per descriptor (Algorithm 4). The
functions below serve all streaming estimators: they take the estimator, whose parameters say how
rows are read, and note on it what a fit learns of them. Rows of torch tensors are folded on the
device where they are (`DeviceRows`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, validation

from ..._util import devices, schema
from ..._util.arguments import check_count, refuse_masked
from ..._util.devices import is_on_gpu, is_tensor, to_host
from ..._util.schema import instance, integer
from ..._util.sparse import check_sparse, dense, naming_text
from ..._util.threads import interruptible, ordered_map, resolve_threads
from ...data import Block, Source, open_source
from ...data.columns import check_order, reorder_columns, without_named
from ...data.sources import SlicedSource, sampled_rows
from ...data.tables import is_in_memory
from ...maps.codes import Codes
from ...stats import FoldMoments, Moments, choose_block_rows, fold
from ...stats.folding import OnDevice, check_device, features_of
from .predictor import Features, Part

PathLike = str | os.PathLike[str]
SAMPLE_ROWS = 4096  # rows on which an unfitted map is fitted


def fit_features(feature_map: Any, block: Block, owner: str) -> Features:
    """Fit what is not fitted yet, a clone, on the rows of `block`."""
    parts = []
    for columns, transformer, n_components in _list_kernels(feature_map, owner):
        columns = _resolve_columns(columns, block.X.shape[1], owner)
        X = block.X if columns is None else block.X[:, columns]
        fitted = transformer
        if transformer is not None and not _is_fitted(transformer):
            targets = () if block.y is None else (block.y,)
            fitted = clone(transformer).fit(X, *targets)
        kernel = Part(columns, fitted, n_components)
        # Columns of φ are known to our maps, and seen in the first row of others.
        width = getattr(fitted, "_n_features_out", None) if hasattr(fitted, "spec_") else None
        width = width or kernel.transform(block.X[:1]).shape[1]
        parts.append(replace(kernel, width=int(width)))
    return Features(parts)


def _list_kernels(feature_map: Any, owner: str) -> list[tuple[Any, Any, Any]]:
    """(columns, map, n_components) of each kernel."""
    if feature_map is None or _is_transformer(feature_map):
        return [(None, feature_map, "shared")]
    items = list(feature_map) if isinstance(feature_map, list | tuple) else []
    are_kernels = [
        isinstance(item, list | tuple)
        and len(item) in (2, 3)
        and (item[1] is None or _is_transformer(item[1]))
        for item in items
    ]
    if not items or not all(are_kernels):
        raise TypeError(
            f"{owner}: feature_map must be None, a transformer, or a list of (columns, map) or "
            f"(columns, map, n_components), got {feature_map!r}"
        )
    return [(*item, "shared")[:3] for item in items]


def _is_transformer(value: Any) -> bool:
    """Whether a value has `fit` and `transform` (a pandas Series has the latter), and no class."""
    has_methods = hasattr(value, "fit") and hasattr(value, "transform")
    return has_methods and not isinstance(value, type)


def _resolve_columns(columns: Any, width: int, owner: str) -> Any:
    if columns is None or isinstance(columns, slice):
        return columns
    try:
        positions = np.arange(width)[np.asarray(columns)]
    except IndexError:
        positions = np.empty(())
    if positions.ndim != 1:
        raise ValueError(
            f"{owner}: columns of a kernel must be a slice, positions below {width}, or a mask of "
            f"{width} booleans, got {columns!r}"
        )
    return positions


def _is_fitted(transformer: Any) -> bool:
    try:
        validation.check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


# ---- torch tensors ------------------------------------------------------------------------------


class DeviceRows(SlicedSource):
    """Rows of a tensor: blocks are slices of it. Only those that a map is fitted on are copied."""

    def rows_at(self, rows: slice) -> Any:
        return self.X[rows]

    def head(self, rows: int) -> Block | None:
        return self._copy_rows(np.arange(min(rows, self.n_rows)))

    def sample(self, rows: int) -> Block | None:
        sampled, ends = sampled_rows(self.n_rows, rows), np.zeros(0, np.int64)
        if len(sampled) < self.n_rows and 2 * self.n_features <= rows:
            extremes = [to_host(find(dim=0)) for find in (self.X.argmin, self.X.argmax)]
            ends = np.unique(np.concatenate(extremes))
        return self._copy_rows(np.concatenate([sampled, ends]))

    def _copy_rows(self, rows: np.ndarray) -> Block:
        X = self.X[devices.to_device(rows, self.X.device)]
        y, w = (None if values is None else values[rows] for values in (self.y, self.w))
        return Block(copy_to_host(X), y, w)

    def describe(self) -> str:
        return f"the tensor on {self.X.device} of {self.n_rows} rows and {self.n_features} features"


def copy_to_host(values: Any) -> Any:
    """Targets, weights or rows in ordinary memory; halves become single numbers."""
    if not is_tensor(values):
        return values
    halves = values.is_floating_point() and values.element_size() < 4
    return to_host(values.float() if halves else values)


def _folds_in_place(X: Any, device: Any, owner: str) -> bool:
    """Whether X is a tensor on a GPU, or on the `device` that the estimator computes on.

    TypeError for arrays of other libraries on a GPU, which are not folded there.
    """
    if is_tensor(X):
        return is_on_gpu(X) or device is not None
    if is_on_gpu(X):
        library = type(X).__module__.partition(".")[0]
        raise TypeError(
            f"{owner} folds torch tensors where they are, and X is a {library} array on "
            f"{X.device}. Pass torch.from_dlpack(X), which copies nothing"
        )
    return False


# ---- data in ------------------------------------------------------------------------------------


def open_rows(
    model: Any, X: Any, y: Any = None, w: Any = None, *, reset: bool, supervised: bool
) -> Source:
    """Open any data."""
    refuse_masked(model, "y", y)
    refuse_masked(model, "sample_weight", w)
    name = type(model).__name__
    if isinstance(X, Codes):
        raise TypeError(
            f"{name}: X holds codes of an AnchorMap. Leave feature_map out and pass a function of "
            "decoded chunks, lambda: ((anchor_map.decode(codes[a:b]), y[a:b]) for a, b in ...)."
        )
    X, y, w = without_named(name, X, y, w)
    in_place = _folds_in_place(X, model.device, name)
    if reset:
        model._rows_on = str(X.device) if in_place else None
        model.__dict__.pop("feature_names_in_", None)
    if in_place:
        return _open_tensor(model, X, y, w, supervised)
    return _open_host_rows(model, X, y, w, reset=reset, supervised=supervised)


def _open_tensor(model: Any, X: Any, y: Any, w: Any, supervised: bool) -> DeviceRows:
    """Open rows that are folded where they are; targets and weights are summed here."""
    name, device = type(model).__name__, model.device
    if X.ndim != 2 or 0 in X.shape or str(X.layout) != "torch.strided" or X.is_complex():
        raise ValueError(
            f"{name}: a tensor X must be dense and real with two dimensions (rows and columns), "
            f"found shape {tuple(X.shape)}, layout {X.layout} and dtype {X.dtype}"
        )
    target = X.device if device is None else devices.resolve(device, name)
    if target.type != X.device.type or target.index not in (None, X.device.index):
        raise ValueError(
            f"{name}: X is on {X.device}, but device={device!r}. Leave device out to compute "
            f"where X is, or pass X.to({str(target)!r})"
        )
    y, w = copy_to_host(y), copy_to_host(w)
    if supervised:
        y = model._check_y(validation._check_y(y, estimator=model, **model._y_options))
        validation.check_consistent_length(X, y)
    if w is not None:
        w = validation._check_sample_weight(w, np.empty((X.shape[0], 0)), dtype=np.float64)
    return DeviceRows(X, y if supervised else None, w)


def _open_host_rows(model: Any, X: Any, y: Any, w: Any, *, reset: bool, supervised: bool) -> Source:
    """Open any rows; arrays in memory pass scikit-learn's checks, and set its attributes."""
    if isinstance(X, np.memmap) or not is_in_memory(X):
        names = None if reset else getattr(model, "feature_names_in_", None)
        return open_source(X, y, w, columns=names)
    check_sparse(X, type(model).__name__)
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    X = X if reset else reorder_columns(model, X)
    with naming_text(type(model).__name__, X):
        if supervised:
            X, y = validation.validate_data(model, X, y, reset=reset, **options, **model._y_options)
            y = model._check_y(y)
        else:
            X, y = validation.validate_data(model, X, reset=reset, **options), None
    if w is not None:
        w = validation._check_sample_weight(w, X, dtype=np.float64)
    return open_source(X, y, w)


def begin_fit(model: Any, source: Source) -> np.ndarray | None:
    """Fit the map on a sample of the rows, note the shape of the data; targets of some rows."""
    name, feature_map = type(model).__name__, model.feature_map
    check_device(model.device, model.precision, name)
    maps = [transformer for _, transformer, _ in _list_kernels(feature_map, name)]
    unfitted = any(item is not None and not _is_fitted(item) for item in maps)
    if unfitted:
        source.keep_chunks()
    block = interruptible(source.sample if unfitted else source.head, SAMPLE_ROWS)
    if block is None:
        raise ValueError(f"{name}: the data have no rows")
    good = np.isfinite(np.ravel(block.X.sum(axis=1, dtype=np.float64)))
    if good.any() and not good.all():  # the fold refuses bad rows, and knows their place
        block = block.take(np.flatnonzero(good))
    features = interruptible(partial(fit_features, feature_map, block, name))
    model.n_features_in_ = block.X.shape[1]
    column_names = getattr(model, "feature_names_in_", source.names)  # of a stream: known by now
    if column_names is not None:
        model.feature_names_in_ = np.asarray(column_names, dtype=object)
    width = sum(features.widths)
    if model.block_rows is not None:
        model._block_rows = check_count(model, "block_rows", model.block_rows)
    elif _place(model) is not None:
        model._block_rows = OnDevice.block_rows(width)
    else:
        model._block_rows = choose_block_rows(block.X.shape[1], width, block.X.dtype.itemsize)
    model._fitted_maps = features
    return block.y


# ---- passes over the rows -----------------------------------------------------------------------


def fold_rows(model: Any, source: Source, stats: Any, features: Features) -> Any:
    """One pass over the rows."""
    return fold(
        source, stats, _features_step(model, features, source), block_rows=model._block_rows,
        n_jobs=model.n_jobs, progress=model.progress, name=type(model).__name__,
    )  # fmt: skip


def rotate_rows(model: Any, source: SlicedSource) -> tuple[SlicedSource, np.ndarray]:
    """φ(x) of few rows in an orthonormal basis of their span, and the basis, in columns."""
    transform, name = _features_step(model, model._fitted_maps, source), type(model).__name__
    blocks = source.blocks(model._block_rows)
    Z = np.concatenate([dense(features_of(block, transform, name)) for block in blocks])
    axes, coordinates = np.linalg.qr(Z.T.astype(np.float64))
    return replace(source, X=np.ascontiguousarray(coordinates.T)), axes


def add_chunk(
    model: Any, X: Any, y: Any, w: Any, classes: Any = None, *, supervised: bool = True
) -> None:
    """Add one chunk, all of its rows or none; they are numbered after those seen before."""
    is_first = not hasattr(model, "stats_")
    source = open_rows(model, X, y, w, reset=is_first, supervised=supervised)
    if not isinstance(source, SlicedSource):
        raise TypeError(
            f"{type(model).__name__}.partial_fit takes one chunk of rows (an array or CSR), got "
            f"{source.describe()}; use fit for files and streams"
        )
    if is_first:
        model._begin(source)
    else:
        _check_width(model, source.n_features)
    model._check_one_pass()
    stats = model._empty(model._fitted_maps, classes) if is_first else model.stats_
    number = getattr(model, "_n_chunks", 0)
    rows = replace(source, first=stats.n, chunk=number)
    added = fold_rows(model, rows, stats.zero(), model._fitted_maps)
    model.stats_, model._n_chunks = stats.merge(added), number + 1
    model._discard_solution(added)


def map_blocks(model: Any, X: Any, function: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Stack ``function(φ(block))`` over the blocks of any data; of a tensor, where it is."""
    source = open_rows(model, X, reset=False, supervised=False)
    transform = _features_step(model, model._fitted_maps, source)

    def map_block(block: Block) -> np.ndarray:
        _check_width(model, block.X.shape[1])
        return function(features_of(block, transform, type(model).__name__))

    blocks = source.blocks(model._block_rows)
    if isinstance(transform, OnDevice):
        stay = isinstance(source, DeviceRows)
        with transform.session("Use a smaller block_rows"):
            parts = [part if stay else to_host(part) for part in map(map_block, blocks)]
        return devices.join(parts, 0) if stay else np.concatenate(parts)
    return np.concatenate(list(ordered_map(map_block, blocks, resolve_threads(model.n_jobs))))


def _check_width(model: Any, n_features: int) -> None:
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )


def _features_step(model: Any, features: Features, source: Source) -> Callable[[Any], Any] | None:
    """What turns the rows of a source into features, here or on the device."""
    name = type(model).__name__
    device = source.X.device if isinstance(source, DeviceRows) else model.device
    kernel = features.parts[0]
    is_identity = not features.several and kernel.map is None and kernel.columns is None
    step = None if is_identity else features.transform
    if device is None:
        return step
    for kernel in features.parts:
        if kernel.map is not None and not hasattr(kernel.map, "spec_"):
            raise TypeError(
                f"{name}: {type(kernel.map).__name__} does not run on device={str(device)!r}. "
                "Use a map of kernelmaps, or leave device out"
            )
    return OnDevice(step, str(device), model.precision, name)


def _place(model: Any) -> Any:
    """Where blocks are folded and systems are solved: `device`, or where the rows were."""
    return model._rows_on if model.device is None else model.device


@contextmanager
def solve_on_device(model: Any) -> Iterator[None]:
    """Around everything that solves or decomposes: where it is done."""
    name, place = type(model).__name__, _place(model)
    instead = "The system has to fit beside its factors: use fewer components, or leave "
    instead += "device out and pass rows in ordinary memory"
    with (
        devices.solving_on(place if place is None else devices.resolve(place, name)),
        devices.memory_named(name, instead),
    ):
        yield


# ---- what all streaming estimators have ---------------------------------------------------------

STATE = schema.State(
    required={
        "features": instance((Features,)),
        "n_features_in_": integer(1),
        "rows_per_block": integer(1),
        "stats_": instance((Moments, FoldMoments)),
    },
    allowed={"feature_names_in_": schema.names, "n_chunks": integer()},
    attributes={"features": "_fitted_maps", "rows_per_block": "_block_rows"},
    private=True,
)


def fitted_maps(model: Any) -> Any:
    """The fitted map, or the list of fitted maps of several kernels."""
    validation.check_is_fitted(model, "stats_")
    return model._fitted_maps.maps


def count_rows_seen(model: Any) -> int:
    """Rows in the statistics."""
    validation.check_is_fitted(model, "stats_")
    return model.stats_.n


def portable_state(model: Any) -> dict[str, Any]:
    """The state without the device of the rows: another process may see other GPUs, or none."""
    return {k: v for k, v in BaseEstimator.__getstate__(model).items() if k != "_rows_on"}


def check_mergeable(model: Any, other: Any) -> None:
    """Refuse to merge estimators of two classes, whose statistics answer other questions."""
    name = type(model).__name__
    if type(model) is not type(other):
        raise TypeError(f"{name}.merge takes another {name}, got {other!r}")
    validation.check_is_fitted(model, "stats_")
    validation.check_is_fitted(other, "stats_")
    names, other_names = (getattr(e, "feature_names_in_", None) for e in (model, other))
    if names is not None and other_names is not None:
        check_order(other_names, names, f"{name}.merge: the other model")


def input_tags(model: Any, tags: Tags) -> Tags:
    """Tags of scikit-learn, with what the map says of its rows."""
    maps = model.feature_map
    has_tags = hasattr(maps, "__sklearn_tags__") and not isinstance(maps, type)
    map_tags = has_tags and maps.__sklearn_tags__().input_tags
    tags.input_tags.sparse = maps is None or bool(map_tags and map_tags.sparse)
    tags.input_tags.positive_only = bool(map_tags and map_tags.positive_only)
    return tags
