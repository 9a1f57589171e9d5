"""Compiled loops for Python to call: their tuples are handed over by address.

What numba makes of a tuple of forty arrays at the border to Python, a check and a conversion for
each, takes longer to compile than the loops themselves, for every kind of table again. Here Python
lays addresses, lengths and numbers side by side, and compiled code reads them from there: a few
instructions for each, whatever the tuple. Read-only arrays are the same to the loops as others,
which halves their kinds once more; that nothing is written to them is the loops' business.

Nothing is owned by compiled code: whoever calls holds the arrays until the loop returns.

A loop over rows puts together things that know nothing of each other: how bins are found, how
polynomials are evaluated, what a loss asks for. Each is a :func:`routine`, compiled by itself and
called by address, once for many values: a loop is compiled once for all of its routines, not for
every combination of them.

This is built on numba's interface for extensions (types, models, unboxing). With versions of numba
that it was not tried with, the loops take the tuples as numba knows them: the same results after a
longer compilation.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Callable
from ctypes import c_size_t
from functools import lru_cache, update_wrapper
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.datamodel import models, register_default
from numba.core.datamodel.models import ArrayModel
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.np.numpy_support import from_dtype

from ...compiling import HELPER, interpreted, meaning, njit

_TRIED = ("0.68",)  # versions of numba


class FewerPasses(CompilerBase):
    """numba's compiler without the passes that find nothing to do here: a tenth of its time.

    There are no closures, no array expressions, and nothing that numba itself puts in line.
    """

    def define_pipelines(self) -> list:
        """The passes, in their order."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [own for own in passes.passes if own[0].__name__ not in _NOT_NEEDED]
        passes.finalize()
        return [passes]


_NOT_NEEDED = {
    "WithLifting",
    "InlineClosureLikes",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "DumpParforDiagnostics",
}


def _tried(version: str, tried: tuple[str, ...]) -> bool:
    """Whether a version of numba is one that all this was tried with."""
    return version.startswith(tuple(f"{known}." for known in tried))


_PASSES: dict[str, Any] = {"pipeline_class": FewerPasses} if _tried(nb.__version__, _TRIED) else {}

# Helpers are part of the loops that call them: what a loop knows about its table serves them, too.
# They are called with np.int64(0), not 0: a number that is written out is a type of its own to
# numba, and the helper would be compiled once more.
INNER = HELPER | {
    "_nrt": False,  # nothing is allocated: no references are counted
    "forceinline": True,
    **_PASSES,
}
OPTIONS = {
    **_PASSES,
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


_WORD = ir.IntType(64)
_ADDRESS = ir.PointerType(_WORD)


class HandedType(types.Type):
    """A NamedTuple at an address.

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
        """The word where a field begins."""
        return sum(_words(member) for member in self.types[:index])


def _words(kind: types.Type) -> int:
    """Words that a value of a type takes."""
    if isinstance(kind, HandedType):
        return kind.offset(len(kind.types))
    if isinstance(kind, types.Array):
        return 1 + kind.ndim
    return 0 if isinstance(kind, types.BaseTuple) else 1


class HandedArray(types.Array):
    """A contiguous array that comes from Python by address, whether it may be written or not."""

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"{dtype}x{ndim}")

    @property
    def mangling_args(self) -> tuple[str, tuple]:
        return self.name, ()


register_default(HandedArray)(ArrayModel)


@register_default(HandedType)
class HandedModel(models.PrimitiveModel):
    """Compiled code holds the address alone, and reads a field where it needs it."""

    def __init__(self, manager: Any, kind: HandedType) -> None:
        super().__init__(manager, kind, _ADDRESS)


class Handed:
    """A NamedTuple or an array as one address, with its type for numba."""

    __slots__ = ("_numba_type_", "address", "held")

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        key = _lay_out(value, words)
        if key not in _TYPES:
            _TYPES[key] = _type_of(value)
        memory = array("q", words)
        self._numba_type_, self.held = _TYPES[key], (memory, value)
        self.address = memory.buffer_info()[0]

    def __reduce__(self) -> tuple[Any, tuple]:
        return by_address, (self.held[1],)  # an address means nothing elsewhere


_TYPES: dict[Any, HandedType] = {}


def _address(numbers: np.ndarray) -> int:
    """Where the numbers of an array begin: an array object says it first, after Python's header.

    NumPy's own ways of asking describe the whole array each time, which takes ten times as long.
    """
    return c_size_t.from_address(id(numbers) + object.__basicsize__).value


def _lay_out(value: Any, words: list[int]) -> Any:
    """Append what compiled code reads of a value; what its type depends on."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError(f"Compiled loops take contiguous arrays, not strides {value.strides}.")
        words.append(_address(value))
        words.extend(value.shape)
        return value.dtype, value.ndim
    if isinstance(value, Handed):
        words.append(value.address)
        return Handed
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return type(value), *(_lay_out(part, words) for part in value)
        return len(value)
    if isinstance(value, float | np.floating):
        words.append(struct.unpack("q", struct.pack("d", value))[0])
        return float
    if not isinstance(value, int | np.integer | np.bool_):
        raise TypeError(f"Compiled loops take arrays and numbers, not {type(value).__name__}.")
    words.append(int(value))
    return isinstance(value, bool | np.bool_)


def _type_of(value: Any) -> types.Type:
    """The type that compiled code knows a value by.

    What was handed over before is an address to it: the routines that it is passed to know more.
    """
    if isinstance(value, Handed):
        return types.voidptr
    if isinstance(value, np.ndarray):
        return HandedArray(from_dtype(value.dtype), value.ndim)
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return HandedType(tuple(_type_of(part) for part in value), type(value))
        return types.UniTuple(types.int64, len(value)) if value else types.Tuple(())
    if isinstance(value, bool | np.bool_):
        return types.boolean
    return types.float64 if isinstance(value, float | np.floating) else types.int64


@unbox(HandedArray)
@unbox(HandedType)
def _handed(kind, handed, c):
    """The tuple or array at the address that Python gives."""
    number = c.pyapi.object_getattr_string(handed, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    words = c.builder.bitcast(address, _ADDRESS)
    return NativeValue(_read(c.context, c.builder, kind, words, 0))


@infer_getattr
class HandedFields(AttributeTemplate):
    """Fields by name."""

    key = HandedType

    def generic_resolve(self, kind: HandedType, name: str) -> Any:
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(HandedType)
def _field(context, builder, kind, words, name):
    index = kind.fields.index(name)
    return _read(context, builder, kind.types[index], words, kind.offset(index))


def _read(context, builder, kind, words, at):
    """What lies at word `at`."""

    def word(k):
        found = builder.load(builder.gep(words, [_WORD(k)]))
        # Nothing writes here while a loop runs: it may be read once for all rounds.
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    if isinstance(kind, HandedType):
        return builder.gep(words, [_WORD(at)])
    if isinstance(kind, types.Array):
        shape = [word(at + 1 + k) for k in range(kind.ndim)]
        return _array(context, builder, kind, word(at), shape)
    if isinstance(kind, types.BaseTuple):  # a length alone
        return context.get_constant_null(kind)
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


def entry(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop for Python to call; its tuples are handed over by address."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return function if interpreted() else Entry(njit(**OPTIONS, **options)(function))

    return compiled


class Entry:
    """A compiled loop as Python calls it."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        update_wrapper(self, loop.py_func)

    def __call__(self, *args: Any) -> Any:
        return self.loop(*(by_address(argument) for argument in args))


def routine(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that loops call by address (see :func:`call`).

    It takes NamedTuples and whole numbers, and leaves its results in memory.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        if interpreted():
            return function
        return Routine(njit(**OPTIONS, no_cpython_wrapper=True, **options)(function))

    return compiled


class Routine:
    """A compiled function that other compiled functions call."""

    def __init__(self, loop: Any) -> None:
        self.loop, self.__doc__ = loop, loop.py_func.__doc__
        self._known: dict[tuple[int, ...], int] = {}

    def address(self, kinds: tuple[types.Type, ...]) -> int:
        """Where its code for arguments of some types is; it is compiled if need be."""
        key = tuple(kind._code for kind in kinds)
        if key not in self._known:
            self.loop.compile(kinds)
            made = self.loop.overloads[kinds]
            name = made.fndesc.llvm_func_name
            self._known[key] = made.library.get_pointer_to_function(name)
        return self._known[key]


def bound(function: Any, known: tuple, others: tuple, numbers: int) -> tuple:
    """What :func:`call` takes of a routine: its address, and the arguments that it alone knows.

    Its `others` are such tuples, and then some whole numbers. Where nothing is handed over by
    address, the function stands for it.
    """
    if any(isinstance(value, np.ndarray) for value in (*known, *others)):
        raise TypeError("A routine takes NamedTuples and whole numbers, not arrays.")
    if interpreted() or not _usable():
        return getattr(function, "loop", function), *known
    handed = tuple(by_address(value) for value in (*known, *others))
    kinds = tuple(value._numba_type_ for value in handed) + (types.int64,) * numbers
    return function.address(kinds), *handed[: len(known)]


@meaning(lambda function, *args: function(*args))
def call(typing_context, function, *args):
    """Call a routine with its arguments: first those that it alone knows (see :func:`bound`)."""
    dispatcher = isinstance(function, types.Dispatcher)
    own = function.get_call_type(typing_context, args, {}) if dispatcher else None

    def build(context, builder, signature, values):
        given = cgutils.unpack_tuple(builder, values[1])
        if dispatcher:
            return context.get_function(function, own)(builder, given)
        convention = context.call_conv
        pointer = convention.get_function_type(types.none, args).as_pointer()
        callee = builder.inttoptr(values[0], pointer)
        convention.call_function(builder, callee, types.none, args, given)
        return context.get_dummy_value()

    return types.none(function, types.StarArgTuple.from_types(args)), build


def by_address(value: Any) -> Any:
    """An argument ready to be handed over: arrays and NamedTuples by address, others as they are.

    For one that many calls take, it is done before them.
    """
    has_address = isinstance(value, np.ndarray) or hasattr(value, "_fields")
    return Handed(value) if has_address and _usable() else value


def _usable() -> bool:
    """Whether something is compiled, and by a version of numba that this was tried with."""
    return not interpreted() and _addresses_serve(nb.__version__, _TRIED)


@lru_cache(maxsize=4)
def _addresses_serve(version: str, tried: tuple[str, ...]) -> bool:
    numbers = np.zeros(1)
    as_known = _address(numbers) == numbers.__array_interface__["data"][0]
    return as_known and _tried(version, tried)
