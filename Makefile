# Two commands do all the set-up: `make demo` and `make test`. Both need Python 3.11 or later and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ARGS ?=

.PHONY: help demo test lint bench evidence docs lock clean

help:
	@echo "make demo    a live page over a stream of flights on Spark, from a bare machine"
	@echo "make test    every check: ruff, mypy, import-linter, tests, doctests, README examples"
	@echo "make bench   the batch benchmark against its peers"
	@echo "make evidence all that the README claims, measured and judged in one report; an hour and a half"
	@echo "make docs    the documents as a site in build/docs, every link in it checked"
	@echo "make lock    write the pinned requirements anew (needs uv)"

demo: .venv/ready
	$(BIN)/python examples/demo.py $(ARGS)

# What the tests' processes share is made first, while mypy has a core. Many tests wait: three of them keep two cores busy.
test: .venv/ready
	$(MAKE) --no-print-directory --jobs=2 lint .venv/primed
	$(BIN)/python -m pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder $(ARGS)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready
	$(BIN)/skytide bench batch $(ARGS)

evidence: .venv/ready
	$(BIN)/skytide bench evidence $(ARGS)

docs: .venv/ready
	$(BIN)/python -m sphinx -q -n -W --keep-going docs build/docs $(ARGS)
	@echo "open build/docs/index.html"

# The stamp is written last, so that an interrupted installation is finished by the next run.
.venv/ready: requirements/build.lock requirements/dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/build.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.venv/primed: .venv/ready tests/spark/small.py tests/kernels.py $(wildcard src/skytide/kernel/*.py)
	@$(BIN)/python -m tests.spark.small
	@$(BIN)/python -m tests.kernels
	@touch $@

lock:
	cd requirements && uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate build.in -o build.lock
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --all-extras --group dev -c requirements/build.lock pyproject.toml -o requirements/dev.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build src/*.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
