"""Rows of torch tensors, folded on the device where they are."""

from __future__ import annotations

from typing import Any

from ...data import Block
from ...data.sources import SlicedSource
from ...device import is_tensor, on_card, resolve, to_host


class DeviceRows(SlicedSource):
    """Rows of a tensor: blocks are slices of it. Only those that a map is fitted on are copied."""

    def rows_at(self, rows: slice) -> Any:
        return self.X[rows]

    def sample(self, rows: int) -> Block | None:
        where = (self.begin, self.end, self.first, self.chunk)
        return SlicedSource(_HostSlices(self.X), self.y, self.w, *where).sample(rows)

    def describe(self) -> str:
        return f"the tensor on {self.X.device} of {self.n_rows} rows and {self.n_features} features"


class _HostSlices:
    """A tensor whose slices are copied to ordinary memory."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, tuple(X.shape)

    def __getitem__(self, rows: slice) -> Any:
        return on_host(self.X[rows])


def on_host(values: Any) -> Any:
    """Targets, weights or rows in ordinary memory; halves become single numbers."""
    if not is_tensor(values):
        return values
    halves = values.is_floating_point() and values.element_size() < 4
    return to_host(values.float() if halves else values)


def folds_in_place(X: Any, device: Any, owner: str) -> bool:
    """Whether X is a tensor on a card, or on the `device` that the estimator computes on.

    TypeError for arrays of other libraries on a card, which are not folded there.
    """
    if is_tensor(X):
        return on_card(X) or device is not None
    if on_card(X):
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
    wanted = resolve(device, owner)
    if wanted.type != X.device.type or wanted.index not in (None, X.device.index):
        raise ValueError(
            f"{owner}: X is on {X.device}, but device={device!r}. Leave device out to compute "
            f"where X is, or pass X.to({str(wanted)!r})"
        )
