# The one front door. `make` alone lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PYTHON ?= python3
BIN := .venv/bin
WORK := .work
FUZZ_SECONDS ?= 600
EXCHANGES ?= 1000000
SEED ?= 1
ROUNDS ?= 200
SEEDS ?= 1-20000
DIRECTORY_SEEDS ?= 1-5000
OBJECTS ?= 5000
JOBS ?= 2
WORKERS ?= 3
# Each worker gets a third of the tests in their order, and takes from the others when it is done.
PYTEST = $(BIN)/pytest tests --quiet --numprocesses $(WORKERS) --dist worksteal

.PHONY: help setup demo test check lint conformance crash kill replicate simulate fuzz hostile bench reference clean

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: .venv/.ready ## make .venv with everything that is needed; leaves .venv/bin/falconmq working

.venv/.ready: pyproject.toml constraints.txt tools/setup.sh
	@PYTHON=$(PYTHON) tools/setup.sh

demo: setup ## three queue managers at work, one is killed, Spark draws what happened
	@$(BIN)/falconmq demo --report $(WORK)/report.html

test: setup lint ## everything that has to pass: all tests, conformance, half a minute of fuzzing
	@mkdir -p $(WORK)
	@tools/install-chromium.sh
	@tools/install-slapd.sh
	-@$(BIN)/falconmq pipeline warm-up --if-missing
	$(PYTEST) --requirements-json=$(WORK)/requirements.json
	$(BIN)/python -m conformance.report $(WORK)/requirements.json --check
	$(BIN)/python -m fuzz.run --seconds 30

check: setup lint ## what to run before a commit: lint, types, imports, fast tests
	$(PYTEST) -m "not slow"

lint: setup ## ruff, ruff format, mypy --strict, import contracts, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.audit_dependencies

conformance: setup ## prove the requirement rows, print the report, write docs/conformance.md
	@mkdir -p $(WORK)
	$(PYTEST) --requirements-json=$(WORK)/requirements.json
	$(BIN)/python -m conformance.report $(WORK)/requirements.json --write

crash: setup ## kill a busy queue manager ROUNDS (200) times and check that it kept its word
	$(BIN)/python -m tools.crash --rounds $(ROUNDS)

kill: setup ## end Spark drivers (20 times) and the queue manager (10 times) in streams of 200,000 messages each way
	$(BIN)/python -m tools.exactly_once source
	$(BIN)/python -m tools.exactly_once sink

replicate: setup ## the directory on five servers, OBJECTS (5000) changes, servers killed, one away past the purge limit
	FALCONMQ_REPLICATION_OBJECTS=$(OBJECTS) $(BIN)/pytest tests/e2e/test_replication.py --quiet --capture=no --timeout 3600

simulate: setup ## whole estates under faults for SEEDS (1-20000), directory servers for DIRECTORY_SEEDS (1-5000)
	$(BIN)/python -m falconmq.simulation --seeds $(SEEDS) --jobs $(JOBS)
	$(BIN)/python -m falconmq.simulation directory --seeds $(DIRECTORY_SEEDS) --jobs $(JOBS)

fuzz: setup ## coverage-guided fuzzing of every decoder for FUZZ_SECONDS (600) in all, then the HTTP API
	$(BIN)/python -m fuzz.run --seconds $(FUZZ_SECONDS) --jobs $(JOBS)
	$(BIN)/python -m fuzz.api --examples 300

hostile: setup ## hostile peers against a running daemon, until it has read EXCHANGES (1000000) packets
	$(BIN)/python -m fuzz.peers --exchanges $(EXCHANGES) --seed $(SEED)

bench: setup ## the measured claims: codec, store, embedded queues, queue managers, waiting readers, pipeline, directory, replication
	$(BIN)/python -m benchmarks.codec
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.embedded
	$(BIN)/python -m benchmarks.transport
	$(BIN)/python -m benchmarks.long_polls
	$(BIN)/python -m benchmarks.arrow_export
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.archive
	$(BIN)/python -m benchmarks.capture
	$(BIN)/python -m benchmarks.directory
	$(BIN)/python -m benchmarks.replication

reference: setup ## write docs/reference/ anew from the code
	$(BIN)/python -m tools.reference

clean: ## remove .venv and everything made by the other targets
	rm -rf .venv .venv-log $(WORK) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
