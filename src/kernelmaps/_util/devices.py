"""Transfer and multiplication of arrays on a GPU.

Only torch tensors are meant here; torch is imported when it is needed. A device "cpu" stands for
torch's own tensors in ordinary memory: the same code without a GPU, which the tests run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from .arguments import check_choice
from .sparse import is_sparse

PRECISIONS = ("float64", "float32", "tf32")
"""In which precision features are made and multiplied on a GPU; "tf32" has float32 features, and
10 bits of each factor in their products."""

_tf32: ContextVar[bool] = ContextVar("tf32", default=False)
_solving: ContextVar[Any] = ContextVar("solving", default=None)
Result = TypeVar("Result")


def resolve(device: Any, owner: str) -> Any:
    """A torch device that is there, or an error that says what is missing."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"{owner}: device={device!r} needs torch: pip install 'kernelmaps[gpu]'"
        ) from None
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"{owner}: device must be None, 'cpu', 'cuda' or 'cuda:N', got {device!r}"
        ) from None
    if resolved.type == "cuda":
        count = torch.cuda.device_count()
        if not torch.cuda.is_available() or (resolved.index or 0) >= count:
            raise ValueError(
                f"{owner}: device={device!r}, but torch sees {count or 'no'} CUDA GPU"
                f"{'' if count == 1 else 's'}. Leave device out to run on the processor"
            )
    return resolved


def is_foreign(X: Any) -> bool:
    """Whether X is an array of another array-API library than NumPy (torch, CuPy, …)."""
    if isinstance(X, np.ndarray | np.generic | list | tuple) or is_sparse(X):
        return False
    if hasattr(X, "iloc") or hasattr(X, "to_pandas"):
        return False
    from array_api_compat import is_array_api_obj

    return bool(is_array_api_obj(X))


def namespace_of(X: Any) -> Any:
    """The array-API functions for X: NumPy itself, or those of its library."""
    if not is_foreign(X):
        return np
    from array_api_compat import array_namespace

    return array_namespace(X)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def is_on_gpu(X: Any) -> bool:
    """Whether X lies in the memory of a GPU or another device."""
    if _library(X) == "cupyx":  # its sparse matrices are no arrays of the standard
        return True
    if not is_foreign(X):
        return False
    device = getattr(X, "device", "cpu")
    return "cpu" not in str(device).lower()


def refuse_gpu_array(X: Any, call: str, instead: str, name: str = "X") -> None:
    """TypeError if X lies on a GPU: `call` runs on the processor, and nothing copies by itself."""
    if is_on_gpu(X):
        place = "a GPU" if _library(X) == "cupyx" else getattr(X, "device", "a GPU")
        raise TypeError(
            f"{call} runs on the processor, and {name} is a {_library(X)} array on {place}. "
            f"{instead}"
        )


def refuse_container(owner: Any, X: Any) -> None:
    """TypeError if `set_output` asks for a frame of rows on a GPU."""
    from sklearn.utils._set_output import _get_output_config

    container = _get_output_config("transform", owner)["dense"]
    if container != "default":
        call = f"{type(owner).__name__}.transform with set_output(transform={container!r})"
        refuse_gpu_array(
            X, call, "Pass rows in ordinary memory, or set_output(transform='default')."
        )


def numpy_dtype(dtype: Any) -> np.dtype:
    """NumPy's name for a dtype of any library; that of its nearest neighbour for bfloat16."""
    if isinstance(dtype, np.dtype):
        return dtype
    name = str(dtype).rpartition(".")[2]
    return np.dtype("float32" if name == "bfloat16" else name)


def is_tensor(array: Any) -> bool:
    """Whether an array is a torch tensor."""
    return _library(array) == "torch"


def to_device(array: np.ndarray, device: Any, dtype: Any = None) -> Any:
    """A copy on the device; through pinned memory, so that the copy runs during the computation."""
    import torch

    array = np.ascontiguousarray(array, dtype=dtype)
    if not array.flags.writeable:
        array = array.copy()
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.clone()


def to_host(array: Any, dtype: Any = None) -> np.ndarray:
    """The numbers of a tensor, or of any array, as NumPy's, which have no bfloat16."""
    if is_tensor(array):
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    elif _library(array) == "cupy":
        array = array.get()
    array = np.asarray(array)
    return array if dtype is None else array.astype(dtype, copy=False)


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Choose how float32 matrices are multiplied on a GPU, within a block.

    Parameters
    ----------
    name : {"float64", "float32", "tf32"}
        "tf32" rounds the factors to 10 bits and sums in float32: relative errors near 5e-4 in
        each product, at several times the speed. It is never used unless it is asked for here.
    """
    check_choice("precision", "name", name, PRECISIONS)
    token = _tf32.set(name == "tf32")
    try:
        yield
    finally:
        _tf32.reset(token)


def multiply(A: Any, B: Any, *, out: Any = None) -> Any:
    """A B in the precision that is chosen, whatever torch has set; into `out`, if any."""
    import torch

    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = _tf32.get()
    try:
        return A @ B if out is None else torch.matmul(A, B, out=out)
    finally:
        settings.allow_tf32 = before


def cast_like(values: Any, Z: Any) -> Any:
    """Factors of Z in its precision, and where it is; of integers, in float64."""
    if is_tensor(Z):
        return to_device(values, Z.device).to(Z.dtype)
    return values.astype(np.float32 if Z.dtype == np.float32 else np.float64)


def join(tensors: list[Any], axis: int) -> Any:
    """Tensors one below the other (axis 0), or side by side (1)."""
    import torch

    return torch.cat(tensors, dim=axis)


class OutOfMemoryError(MemoryError):
    """A GPU ran out of memory, and it is known in what: fewer rows at a time may still fit."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a GPU ran out of memory: torch and CuPy call it by the same name, as we do."""
    return type(error).__name__ == "OutOfMemoryError"


@contextmanager
def memory_named(owner: str, instead: str) -> Iterator[None]:
    """MemoryError that says what to do where a GPU runs out of memory, within a block."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        message = f"{owner}: the GPU does not have enough memory. {instead}"
        raise OutOfMemoryError(message) from error


def run_in_halves(
    work: Callable[[slice], Result],
    rows: slice,
    join: Callable[[Result, Result], Result],
    owner: str,
    instead: str,
) -> Result:
    """``work`` on all rows; on fewer at a time where the GPU lacks the memory for them.

    Results are joined one by one, in their order: two of them are in memory at a time.
    """
    pending, results = [rows], list[Result]()
    while pending:
        piece = pending.pop()
        try:
            result = work(piece)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if piece.stop - piece.start < 2:
                raise MemoryError(
                    f"{owner}: the GPU does not have enough memory, even for one row at a time. "
                    f"{instead}"
                ) from None
            middle = (piece.start + piece.stop) // 2
            pending += [slice(middle, piece.stop), slice(piece.start, middle)]
        else:
            with memory_named(owner, instead):
                results = [join(results[0], result) if results else result]
            del result  # its memory is for the next one
            continue
        if "torch" in sys.modules:  # what failed is free by now
            sys.modules["torch"].cuda.empty_cache()
    return results[0]


@contextmanager
def solving_on(device: Any) -> Iterator[None]:
    """Solve and decompose matrices on a torch device, within a block; None: on the processor."""
    token = _solving.set(device)
    try:
        yield
    finally:
        _solving.reset(token)


def solving_device() -> Any:
    """The device that `solving_on` has chosen, or None."""
    return _solving.get()
