# SPDX-License-Identifier: Apache-2.0
"""`import tilewright` is light: it loads nothing else, of the library or from outside of the standard library."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
before = set(sys.modules)
import tilewright
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_loads_nothing_that_is_not_in_every_python():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    new = json.loads(run.stdout)
    assert not {name.partition(".")[0] for name in new} - sys.stdlib_module_names - {"tilewright"}
    assert {name.split(".")[1] for name in new if name.startswith("tilewright.")} == {"version"}
