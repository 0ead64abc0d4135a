#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/build_native.sh FOLDER CMAKE_OPTION...     build the native library into FOLDER/native/_native.so
set -e
folder=$1
shift
cmake="${VENV:-.venv}/bin/cmake"
"$cmake" -S packages/tilewright -B "$folder" "$@" >/dev/null
"$cmake" --build "$folder" --parallel 2 >/dev/null
