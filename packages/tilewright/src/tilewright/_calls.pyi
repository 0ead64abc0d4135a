# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

def remember(prepare: Callable[..., Any], immutable: tuple[type, ...], /) -> Callable[..., Any]: ...
