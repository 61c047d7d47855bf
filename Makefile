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
	  tests/cli/test_engines.py tests/cli/test_interruption.py -k "spark or million"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@.ci/audit-dependencies

# What is compared with stands in an environment of its own: an installed pandas would slow the product down.
$(VENV)/.bench: $(VENV)/.dev
	@echo "setting up $(VENV)/bench, where the peers of the benchmarks run"
	@$(BIN)/python -m venv --without-pip $(VENV)/bench
	@$(BIN)/python -m pip --quiet --disable-pip-version-check --python $(VENV)/bench/bin/python \
	  install --constraint constraints.txt '.[bench]'
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

# About an hour and 30 GB of disk; started again, it goes on where it stopped (remove build/bench.json first if not).
bench-large: $(VENV)/.bench
	@mkdir -p build
	$(BIN)/python benchmarks/run.py --entries 10000000 50000000 --json build/bench.json --resume \
	  --markdown docs/performance.md

# Re-resolve the lock: names and versions only, for every platform.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate \
	  --all-extras --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
