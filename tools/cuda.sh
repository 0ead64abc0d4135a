#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/cuda.sh test|sanitize     run the copies on a CUDA device, or a sample of plans under compute-sanitizer
#
# On a machine with a GPU, often without network: CUDA_PYTHON is any Python there that has NumPy, ml_dtypes, CuPy,
# pytest and hypothesis; CUDA_DEPS is a folder with those that it lacks.
set -e
library=packages/tilewright
python=${CUDA_PYTHON:-${PYTHON:-python3}}
export PYTHONPATH="$library/src:$library${CUDA_DEPS:+:$CUDA_DEPS}"
if [ "$1" = test ]; then
    # shellcheck disable=SC2086  # a list of words
    exec $python -m pytest -q -p no:cacheprovider $CUDA_TEST_OPTIONS $library/tests/cuda \
        $library/tests/tensor/test_devices.py
fi
for tool in memcheck racecheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 "$python" $library/tests/cuda/sample_of_plans.py
done
