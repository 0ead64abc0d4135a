#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/debian.sh PACKAGE...     install Debian packages that are missing
#
# Debian has venv, compilers and the browser that pages are tested in as packages of their own. Only root can fetch
# them; anyone else reads what is missing, and goes on without.
[ $# -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "== installing Debian packages: $*"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null; } ||
        echo "note: could not install $*; going on without"
else
    echo "note: not found: $*; going on without"
fi
