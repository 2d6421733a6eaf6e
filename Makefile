# Each target sets up everything it needs: nothing but Python >= 3.11 is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	$(BIN)/wayveil demo --force

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy src/wayveil/privacy

test: lint
	$(BIN)/python -m pytest -n 2 -m "not long"

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist
