#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/cuda.sh test|sanitize|bench ...     run the copies on a CUDA device, a sample of plans under compute-sanitizer,
# or bench/gpu.py with the other arguments
#
# On a machine with a GPU, often without network: CUDA_PYTHON is any Python there that has NumPy, ml_dtypes, CuPy,
# pytest and hypothesis; CUDA_DEPS is a folder with those that it lacks.
set -e
library=packages/tilewright
tests=packages/tilewright-gpu/tests
python=${CUDA_PYTHON:-${PYTHON:-python3}}
export PYTHONPATH="$library/src:$library:packages/tilewright-gpu/src:packages/tilewright-mojo/src:$tests:build/cuda${CUDA_DEPS:+:$CUDA_DEPS}"
# Engines are found by their entry points, which are metadata of what is installed; here nothing is.
metadata=build/cuda/tilewright_gpu-0.dist-info
mkdir -p $metadata
printf 'Metadata-Version: 2.1\nName: tilewright-gpu\nVersion: 0\n' >$metadata/METADATA
sed -n '/entry-points."tilewright.engines"/,/^$/p' packages/tilewright-gpu/pyproject.toml |
    sed 's/.*entry-points.*/[tilewright.engines]/; s/"//g' >$metadata/entry_points.txt
if [ "$1" = test ]; then
    # shellcheck disable=SC2086  # a list of words
    exec $python -m pytest -q -p no:cacheprovider $CUDA_TEST_OPTIONS $tests/gpu_tests/cuda \
        $tests/gpu_tests/test_devices.py
fi
if [ "$1" = bench ]; then
    shift
    exec $python bench/gpu.py "$@"
fi
for tool in memcheck racecheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 "$python" $tests/gpu_tests/cuda/sample_of_plans.py
done
