"""Every assertion asserts: the tests themselves are read for checks that check nothing."""

import ast
from functools import lru_cache
from pathlib import Path

from library_files import facts_of

import kernelmaps

TESTS = Path(__file__).parents[1]
SOURCE = Path(kernelmaps.__file__).parent
LONGEST_FUNCTION = 90

# Calls whose result is the check: dropping it checks nothing.
PREDICATES = {"allclose", "array_equal", "isclose", "array_equiv", "all", "any", "isinstance"}
# Calls that check by themselves.
CHECKS = ("assert", "check", "raises", "warns", "fail")


def called_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@lru_cache(maxsize=1)
def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, which several scans go through in turn."""
    return list(ast.walk(tree))


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [n for n in nodes_of(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def dropped_checks(tree: ast.AST) -> list[str]:
    """Predicates that stand as statements of their own; comparisons are found by ruff (B015)."""
    return [
        f"line {node.lineno}: {called_name(node.value)}(...) without assert"
        for node in nodes_of(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and called_name(node.value) in PREDICATES
    ]


def silent_tests(tree: ast.AST) -> list[str]:
    """Tests without any assertion, expected exception or call of a check."""

    def checks(node: ast.AST) -> bool:
        if isinstance(node, ast.Assert):
            return True
        return isinstance(node, ast.Call) and called_name(node).lstrip("_").startswith(CHECKS)

    return [
        f"line {test.lineno}: {test.name} asserts nothing"
        for test in functions(tree)
        if test.name.startswith("test") and not any(checks(node) for node in ast.walk(test))
    ]


SCANS = [dropped_checks, silent_tests]
TEST_FILES = sorted(TESTS.rglob("*.py"))


def test_no_file_has_a_check_that_checks_nothing():
    found = {}
    for path in TEST_FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[path.relative_to(TESTS).as_posix()] = [hit for scan in SCANS for hit in scan(tree)]
    assert len(found) > 100
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_functions_are_short_enough_to_read():
    long = []
    for path in SOURCE.rglob("*.py"):
        for name, first, last in facts_of(path).functions:
            if last - first + 1 > LONGEST_FUNCTION:
                long.append(
                    f"{path.relative_to(SOURCE)}:{first} {name} has {last - first + 1} lines"
                )
    assert long == []
