"""What a saved model does with each feature, and what a file holds."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..display import two_columns
from ..inspection import ShapeFunctionDisplay, importance
from ..model_files import FileInfo, load, open_info

__all__ = ["Explanation", "FileDescription", "describe_file", "explain_model"]


@dataclass(frozen=True)
class Explanation:
    """Shape functions of a model, most important first."""

    title: str
    display: ShapeFunctionDisplay

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        outputs = self.display.classes or ["score"]
        features = [
            {
                "name": shape.name,
                "importance": importance(shape),
                "outputs": outputs,
                "grid": shape.grid.tolist(),
                "values": shape.values.reshape(len(shape.grid), -1).tolist(),
            }
            for shape in self.display.shapes
        ]
        return {"model": self.title, "features": features}

    def table(self) -> Any:
        """Features, and the standard deviation of what each adds to the score."""
        from rich import box
        from rich.table import Table

        table = Table(title=self.title, box=box.SIMPLE_HEAD)
        for heading in ("feature", "importance", "from", "to"):
            table.add_column(heading, justify="left" if heading == "feature" else "right")
        for shape in self.display.shapes:
            ends = (f"{shape.grid[0]:.3g}", f"{shape.grid[-1]:.3g}")
            table.add_row(shape.name, f"{importance(shape):.3g}", *ends)
        return table

    def plot(self, path: str | Path) -> Path:
        """Draw one panel per feature (needs matplotlib)."""
        return self.display.save(path)


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
    title = f"{type(fitted).__name__}: {os.fspath(model)}"
    display = ShapeFunctionDisplay.of_model(
        fitted, n_features=n_features, names=metadata.get("columns"), domain=metadata.get("range")
    )
    display.title = title
    return Explanation(title, display)


def describe_file(path: str | os.PathLike[str]) -> FileDescription:
    """What a file holds."""
    return FileDescription(os.fspath(path), open_info(path))
