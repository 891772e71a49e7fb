# `make demo` and `make test` do everything on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test test-wheel test-slow lint build bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch" "pip"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: setup
	$(BIN)/stillvec demo --out demo

test: setup
	$(BIN)/python -m pytest -m "not slow and not gpu"

test-slow: setup
	$(BIN)/python -m pytest -m "slow and not gpu"

test-gpu: setup
	$(BIN)/python -m pytest -m gpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

build: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

bench: setup
	$(BIN)/python benchmarks/encode.py

clean:
	rm -rf $(VENV) dist demo .mypy_cache .ruff_cache .pytest_cache
