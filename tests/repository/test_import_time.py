"""Importing is cheap: heavy libraries load when they are used, not before."""

import json
import subprocess
import sys

import pytest

import kernelmaps

HEAVY = {"numba", "matplotlib", "dask", "pandas", "sklearn", "scipy", "torch", "onnx"}

PROBE = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(module: str) -> list[str]:
    """The modules that an import brings in, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def packages(module: str) -> set[str]:
    return {name.split(".")[0] for name in loaded(module)}


@pytest.mark.parametrize("module", ["kernelmaps", "kernelmaps.cli"])
def test_import_loads_nothing_heavy(module):
    assert packages(module) & HEAVY == set()


def test_import_loads_little():
    # How long it takes is what it loads: seconds would measure what else the machine does.
    assert len(loaded("kernelmaps")) < 60


@pytest.mark.parametrize("name", sorted(kernelmaps._MODULE_OF))
def test_public_name_comes_from_its_module(name):
    assert getattr(kernelmaps, name).__module__.startswith("kernelmaps.")


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchMap'"):
        kernelmaps.NoSuchMap  # noqa: B018


def test_every_public_module_has_a_section_of_the_reference():
    from docs._reference import SECTIONS

    assert set(kernelmaps._SUBMODULES) <= set(SECTIONS)
