"""Printable report of a design: size, error, certificate, frequencies and weights."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import storage
from ..display import two_columns
from .exporting import write_model

__all__ = ["DesignReport", "write_design"]


@dataclass(frozen=True)
class DesignReport:
    """What `kernelmaps design` says about a :class:`kernelmaps.Design`."""

    design: Any

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = self.design
        plain: dict[str, Any] = {
            "kernel": found.kernel,
            "method": found.method,
            "error": found.error,
            "domain": list(map(float, found.domain))
            if not isinstance(found.domain, str)
            else found.domain,
            "columns": int(found.n_columns),
            "max_error": float(found.max_error),
            "rms": float(found.rms),
            "certificate": str(found.certificate),
        }
        if found.frequencies is not None:
            plain |= {
                "frequencies": list(map(float, found.frequencies)),
                "weights": list(map(float, found.weights)),
            }
        return plain

    def table(self) -> Any:
        """As a rich table."""
        shown = self.to_dict() | {"certificate": _certified(self.design.certificate)}
        for name in ("frequencies", "weights"):
            if name in shown:
                shown[name] = ", ".join(f"{value:.6g}" for value in shown[name])
        return two_columns(shown, f"{shown['columns']}-column map of {shown['kernel']}")


def write_design(design: Any, path: str | os.PathLike[str]) -> None:
    """Write a design as its suffix says: ``.kmap`` (spec), ``.h`` (C) or ``.json`` (report)."""
    if Path(path).suffix.lower() == ".json":
        text = json.dumps(DesignReport(design).to_dict(), indent=1, ensure_ascii=False)
        storage.write_file(path, (text + "\n").encode())
    else:
        write_model(design, path)


def _certified(certificate: Any) -> Any:
    """A certificate in words: the proved bound, the best that any such map could reach, how."""
    if not hasattr(certificate, "bound"):
        return str(certificate) if certificate is not None else None
    sure = "proved" if certificate.proved else "not proved"
    told = {f"error at most ({sure})": float(certificate.bound), "by": certificate.bound_method}
    if getattr(certificate, "alternations", None):
        told["alternations of the error"] = f"{certificate.alternations} of {certificate.needed}"
    if getattr(certificate, "lower_bound", None):
        told["no map of this size has less than"] = float(certificate.lower_bound)
    return told
