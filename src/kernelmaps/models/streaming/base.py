"""Base class of the streaming estimators: data, map and fold.

Rows of torch tensors are folded on the device where they are (`DeviceRows`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ..._util.arguments import check_count, refuse_masked
from ..._util.devices import is_tensor, memory_named, on_gpu, resolve, solving_on, stack, to_host
from ..._util.schema import State, boolean, instance, integer, names
from ..._util.sparse import check_sparse, naming_text
from ..._util.threads import ordered_map, resolve_threads
from ...data import Block, Source, open_source
from ...data.columns import check_order, names_of
from ...data.dask import on_sample
from ...data.sources import SlicedSource, is_chunks, joined
from ...maps.codes import Codes, refuse_plain_codes
from ...stats import FoldMoments, KernelMoments, Moments, choose_block_rows, fold
from ...stats.folding import features_of
from ...stats.on_device import OnDevice, check_device
from .feature_maps import Features, check_codes, has_unfitted


class DeviceRows(SlicedSource):
    """Rows of a tensor: blocks are slices of it. Only those that a map is fitted on are copied."""

    def rows_at(self, rows: slice) -> Any:
        return self.X[rows]

    def sample(self, rows: int) -> Block | None:
        where = (self.begin, self.end, self.first, self.chunk)
        return _OnHost(self.X, self.y, self.w, *where).sample(rows)

    def describe(self) -> str:
        return f"the tensor on {self.X.device} of {self.n_rows} rows and {self.n_features} features"


class _OnHost(SlicedSource):
    """Rows of a tensor: blocks are copied to ordinary memory."""

    def rows_at(self, rows: slice) -> Any:
        return on_host(self.X[rows])

    def sample(self, rows: int) -> Block | None:
        """Rows of 16 places: a random sample would copy all of them."""
        runs = 16
        if self.n_rows <= rows or rows < runs:
            return self.head(rows)
        begins = np.linspace(self.begin, self.begin + self.n_rows - rows // runs, runs).astype(int)
        cuts = (replace(self, begin=a, end=a + rows // runs) for a in begins.tolist())
        return replace(joined([next(cut.blocks(rows)) for cut in cuts]), row=0)


def on_host(values: Any) -> Any:
    """Targets, weights or rows in ordinary memory; halves become single numbers."""
    if not is_tensor(values):
        return values
    halves = values.is_floating_point() and values.element_size() < 4
    return to_host(values.float() if halves else values)


def folds_in_place(X: Any, device: Any, owner: str) -> bool:
    """Whether X is a tensor on a GPU, or on the `device` that the estimator computes on.

    TypeError for arrays of other libraries on a GPU, which are not folded there.
    """
    if is_tensor(X):
        return on_gpu(X) or device is not None
    if on_gpu(X):
        library = type(X).__module__.partition(".")[0]
        raise TypeError(
            f"{owner} folds torch tensors where they are, and X is a {library} array on "
            f"{X.device}. Pass torch.from_dlpack(X), which copies nothing"
        )
    return False


def check_tensor(X: Any, device: Any, owner: str) -> None:
    """Refuse tensors that are not rows of real numbers, or that lie on another device."""
    if X.ndim != 2 or str(X.layout) != "torch.strided":
        raise ValueError(
            f"{owner}: a tensor X must be dense with two dimensions (rows and columns), found "
            f"shape {tuple(X.shape)} and layout {X.layout}"
        )
    if X.is_complex():
        raise ValueError(f"{owner}: Complex data not supported: X has dtype {X.dtype}")
    if 0 in X.shape:
        raise ValueError(f"{owner}: found shape {tuple(X.shape)} while a minimum of 1 is required")
    if device is None:
        return
    target = resolve(device, owner)
    if target.type != X.device.type or target.index not in (None, X.device.index):
        raise ValueError(
            f"{owner}: X is on {X.device}, but device={device!r}. Leave device out to compute "
            f"where X is, or pass X.to({str(target)!r})"
        )


PathLike = str | os.PathLike[str]
_DEVICES = r"(cpu|cuda|mps|xpu)(:\d+)?"  # that a file may name
SAMPLE_ROWS = 4096  # rows on which an unfitted map is fitted


@dataclass(frozen=True)
class Look:
    """What one look at some rows tells: enough to begin, and small enough to travel."""

    features: Features
    n_features: int
    itemsize: int
    y_ndim: int
    n_targets: int


@dataclass
class Passes:
    """How the passes of a fit are run.

    Attributes
    ----------
    client : distributed.Client, str or None
        Whose workers fold.
    checkpoint, checkpoint_every : path or None, int
        Where and how often the state is kept: one file for each stage, so that a fit of several
        passes goes on with the one that was interrupted.
    """

    client: Any = None
    checkpoint: PathLike | None = None
    checkpoint_every: int = 1
    _files: list[Path] = field(default_factory=list)

    def path(self, stage: str) -> Path | None:
        """The file of a stage."""
        if self.checkpoint is None or not stage:
            return None
        self._files.append(Path(f"{os.fspath(self.checkpoint)}.{stage}"))
        return self._files[-1]

    def finished(self) -> None:
        """Remove the checkpoints: a finished fit needs them no longer."""
        for path in self._files:
            path.unlink(missing_ok=True)


class CodedRows(SlicedSource):
    """Plain codes of the estimator's map: what reads its blocks decodes them."""

    def describe(self) -> str:
        return f"{super().describe()} (codes)"


class StreamingEstimator(BaseEstimator):
    """Base: subclasses fold statistics and turn them into a model."""

    _state: ClassVar[State] = State(
        required={
            "features": instance((Features,)),
            "n_features_in_": integer(1),
            "rows_per_block": integer(1),
            "stats_": instance((Moments, FoldMoments, KernelMoments)),
        },
        allowed={
            "feature_names_in_": names,
            "on_codes": boolean,
            "n_chunks": integer(),
        },
        attributes={"features": "_fitted_maps", "rows_per_block": "_block_rows"},
        private=True,
    )

    stats_: Any
    feature_map: Any
    n_jobs: int | None
    block_rows: int | None
    progress: bool | None
    device: Any = None
    precision: str | None = None
    _target: ClassVar[Any] = "none"  # of the statistics
    _on_codes = False  # whether the first rows were codes
    _y_options: ClassVar[dict[str, Any]] = {}  # of scikit-learn's checks
    _rows_on: str | None = None  # device of the tensor that was fitted; not for other processes

    def _check_state(self) -> None:
        """Raise ValueError or TypeError if entries that were loaded contradict each other."""
        resolve_threads(self.n_jobs)
        if not (self.device is None or re.fullmatch(_DEVICES, self.device)):
            raise ValueError(f"device must be None or the name of a device, found {self.device!r}")
        if not hasattr(self, "stats_"):
            return
        for kernel in self._fitted_maps.parts:
            kernel.check_width(self.n_features_in_)
        if self._on_codes and not hasattr(self._fitted_maps.parts[0].map, "check_codes"):
            raise ValueError("on_codes is true, but the map has no codes")
        parts = getattr(self.stats_, "parts", [self.stats_])
        if any(p.shift is not None and len(p.shift) != self._folded_width() for p in parts):
            raise ValueError("stats_ have another number of features than the map gives")

    def _folded_width(self) -> int:
        """Columns of the features that were summed."""
        return sum(self._fitted_maps.widths)

    # ---- data in ----------------------------------------------------------------------------

    def _open(
        self, X: Any, y: Any = None, w: Any = None, *, reset: bool, supervised: bool
    ) -> Source:
        """Open any data, or codes of the map."""
        refuse_masked(self, "y", y)
        refuse_masked(self, "sample_weight", w)
        name, coded = type(self).__name__, isinstance(X, Codes)
        in_place = folds_in_place(X, self.device, name)
        if coded:
            check_codes(self.feature_map if reset else self._fitted_maps.described, X, name)
        elif not (reset or in_place) and self._on_codes:
            refuse_plain_codes(X, name)
        if reset:
            self._rows_on, self._on_codes = str(X.device) if in_place else None, coded
            self.__dict__.pop("feature_names_in_", None)
        if in_place:
            return self._open_tensor(X, y, w, supervised)
        values = X.values if coded else X
        source: Any = self._open_rows(values, y, w, reset=reset, supervised=supervised)
        return CodedRows(source.X, source.y, source.w) if coded else source

    def _open_tensor(self, X: Any, y: Any, w: Any, supervised: bool) -> DeviceRows:
        """Open rows that are folded where they are; targets and weights are summed here."""
        check_tensor(X, self.device, type(self).__name__)
        y, w = on_host(y), on_host(w)
        if supervised:
            y = self._check_y(_check_y(y, estimator=self, **self._y_options))
            check_consistent_length(X, y)
        if w is not None:
            w = _check_sample_weight(w, np.empty((X.shape[0], 0)), dtype=np.float64)
        return DeviceRows(X, y if supervised else None, w)

    def _open_rows(self, X: Any, y: Any, w: Any, *, reset: bool, supervised: bool) -> Source:
        """Open any rows; arrays in memory pass scikit-learn's checks, and set its attributes."""
        if not _in_memory(X):
            names = None if reset else getattr(self, "feature_names_in_", None)
            return open_source(X, y, w, columns=names)
        check_sparse(X, type(self).__name__)
        options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
        with naming_text(type(self).__name__, X):
            if supervised:
                X, y = validate_data(self, X, y, reset=reset, **options, **self._y_options)
                y = self._check_y(y)
            else:
                X, y = validate_data(self, X, reset=reset, **options), None
        if w is not None:
            w = _check_sample_weight(w, X, dtype=np.float64)
        return open_source(X, y, w)

    def _check_y(self, y: np.ndarray) -> np.ndarray:
        return y

    def _empty(self, features: Features, classes: Any = None) -> Any:
        """Statistics of no rows."""
        by_class = getattr(self, "multi_class", "ovr") == "ovo"
        return Moments(
            self._target,
            classes=classes,
            tag=features.tag,
            by_class=by_class,
            multilabel=getattr(self, "_multilabel", False),
        )

    def _begin(self, source: Source, client: Any = None, map_sample: Any = None) -> Look:
        """Fit the map (on a sample of the rows, where they are) and note the shape of things."""
        name = type(self).__name__
        check_device(self.device, self.precision, name)
        feature_map = self.feature_map
        if map_sample is not None:
            map_sample = on_host(map_sample)
            check_sparse(map_sample, name, "map_sample")
            names, expected = names_of(map_sample), self._names_of(source)
            if names is not None and expected is not None:
                check_order(names, expected, f"{name}: map_sample")
            block = open_source(map_sample).head(1 << 62)
            if block is None:
                raise ValueError(f"{name}: map_sample has no rows")
            feature_map = Features.fit(feature_map, block, name).described
        coded, unfitted = isinstance(source, CodedRows), has_unfitted(feature_map, name)
        if unfitted:
            source.keep_chunks()
        inspect = partial(_inspect, feature_map, name, coded)
        look = on_sample(source, inspect, SAMPLE_ROWS, client, everywhere=unfitted)
        self.n_features_in_ = look.n_features
        names = self._names_of(source)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._fitted_maps, self._block_rows = look.features, self._rows_per_block(look)
        return look

    def _names_of(self, source: Source) -> Any:
        """Names of the columns: of frames in memory, which scikit-learn notes, or of the source."""
        return getattr(self, "feature_names_in_", source.names)

    def _rows_per_block(self, look: Look) -> int:
        if self.block_rows is not None:
            return check_count(self, "block_rows", self.block_rows)
        if self._place is not None:
            return OnDevice.block_rows(sum(look.features.widths))
        return choose_block_rows(look.n_features, sum(look.features.widths), look.itemsize)

    def _fold(
        self, source: Source, stats: Any, features: Features, passes: Passes, stage: str = ""
    ) -> Any:
        """One pass over the rows; with a name for the `stage`, it can go on where it ended."""
        return fold(
            source,
            stats,
            self._step(features, source),
            block_rows=self._block_rows,
            n_jobs=self.n_jobs,
            client=passes.client,
            checkpoint=passes.path(stage),
            checkpoint_every=passes.checkpoint_every,
            progress=self.progress,
            name=type(self).__name__,
        )

    def _partial_fit(
        self, X: Any, y: Any, w: Any, classes: Any = None, *, supervised: bool = True
    ) -> Self:
        """Add one chunk, all of its rows or none; they are numbered after those seen before."""
        first = not hasattr(self, "stats_")
        source = self._open(X, y, w, reset=first, supervised=supervised)
        if not isinstance(source, SlicedSource):
            raise TypeError(
                f"{type(self).__name__}.partial_fit takes one chunk of rows (an array or CSR), got "
                f"{source.describe()}; use fit for files and streams"
            )
        if first:
            self._begin(source)
        else:
            self._check_width(source.n_features)
        self._check_one_pass()
        stats = self._empty(self._fitted_maps, classes) if first else self.stats_
        number = getattr(self, "_n_chunks", 0)
        rows = replace(source, first=stats.n, chunk=number)
        added = self._fold(rows, stats.zero(), self._fitted_maps, Passes())
        self.stats_, self._n_chunks = stats.merge(added), number + 1
        self._grown(added)
        return self

    def _check_one_pass(self) -> None:
        """Refuse chunks where a fit has to read its rows twice."""

    def _grown(self, added: Any = None) -> None:
        """Discard what was solved before rows were added; `added` are their statistics."""
        raise NotImplementedError

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _check_other(self, other: Any) -> None:
        """Refuse to merge estimators of two classes, whose statistics answer other questions."""
        name = type(self).__name__
        if type(self) is not type(other):
            raise TypeError(f"{name}.merge takes another {name}, got {other!r}")
        check_is_fitted(self, "stats_")
        check_is_fitted(other, "stats_")
        names, other_names = (getattr(model, "feature_names_in_", None) for model in (self, other))
        if names is not None and other_names is not None:
            check_order(other_names, names, f"{name}.merge: the other model")

    @property
    def feature_map_(self) -> Any:
        """The fitted map, or the list of fitted maps of several kernels."""
        check_is_fitted(self, "stats_")
        maps = [kernel.map for kernel in self._fitted_maps.parts]
        return maps if self._fitted_maps.several else maps[0]

    @property
    def n_samples_seen_(self) -> int:
        """Rows in the statistics."""
        check_is_fitted(self, "stats_")
        return self.stats_.n

    # ---- rows out ---------------------------------------------------------------------------

    def _by_blocks(self, X: Any, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Stack ``function(φ(block))`` over the blocks of any data; of a tensor, where it is."""
        name, features = type(self).__name__, self._fitted_maps
        source = self._open(X, reset=False, supervised=False)
        transform = self._step(features, source)

        def rows(block: Block) -> np.ndarray:
            self._check_width(block.X.shape[1])
            return function(features_of(block, transform, name)[0])

        blocks = source.blocks(self._block_rows)
        if isinstance(transform, OnDevice):
            stay_on_device = isinstance(source, DeviceRows)
            with transform.session("Use a smaller block_rows"):
                parts = [block if stay_on_device else to_host(block) for block in map(rows, blocks)]
            return stack(parts) if stay_on_device else np.concatenate(parts)
        return np.concatenate(list(ordered_map(rows, blocks, resolve_threads(self.n_jobs))))

    def _step(self, features: Features, source: Source) -> Callable[[Any], Any] | None:
        """What turns the rows of a source into features, here or on the device."""
        name, coded = type(self).__name__, isinstance(source, CodedRows)
        device = source.X.device if isinstance(source, DeviceRows) else self.device
        step = None if features.plain else features.decode if coded else features.transform
        if device is None:
            return step
        if coded:
            raise TypeError(f"{name}: codes are decoded on the processor. Leave device out")
        for kernel in features.parts:
            if kernel.map is not None and not hasattr(kernel.map, "spec_"):
                raise TypeError(
                    f"{name}: {type(kernel.map).__name__} does not run on device={str(device)!r}. "
                    "Use a map of kernelmaps, or leave device out"
                )
        return OnDevice(step, str(device), self.precision, name)

    @property
    def _place(self) -> Any:
        """Where blocks are folded and systems are solved: `device`, or where the rows were."""
        return self._rows_on if self.device is None else self.device

    @contextmanager
    def _solving(self) -> Iterator[None]:
        """Around everything that solves or decomposes: where it is done."""
        name = type(self).__name__
        device = None if self._place is None else resolve(self._place, name)
        instead = "The system has to fit beside its factors: use fewer components, or leave "
        instead += "device out and pass rows in ordinary memory"
        with solving_on(device), memory_named(name, instead):
            yield

    def __getstate__(self) -> dict[str, Any]:
        # A process that loads this may see other GPUs, or none.
        return {k: v for k, v in super().__getstate__().items() if k != "_rows_on"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        maps = self.feature_map
        has_tags = hasattr(maps, "__sklearn_tags__") and not isinstance(maps, type)
        one = has_tags and maps.__sklearn_tags__().input_tags
        tags.input_tags.sparse = maps is None or bool(one and one.sparse)
        tags.input_tags.positive_only = bool(one and one.positive_only)
        return tags


def _inspect(feature_map: Any, name: str, coded: bool, block: Block | None) -> Look:
    if block is None:
        raise ValueError(f"{name}: the data have no rows")
    X, y = block.X, block.y
    if X.dtype.kind == "f":
        # Bad rows must not reach the map's fit; the fold refuses them and knows their place.
        good = _finite_rows(X)
        if good.any() and not good.all():
            X, y = X[good], None if y is None else y[good]
    features = Features.fit(feature_map, replace(block, X=X, y=y), name, coded=coded)
    # Bytes of codes say nothing of those of their features, which a block is made of.
    itemsize = (features.decode(X[:1]) if coded else X).dtype.itemsize
    y_ndim = 0 if y is None else y.ndim
    n_targets = y.shape[1] if y is not None and y_ndim == 2 else 1
    return Look(features, X.shape[1], itemsize, y_ndim, n_targets)


def _finite_rows(X: Any) -> np.ndarray:
    if not sp.issparse(X):
        return np.isfinite(X).all(axis=1)
    X = X.tocoo()
    good = np.ones(X.shape[0], dtype=bool)
    good[X.coords[0][~np.isfinite(X.data)]] = False
    return good


def _in_memory(X: Any) -> bool:
    """Whether scikit-learn's checks apply: arrays, sparse matrices, frames, nested lists."""
    if isinstance(X, np.memmap | Source | str | os.PathLike) or callable(X):
        return False
    if type(X).__module__.startswith(("dask", "h5py", "zarr", "pyarrow")):
        return False
    return not is_chunks(X)
