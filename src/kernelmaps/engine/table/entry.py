"""How compiled loops are made and called.

A loop that Python calls is an :func:`entry`: its arrays and NamedTuples go in as pointers
(:mod:`.packing`).

A loop over rows combines things that know nothing of each other: how bins are found, how
polynomials are evaluated, what a loss asks for. Each of these is a :func:`routine`, compiled by
itself, which the loop calls through a function pointer, once for many values. So a loop is compiled
once for all of its routines, not for every combination of them. Python binds a routine to its own
arguments (:func:`bind`); the loop passes the common ones (:func:`call`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder

from ..._util.compiling import HELPER, interpreted, njit, python_fallback
from .packing import TESTED_VERSIONS, is_tested, packed, packing_works


class FewerPasses(CompilerBase):
    """numba's compiler without the passes that find nothing to do here: a tenth of its time.

    There are no closures, no array expressions, and nothing that numba itself inlines.
    """

    def define_pipelines(self) -> list:
        """The passes, in their order."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [step for step in pipeline.passes if step[0].__name__ not in _NOT_NEEDED]
        pipeline.finalize()
        return [pipeline]


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
_PASSES: dict[str, Any] = (
    {"pipeline_class": FewerPasses} if is_tested(nb.__version__, TESTED_VERSIONS) else {}
)

# Options of helpers, which are inlined into the loops that call them: constants of a loop's table
# are constants to its helpers. They are called with np.int64(0), not 0: a literal is a type of its
# own to numba, and the helper would be compiled once more.
INNER = HELPER | {
    "_nrt": False,  # nothing is allocated: no reference counting
    "forceinline": True,
    **_PASSES,
}
# Options of entries and routines.
OPTIONS = {
    **_PASSES,
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


def entry(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a loop for Python to call; its arguments are packed on the way in."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return function if interpreted() else Entry(njit(**OPTIONS, **options)(function))

    return compiled


class Entry:
    """A compiled loop as Python calls it."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        update_wrapper(self, loop.py_func)

    def __call__(self, *args: Any) -> Any:
        return self.loop(*(packed(argument) for argument in args))


def routine(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that loops call through a pointer (see :func:`call`).

    It takes NamedTuples and whole numbers, and writes its results to arrays of the tuples.
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
        self._addresses: dict[tuple[int, ...], int] = {}

    def address(self, kinds: tuple[types.Type, ...]) -> int:
        """Address of its code for arguments of some types; compiled if need be."""
        key = tuple(kind._code for kind in kinds)
        if key not in self._addresses:
            self.loop.compile(kinds)
            variant = self.loop.overloads[kinds]
            name = variant.fndesc.llvm_func_name
            self._addresses[key] = variant.library.get_pointer_to_function(name)
        return self._addresses[key]


class BoundRoutine(NamedTuple):
    """A routine with one bound argument, as :func:`call` takes it."""

    routine: Any
    argument: Any


def bind(function: Any, bound: tuple, passed: tuple, numbers: int) -> tuple:
    """Bind a routine to arguments: the address of its code, and these arguments, packed.

    Parameters
    ----------
    function : routine
        Called as ``function(*bound, *passed, *whole_numbers)``.
    bound : tuple of NamedTuple
        Arguments that the routine alone knows.
    passed : tuple of NamedTuple
        Examples of the arguments that the loop passes: they have the same types.
    numbers : int
        How many whole numbers follow.

    Returns
    -------
    address, *bound : fields of a :class:`BoundRoutine`, or of a tuple like it
        Where nothing is packed, the function itself in place of its address.
    """
    if any(isinstance(value, np.ndarray) for value in (*bound, *passed)):
        raise TypeError("A routine takes NamedTuples and whole numbers, not arrays.")
    if not packing_works():
        return getattr(function, "loop", function), *bound
    arguments = tuple(packed(value) for value in (*bound, *passed))
    kinds = tuple(value._numba_type_ for value in arguments) + (types.int64,) * numbers
    return function.address(kinds), *arguments[: len(bound)]


@python_fallback(lambda bound, *args: bound[0](*bound[1:], *args))
def call(typing_context, bound, *args):
    """Call a bound routine (see :func:`bind`): its bound arguments come first, then `args`."""
    function, kinds = bound.types[0], (*bound.types[1:], *args)
    is_dispatcher = isinstance(function, types.Dispatcher)  # where nothing is packed
    typed = function.get_call_type(typing_context, kinds, {}) if is_dispatcher else None

    def build(context, builder, signature, values):
        def field(name):
            return context.get_getattr(bound, name)(context, builder, bound, values[0], name)

        arguments = [field(name) for name in bound.fields[1:]]
        arguments += cgutils.unpack_tuple(builder, values[1])
        if is_dispatcher:
            return context.get_function(function, typed)(builder, arguments)
        convention = context.call_conv
        pointer = convention.get_function_type(types.none, kinds).as_pointer()
        callee = builder.inttoptr(field(bound.fields[0]), pointer)
        convention.call_function(builder, callee, types.none, kinds, arguments)
        return context.get_dummy_value()

    return types.none(bound, types.StarArgTuple.from_types(args)), build
