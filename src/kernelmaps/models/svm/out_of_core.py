"""Fits of additive estimators: in memory, in blocks (see :mod:`.blocks`), of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from ...data import Source
from ...data.frames import is_frame
from ...data.opening import open_table
from ...maps.codes import Codes
from ...sparse_rows import check_sparse
from ...threads import resolve_threads, together
from ..gam.sampling import RowChecks, Sample
from ..streaming.base import _in_memory
from .base import AdditiveModel
from .inputs import checked, refuse_training_on_card, targets_of, weights_of
from .summary import Progress

_BLOCK_VALUES = 2**23  # numbers of one block, about


def out_of_core(X: Any) -> bool:
    """Whether X is read block by block; a memory map is an array, unless opened as a source."""
    if isinstance(X, Codes | np.memmap):
        return False
    return isinstance(X, Source) or not _in_memory(X)


class OutOfCore(AdditiveModel):
    """An additive model that is fitted to rows in memory, to blocks and chunks, and to tables."""

    # What a classifier and a regressor do in their own ways, with targets and weights: targets as
    # solvers take them and what each output calls +1; targets and losses of all outputs of a table;
    # of a source of chunks, their checks; and what follows from a fitted table.
    _targets: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    _targets_of_table: Callable[[np.ndarray, np.ndarray], tuple[list, list, np.ndarray]]
    _targets_of_source: Callable[[Source, Sample], tuple[RowChecks, list, list]]
    _finish_table: Callable[[Any, Sequence[np.ndarray], np.ndarray], None]

    @property
    def _streaming(self) -> bool:
        """Whether rows come in chunks, of which only the last is at hand."""
        return hasattr(self, "_stream") or hasattr(self, "_progress")

    def _forget(self) -> None:
        """Discard the state of `partial_fit`, and of a table."""
        for name in ("table_", "_stream", "_progress", "n_samples_seen_"):
            self.__dict__.pop(name, None)

    def _stands_at(self) -> Progress:
        """What `partial_fit` needs to go on, without the solvers and their last rows."""
        states = self._stream
        cells = [self._cells(s.w.astype(np.float64), s.compiled, s.used) for s in states]
        return Progress(
            weights=np.concatenate(cells, axis=2),
            offset=np.concatenate([state.offset for state in states]).astype(np.float64),
            balance=np.concatenate([state._total() for state in states]),
            sparse=bool(states[0].kind[0]),
            dtype=str(states[0].kind[1]),
        )

    def _saved(self) -> dict[str, Any]:
        entries = super()._saved()
        return {**entries, "progress": self._stands_at()} if hasattr(self, "_stream") else entries

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state.pop("_stream", None) is not None:
            state["_progress"] = self._stands_at()
        return state

    def _going_on(self, rows: Any, y: np.ndarray, positive: np.ndarray, cost: np.ndarray) -> None:
        """Make solvers that start from the weights of the model."""
        self._stream = self._states(rows, y, positive, cost)
        for state, part in zip(self._stream, self._lane_groups(len(positive)), strict=True):
            state.go_on(self._laid_out(state.compiled, part), self._plain_offset(part))

    def _resumed(self, X: Any, y: np.ndarray, positive: np.ndarray, cost: np.ndarray) -> Any:
        """Solvers that stand where those of a saved model stood; the rows."""
        rows, found = self._same_kind(X), self._progress
        self._going_on(rows, y, positive, cost)
        for state, part in zip(self._stream, self._lane_groups(len(positive)), strict=True):
            state.w[:] = self._laid_out(state.compiled, part, found.weights)
            state.offset[:] = found.offset[part]
            state.frozen = np.array(found.balance[part])
            state.kind = found.kind
        del self._progress
        return rows

    def _plain_offset(self, part: slice) -> np.ndarray:
        """The offset without the centre of a regressor's targets."""
        return self._offset[part] - getattr(self, "_centre", 0.0)

    # -- fit --------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, exposure: Any = None) -> Self:
        """Fit a table, rows that come in blocks, or rows in memory: whatever X is."""
        refuse_training_on_card(self, "fit", X, y, sample_weight)
        self._check_parameters()
        self._forget()
        if self._takes_table(X):
            self._fit_table(X, y, sample_weight, exposure)
        elif out_of_core(X):
            source, found = self._survey(X, y, sample_weight)
            weight = weights_of(self, found.weight, len(found.y))
            y, positive, weight = self._targets(found.y, weight)
            self._refuse_pairs("rows that come in blocks")
            self._check_size(found.outline, y)
            rows = self._train_blocks(source, found, y, positive, self._costs(weight))
            self._finish(rows, y[found.at], positive, weight[found.at])
        else:
            rows, y, positive, weight = self._problem(X, y, sample_weight)
            self._check_size(rows, y)
            self._train(rows, y, positive, self._costs(weight))
            self._finish(rows, y, positive, weight, every=True)
        return self

    def _problem(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Rows, targets, what each output calls +1, and weights."""
        X, y = checked(self, X, y)
        y, positive, weight = self._targets(y, weights_of(self, sample_weight, len(y)))
        return self._prepare(X, weight), y, positive, weight

    def _fit_table(self, X: Any, y: Any, sample_weight: Any, exposure: Any) -> None:
        """Fit the terms of a table, in memory or chunk by chunk."""
        if out_of_core(X) and not is_frame(X):
            source = open_table(X, y, sample_weight, exposure)
            sample = self._sampled(source)
            checks, losses, outputs = self._targets_of_source(source, sample)
            held = self._fit_source(source, sample, checks, losses, outputs)
            self._finish_table(sample.columns, held.targets, held.weight)
            return
        columns = self._columns(X, reset=True)
        y = targets_of(self, y, len(columns[0]))
        weight = weights_of(self, sample_weight, len(y))
        targets, losses, weight = self._targets_of_table(y, weight)
        offset = self._log_exposure(exposure, len(y))
        self._fit_columns(columns, targets, losses, weight, offset)
        self._finish_table(columns, targets, weight)

    def _finish(
        self, rows: Any, y: np.ndarray, positive: np.ndarray, weight: np.ndarray, *,
        every: bool = False,
    ) -> None:  # fmt: skip
        """Describe the model by some rows; `every` says that they are all rows of the training."""
        self._describe(rows, weight)

    def _refuse_pairs(self, what: str) -> None:
        """Refuse outputs that are pairs of classes."""

    def _check_size(self, rows: Any, y: np.ndarray) -> None:
        """Refuse targets so large that weights may overflow."""

    def _log_exposure(self, exposure: Any, n: int) -> np.ndarray:
        return np.zeros(n)

    # -- rows in blocks -------------------------------------------------------------------------

    def _survey(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """The source, and what a first pass over it tells."""
        from .blocks import reread, survey

        name = type(self).__name__
        source = reread(name, X, y, sample_weight)
        head = source.head(16)
        if head is None:
            raise ValueError(f"{name}: the data have no rows.")
        self.n_features_in_ = head.X.shape[1]
        self._block_rows = max(64, _BLOCK_VALUES // max(1, head.X.shape[1]))
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return source, survey(name, source, self._block_rows)

    def _train_blocks(
        self, source: Any, found: Any, y: np.ndarray, positive: np.ndarray, cost: np.ndarray
    ) -> Any:
        """Solve with all rows of the source; the rows of the sample."""
        from .blocks import solve_blocks

        outline = self._prepare(found.outline)
        states = self._states(outline, y, positive, cost)

        def read() -> Iterator[tuple[Any, int]]:
            for block in source.blocks(self._block_rows):
                if block.X.shape[0]:
                    yield self._block(block.X), block.start

        solutions = solve_blocks(states, read, _in_threads(states, self.n_jobs))
        for solution, state in zip(solutions, states, strict=True):
            solution.weights = self._cells(solution.weights, state.compiled, state.used)
        self._keep(solutions)
        return outline[:-2]

    def _block(self, X: Any) -> Any:
        rows, _ = self.feature_map_._check_rows(X, reset=False)
        self.feature_map_._check_domain(rows)
        return self._whole(rows)

    def _states(
        self, sample: Any, y: np.ndarray, positive: np.ndarray, cost: np.ndarray
    ) -> list[Any]:
        """Solvers of all groups of lanes; `sample` holds the whole range of the values."""
        from .basis import compile_basis, lanes_for
        from .blocks import Blocks

        groups = self._lane_groups(len(positive))
        settings, states = self._settings(len(groups)), []
        for group in groups:
            problem = self._asked(y, positive[group], cost)
            lanes = lanes_for(group.stop - group.start)
            compiled = compile_basis(self._spec, sample, self._precision(sample), lanes, whole=True)
            states.append(Blocks(compiled, sample, problem, settings, len(y)))
        return states

    # -- partial_fit ----------------------------------------------------------------------------

    def _next_chunk(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """One chunk of rows; its values are still to be looked at."""
        name = type(self).__name__
        if self._tabular:
            raise ValueError(
                f"{name}.partial_fit: the model was fitted to a table, whose terms need all rows; "
                "use fit, or pass a feature_map."
            )
        if isinstance(X, Codes) or out_of_core(X):
            raise TypeError(
                f"{name}.partial_fit takes one chunk of rows, an array or a CSR matrix, got "
                f"{type(X).__name__}; use fit for files, streams and codes."
            )
        fresh = not hasattr(self, "_weights")
        if not fresh and self._on_codes:
            raise ValueError(
                f"{name}.partial_fit continues with values, but the model was fitted on codes. Fit "
                "it on values, or use fit with all codes."
            )
        if not self._streaming:
            self._check_parameters()
        check_sparse(X, name)
        return validate_data(
            self, X, y, reset=fresh, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            y_numeric=isinstance(self, RegressorMixin), multi_output=False,
        )  # fmt: skip

    def _learn_chunk(self, X: Any, y: np.ndarray, positive: np.ndarray, cost: np.ndarray) -> Any:
        """Optimise the dual variables of one chunk; the rows."""
        if hasattr(self, "_stream"):
            rows = self._same_kind(X)
        elif hasattr(self, "_progress"):  # of a model that was saved
            rows = self._resumed(X, y, positive, cost)
        elif hasattr(self, "_weights"):  # after fit: goes on from there
            rows = self._block(X)
            self._going_on(rows, y, positive, cost)
            self.n_samples_seen_ = self._n_rows
        else:
            rows = self._prepare(X, cost)
            self._stream, self.n_samples_seen_ = self._states(rows, y, positive, cost), 0
        states = self._stream
        _in_threads(states, self.n_jobs)(_chunk_of(self, rows, y, cost))
        self.n_samples_seen_ += len(y)
        share = len(y) / self.n_samples_seen_
        cells = [self._cells(s.average(share), s.compiled, s.used) for s in states]
        self._weights = np.concatenate(cells, axis=2)
        self._C, self._fast = self.C, {}
        self._offset = np.concatenate([state.mean_offset for state in states])
        self._offset = self._offset + getattr(self, "_centre", 0.0)
        return rows

    def _same_kind(self, X: Any) -> Any:
        """Rows of a later chunk in the type of the first, whose tables are in use."""
        rows = self._block(X)
        kind = self._stream[0].kind if hasattr(self, "_stream") else self._progress.kind
        if sparse.issparse(rows) != kind[0]:
            raise TypeError(
                f"{type(self).__name__}.partial_fit: the first chunk was "
                f"{'sparse' if kind[0] else 'dense'}, this one is not."
            )
        if rows.dtype != kind[1]:
            raise TypeError(
                f"{type(self).__name__}.partial_fit: the first chunk was of {kind[1]}, this one is "
                f"of {rows.dtype}: convert it."
            )
        return rows


def _chunk_of(model: Any, rows: Any, y: np.ndarray, cost: np.ndarray) -> Callable[[Any], Any]:
    most = min(int(model.max_iter), 100)

    def work(state: Any) -> Any:
        state.kind = (sparse.issparse(rows), rows.dtype)
        return state.learn(rows, y, cost, most)

    return work


def _in_threads(
    states: list[Any], n_jobs: int | None
) -> Callable[[Callable[[Any], Any]], list[Any]]:
    """Call a function with every state, in as many threads as are allowed."""

    return lambda work: together(work, states, resolve_threads(n_jobs))
