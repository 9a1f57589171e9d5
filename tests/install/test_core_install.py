"""What README shows, and the main commands, work with the core dependencies alone.

Packages that the core does not bring are hidden. The workflow "wheel and docs" installs the wheel
into a new environment.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Runs before the code: imports of packages that `pip install .` does not bring fail.
BLOCK = """
import sys
class Absent:
    names = frozenset({absent!r})
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""

END = "end of the command\n"
RUN_COMMANDS = f"""
from kernelmaps.cli import load_commands
app = load_commands()
for arguments in commands:
    try:
        app(list(arguments))
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    print({END!r}, end="")
"""


def core_distributions() -> set[str]:
    """The library and all that its dependencies without extras bring, by canonical name."""
    queue, names = ["kernelmaps"], set()
    while queue:
        name = canonicalize_name(queue.pop())
        if name in names:
            continue
        names.add(name)
        for line in requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                queue.append(requirement.name)
    return names


def hiding() -> str:
    """Code that hides every installed package that the core does not bring."""
    core = core_distributions()
    absent = sorted(
        module
        for module, owners in packages_distributions().items()
        if not core & {canonicalize_name(owner) for owner in owners}
    )
    assert {"matplotlib", "dask", "pytest"} <= set(absent)
    return BLOCK.format(absent=absent)


def write_flats(path: Path) -> None:
    """A table of numbers, categories and dates."""
    rng = np.random.default_rng(0)
    size, shop = rng.gamma(2, 2, 300), rng.choice(["north", "south"], 300)
    price = np.sqrt(size) + (shop == "north") + 0.1 * rng.normal(size=300)
    days = np.datetime64("2024-01-01") + np.arange(300)
    lines = ["day,size,shop,price"]
    lines += [f"{d},{a:.4f},{s},{p:.4f}" for d, a, s, p in zip(days, size, shop, price)]
    path.write_text("\n".join(lines))


def test_examples_of_the_readme_and_main_commands_on_a_csv_file(tmp_path):
    """In one process: to start it takes longer than what it does."""
    examples = FENCE.findall((ROOT / "README.md").read_text("utf-8"))
    assert len(examples) >= 3
    fewer_rows = re.sub(r"(\d\d)_000", r"\g<1>00", "\n".join(examples))
    write_flats(tmp_path / "flats.csv")
    commands = [
        ("fit", "flats.csv", "-t", "price", "-o", "model.kmap", "--json"),
        ("predict", "model.kmap", "flats.csv"),
        ("explain", "model.kmap"),
        ("evaluate", "model.kmap", "flats.csv", "--json"),
    ]
    code = f"{hiding()}\n{fewer_rows}\nprint({END!r}, end='')\n{commands = }\n{RUN_COMMANDS}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    fit, predict, explain, evaluate = done.stdout.split(END)[1:-1]
    assert json.loads(fit)["score"] > 0.8
    assert len(predict.splitlines()) == 301
    assert "size" in explain
    assert json.loads(evaluate)["scores"]["r2"] > 0.8
