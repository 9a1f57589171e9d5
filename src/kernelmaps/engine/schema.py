"""Schema of the specs of each family: names, types, shapes, ranges and relations.

Compiled loops follow the indices of a spec without looking. Every :class:`~.spec.Spec` is
therefore held to the schema of its family when it is made, wherever it comes from: a map's fit, a
file, a pickle, a Dask worker or a plug-in. All checks take linear time.

A family from outside registers its own schema beside its formula::

    from kernelmaps.engine import FamilySchema, register_schema
    from kernelmaps._util.schema import array, number

    register_schema("ramp", FamilySchema(arrays={"slope": array("f8", "columns")}))

A family without a schema can be used by the process that made it, but is refused in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._util.schema import Check, Lengths, SchemaError, array, boolean, check_entries, optional

DEEPEST = 8
"""Parts within parts, at most: no composed map has more than three levels."""


def _no_relations(spec: Any, lengths: Lengths) -> None:
    """Most families are described by their entries alone."""


def _any_width(spec: Any, n_features: int) -> bool:
    return n_features >= 1


@dataclass(frozen=True)
class FamilySchema:
    """Schema of one family of specs.

    Attributes
    ----------
    arrays, optional_arrays : mapping of str to check
        Arrays that a spec must have and may have; no other is accepted.
    numbers, optional_numbers : mapping of str to check
        Likewise for its numbers.
    parts : tuple (least, most)
        Number of parts.
    relations : callable (spec, lengths) -> None
        Raises `SchemaError` where entries contradict each other; `lengths` holds the lengths that
        the names in the shapes stand for.
    takes : callable (spec, n_features) -> bool
        Whether rows of so many features can be mapped.
    """

    arrays: Mapping[str, Check] = field(default_factory=dict)
    optional_arrays: Mapping[str, Check] = field(default_factory=dict)
    numbers: Mapping[str, Check] = field(default_factory=dict)
    optional_numbers: Mapping[str, Check] = field(default_factory=dict)
    parts: tuple[int, int] = (0, 0)
    relations: Callable[[Any, Lengths], None] = _no_relations
    takes: Callable[[Any, int], bool] = _any_width


SCHEMAS: dict[str, FamilySchema] = {}


def register_schema(family: str, schema: FamilySchema) -> None:
    """Hold all specs of a family to a schema.

    Parameters
    ----------
    family : str
        Name of the family; one that has a schema already is refused.
    schema : FamilySchema
        What its specs must hold.
    """
    if family in SCHEMAS:
        raise ValueError(f"the family {family!r} has a schema already; choose another name.")
    SCHEMAS[family] = schema


def check_spec(spec: Any) -> None:
    """Raise `SchemaError` if a spec is not what its family asks for.

    The parts of a spec have been checked when they were made.
    """
    depth = _depth(spec)
    if depth > DEEPEST:
        raise SchemaError(f"a spec has {depth} levels of parts; at most {DEEPEST} are accepted")
    schema = SCHEMAS.get(spec.family)
    if schema is None:
        return
    where = f"the spec of family {spec.family!r}"
    lengths = check_entries(spec.arrays, schema.arrays, schema.optional_arrays, where)
    check_entries(spec.numbers, schema.numbers, schema.optional_numbers, where, lengths)
    least, most = schema.parts
    if not least <= len(spec.parts) <= most:
        raise SchemaError(f"{where} must have {least} to {most} parts, found {len(spec.parts)}")
    schema.relations(spec, lengths)


def check_width(spec: Any, n_features: int) -> None:
    """Raise ValueError if rows of so many features do not fit a spec."""
    schema = SCHEMAS.get(spec.family)
    if schema is not None and not schema.takes(spec, n_features):
        raise ValueError(
            f"rows of {n_features} features do not fit this map (family {spec.family!r}): it was "
            "made for another number of features."
        )


def _depth(spec: Any) -> int:
    return 1 + max((_depth(stage) for stage in spec.parts), default=0)


# ---- what several families share ----------------------------------------------------------------

CLIPPED: Mapping[str, Check] = {
    "lower": array("f8 f4", "features", finite=False),
    "upper": array("f8 f4", "features", finite=False),
}
"""Ends of the range to which values are clipped: both or neither."""

SIGNED: Mapping[str, Check] = {"signed": optional(boolean)}


def check_together(spec: Any, names: tuple[str, ...]) -> bool:
    """Whether a spec has all of some optional arrays; SchemaError if it has only some of them."""
    present = [name for name in names if name in spec.arrays]
    if present and len(present) < len(names):
        missing = sorted(set(names) - set(present))
        raise SchemaError(
            f"the spec of family {spec.family!r} has {present[0]!r}, but lacks {missing[0]!r}"
        )
    return bool(present)


def check_ends(spec: Any) -> None:
    """`lower` and `upper` come together, and in this order."""
    if check_together(spec, ("lower", "upper")):
        low, high = spec.arrays["lower"], spec.arrays["upper"]
        if np.any(low > high):
            raise SchemaError(f"the spec of family {spec.family!r}: 'lower' is above 'upper'")


def _chain_relations(spec: Any, lengths: Lengths) -> None:
    """The widths of the stages depend on the rows: see `check_width`, which knows them."""
    if any(stage.family not in SCHEMAS for stage in spec.parts):
        names = [stage.family for stage in spec.parts if stage.family not in SCHEMAS]
        raise SchemaError(f"a chain has the stage {names[0]!r}, a family without a schema")


register_schema("chain", FamilySchema(parts=(2, 4), relations=_chain_relations))
