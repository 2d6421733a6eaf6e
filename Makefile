# Each target sets up everything it needs: nothing but Python >= 3.11 is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Contiguous halves of the suite to two workers: fixtures of a module are made once.
QUICK := -n 2 --dist worksteal -m "not long and not slow"
SLOW := -n 2 --dist worksteal -m "slow and not long"

# Known vulnerabilities of the locked dependencies fail. Without pip-audit or its database this is skipped, aloud:
# an index that does not know the packages makes pip-audit succeed with nothing looked at.
define AUDIT
if [ ! -x $(BIN)/pip-audit ]; then echo "pip-audit: not installed, skipped"; exit 0; fi; \
said=$$($(BIN)/pip-audit --no-deps --disable-pip --timeout 15 --progress-spinner off -r requirements-dev.lock 2>&1); \
code=$$?; \
if echo "$$said" | grep -q "^Found [0-9]* known vulnerabilit"; then echo "$$said"; exit 1; fi; \
if [ $$code -ne 0 ]; then echo "pip-audit: its database cannot be reached, skipped"; exit 0; fi; \
all=$$(grep -c == requirements-dev.lock); blind=$$(echo "$$said" | grep -c "could not be audited"); \
if [ $$blind -ge $$all ]; then echo "pip-audit: its database knows none of the $$all packages, skipped"; exit 0; fi; \
echo "pip-audit: nothing known about $$((all - blind)) packages; not looked at: $$blind"
endef

.PHONY: demo test test-slow test-all lint coverage docs bench bounds clean

$(READY): pyproject.toml
	@echo "Setting up $(VENV): about 110 packages, once; two minutes or more, most of it download."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	$(BIN)/wayveil demo --force

lint: $(READY)
	$(BIN)/ruff check src tests research/benchmarks examples .ci
	$(BIN)/mypy src/wayveil
	$(BIN)/lint-imports
	@$(AUDIT)

test: lint
	$(BIN)/python -m pytest $(QUICK) --durations=10 $(PYTEST_OPTIONS)

# The tests that take several seconds each (tests/slow.txt).
test-slow: $(READY)
	$(BIN)/python -m pytest $(SLOW) --durations=10 $(PYTEST_OPTIONS)

# The suite on every supported Python that is installed, and the demo from the wheel alone.
test-all:
	$(PYTHON) .ci/test_all.py

$(VENV)/.docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

# The documentation site in build/site; a broken link or a bad docstring fails the build.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Lines of src that the suite runs, subprocesses included. Apart from `make test`, because tracing slows the tests down.
coverage: $(READY)
	$(BIN)/python -m pytest -n 2 -m "not long" --cov --cov-report=term $(PYTEST_OPTIONS)

bench: $(READY)
	$(BIN)/python research/benchmarks/run.py

# The oldest and the newest dependencies that pyproject.toml allows, each in an environment of its own.
bounds:
	$(PYTHON) research/benchmarks/bounds.py oldest
	$(PYTHON) research/benchmarks/bounds.py newest

clean:
	rm -rf $(VENV) build dist .import_linter_cache .coverage .coverage.*
