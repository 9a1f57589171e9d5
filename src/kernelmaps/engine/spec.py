"""Specs: fitted maps as frozen bundles of plain arrays and numbers, held to schemas of families.

Compiled loops follow the indices of a spec without looking. Every :class:`Spec` is therefore held
to the schema of its family (names, types, shapes, ranges and relations) when it is made, wherever
it comes from: a map's fit, a file, a pickle, a Dask worker or a plug-in. All checks take linear
time.

A family from outside registers its own schema next to its formula::

    from kernelmaps.engine import FamilySchema, register_schema
    from kernelmaps._util.schema import array, number

    register_schema("ramp", FamilySchema(arrays={"slope": array("f8", "columns")}))

A family without a schema can be used by the process that made it, but is refused in files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from .._util import storage
from .._util.schema import Check, Lengths, SchemaError, array, boolean, check_entries, optional
from .._util.threads import cached_property
from ..exceptions import FileFormatError

SPEC_VERSION = 1
Number = bool | int | float | str | None


@dataclass(frozen=True, eq=False)
class Spec:
    """The arrays and numbers that alone determine a map φ.

    A spec is a few kB, independent of the data's size: it is saved, hashed, shipped to workers and
    exported. `family` names the formula that reads it (see :mod:`kernelmaps.engine.families`).

    Parameters
    ----------
    family : str
        Name of the formula.
    arrays : mapping of str to array
        Made read-only; copied, unless they are read-only already.
    numbers : mapping of str to bool, int, float, str or None
        Everything that is not an array.
    parts : tuple of Spec
        Stages of a composed map, applied in order.

    Raises
    ------
    ValueError
        If the entries are not those that the family's schema asks for (see
        :mod:`kernelmaps.engine.spec`): compiled loops rely on their relations.
    """

    family: str
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)  # of type Number, see _number
    parts: tuple[Spec, ...] = ()

    def __post_init__(self) -> None:
        frozen = {name: _freeze(name, value) for name, value in self.arrays.items()}
        numbers = {name: _number(name, value) for name, value in self.numbers.items()}
        object.__setattr__(self, "arrays", MappingProxyType(frozen))
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        object.__setattr__(self, "parts", tuple(self.parts))
        if not isinstance(self.family, str) or not all(isinstance(p, Spec) for p in self.parts):
            raise TypeError("Spec: family must be a string and parts must be Specs.")
        self._check()

    def _check(self) -> None:
        """Raise `SchemaError` if the entries are not what the family asks for."""
        schema = SCHEMAS.get(self.family)
        if schema is None:
            return
        where = f"the spec of family {self.family!r}"
        lengths = check_entries(self.arrays, schema.arrays, schema.optional_arrays, where)
        check_entries(self.numbers, schema.numbers, schema.optional_numbers, where, lengths)
        low, high = schema.parts
        if not low <= len(self.parts) <= high:
            raise SchemaError(f"{where} must have {low} to {high} parts, found {len(self.parts)}")
        schema.relations(self, lengths)

    @cached_property
    def hash(self) -> str:
        """Content hash (SHA-256): equal for equal maps, in every process and on every machine."""
        return storage.digest("spec", *self._content())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, those of the parts included."""
        array_bytes = sum(array.nbytes for array in self.arrays.values())
        return array_bytes + sum(part.nbytes for part in self.parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the spec to a file (JSON header and arrays; no pickle), atomically.

        Parameters
        ----------
        path : path
            Where to write it.
        """
        storage.write(path, "spec", *self._content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spec:
        """Read a spec; a damaged, foreign or newer file is refused with its reason.

        Parameters
        ----------
        path : path
            A file that `save` wrote.

        Returns
        -------
        Spec
            The spec in it.
        """
        return cls._from_content(*storage.read(path, "spec"))

    def to_bytes(self) -> bytes:
        """Return the content of a spec file.

        Returns
        -------
        bytes
            What `save` would write.
        """
        return storage.to_bytes("spec", *self._content())

    @classmethod
    def from_bytes(cls, data: bytes) -> Spec:
        """Read a spec from the content of a file.

        Parameters
        ----------
        data : bytes
            From :meth:`to_bytes`.

        Returns
        -------
        Spec
            The spec in it.
        """
        return cls._from_content(*storage.from_bytes(data, "spec"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(array.shape)}" for name, array in self.arrays.items())
        return f"Spec({self.family}: {shapes}; {self.nbytes} bytes; {self.hash[:12]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Spec, (self.family, dict(self.arrays), dict(self.numbers), self.parts)

    def _content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays with the parts flattened under "index/" names."""
        header: dict[str, Any] = {
            "version": SPEC_VERSION,
            "family": self.family,
            "numbers": dict(self.numbers),
            "parts": [],
        }
        arrays = dict(self.arrays)
        for index, part in enumerate(self.parts):
            part_header, part_arrays = part._content()
            header["parts"].append(part_header)
            arrays |= {f"{index}/{name}": array for name, array in part_arrays.items()}
        return header, arrays

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Spec:
        """Inverse of :meth:`_content`; raises FileFormatError and nothing else.

        The container has bounded how deep parts are nested.
        """
        version = header.get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise FileFormatError("the file's spec states no version.")
        if version > SPEC_VERSION:
            raise FileFormatError(
                f"this spec has version {version}; this kernelmaps reads up to {SPEC_VERSION}. "
                "Upgrade kernelmaps to read it."
            )
        family, numbers, parts = (header.get(name) for name in ("family", "numbers", "parts"))
        if not isinstance(numbers, dict) or not isinstance(parts, list) or len(parts) > 8:
            raise FileFormatError("the file's spec has malformed numbers or parts.")
        specs = []
        for index, part in enumerate(parts):
            if not isinstance(part, dict):
                raise FileFormatError("the file's spec has a malformed part.")
            prefix = f"{index}/"
            inner = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            specs.append(cls._from_content(part, inner))
        own_arrays = {name: array for name, array in arrays.items() if "/" not in name}
        return spec_from_file(family, own_arrays, numbers, tuple(specs))


def spec_from_file(
    family: Any, arrays: Mapping[str, Any], numbers: Mapping[str, Any], parts: tuple[Spec, ...]
) -> Spec:
    """A spec from the entries of a file; raises FileFormatError and nothing else."""
    if not isinstance(family, str) or family not in SCHEMAS:
        raise FileFormatError(
            f"the file holds a spec of the family {family!r:.60}, which this kernelmaps does not "
            "know. Upgrade kernelmaps, or import the plug-in that registers it, to read the file."
        )
    try:
        return Spec(family, arrays, numbers, parts)
    except (SchemaError, TypeError) as error:
        raise FileFormatError(
            f"the file is not usable: {error}. Restore it from a copy or write it again."
        ) from error


def _freeze(name: str, value: Any) -> np.ndarray:
    """A read-only array of native numbers; copied only if somebody could still change it."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Spec array {name!r} must hold numbers, found {array.dtype}.")
    native = array.dtype.newbyteorder("=")
    if array.dtype == native and array.flags.c_contiguous and array.flags.aligned:
        owner: Any = array
        while isinstance(owner, np.ndarray) and not owner.flags.writeable:
            owner = owner.base
        if owner is None:
            return array
    array = np.array(array, dtype=native, order="C")
    array.setflags(write=False)
    return array


def _number(name: str, value: Any) -> Number:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"Spec number {name!r} must be a plain bool, int, float, str or None: {value!r}"
    )


# ---- schemas of families ------------------------------------------------------------------------


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
    relations: Callable[[Spec, Lengths], None] = lambda spec, lengths: None
    takes: Callable[[Spec, int], bool] = lambda spec, n_features: n_features >= 1


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


def check_width(spec: Spec, n_features: int) -> None:
    """Raise ValueError if rows of so many features do not fit a spec."""
    schema = SCHEMAS.get(spec.family)
    if schema is not None and not schema.takes(spec, n_features):
        raise ValueError(
            f"rows of {n_features} features do not fit this map (family {spec.family!r}): it was "
            "made for another number of features."
        )


# ---- what several families share ----------------------------------------------------------------

CLIPPED: Mapping[str, Check] = {
    "lower": array("f8 f4", "features", finite=False),
    "upper": array("f8 f4", "features", finite=False),
}
"""Ends of the range to which values are clipped: both or neither."""

SIGNED: Mapping[str, Check] = {"signed": optional(boolean)}


def check_together(spec: Spec, names: tuple[str, ...]) -> bool:
    """Whether a spec has all of some optional arrays; SchemaError if it has only some of them."""
    present = [name for name in names if name in spec.arrays]
    if present and len(present) < len(names):
        missing = sorted(set(names) - set(present))
        raise SchemaError(
            f"the spec of family {spec.family!r} has {present[0]!r}, but lacks {missing[0]!r}"
        )
    return bool(present)


def check_ends(spec: Spec) -> None:
    """`lower` and `upper` come together, and in this order."""
    if check_together(spec, ("lower", "upper")):
        low, high = spec.arrays["lower"], spec.arrays["upper"]
        if np.any(low > high):
            raise SchemaError(f"the spec of family {spec.family!r}: 'lower' is above 'upper'")


def _chain_relations(spec: Spec, lengths: Lengths) -> None:
    """The widths of the stages depend on the rows: see `check_width`, which knows them."""
    if any(stage.family not in SCHEMAS for stage in spec.parts):
        names = [stage.family for stage in spec.parts if stage.family not in SCHEMAS]
        raise SchemaError(f"a chain has the stage {names[0]!r}, a family without a schema")


register_schema("chain", FamilySchema(parts=(2, 4), relations=_chain_relations))
