"""Feature maps of a fold on a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._util.devices import (
    PRECISIONS,
    is_tensor,
    memory_named,
    numpy_dtype,
    precision,
    resolve,
    to_device,
)

AHEAD = 2  # blocks that may be on their way while one is computed
BLOCK_BYTES = 2 << 30  # of features on the GPU
MOST_ROWS = 1 << 15
_SHORT = (np.float32, np.float16, np.uint8, np.uint16)  # types that float32 holds exactly


@dataclass
class OnDevice:
    """Copy rows to a device, unless they are there, and map them there.

    Parameters
    ----------
    transform : callable or None
        Tensors of rows to tensors of features; None: the rows themselves.
    device : str
        A device of torch.
    arithmetic : {"float64", "float32", "tf32"} or None
        Precision of features and of their products; None: that of the rows.
    owner : str
        Who folds, for messages.
    """

    transform: Callable[[Any], Any] | None
    device: str
    arithmetic: str | None
    owner: str
    _pending: deque[Any] = field(default_factory=deque, repr=False)

    def __call__(self, X: Any) -> Any:
        """Features of a block of rows, on the device."""
        if sp.issparse(X):
            raise TypeError(
                f"{self.owner}: sparse rows are not folded on a device. Leave device out, or pass "
                "blocks of dense rows"
            )
        device = resolve(self.device, self.owner)
        while len(self._pending) > AHEAD:  # every block on its way to a GPU holds memory
            self._pending.popleft().synchronize()
        wide = numpy_dtype(X.dtype) not in _SHORT
        rows = _rows_on(X, device, self.arithmetic == "float64" if self.arithmetic else wide)
        Z = rows if self.transform is None else self.transform(rows)
        if device.type == "cuda":
            import torch

            self._pending.append(torch.cuda.current_stream().record_event())
        return Z

    @contextmanager
    def session(self, instead: str) -> Iterator[None]:
        """Around all blocks: how products are computed, and what to do `instead` without memory."""
        with precision(self.arithmetic or "float32"), memory_named(self.owner, instead):
            yield

    @staticmethod
    def block_rows(width: int) -> int:
        """Rows at a time for features of so many columns."""
        fit = max(1024, BLOCK_BYTES // (8 * width))
        return min(MOST_ROWS, 1 << (fit.bit_length() - 1))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_pending": deque()}


def check_device(device: Any, arithmetic: str | None, owner: str) -> None:
    """Refuse a device that is not there before any row is read."""
    if arithmetic is not None and arithmetic not in PRECISIONS:
        raise ValueError(
            f"{owner}: precision must be None or one of {', '.join(PRECISIONS)}; got {arithmetic!r}"
        )
    if device is not None:
        resolve(device, owner)


def _rows_on(X: Any, device: Any, double: bool) -> Any:
    """Rows as a tensor of one of two precisions; a tensor that is there already stays."""
    if not is_tensor(X):
        return to_device(X, device, np.float64 if double else np.float32)
    return X.to(device).double() if double else X.to(device).float()
