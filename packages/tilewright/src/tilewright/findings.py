# SPDX-License-Identifier: Apache-2.0
"""`Finding`: one result of a check, as text and as JSON data; and dataclasses as JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any


class Severity(Enum):
    """The severity of a finding: something is wrong, something costs, or something is worth knowing.

    >>> Severity.ERROR.value
    'error'
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check: its `kind`, a `message` with the numbers, the `severity`, the `reason`, and the `remedy`.

    `count` is the number of places with the same finding, and `place` names the first of them.

    >>> print(Finding("size", "buffer 8: size is 1, expected 2", count=3))
    error: size: buffer 8: size is 1, expected 2 (2 more like it)
    """

    kind: str
    message: str
    severity: Severity = Severity.ERROR
    reason: str = ""
    remedy: str = ""
    count: int = 1
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON data, without a `place` that is empty.

        >>> Finding("size", "size is 1, expected 2").to_json()["severity"]
        'error'
        """
        names = [field.name for field in fields(self) if field.name != "place" or self.place]
        return {name: plain_data(getattr(self, name)) for name in names}

    def __str__(self) -> str:
        more = f" ({self.count - 1} more like it)" if self.count > 1 else ""
        return f"{self.severity.value}: {self.kind}: {self.message}{more}"


def plain_data(value: object) -> Any:
    """Return a value as JSON data: dataclasses as dictionaries, enums as their names, anything unknown as text.

    >>> plain_data(Finding("size", "size is 1, expected 2"))["severity"]
    'error'
    >>> plain_data({("a", 1): {2.5, 2.5}, "worst": float("inf")})
    {'a,1': [2.5], 'worst': 'inf'}
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, (int, str)):  # of a class of its own
        return int(value) if isinstance(value, int) else str(value)
    if isinstance(value, float):  # JSON has no infinity
        return float(value) if isfinite(value) else str(float(value))
    if hasattr(value, "to_json"):
        return plain_data(value.to_json())
    if isinstance(value, Mapping):
        return {_format_key(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_data(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars, without importing NumPy
        return plain_data(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def _format_key(key: object) -> str:
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
