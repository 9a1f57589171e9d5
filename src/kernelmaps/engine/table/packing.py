"""Packed arguments: a NamedTuple or an array enters compiled code as one pointer.

numba converts a tuple of forty arrays at the border to Python field by field, with a check for
each: that code takes longer to compile than the loops themselves, for every type of table again.
Here Python writes what compiled code reads into an array of 64-bit words:

===================  =======================================
field                words
===================  =======================================
array                pointer to its numbers, then its shape
NamedTuple           the words of its fields
number               1
StaticInt            none: its value is part of the type
packed before        1, a pointer to its words
===================  =======================================

Compiled code gets a pointer to the words and loads a field where it needs it: a few instructions
each, whatever the tuple. Whether an array may be written is not part of its type, which halves the
number of compiled variants once more: loops write only to arrays that are theirs to write.

Compiled code owns nothing: the caller keeps the arrays alive until the loop returns.

This is built on numba's extension interface (types, data models, unboxing). With versions of numba
that it was not tested with, the loops take numba's own tuples: the same results after a longer
compilation.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from ctypes import c_size_t
from functools import lru_cache
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.datamodel.models import ArrayModel
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np.numpy_support import from_dtype

from ..._util.compiling import interpreted
from ..._util.static_int import StaticInt
from ..._util.static_types import StaticType

TESTED_VERSIONS = ("0.68",)  # of numba

_WORD = ir.IntType(64)
_POINTER = ir.PointerType(_WORD)


def is_tested(version: str, tested: tuple[str, ...]) -> bool:
    """Whether a version of numba is one that packing was tested with."""
    return version.startswith(tuple(f"{prefix}." for prefix in tested))


class PackedType(types.Type):
    """A pointer to the words of a NamedTuple.

    Its name is short: names of types are part of the names of all functions that take them.
    """

    def __init__(self, members: tuple, cls: Any) -> None:
        self.types, self.fields, self.instance_class = members, cls._fields, cls
        names = ", ".join(str(member) for member in members)
        digest = hashlib.blake2b(names.encode(), digest_size=9).hexdigest()
        super().__init__(f"{cls.__name__}{digest}")

    @property
    def key(self) -> tuple:
        return self.instance_class, self.types

    def offset(self, index: int) -> int:
        """The word at which a field begins."""
        return sum(_n_words(member) for member in self.types[:index])


def _n_words(kind: types.Type) -> int:
    """Words that a field of this type takes."""
    if isinstance(kind, PackedType):
        return kind.offset(len(kind.types))
    if isinstance(kind, types.Array):
        return 1 + kind.ndim
    return 0 if isinstance(kind, StaticType) else 1


class PackedArray(types.Array):
    """A contiguous array from Python, whether it may be written or not."""

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"{dtype}x{ndim}")

    @property
    def mangling_args(self) -> tuple[str, tuple]:
        return self.name, ()


register_default(PackedArray)(ArrayModel)


@register_default(PackedType)
class PackedModel(models.PrimitiveModel):
    """Compiled code holds the pointer alone."""

    def __init__(self, manager: Any, kind: PackedType) -> None:
        super().__init__(manager, kind, _POINTER)


class Packed:
    """A NamedTuple or an array as words, with the address of the first one and their numba type."""

    __slots__ = ("_numba_type_", "address", "value", "words")

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        key = _append_words(value, words)
        if key not in _TYPES:
            _TYPES[key] = _numba_type(value)
        self._numba_type_, self.value, self.words = _TYPES[key], value, array("q", words)
        self.address = self.words.buffer_info()[0]

    def __reduce__(self) -> tuple[Any, tuple]:
        return packed, (self.value,)  # an address is valid in one process only


_TYPES: dict[Any, types.Type] = {}


def packed(value: Any) -> Any:
    """An argument as compiled functions take it: arrays and NamedTuples packed, others as they are.

    An argument of many calls is packed once, before them.
    """
    packable = isinstance(value, np.ndarray) or hasattr(value, "_fields")
    return Packed(value) if packable and packing_works() else value


def packing_works() -> bool:
    """Whether code is compiled, and by a version of numba that packing was tested with."""
    return not interpreted() and _packing_works(nb.__version__, TESTED_VERSIONS)


@lru_cache(maxsize=4)
def _packing_works(version: str, tested: tuple[str, ...]) -> bool:
    numbers = np.zeros(1)
    same_address = _address(numbers) == numbers.__array_interface__["data"][0]
    return same_address and is_tested(version, tested)


def _address(numbers: np.ndarray) -> int:
    """Address of an array's numbers: the first field of an array object, after Python's header.

    NumPy's own ways of asking describe the array in full each time, which takes ten times as long.
    """
    return c_size_t.from_address(id(numbers) + object.__basicsize__).value


def _append_words(value: Any, words: list[int]) -> Any:
    """Append the words of a value; returns a key that determines its numba type."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError(f"Compiled loops take contiguous arrays, not strides {value.strides}.")
        words.append(_address(value))
        words.extend(value.shape)
        return value.dtype, value.ndim
    if isinstance(value, Packed):
        words.append(value.address)
        return Packed
    if isinstance(value, StaticInt):
        return StaticInt, int(value)
    if hasattr(value, "_fields"):
        return type(value), *(_append_words(field, words) for field in value)
    if isinstance(value, float | np.floating):
        words.append(struct.unpack("q", struct.pack("d", value))[0])
        return float
    if not isinstance(value, int | np.integer | np.bool_):
        raise TypeError(f"Compiled loops take arrays and numbers, not {type(value).__name__}.")
    words.append(int(value))
    return bool if isinstance(value, bool | np.bool_) else int


def _numba_type(value: Any) -> types.Type:
    """The type by which compiled code knows a value.

    Of a value packed before it knows the address alone: the routine that reads it knows its type.
    """
    if isinstance(value, Packed):
        return types.voidptr
    if isinstance(value, np.ndarray):
        return PackedArray(from_dtype(value.dtype), value.ndim)
    if isinstance(value, StaticInt):
        return StaticType(int(value))
    if isinstance(value, tuple):
        return PackedType(tuple(_numba_type(field) for field in value), type(value))
    if isinstance(value, bool | np.bool_):
        return types.boolean
    return types.float64 if isinstance(value, float | np.floating) else types.int64


@unbox(PackedArray)
@unbox(PackedType)
def _unbox(kind, value, c):
    """The argument at the address of a `Packed`."""
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    words = c.builder.bitcast(pointer, _POINTER)
    return NativeValue(_read(c.context, c.builder, kind, words, 0))


@infer_getattr
class PackedFields(AttributeTemplate):
    """Types of the fields, by name."""

    key = PackedType

    def generic_resolve(self, kind: PackedType, name: str) -> Any:
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(PackedType)
def _field(context, builder, kind, words, name):
    index = kind.fields.index(name)
    return _read(context, builder, kind.types[index], words, kind.offset(index))


def _read(context, builder, kind, words, at):
    """The value of type `kind` whose words begin at word `at`."""

    def word(k):
        value = builder.load(builder.gep(words, [_WORD(k)]))
        # Nothing writes to the words while a loop runs: one load serves all iterations.
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if isinstance(kind, PackedType):
        return builder.gep(words, [_WORD(at)])
    if isinstance(kind, types.Array):
        shape = [word(at + 1 + k) for k in range(kind.ndim)]
        return _array(context, builder, kind, word(at), shape)
    if isinstance(kind, StaticType):
        return context.get_dummy_value()
    if kind == types.float64:
        return builder.bitcast(word(at), ir.DoubleType())
    if kind == types.voidptr:
        return builder.inttoptr(word(at), ir.PointerType(ir.IntType(8)))
    if kind == types.boolean:
        return builder.icmp_signed("!=", word(at), _WORD(0))
    return word(at)


def _array(context, builder, kind, address, shape):
    """A contiguous array that nobody owns."""
    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    step, strides = _WORD(size), []
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    array.data = builder.inttoptr(address, array.data.type)
    array.nitems = builder.sdiv(step, _WORD(size)) if kind.ndim != 1 else shape[0]
    array.itemsize = _WORD(size)
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)
    return array._getvalue()
