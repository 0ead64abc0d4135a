# SPDX-License-Identifier: Apache-2.0
"""The oracle suite asks the real ttnn wheel, on its mock cluster. `make oracle` runs it; `make test` does not.

Only questions that ttnn answers are asked: some others end the process (see the reference on faults).
"""

import os

import pytest

if "TT_METAL_MOCK_CLUSTER_DESC_PATH" not in os.environ:
    pytest.exit("the oracle needs its mock cluster, set before Python starts; run it with `make oracle`", returncode=2)
