# SPDX-License-Identifier: Apache-2.0
"""All tests of moves, golden vectors included, on CUDA: the same files, imported, with another engine."""

from tests.copy.test_copy_regressions import *  # noqa: F403
from tests.copy.test_execute import *  # noqa: F403
from tests.copy.test_golden_formats import *  # noqa: F403
from tests.copy.test_golden_layout import *  # noqa: F403
from tests.copy.test_relayout_and_copy import *  # noqa: F403
from tests.copy.test_tilize import *  # noqa: F403
