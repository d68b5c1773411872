# Two commands do the set-up: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := PYTHONPATH=$(CURDIR)/tests/cluster $(CURDIR)/$(BIN)/python -m devcluster
# The relay as its image has it: compiled, for this environment's Python.
RELAY := $(CURDIR)/$(VENV)/relay
# Go from PATH, else as a package beside Python.
GO ?= "$$($(DEV) tool go)"

.PHONY: help venv demo test check lint types audit unit fuzz launcher launcher-test chart-test relay integration conformance e2e attack chaos chaos-short servers images release cluster cluster-down kubeconfig bench tables scale soak lock crd clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@echo "==> Python environment in $(VENV)" >&2
	@test -x $(BIN)/pip || tests/cluster/make-venv $(PYTHON) $(VENV)
	@tests/cluster/persistently $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

venv: $(VENV)/.ready ## make the Python environment

check: lint types audit unit launcher-test ## lint, types, unit tests: under a minute

lint: $(VENV)/.ready ## ruff and the import contracts
	@echo "==> lint"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: $(VENV)/.ready ## mypy strict
	@echo "==> types"
	@$(BIN)/mypy

audit: $(VENV)/.ready ## locked dependencies against known vulnerabilities, where their data is (ADVISORIES=folder)
	@echo "==> audit of dependencies"
	@$(BIN)/python requirements/audit.py

unit: $(VENV)/.ready ## unit tests, and random stories in a short run
	@echo "==> unit tests"
	@$(BIN)/pytest tests/unit tests/property -q -n 2

fuzz: $(VENV)/.ready relay ## the long run of what `make unit` does shortly: 10,000 random stories, 1,000,000 inputs without sense
	@echo "==> 10,000 stories of clients, server and connections; 1,000,000 inputs"
	@PYTHONPATH=$(RELAY) $(BIN)/pytest tests/property -q --hypothesis-profile=long -o timeout=7200
	@echo "==> the launcher's framer, for a minute"
	@cd sidecar/launcher && $(GO) test -run '^$$' -fuzz FuzzFramer -fuzztime 60s -fuzzminimizetime 1s .

launcher: $(VENV)/.ready ## build build/mcp-launcher, static, for GOARCH
	@mkdir -p build
	@cd sidecar/launcher && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o ../../build/mcp-launcher .

# Folders, too: a module that is gone must not live on in the copy.
RELAY_PARTS := $(shell find sidecar/mcp_sidecar sidecar/mcp_relay_api sidecar/compiler \( -name '*.py' -o -type d ! -name __pycache__ \))
$(RELAY)/.ready: $(VENV)/.ready tests/cluster/make-relay requirements/compiler.txt $(RELAY_PARTS)
	@echo "==> compiling the relay into $(VENV)/relay (a minute)" >&2
	@tests/cluster/make-relay $(BIN)/python $(RELAY)
	@touch $@

relay: $(RELAY)/.ready ## compile the relay as its image has it (PYTHONPATH=.venv/relay takes it in place of the sources)

launcher-test: $(VENV)/.ready ## vet and test the launcher
	@echo "==> launcher tests"
	@cd sidecar/launcher && unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && \
	  { test -z "$$unformatted" || { echo "gofmt -w: $$unformatted" >&2; exit 1; }; } && $(GO) vet . && $(GO) test .

integration: $(VENV)/.ready launcher relay ## compiled relay, launcher and real servers as processes, no cluster
	@echo "==> integration tests, and random stories, with the compiled relay"
	@PYTHONPATH=$(RELAY) $(BIN)/pytest tests/integration tests/property -q -n 2

conformance: $(VENV)/.ready launcher relay ## the official MCP conformance suite against relay, launcher and one stdio server
	@echo "==> conformance" >&2
	@PYTHONPATH=$(RELAY):tests/conformance $(BIN)/python -m suitekit

test: ## everything: lint, types, unit, chart, integration, conformance, end to end, attacks and faults on a real cluster
	@$(MAKE) --no-print-directory check chart-test integration conformance cluster e2e attack chaos-short

lock: $(VENV)/.ready ## lock the dependencies of each image and of development
	@for g in operator-image:operator relay-compiler:compiler sidecar-image:sidecar runtime-image:runtime testserver-image:testserver cli:cli dev:dev \
	  client-mcp1:client-mcp1 client-fastmcp:client-fastmcp; do \
	  $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	    --group $${g%%:*} -o requirements/$${g##*:}.txt; done

crd: $(VENV)/.ready ## write the CRD, the chart's copy, docs/api.md and docs/recovery.md from the code
	@PYTHONPATH=crds $(BIN)/python -m crdgen

chart-test: $(VENV)/.ready ## the chart: helm lint, its unit tests, strict schemas
	@echo "==> chart"
	@$(BIN)/pytest tests/chart -q -o timeout=1200

e2e: $(VENV)/.ready ## end-to-end tests against the running cluster (make cluster)
	@echo "==> end-to-end tests, four at a time"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(BIN)/pytest tests/e2e --e2e -q -n 4 -m "not serial and not public" --ignore=tests/e2e/attack
	@echo "==> end-to-end tests that need the cluster for themselves"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(BIN)/pytest tests/e2e --e2e -q -m serial

servers: $(VENV)/.ready ## twelve public servers from npm and PyPI on the running cluster (make cluster)
	@$(DEV) load-public
	@echo "==> public servers"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(BIN)/pytest tests/e2e/test_public_servers.py --e2e -v -n 2

attack: $(VENV)/.ready ## attacks on server pods, relay and operator, each with its control, against the running cluster
	@echo "==> attacks, three files at a time"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(BIN)/pytest tests/e2e/attack --e2e -q -n 3 --dist loadfile

# The long form takes another order each time and tells its seed; SEED=N repeats one.
CHAOS := PYTHONPATH=tests/chaos:tests/cluster:tests/e2e/support $(BIN)/python -m chaoskit

chaos-short: $(VENV)/.ready ## each kind of fault once, while clients call, against the running cluster: 3 minutes
	@echo "==> faults, the short form"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(CHAOS) --short --seed $(or $(SEED),1) --json build/chaos-short.json

chaos: $(VENV)/.ready ## 200 faults in random order, while clients call (SEED=N, FAULTS=N); report in build/chaos.json
	@echo "==> faults, the long form"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" $(CHAOS) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) --json build/chaos.json

# The tables go to build/bench-*.md as docs/performance.md has them, all figures to build/bench-*.json.
KITS := tests/cluster:tests/e2e/support
REPEAT = $(if $(REPETITIONS),--repetitions $(REPETITIONS))

# The system's Python is compiled with profiles, as that of the images, and a tenth faster for it; that of a version
# manager often is not. Where it is too old the project's own is measured.
SYSTEM_PYTHON := /usr/bin/python3
BENCH_PYTHON = $(shell $(SYSTEM_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(SYSTEM_PYTHON))

bench: ## measure on loopback (with peers), then in the cluster (REPETITIONS=N); tables also in build/bench-*.md
	@$(MAKE) --no-print-directory tables $(if $(BENCH_PYTHON),PYTHON=$(BENCH_PYTHON) VENV=build/venv)

tables: $(VENV)/.ready launcher relay
	@echo "==> loopback"
	@PYTHONPATH=$(RELAY):$(KITS) $(BIN)/python benchmarks/loopback.py --peers $(REPEAT) --json build/bench-loopback.json \
	  | tee build/bench-loopback.md
	@$(MAKE) --no-print-directory cluster
	@echo "==> cluster"
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" PYTHONPATH=$(KITS) $(BIN)/python benchmarks/cluster.py $(REPEAT) \
	  --json build/bench-cluster.json | tee build/bench-cluster.md

scale: $(VENV)/.ready ## the operator with many servers (SERVERS=1000): at rest, and after its restart
	@$(MAKE) --no-print-directory cluster
	@KUBECONFIG="$$($(MAKE) -s kubeconfig)" PYTHONPATH=$(KITS) \
	  $(BIN)/python benchmarks/scale.py --servers $(or $(SERVERS),1000)

soak: $(VENV)/.ready launcher relay ## an hour with 64 clients on one relay: memory flat, nothing left (MINUTES=…, RATE=…)
	@PYTHONPATH=$(RELAY):$(KITS):tests/integration/support \
	  $(BIN)/python benchmarks/soak.py --minutes $(or $(MINUTES),60) --rate $(or $(RATE),300)

images: $(VENV)/.ready ## build the images that changed, by docker or buildah
	@$(DEV) images

release: $(VENV)/.ready ## push the images (REGISTRY=host/path TAG=…) and write their digests for the chart
	@$(DEV) release "$(REGISTRY)" "$(TAG)"

cluster: $(VENV)/.ready ## cluster up, images built and loaded, operator installed; quick if nothing changed
	@$(DEV) up
	@$(DEV) install

cluster-down: $(VENV)/.ready ## stop the cluster and remove what it left; caches stay
	@$(DEV) down

kubeconfig: $(VENV)/.ready ## print the path of the cluster's kubeconfig
	@$(DEV) kubeconfig

demo: $(VENV)/.ready ## cluster, operator, two public servers, a tool call of each from a pod and from here
	@$(DEV) up
	@$(DEV) install
	@$(DEV) demo

clean: ## stop the cluster; remove what was built, the environment, and every cache of this project
	@test ! -x $(BIN)/pip || $(DEV) clean
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache $(VENV)
