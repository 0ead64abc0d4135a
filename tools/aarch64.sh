#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/aarch64.sh     run the native engine's tests against the library for aarch64, under qemu
#
# The library is compiled for aarch64 and runs under an emulator, in a process that the tests of this machine send their
# plans to: packages/tilewright/tests/native/remote.py. The tests left out are about loading it.
set -e
compiler=aarch64-linux-gnu-g++
emulator=qemu-aarch64
folder=build/aarch64
tests=packages/tilewright/tests

missing=""
command -v $compiler >/dev/null || missing="$missing g++-aarch64-linux-gnu"
command -v $emulator >/dev/null || missing="$missing qemu-user"
# shellcheck disable=SC2086  # a list of words
sh tools/debian.sh $missing
for tool in $compiler $emulator; do
    command -v $tool >/dev/null || {
        echo "make test-aarch64 needs $tool (Debian: g++-aarch64-linux-gnu, qemu-user)"
        exit 1
    }
done
sh tools/build_native.sh $folder -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$compiler
$compiler -std=c++20 -O2 -Wall -Wextra -Ipackages/tilewright/native $tests/native/remote.cpp -o $folder/remote -ldl
TILEWRIGHT_TEST_REMOTE="$emulator -L /usr/aarch64-linux-gnu $folder/remote $folder/native/_native.so" \
    "${VENV:-.venv}/bin/python" -m pytest -n auto --dist worksteal -q -p no:cacheprovider \
    -k "not explained and not refused" $tests/native $tests/test_native.py $tests/copying/test_random_plans.py \
    $tests/copying/test_brain_blocks.py $tests/conversion/test_moments.py
