# Two commands from a fresh clone: `make test` and `make demo`. Each does its own set-up in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two test processes keep two cores busy; more only compile the same loops more often. Files go to
# them in the order of tests/conftest.py.
JOBS   ?= 2
# Where a real dataset lies is the user's business: make bench KERNELMAPS_DATA=...
export KERNELMAPS_DATA
# Tests start some hundred processes. Where bytecode may not be kept, each of them would compile the
# library's source anew: a tenth of the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint format bench docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    compare maps on the bundled digits; report in demo_out/"
	@echo "make test    the test suite"
	@echo "make lint    style and types"
	@echo "make bench   speed and memory compared with other libraries -> benchmarks/results, docs"
	@echo "make docs    the documentation -> docs/_build/html"
	@echo "make clean   everything that the above made, but for $(VENV)"

demo: $(VENV)/.ready-plot
	$(BIN)/kernelmaps demo --out demo_out

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.ready-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf demo_out docs/_build docs/auto_examples docs/generated docs/tutorial_pictures .pytest_cache .mypy_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that has an extra is marked by a stamp, so that nothing is installed twice;
# a change of pyproject.toml makes every stamp old. Bytecode is written when a module is first
# imported: compiling all of them takes a minute, those that the tests import a quarter of that.
$(VENV)/.ready-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kernelmaps needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
