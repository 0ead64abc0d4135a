#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/long.sh TARGET     a long run, by the name of its target in the Makefile, which lists them
set -e
bin="${VENV:-.venv}/bin"
tests=packages/tilewright/tests
seed=${SEED:-0}
parallel="$bin/python -m pytest -n auto --dist worksteal -q"

# Packages that only one target needs, into .venv, once.
needs() {
    stamp="${VENV:-.venv}/.$1"
    shift
    [ -e "$stamp" ] || { "$bin/python" -m pip --disable-pip-version-check install --quiet "$@" && touch "$stamp"; }
}

case $1 in
fuzz) "$bin/python" -m tools.fuzz.compose --pairs "${PAIRS:-100000}" --seed "$seed" ;;
fuzz-plans)
    sh tools/build_native.sh build/eager -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-DTW_BYTES_PER_THREAD=64"
    TILEWRIGHT_LIBRARY=build/eager/native/_native.so "$bin/python" -m tools.fuzz.plans --plans "${PLANS:-10000}" \
        --seed "$seed"
    ;;
fuzz-files)
    needs atheris atheris
    "$bin/python" -m tools.fuzz.files --seconds "${PARSER_SECONDS:-60}"
    ;;
kills) TILEWRIGHT_KILLS=25 "$bin/python" -m pytest -q -s $tests/conversion/test_resume.py -k killed ;;
soak) "$bin/python" -m tools.fuzz.soak --seconds "${SOAK_SECONDS:-1800}" --seed "$seed" ;;
sanitize) sh tools/sanitize.sh address ;;
sanitize-threads) sh tools/sanitize.sh threads ;;
test-aarch64) sh tools/aarch64.sh ;;
test-opencl)
    TILEWRIGHT_TEST_OPENCL=all $parallel packages/tilewright-gpu/tests
    ;;
mutants) # MUTANTS="--sample 40 src/tilewright/layout/tuples.py" asks for more of one file
    needs cosmic-ray 'cosmic-ray>=8.7,<9' 'coverage>=7'
    # shellcheck disable=SC2086  # a list of words
    "$bin/python" -m tools.mutants $MUTANTS
    ;;
bench) # BENCH="layout views" measures some subjects only; the others take most of an hour and 60 GB of disk
    needs peers --no-deps tensor-layouts nvidia-cutlass # only their layout algebra is measured, which is pure Python
    mkdir -p build/bench
    for subject in ${BENCH:-layout tensor memory traffic simt quantised views cli waits chunks copy pipeline plans \
        convert matching playground}; do
        case $subject in
        copy) set -- --peers ;;
        pipeline) set -- --file-gib 8 ;;
        plans) set -- --tasks 1000000 ;;
        convert) set -- --gigabytes 4 --machines N150 N300 T3K ;;
        matching) set -- 100000 ;;
        *) set -- ;;
        esac
        "$bin/python" "bench/$subject.py" "$@" | tee "build/bench/$subject.md"
        case $subject in
        copy) "$bin/python" bench/copy.py --levels | tee build/bench/levels.md ;;
        convert)
            "$bin/python" bench/convert.py --only prepare --model Llama-3.1-8B-Instruct --machines N150 --repeat 1 |
                tee build/bench/prepare.md
            ;;
        playground) "$bin/python" bench/playground.py --megabits 40 | tee build/bench/line.md ;;
        esac
    done
    ;;
pictures)
    for subject in where gallery conformance_figures charts; do "$bin/python" tools/pictures/make_$subject.py; done
    "$bin/python" -m tests.docs.pictures
    "$bin/python" -m tests.docs.notebooks
    ;;
*)
    echo "tools/long.sh: unknown target $1; see make help" >&2
    exit 2
    ;;
esac
