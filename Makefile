# Two commands do the set-up: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := PYTHONPATH=tests/cluster $(BIN)/python -m devcluster

.PHONY: help demo test check lint types unit launcher-test chart-test integration e2e images cluster cluster-down kubeconfig bench lock crd clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@echo "==> Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

venv: $(VENV)/.ready ## make the Python environment

check: lint types unit launcher-test ## lint, types, unit tests: under a minute

lint: $(VENV)/.ready ## ruff and the import contracts
	@echo "==> lint"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: $(VENV)/.ready ## mypy strict
	@echo "==> types"
	@$(BIN)/mypy

unit: $(VENV)/.ready ## unit tests
	@echo "==> unit tests"
	@$(BIN)/pytest tests/unit -q -n 2

lock: $(VENV)/.ready ## lock the dependencies of each image and of development
	@for g in operator-image:operator sidecar-image:sidecar runtime-image:runtime testserver-image:testserver dev:dev; do \
	  $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	    --group $${g%%:*} -o requirements/$${g##*:}.txt; done

crd: $(VENV)/.ready ## write the CRD, the chart's copy and docs/api.md from the models
	@PYTHONPATH=crds $(BIN)/python -m crdgen
