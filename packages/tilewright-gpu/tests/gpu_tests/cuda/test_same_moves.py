# SPDX-License-Identifier: Apache-2.0
"""All tests of moves, golden vectors included, on CUDA: the same files, imported, with another engine."""

from tests.copying.test_copy_regressions import *  # noqa: F403
from tests.copying.test_execute import *  # noqa: F403
from tests.copying.test_golden_formats import *  # noqa: F403
from tests.copying.test_golden_layout import *  # noqa: F403
from tests.copying.test_plan import (  # noqa: F401
    test_a_source_of_random_bits_moves_through_a_cached_plan_unchanged,
    test_one_plan_serves_arrays_at_any_address,
)
from tests.copying.test_relayout_and_copy import *  # noqa: F403
from tests.copying.test_tilize import *  # noqa: F403
