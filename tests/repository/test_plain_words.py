"""Pages, docstrings and messages avoid phrases that readers stumbled over."""

import re
from pathlib import Path

from library_files import facts_of

ROOT = Path(__file__).parents[2]
# What not to write, and what to write instead.
PHRASES = {
    r"hides a feature space": "is an inner product in a feature space",
    r"smallest largest|least maximal": "the smallest worst-case error",
    r"holds? (a|the|its) tolerance": "has an error below a tolerance",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"end of the road": "the hardware limit",
    r"the truth that": "the reference that",
    r"\bown kernels?\b": "your kernel, a kernel that you wrote",
    r"of your own\b": "your, that you wrote",
    r"the verbs of": "the methods of, fit and predict of",
    r"are no numbers": "are not numbers",
    r"of the (test )?rows right|of the labels right": "test accuracy",
    r"begin(s)? anew": "start again",
    r"in one go\b": "at once",
}
SOURCES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "methods").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "src" / "kernelmaps").rglob("*.py")),
]


def prose(path: Path) -> str:
    """The text of a page, or the strings of a module (docstrings and messages)."""
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    return "\n".join(facts_of(path).strings)


def stumbling(text: str) -> list[str]:
    """Phrases of the list that a text contains, each with what to write."""
    flat = re.sub(r"\s+", " ", text)
    return [
        f"{match.group(0)!r}: write {instead!r}"
        for phrase, instead in PHRASES.items()
        for match in re.finditer(phrase, flat, re.IGNORECASE)
    ]


def test_plain_words():
    found = {path.relative_to(ROOT).as_posix(): stumbling(prose(path)) for path in SOURCES}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


def test_phrases_are_found_across_lines():
    assert stumbling("the smallest\n  largest error") == [
        "'smallest largest': write 'the smallest worst-case error'"
    ]
    assert stumbling("recommended, amendment, the smallest error") == []
