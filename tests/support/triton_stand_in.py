"""A stand-in for Triton that runs its kernels on NumPy arrays, one program after the other.

The kernels' own source is executed; only the language underneath is replaced by the few functions
that they use. Unlike a GPU, it refuses every access outside an array that no mask excludes.
"""

from types import ModuleType
from typing import NamedTuple

import numpy as np


class Tile(np.ndarray):
    """A block of numbers, with Triton's conversions."""

    def to(self, dtype, bitcast=False):
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(self.view(dtype) if bitcast else self.astype(dtype)).view(Tile)


def tile(values):
    return np.asarray(values).view(Tile)


class PointerType(NamedTuple):
    """What a pointer points to."""

    element_ty: np.dtype


class Pointer:
    """Places in a flat array."""

    def __init__(self, array, offset=0):
        self.array, self.offset = array, np.asarray(offset)

    @property
    def dtype(self):
        return PointerType(self.array.dtype)

    def __add__(self, more):
        return Pointer(self.array, self.offset + np.asarray(more))

    def __sub__(self, less):
        return self + -np.asarray(less)

    def places(self, mask):
        offset = self.offset if mask is None else np.where(mask, self.offset, 0)
        if offset.size and not (offset.min() >= 0 and offset.max() < max(1, self.array.size)):
            raise IndexError(f"places {offset.min()} to {offset.max()} of {self.array.size}")
        return offset


def load(pointer, mask=None, other=0):
    if pointer.array.size == 0:
        raise IndexError("an empty array is read")
    values = pointer.array[pointer.places(mask)]
    return tile(values if mask is None else np.where(mask, values, pointer.array.dtype.type(other)))


def store(pointer, value, mask=None):
    if mask is None:
        pointer.array[pointer.places(None)] = value
        return
    places, value, mask = np.broadcast_arrays(pointer.places(mask), value, mask)
    pointer.array[places[mask]] = value[mask]


class Kernel:
    """A kernel, to be launched on a grid, or called by another one."""

    grid_place = (0, 0, 0)

    def __init__(self, function):
        self.function = function

    def launched(self):
        """Called at every launch, for tests to see that one took place."""

    def __call__(self, *args, **options):
        return self.function(*args, **options)

    def __getitem__(self, grid):
        def launch(*args, num_warps=4, num_stages=1, enable_fp_fusion=True, **options):
            self.launched()
            shape = (*grid, 1, 1, 1)[:3]
            constant = {
                name
                for name, kind in self.function.__annotations__.items()
                if kind is constexpr or kind == "tl.constexpr"
            }
            names = self.function.__code__.co_varnames
            named = {**dict(zip(names, args, strict=False)), **options}
            wrapped = {k: v if k in constant else _argument(v) for k, v in named.items()}
            for place in np.ndindex(shape):
                Kernel.grid_place = place
                self.function(**wrapped)

        return launch


def _argument(value):
    if isinstance(value, Constant):
        return value
    if isinstance(value, tuple):
        fields = [_argument(field) for field in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return Pointer(value.reshape(-1))
    return tile(np.float32(value) if isinstance(value, float) else np.int32(value))


class Constant(int):
    """A number that is part of what a kernel is compiled for."""


def constexpr(value):
    return Constant(value) if isinstance(value, int) else value


def language():
    tl = ModuleType("triton.language")
    for name in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "float16",
        "float32",
    ):
        setattr(tl, name, np.dtype(name))
    tl.float64, tl.bfloat16 = np.dtype("float64"), "bfloat16"
    tl.constexpr, tl.load, tl.store = constexpr, load, store
    tl.arange = lambda a, b: tile(np.arange(a, b, dtype=np.int32))
    tl.program_id = lambda axis: tile(np.int32(Kernel.grid_place[axis]))
    tl.static_range = range
    tl.where = lambda c, a, b: tile(np.where(c, a, b))
    # Of a NaN and a number, Triton's minimum and maximum take the number.
    tl.minimum = lambda a, b: tile(np.fmin(a, b))
    tl.maximum = lambda a, b: tile(np.fmax(a, b))
    tl.abs = lambda a: tile(np.abs(a))
    tl.sum = lambda a, axis: tile(np.sum(a, axis=axis))
    tl.max = lambda a, axis=None: tile(np.max(a, axis=axis))
    tl.min = lambda a, axis=None: tile(np.min(a, axis=axis))
    tl.broadcast_to = lambda a, shape: tile(np.broadcast_to(a, shape))
    tl.zeros = lambda shape, dtype: tile(np.zeros(shape, dtype))
    tl.reshape = lambda a, shape: tile(np.reshape(a, shape))
    tl.permute = lambda a, axes: tile(np.transpose(a, axes))
    tl.split = lambda a: (tile(a[..., 0]), tile(a[..., 1]))
    return tl


def modules():
    """Stand-ins by the names under which they are imported."""
    triton = ModuleType("triton")
    triton.jit, triton.language = Kernel, language()
    return {"triton": triton, "triton.language": triton.language}
