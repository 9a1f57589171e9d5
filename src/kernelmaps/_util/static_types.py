"""The numba type of :class:`~kernelmaps._util.static_int.StaticInt`. Importing it imports numba.

A value of this type takes no memory and no register: where compiled code computes with it, numba
converts it to a constant int64. Comparisons, arithmetic, ``range`` and ``if`` work as for any
integer.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin, lower_cast, lower_constant
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import typeof_impl

from .static_int import ABSENT, StaticInt


class StaticType(types.Type):
    """The type of one whole number."""

    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(f"Static({value})")

    def can_convert_to(self, typing_context: Any, other: types.Type) -> Conversion | None:
        """To int64 and nothing else: numba then finds one candidate for every operation."""
        return Conversion.promote if other == types.int64 else None


register_default(StaticType)(models.OpaqueModel)


@typeof_impl.register(StaticInt)
def _typeof(value, context):
    return StaticType(int(value))


@unbox(StaticType)
def _unbox(kind, value, c):
    return NativeValue(c.context.get_dummy_value())


@lower_constant(StaticType)
def _constant(context, builder, kind, value):
    return context.get_dummy_value()


@lower_cast(StaticType, types.int64)
def _to_int64(context, builder, source, target, value):
    return context.get_constant(types.int64, source.value)


@infer_global(bool)
class StaticTruth(AbstractTemplate):
    """``if`` of a static flag."""

    def generic(self, args: tuple, kws: dict) -> Any:
        return signature(types.boolean, *args) if isinstance(args[0], StaticType) else None


@lower_builtin(bool, StaticType)
def _truth(context, builder, sig, args):
    return context.get_constant(types.boolean, bool(sig.args[0].value))


def field_type(record: types.Type, name: str) -> types.Type:
    """The type of a field, from the type of a NamedTuple."""
    return record.types[record.fields.index(name)]


def is_absent(kind: types.Type) -> bool:
    """Whether a field holds ABSENT in the place of a record, from its type."""
    return kind == StaticType(int(ABSENT))


def static_field(record: types.Type, name: str) -> int:
    """The value of a NamedTuple's field that is a StaticInt, from the tuple's type."""
    return field_type(record, name).value
