"""Write the API reference from the package's own table of public names."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import kernelmaps

SECTIONS = {
    "maps": ("Maps", "Transformers whose inner products approximate a kernel."),
    "kernels": ("Exact kernels", "The reference that every map is compared with."),
    "design": ("Designing maps", "Compute the best map for a kernel and a size."),
    "models": ("Models", "Generalised additive models of tables, and models on maps."),
    "losses": ("Losses", "Objects for the parameter `loss` of generalised additive models."),
    "evaluation": ("Judging maps", "How large the error of a map is, and which map to use."),
    "certificate": ("Certificates", "Bounds on the error of a map."),
    "inspection": ("Displays", "Plots of kernel errors and of fitted models."),
    "export.files": ("Files", "Save and load maps and models without pickle."),
    "export.onnx": ("Export to ONNX", "Graphs for onnxruntime."),
    "export.c": ("Export to C", "C headers without dependencies."),
    "export.sql": ("Export to SQL", "One SELECT that computes the predictions of a GAM."),
    "export.tables": ("Export as tables", "Effects of a GAM in CSV and Excel files."),
    "datasets": ("Data", "Loading data, and synthetic data."),
    "data": ("Sources of rows", "Rows of arrays, files, streams and Dask, block by block."),
    "stats": ("Mergeable statistics", "Sums over rows that models are computed from."),
    "engine": ("Specs", "What a fitted map is, and applying it."),
    "exceptions": ("Errors and warnings", "Exceptions and warnings that you may want to catch."),
}

PARAMETERS_ALONE = ("losses",)  # whose classes have methods for solvers, not for users


def exists(module: str) -> bool:
    """Whether a module is there, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def public_names(room: str) -> list[str]:
    """Full names of a room: those of the top package, or the room's own ``__all__``."""
    package = f"kernelmaps.{room}"
    top = [
        f"kernelmaps.{name}"
        for name, module in kernelmaps._MODULE_OF.items()
        if f"{module}.".startswith(package + ".") and exists(module)
    ]
    if top or not exists(package):
        return top
    return [f"{package}.{name}" for name in getattr(import_module(package), "__all__", [])]


def sections() -> dict[str, list[str]]:
    """Names of every room; one that two rooms have is listed under the first."""
    found, seen = {}, set()
    for room in SECTIONS:
        found[room] = []
        for full in public_names(room):
            module, _, name = full.rpartition(".")
            known = name, id(getattr(import_module(module), name))
            if known not in seen:
                seen.add(known)
                found[room].append(full)
    return found


def write_reference(folder: Path) -> None:
    """Write ``api.rst``, one section per room."""
    lines = ["API reference", "=============", ""]
    for room, names in sections().items():
        title, words = SECTIONS[room]
        if names:
            lines += [
                title,
                "-" * len(title),
                "",
                words,
                "",
                ".. autosummary::",
                "   :toctree: .",
                *["   :template: autosummary/parameters.rst"] * (room in PARAMETERS_ALONE),
                "",
            ]
            lines += [f"   {name}" for name in names] + [""]
    folder.mkdir(exist_ok=True)
    target, text = folder / "api.rst", "\n".join(lines)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
