# The project's doors. Every target installs what it needs into .venv, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# Two stages, so that the demo does not wait for the tools of development.
PACKAGE := $(VENV)/.package
TOOLS := $(VENV)/.tools

.PHONY: help demo test check format session bench docs web clean

help:
	@echo "make demo      the three questions on built-in examples, and a page about them"
	@echo "make test      the tests; make check: format, lint, types and structure; make format: mend the first two"
	@echo "make session NAME=…   tests that need packages of their own; without NAME, a list of them"
	@echo "make bench     every claim of speed; make docs: the site; make web: the pages; make clean"

demo: $(PACKAGE)
	$(BIN)/eirkit demo

# One process more than there are cores: tests of time limits and processes wait more than they compute. Each file is run by
# one process, so that what its tests share is made once; tests/conftest.py names those to begin with.
WORKERS := $(shell expr $$(nproc 2> /dev/null || echo 2) + 1)
test: $(TOOLS)
	$(BIN)/pytest -n $(WORKERS) --maxprocesses 5 --dist loadfile --no-loadscope-reorder -rs -m "not slow and not check"

check: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --maxprocesses 4 -m check

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

session: $(TOOLS)
	$(BIN)/python tools/sessions.py $(NAME)

# Every claim of speed as a ratio to its yardstick. ARGUMENT=--check fails if one is half as large again as the kept one.
ARGUMENT ?= --write
bench: $(TOOLS)
	$(BIN)/python -m benchmarks.ledger $(ARGUMENT)

# The documentation as a site, under site/: a broken link or any other warning fails.
docs: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt furo myst-parser sphinx sphinx-copybutton
	$(BIN)/python tools/reference.py build/reference
	$(BIN)/python tools/examples.py build/extra/viewer
	$(BIN)/python tools/board.py build/extra/board
	$(VENV)/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going -E -c docs -b html . site
	@echo "Open site/docs/index.html"

# Pages are built with Node and committed, so that nobody else needs it. CI fails if they are not those of the sources. Not
# `npm ci`: it wants every platform's binary of the bundler in the lock file, and registries that mirror few platforms
# cannot name them all.
web: $(PACKAGE)
	$(BIN)/python tools/web_types.py --write
	cd web && npm install --silent --no-save && npm run --silent build && npm run --silent check && npm run --silent test
	$(PYTHON) tools/web_assets.py --write

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(PACKAGE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "eirkit needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) hatchling
	$(PIP) --no-build-isolation -e .
	@touch $@

$(TOOLS): $(PACKAGE) requirements-dev.txt
	$(PIP) --no-build-isolation -r requirements-dev.txt -e '.[embedding,fast,mcp,otel,plot,query,ray,remote,vestige]'
	@touch $@
