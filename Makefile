# Everything runs in .venv with the versions of constraints.txt; python3, pip, git and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: all dev demo test sweep spark spark-install lint bench lock clean

all: $(VENV)/.product

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ledger needs Python 3.11 or newer; set PYTHON=python3.x")'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); \
	  $(PYTHON) -m pip install --quiet --user virtualenv 2>/dev/null || $(PYTHON) -m pip install --quiet --user --break-system-packages virtualenv; \
	  $(PYTHON) -m virtualenv --quiet $(VENV); }

$(VENV)/.product: $(BIN)/python pyproject.toml constraints.txt
	@echo "setting up $(VENV) (the first time takes a minute or two)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.product
	@$(PIP) --editable '.[dev,report,postgres,s3,fast]'
	@touch $@

dev: $(VENV)/.dev

demo: $(VENV)/.product
	@$(BIN)/ledger demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m "not sweep"

sweep: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m sweep

spark-install: $(VENV)/.dev
	@$(PIP) --editable '.[spark]'

spark: spark-install
	$(BIN)/python -m pytest -p no:xdist -m "sweep or not sweep" tests/ledger/test_engine_spark.py \
	  tests/cli/test_engines.py -k "spark or million"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@.ci/audit-dependencies

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Re-resolve the lock: names and versions only, for every platform.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate \
	  --all-extras --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
