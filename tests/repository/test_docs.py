"""What the README, the documentation and the gallery show does run."""

import inspect
import pydoc
import re
import runpy
import shutil
import textwrap
from itertools import chain
from pathlib import Path

import pytest

# They show maps of many kinds, each of which would be compiled for them alone.
pytestmark = pytest.mark.usefixtures("quick_baselines", "readable")

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "_build" not in path.parts and "auto_examples" not in path.parts
]
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
FENCE = re.compile(r"^([ \t]*)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def code_blocks(text: str) -> list[tuple[int, str]]:
    """Fenced Python blocks with the line that each starts on."""
    return [
        (text.count("\n", 0, match.start(2)) + 1, textwrap.dedent(match.group(2)))
        for match in FENCE.finditer(text)
    ]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    """Run in a folder with the tables of the pages alone, and close what was drawn."""
    for path in (ROOT / "docs" / "tutorials").glob("*.gz"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)
    yield
    from matplotlib import pyplot

    pyplot.close("all")


# The README's code is run by `install/test_core_install.py`, without optional packages.
WITH_CODE = [page for page in PAGES[1:] if code_blocks(page.read_text("utf-8"))]


@pytest.mark.parametrize("path", WITH_CODE, ids=name)
def test_code_blocks_of_a_page_run_in_order(path):
    namespace = {"__name__": "page"}
    ran = 0
    for line, source in code_blocks(path.read_text(encoding="utf-8")):
        # Blank lines in front make a traceback point into the page.
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), namespace)
        ran += 1
    assert ran > 0


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_gallery_example_runs_and_draws(path):
    from matplotlib import pyplot

    runpy.run_path(str(path), run_name="__main__")
    assert pyplot.get_fignums(), "a gallery example draws something"


def test_the_documentation_stays_short():
    assert sum(len(page.read_text("utf-8").split()) for page in PAGES[1:]) <= 50_000


INLINE, DISPLAYED = r"(?<![\\$])\$([^$\n]+)\$(?!\$)", r"\$\$(.+?)\$\$"
ROLE_MATH, DIRECTIVE_MATH = r":math:`([^`]+)`", r"\.\. math::(.+?)(?:\n\s*\n|\Z)"


def formulas():
    """Formulas of pages and docstrings: (where, LaTeX, displayed)."""
    from _reference import sections

    for page in PAGES[1:]:  # the README has none
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for pattern, block in ((DISPLAYED, True), (INLINE, False)):
            for source in re.findall(pattern, text, re.DOTALL):
                yield name(page), source, block
            text = re.sub(pattern, "", text, flags=re.DOTALL)
    for public in chain(*sections().values()):
        value = pydoc.locate(public)
        methods = [getattr(value, m) for m in dir(value) if isinstance(value, type) and m[0] != "_"]
        for text in filter(None, (inspect.getdoc(item) for item in [value, *methods])):
            for pattern, block in ((ROLE_MATH, False), (DIRECTIVE_MATH, True)):
                for source in re.findall(pattern, text, re.DOTALL):
                    yield public, source, block


def test_formulas_are_understood(monkeypatch):
    """Browsers draw them as MathML, to which docutils converts what it knows of LaTeX."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    from _mathml import MathError, convert

    n_formulas, unknown = 0, []
    for where, source, block in formulas():
        n_formulas += 1
        try:
            convert(source.strip(), block)
        except MathError as error:
            unknown.append(f"{where}: {error} in {source}")
    assert n_formulas > 200
    assert unknown == []


def test_pictures_that_pages_show_exist():
    missing = [
        f"{name(page)}: {target}"
        for page in PAGES
        for target in re.findall(
            r"(?:!\[[^\]]*\]\(|```\{image\} )([^)\s]+)", page.read_text("utf-8")
        )
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert missing == []


LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]*)(?:#([^)]*))?\)")
ROLE = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`")
MADE = ("generated/", "auto_examples/")


def headings(text: str) -> set[str]:
    """Anchors of a page, as GitHub and Sphinx make them."""
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def broken_links(text: str, folder: Path) -> list[str]:
    """Links to files or headings that are not there; pages that Sphinx makes are left out."""
    broken = []
    for target, heading in LINK.findall(text):
        path = folder / target
        if not target or "://" in target or any(part in target for part in MADE):
            continue
        if not path.exists():
            broken.append(target)
        elif heading and heading not in headings(path.read_text("utf-8")):
            broken.append(f"{target}#{heading}")
    pages = {target: folder / f"{target}.md" for target in ROLE.findall(text)}
    return broken + [
        target
        for target, path in pages.items()
        if not any(part in target for part in MADE) and not path.exists()
    ]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page):
    assert broken_links(page.read_text("utf-8"), page.parent) == []
