"""Every public class, function and method has a complete numpydoc docstring; its examples run.

Properties have a sentence that says what they are.
"""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from unittest import mock

import pytest
from public_api import callables, is_result, parameters, properties

from kernelmaps.kernels.registry import KNOWN
from kernelmaps.maps.base import _FAMILIES, PLUGINS

CALLABLES, PROPERTIES = callables(), properties()
SOURCE = Path(__file__).parents[2] / "src"
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCE / "kernelmaps").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
BARE = re.compile(r"^(\S.*)\n(?!\s+\S)", re.MULTILINE)  # an entry that no indented line follows
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def sections(doc: str) -> dict[str, str]:
    """Text of each section by its heading; that before the first heading is under ""."""
    parts = HEADING.split(inspect.cleandoc(doc))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def described(text: str) -> set[str]:
    """Names that a Parameters or Attributes section describes."""
    heads = [line for line in text.splitlines() if line and not line[0].isspace()]
    names = [name for head in heads for name in head.split(" : ")[0].split(",")]
    return {name.strip().strip("`").lstrip("*") for name in names}


def problems_of_summary(described, ends: tuple[str, ...]) -> list[str]:
    """What a reader would miss at first sight."""
    doc = inspect.getdoc(described)
    if not doc or not doc.strip():
        return ["no docstring"]
    found, first = [], sections(doc)[""].strip().split("\n\n")[0]
    if not first.endswith(ends):
        found.append(f"the summary is not a sentence: {first!r}")
    if len(first.splitlines()) > 1:
        found.append(f"the summary takes more than one line: {first!r}")
    return found


def problems(name: str, function) -> list[str]:
    """What a reader would miss."""
    found = problems_of_summary(function, (".", ":", "?"))
    if found == ["no docstring"]:
        return found
    parts = sections(inspect.getdoc(function))
    wanted = set(parameters(function))
    if isinstance(function, type) and issubclass(function, BaseException):
        wanted = set()
    texts = [parts.get(key, "") for key in ("Parameters", "Other Parameters")]
    if is_result(function):
        texts.append(parts.get("Attributes", ""))
    has = set().union(*(described(text) for text in texts))
    heads = "\n".join([*texts, parts.get("Attributes", "")]).splitlines()
    untyped = [head for head in heads if head and not head[0].isspace() and " : " not in head]
    if untyped:
        found.append(f"parameters or attributes without a type: {untyped}")
    if wanted - has:
        found.append(f"parameters without a description: {sorted(wanted - has)}")
    if not is_result(function) and has - wanted:
        found.append(f"described, but no parameters: {sorted(has - wanted)}")
    if not isinstance(function, type):
        given = inspect.signature(function).return_annotation
        returns = given not in (None, "None", inspect.Signature.empty)
        if returns and not {"Returns", "Yields"} & set(parts):
            found.append("what it returns is not described")
        bare = BARE.findall(parts.get("Returns", "") + "\n")
        if bare:
            found.append(f"returned without a description: {bare}")
    return found


def test_docstrings_are_complete():
    found = {name: problems(name, function) for name, function in CALLABLES.items()}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_properties_say_what_they_are():
    assert {
        "kernelmaps.Codes.nbytes",
        "kernelmaps.StreamingPCA.n_samples_seen_",  # of a base class
        "kernelmaps.engine.Spec.hash",  # cached
    } <= set(PROPERTIES)
    found = {name: problems_of_summary(own, (".",)) for name, own in PROPERTIES.items()}
    assert {name: missing for name, missing in found.items() if missing} == {}


@pytest.mark.usefixtures("quick_baselines", "readable")
@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What is registered would stay for other tests.
    with mock.patch.dict(KNOWN), mock.patch.dict(PLUGINS), mock.patch.dict(_FAMILIES):
        assert doctest.testmod(importlib.import_module(module)).failed == 0
