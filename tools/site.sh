#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/site.sh     build the site into build/site, with the playground from build/playground, and check it
#
# Strict: a warning is an error. The site is built without network; its tools are fetched once: what the extra "docs"
# of the library names, without installing (and compiling) the library again.
set -e
bin="${VENV:-.venv}/bin"
if [ ! -e "${VENV:-.venv}/.site-tools" ]; then
    echo "== preparing the tools of the site"
    "$bin/python" -c 'from importlib.metadata import requires
print(*[line.split(";")[0] for line in requires("tilewright") if line.endswith("\"docs\"")], sep="\n")' \
        >"${VENV:-.venv}/site-tools.txt"
    "$bin/python" -m pip --disable-pip-version-check install --quiet --requirement "${VENV:-.venv}/site-tools.txt"
    touch "${VENV:-.venv}/.site-tools"
fi
NO_MKDOCS_2_WARNING=1 "$bin/python" -m mkdocs build --quiet
cp -r build/playground build/site/playground
TILEWRIGHT_SITE=build/site "$bin/python" -m pytest -q packages/tilewright/tests/docs/test_site.py
echo "the site is in build/site: python3 -m http.server -d build/site serves it, with search"
