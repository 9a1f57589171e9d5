"""Imports point one way: every edge between rooms is listed here, and no other may exist."""

from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from library_files import Facts, facts_of

import kernelmaps

SOURCE = Path(kernelmaps.__file__).parent

LEAVES = {"_util", "certificate", "exceptions"}
NUMERICS = {"kernels", "engine", "data", "stats"}
BELOW_MODELS = NUMERICS | {"design", "maps"}
# The package itself, which finds any public name by its table: for rooms above all maps only.
TOP = "kernelmaps"

# room -> rooms that it may import. Leaves may be imported by all.
EDGES = {
    "_util": {"exceptions"},
    "certificate": {"_util"},
    "exceptions": set(),
    "kernels": LEAVES,
    "engine": LEAVES | {"kernels"},
    "data": LEAVES,
    "datasets": {"data"},  # public names of `data` that find a dataset
    "stats": LEAVES | {"data"},
    "design": LEAVES | {"kernels", "engine"},
    "maps": LEAVES | {"kernels", "engine", "design"},
    "models": LEAVES | BELOW_MODELS,
    "losses": {"models"},  # public names of `models`
    "plots": LEAVES | BELOW_MODELS | {"models"},
    "inspection": {"plots"},  # public names of `plots`
    "evaluation": LEAVES | BELOW_MODELS | {"models", "plots", "export", TOP},
    # What a fitted model can be written as.
    "export": LEAVES | BELOW_MODELS | {"models", TOP},
    "__main__": {"cli"},
    "cli": LEAVES | BELOW_MODELS | {"models", "plots", "evaluation", "export", TOP},
}


def room_of(module: str) -> str:
    """The room of 'kernelmaps.maps.base' is 'maps'; the package itself is a room of its own."""
    parts = module.split(".")
    if len(parts) < 2:
        return TOP
    # A public name of the package stands for the room that it comes from.
    return (
        room_of(kernelmaps._MODULE_OF[parts[1]]) if parts[1] in kernelmaps._MODULE_OF else parts[1]
    )


def imported_modules(found: Facts, module: str, is_package: bool) -> set[str]:
    """Modules of kernelmaps that the file of `module` imports, anywhere in it."""
    package = module if is_package else module.rpartition(".")[0]
    names = set()
    for level, name, parts in found.imports:
        parents = package.split(".")
        base = parents[: len(parents) - level + 1] if level else []
        base = ".".join([*base, *([name] if name else [])])
        names.update([f"{base}.{part}" for part in parts] or [base])
    return {name for name in names if name.split(".")[0] == "kernelmaps"}


def forbidden_edges(found: Facts, module: str, is_package: bool = False) -> list[str]:
    room = room_of(module)
    edges = []
    for name in sorted(imported_modules(found, module, is_package)):
        target = room_of(name)
        if name == "kernelmaps.__version__" or target == room:
            continue
        if target not in EDGES.get(room, set()):
            edges.append(f"{module} imports {name}")
    return edges


def module_files() -> list[Path]:
    return sorted(
        path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__"
    )


def test_modules_import_only_what_their_rooms_may():
    wrong = {}
    for path in module_files():
        module = module_of(path)
        assert module.split(".")[1] in EDGES, f"{module}: its room is not in the list of rooms"
        edges = forbidden_edges(facts_of(path), module, path.stem == "__init__")
        if edges:
            wrong[module] = edges
    assert wrong == {}


def module_of(path: Path) -> str:
    relative = path.relative_to(SOURCE).with_suffix("")
    parts = relative.parts[:-1] if path.stem == "__init__" else relative.parts
    return ".".join(["kernelmaps", *parts])


@cache
def file_imports() -> dict[str, set[str]]:
    """Every file as a module, with the files that it imports, late and type-only ones included."""
    files = {module_of(path): path for path in module_files()}
    graph: dict[str, set[str]] = {}
    for module, path in files.items():
        names = imported_modules(facts_of(path), module, path.stem == "__init__")
        # "a.b.name" is the file a.b.name where there is one, else a name of the file a.b.
        found = {name if name in files else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in found if name in files and name != module}
    return graph


@pytest.mark.parametrize("room", sorted(EDGES))
def test_no_two_files_of_a_room_import_each_other(room):
    graph = {
        module: {name for name in names if room_of(name) == room}
        for module, names in file_imports().items()
        if room_of(module) == room
    }
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the files


def test_listed_edges_have_no_cycle():
    order = list(TopologicalSorter(EDGES).static_order())
    assert order.index("kernels") < order.index("maps") < order.index("models") < order.index("cli")


def test_every_room_and_leaf_is_in_the_map_of_contributing():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = [path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    found = {f"`{path.name}/`" for path in folders}
    found |= {f"`{path.stem}`" for path in SOURCE.glob("[!_]*.py")}
    assert len(found) > 20
    assert sorted(name for name in found if name not in text) == []
