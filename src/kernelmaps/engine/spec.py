"""Specs: fitted maps as frozen bundles of plain arrays and numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from .._util import storage
from .._util.schema import SchemaError
from .._util.threads import cached_property
from ..exceptions import FileFormatError
from .schema import DEEPEST, SCHEMAS, check_spec

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
        :mod:`kernelmaps.engine.schema`): compiled loops rely on their relations.
    """

    family: str
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)  # of type Number, see _number
    parts: tuple[Spec, ...] = ()

    def __post_init__(self) -> None:
        frozen = {name: _frozen(name, value) for name, value in self.arrays.items()}
        numbers = {name: _number(name, value) for name, value in self.numbers.items()}
        object.__setattr__(self, "arrays", MappingProxyType(frozen))
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        object.__setattr__(self, "parts", tuple(self.parts))
        if not isinstance(self.family, str) or not all(isinstance(p, Spec) for p in self.parts):
            raise TypeError("Spec: family must be a string and parts must be Specs.")
        check_spec(self)

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
    def _from_content(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], depth: int = 1
    ) -> Spec:
        """Inverse of :meth:`_content`; raises FileFormatError and nothing else."""
        if depth > DEEPEST:
            raise FileFormatError(f"the file's spec has more than {DEEPEST} levels of parts.")
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
            own = f"{index}/"
            inner = {k.removeprefix(own): v for k, v in arrays.items() if k.startswith(own)}
            specs.append(cls._from_content(part, inner, depth + 1))
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


def _frozen(name: str, value: Any) -> np.ndarray:
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
