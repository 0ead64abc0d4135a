#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/sanitize.sh address|threads     run the native engine's tests under sanitizers
#
# The sanitizers' own run-time library has to be there before Python starts.
set -e
python="${VENV:-.venv}/bin/python"
tests=packages/tilewright/tests
both="$tests/native $tests/copying/test_random_plans.py $tests/conversion/test_moments.py $tests/tiling/test_workers.py"
runtime() { ${CXX:-c++} -print-file-name="$1"; }

address() {
    sh tools/build_native.sh build/sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    # Leaks of Python itself are not ours. Since GCC 13 frames may be put on a heap of the sanitizer's own; functions
    # with vectors of 64 bytes crash there.
    # shellcheck disable=SC2086  # a list of words
    env TILEWRIGHT_LIBRARY=build/sanitize/native/_native.so LD_PRELOAD="$(runtime libasan.so)" \
        ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 \
        "$python" -m pytest -n auto --dist worksteal -q -p no:cacheprovider $both
}

# Small plans are shared out too, so that every kind of plan runs on several threads. Python is not instrumented, but
# its locks are seen. A race ends the process, since pytest would not see what the processes that run its tests exit with.
threads() {
    folder=build/sanitize-threads
    sh tools/build_native.sh $folder -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_CXX_FLAGS="-fsanitize=thread -fno-omit-frame-pointer -DTW_BYTES_PER_THREAD=64"
    if under_tsan -m tests.native.deliberate_race >$folder/control.txt 2>&1; then
        echo "a race made on purpose is not reported"
        exit 1
    fi
    grep -q "ThreadSanitizer: data race" $folder/control.txt
    echo "a race made on purpose is reported"
    # shellcheck disable=SC2086  # a list of words
    under_tsan -m pytest -n auto --dist worksteal -q -p no:cacheprovider $both $tests/copying/test_runner.py \
        $tests/tiling/test_faults.py $tests/tiling/test_pipeline.py
    under_tsan -m tools.fuzz.plans --plans 2000
}

under_tsan() {
    env TSAN_OPTIONS=halt_on_error=1 TILEWRIGHT_LIBRARY=build/sanitize-threads/native/_native.so \
        LD_PRELOAD="$(runtime libtsan.so)" "$python" "$@"
}

"$1"
