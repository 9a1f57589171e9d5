"""Print the required dependencies at their lower bounds, one per line, for pip.

Used by continuous integration: ``python tools/lowest_versions.py > lowest.txt``.
"""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
for dependency in project["project"]["dependencies"]:
    print(dependency.replace(">=", "=="))
