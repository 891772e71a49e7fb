# `make demo` and `make test` do everything on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Twice quiet: only errors. Torch goes first, so that its pin is settled before anything asks for it.
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt
# Which tests the built wheel is examined with: all that goes through its commands, pages and files.
WHEEL_TESTS ?= cli explore serve report formats public

.PHONY: setup demo docs test test-wheel test-slow fuzz test-gpu lint build bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); about a minute."
	@$(INSTALL) pip torch
	@$(INSTALL) -e ".[dev]"
	@touch $(STAMP)

# Tiny models are slower on two threads than on one, far slower where cores are shared.
test test-wheel test-slow: export OMP_NUM_THREADS := 1

demo: setup
	$(BIN)/stillvec demo --out demo

# The pages as a site that opens from the disk; a broken link fails.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

test: setup
	$(BIN)/python -m pytest -m "not slow and not gpu"

# Some of the suite once more, on what a user would install: the tests stop if stillvec comes from anywhere else.
test-wheel: build
	@set -eu; room=$$(mktemp -d); trap 'rm -rf "$$room"' EXIT; \
	$(INSTALL) --no-deps --target "$$room/site" dist/*.whl; \
	cp -R tests pyproject.toml "$$room"; \
	export STILLVEC_DATA="$${STILLVEC_DATA:-$(CURDIR)/../shared/data}"; \
	export PYTHONPATH="$$room/site" STILLVEC_EXPECT_PACKAGE="$$room/site"; \
	cd "$$room" && "$(CURDIR)/$(BIN)/python" -m pytest -p no:cacheprovider -m "not slow and not gpu" \
		$(foreach room,$(WHEEL_TESTS),tests/test_$(room)*.py)

test-slow: setup
	$(BIN)/python -m pytest -m "slow and not gpu"

# A million damaged files for all readers together; STILLVEC_FUZZ=N gives each N, GROUP=corpus only some readers.
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_fuzz.py -m slow -s $(if $(GROUP),-k $(GROUP))

test-gpu: setup
	$(BIN)/python -m pytest -m gpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

build: setup
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null

# Every benchmark at a size for two cores and ten minutes; the page is bench/results.md.
bench: setup
	@$(INSTALL) model2vec
	$(BIN)/python benchmarks/all.py

clean:
	rm -rf $(VENV) dist demo bench site .mypy_cache .ruff_cache .pytest_cache .hypothesis
