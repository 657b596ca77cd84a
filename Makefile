# Everything runs from one virtual environment, .venv, made from pyproject.toml and constraints.txt.
PYTHON ?= python3
WORKERS ?= 2
PYTEST_ARGS ?=
ATTACK_ARGS ?=
MUTANT_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
CODE := $(wildcard src tests benchmarks examples)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint types-of-src types-of-tests format attack mutants bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with everything installed (does nothing when up to date)

# pip would compile every file, on one core. What is left out here, or cannot be compiled, Python
# compiles where it is imported.
SELDOM := /tests?/|/transformers/models/

# The stamp is written last. A .venv without one is unfinished or foreign, so it is made anew.
$(STAMP): pyproject.toml constraints.txt src/priornet/_version.py
	@test -e $@ || { echo "Creating $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@rm -f $@
	@echo "Installing priornet and its dependencies into $(VENV) (about a minute)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-compile \
		--constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 -x '$(SELDOM)' $(VENV)/lib || true
	@touch $@

demo: setup ## Run the main job on embedded data
	$(BIN)/priornet demo

test: lint ## Lint, type-check, run every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Types are checked in two processes of a core each, and take longer than all the rest.
lint: setup ## Lint, check the formatting, check the types
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	@$(MAKE) --no-print-directory --jobs=2 types-of-src types-of-tests

types-of-src:
	$(BIN)/pyright

types-of-tests:
	$(BIN)/pyright --project tests

format: setup ## Format the code and apply safe lint fixes
	$(BIN)/ruff check --fix-only $(CODE)
	$(BIN)/ruff format $(CODE)

attack: setup ## Attack every promise with generated input (about 20 minutes)
	PYTHONPATH=tests $(BIN)/python -m attack $(ATTACK_ARGS)

mutants: setup ## Plant mistakes, and see what the tests find (about ten minutes)
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANT_ARGS)

bench: setup ## Run the benchmarks
	@set -e; for script in $(wildcard benchmarks/[a-z]*.py); do \
		echo "== $$script"; $(BIN)/python $$script; done

clean: ## Remove .venv, caches and build outputs
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
