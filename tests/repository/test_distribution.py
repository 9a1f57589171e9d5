"""The source distribution builds, and its wheel is complete.

The workflow "wheel and docs" installs it into a new environment and runs the command there.
"""

import ast
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DATA_FILES = {"kernelmaps/py.typed", "kernelmaps/design/ready.kmap"}


def test_wheel_holds_the_package_and_nothing_else(tmp_path, monkeypatch):
    """The wheel is built as pip would, from the source distribution and from nothing else."""
    backend = pytest.importorskip("hatchling.build")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / backend.build_sdist(tmp_path)) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    monkeypatch.chdir(unpacked)
    names = set(zipfile.ZipFile(tmp_path / backend.build_wheel(tmp_path)).namelist())
    assert names >= DATA_FILES
    assert {name.split("/")[0].split("-")[0] for name in names} == {"kernelmaps"}
    assert not [name for name in names if "__pycache__" in name]


DISTRIBUTION_OF = {"sklearn": "scikit-learn", "skimage": "scikit-image"}


def third_party_imports(folder: Path) -> set[str]:
    """Distributions whose modules files and blocks of pages import, late imports included."""
    found = set()
    sources = [path.read_text("utf-8") for path in folder.glob("*.py")]
    for page in folder.rglob("*.md"):
        sources += re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.split(".")[0])
    local = {path.stem for path in folder.glob("*.py")} | {"kernelmaps"}
    return {DISTRIBUTION_OF.get(name, name) for name in found - local - sys.stdlib_module_names}


def requirements_of(extra: str) -> set[str]:
    """Distributions that an extra installs beside the required ones, its own extras included."""
    found = set()
    for item in PROJECT["optional-dependencies"][extra]:
        name, _, inner = re.split(r"[>=<]", item)[0].partition("[")
        if name == "kernelmaps":
            found = found.union(*(requirements_of(each) for each in inner.rstrip("]").split(",")))
        found.add(name)
    return found


@pytest.mark.parametrize("folder", ["docs", "examples"])
def test_make_docs_works_in_a_fresh_clone(folder):
    """The target installs the extra, and the extra brings what pages and extensions import."""
    required = {re.split(r"[>=<\[]", item)[0] for item in PROJECT["dependencies"]}
    brought = required | requirements_of("docs")
    assert third_party_imports(ROOT / folder) <= brought
    assert {"onnx", "skl2onnx"} <= brought  # the reference documents kernelmaps.export.onnx
    conf = (ROOT / "docs" / "conf.py").read_text("utf-8")
    named = re.findall(r'"(numpydoc|myst_parser|sphinx_gallery|pydata_sphinx_theme)', conf)
    assert {name.replace("_", "-") for name in named} <= brought
    assert len(named) == 4
    assert re.search(r"^docs: \$\(VENV\)/\.ready-docs$", (ROOT / "Makefile").read_text(), re.M)
    assert "make docs" in (ROOT / ".github" / "workflows" / "package.yml").read_text("utf-8")


def test_every_optional_package_is_in_the_extra_that_messages_name():
    from kernelmaps._util.arguments import EXTRA_OF

    extras = PROJECT["optional-dependencies"]
    for package, extra in EXTRA_OF.items():
        assert any(item.replace("[", ">").startswith(f"{package}>") for item in extras[extra])
