"""What a saved model does with each feature, and what a file holds."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..evaluation._shapes_picture import draw
from ..evaluation.shapes import Shape, shapes_of
from ..model_files import FileInfo, load, open_info
from .tables import two_columns

__all__ = ["Explanation", "FileDescription", "describe_file", "explain_model"]


@dataclass(frozen=True)
class Explanation:
    """Shape functions of a model, most important first."""

    title: str
    shapes: list[Shape]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"model": self.title, "features": [shape.to_dict() for shape in self.shapes]}

    def table(self) -> Any:
        """Features and how much each moves the score."""
        from rich import box
        from rich.table import Table

        table = Table(title=self.title, box=box.SIMPLE_HEAD)
        for heading in ("feature", "moves the score by", "from", "to"):
            table.add_column(heading, justify="left" if heading == "feature" else "right")
        for shape in self.shapes:
            ends = (f"{shape.grid[0]:.3g}", f"{shape.grid[-1]:.3g}")
            table.add_row(shape.name, f"{shape.importance:.3g}", *ends)
        return table

    def plot(self, path: str | Path) -> Path:
        """Draw one panel per feature (needs matplotlib)."""
        return draw(self.title, self.shapes, Path(path))


@dataclass(frozen=True)
class FileDescription:
    """What `kernelmaps info` says."""

    path: str
    info: FileInfo

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"path": self.path, **asdict(self.info)}

    def table(self) -> Any:
        """As a rich table."""
        shown = self.to_dict() | {
            "arrays": len(self.info.arrays),
            "size": f"{self.info.size:,} bytes",
        }
        shown["metadata"] = {k: v for k, v in self.info.metadata.items() if k != "range"}
        return two_columns(shown, self.path)


def explain_model(model: str | os.PathLike[str], *, n_features: int = 12) -> Explanation:
    """Shape functions of a saved additive model (or of a ridge model on an additive map)."""
    metadata, fitted = open_info(model).metadata, load(model)
    shapes = shapes_of(fitted, names=metadata.get("columns"), domain=metadata.get("range"))
    shapes.sort(key=lambda shape: -shape.importance)
    return Explanation(f"{type(fitted).__name__}: {os.fspath(model)}", shapes[:n_features])


def describe_file(path: str | os.PathLike[str]) -> FileDescription:
    """What a file holds."""
    return FileDescription(os.fspath(path), open_info(path))
