# `make demo` and `make test` do everything on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Twice quiet: only errors. Nothing is built in an environment of its own, whose packages pip would not check. Modules are
# compiled when they are first imported: most of them never are.
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-build-isolation --no-compile
LOCKED := $(INSTALL) --require-hashes
# One worker more than there are cores, since many tests wait for processes of their own. Files are not split first: tests
# of one file share fixtures; idle workers steal the rest.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not gpu"

# Compiled modules are kept, whatever the environment says: without them every process compiles torch and all else anew,
# several seconds of CPU time each, and pytest rewrites the assertions of every file in every worker.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo docs tables test test-wheel test-slow test-lowest test-newest test-python test-databases test-kill fuzz test-gpu lint build bench hashes clean

setup: $(STAMP)

# pip and what builds other packages go first. A local wheel of torch (find-links), such as a CPU build, is used where there
# is one: pip would prefer the index, which publishes hashes. uv installs in seconds what takes pip a minute; pip then checks
# it and installs what is left: CUDA packages where torch's build needs them, or all if only pip is configured for the index.
$(STAMP): pyproject.toml constraints.txt constraints-cuda.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); a few minutes."
	@sed -nE '/^(packaging|pip|setuptools|setuptools-scm|uv|vcs-versioning|wheel)==/,/[^\\]$$/p' constraints.txt > $(VENV)/build.txt
	@$(LOCKED) --no-deps -r $(VENV)/build.txt
	@sed -nE '/^torch==/,/[^\\]$$/p' constraints.txt > $(VENV)/torch.txt
	@$(LOCKED) --no-deps --no-index -r $(VENV)/torch.txt 2>/dev/null || true
	@sed -E '/^torch==/,/[^\\]$$/d' constraints.txt > $(VENV)/rest.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --require-hashes \
		-r $(VENV)/rest.txt 2>/dev/null || true
	@$(LOCKED) -r constraints.txt -c constraints-cuda.txt
	@$(INSTALL) --no-deps -e . -e packages/english
	@touch $(STAMP)

# After a change of a version in constraints.txt, before `make setup`: the hashes of all files of the pinned versions.
hashes:
	.ci/hashes $(BIN)

# Tiny models are slower on two threads than on one, and far slower on shared cores.
test test-wheel test-slow test-lowest test-newest test-python: export OMP_NUM_THREADS := 1

demo: setup
	$(BIN)/stillvec demo --out demo

# The pages as a site that opens from the disk; a broken link fails.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

test: setup
	$(BIN)/python $(PYTEST)

# What a user would install: imports, entry point, packaged files, one run of each command. The tests stop if stillvec is
# imported from anywhere else.
test-wheel: build
	@set -eu; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(INSTALL) --no-deps --target "$$folder/site" dist/*.whl; \
	cp -R tests pyproject.toml "$$folder"; \
	export PYTHONPATH="$$folder/site" STILLVEC_EXPECT_PACKAGE="$$folder/site"; \
	cd "$$folder" && "$(CURDIR)/$(BIN)/python" -m pytest -p no:cacheprovider tests/test_package.py

test-slow: setup
	$(BIN)/python -m pytest -m "slow and not gpu"

# The suite on the lowest versions that pyproject.toml allows, and on the newest; each in a virtual environment of its own.
test-lowest test-newest: test-%: setup
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	$(BIN)/uv pip install --quiet --python .venv-$*/bin/python --upgrade -e ".[dev]" \
		$(if $(filter lowest,$*),--resolution lowest-direct)
	.venv-$*/bin/python $(PYTEST)

# docs/howto/databases.md with the real packages, in a virtual environment of its own.
test-databases:
	@test -x .venv-databases/bin/python || $(PYTHON) -m venv .venv-databases
	@.venv-databases/bin/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes \
		-r constraints-databases.txt
	PYTHONPATH=src .venv-databases/bin/python -m pytest tests/test_databases.py tests/test_arrow.py

# The suite on another Python, in a virtual environment of its own: make test-python PYTHON=python3.14. Supported are
# 3.11 to 3.14. gensim has no release for 3.14, where tests that need it are skipped; mwparserfromhell is compiled there.
test-python:
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); set -e; \
	grep -q "Python :: $$version\"" pyproject.toml || { echo "Python $$version is not supported" >&2; exit 1; }; \
	test -x .venv-$$version/bin/python || $(PYTHON) -m venv .venv-$$version; \
	.venv-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"; \
	.venv-$$version/bin/python $(PYTEST)

# A million damaged files for all readers together; STILLVEC_FUZZ=N gives each N, GROUP=corpus only some readers.
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_fuzz.py -m slow -s --timeout=0 $(if $(GROUP),-k "$(GROUP)")

# Every command that writes, killed at 200 random moments and before every change to the file system; STILLVEC_KILLS=N.
test-kill: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_kills.py -s --timeout=0 $(if $(GROUP),-k "$(GROUP)")

test-gpu: setup
	$(BIN)/python -m pytest -m gpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

build: setup
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	$(BIN)/python -m build --no-isolation --wheel --outdir dist packages/english > /dev/null

# Every benchmark at a size for two cores and ten minutes; the page is bench/results.md.
bench: setup
	$(BIN)/python benchmarks/all.py

# The tables of docs/ from the commands in docs/tables.toml: out/tables/NAME.md. ONLY="a b" makes some, DEVICE=cpu those that need no GPU.
tables: setup
	$(BIN)/python recipes/make_tables.py $(if $(ONLY),--only $(ONLY)) $(if $(DEVICE),--device $(DEVICE))

clean:
	rm -rf $(VENV) .venv-* dist demo bench site .mypy_cache .ruff_cache .pytest_cache .hypothesis
