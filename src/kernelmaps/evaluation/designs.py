"""A design, told: its size, its error, its certificate, its frequencies and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DesignReport"]


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
        from .workflow import _two_columns

        shown = self.to_dict()
        for name in ("frequencies", "weights"):
            if name in shown:
                shown[name] = ", ".join(f"{value:.6g}" for value in shown[name])
        return _two_columns(shown, f"{shown['columns']}-column map of {shown['kernel']}")
