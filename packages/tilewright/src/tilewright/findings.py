# SPDX-License-Identifier: Apache-2.0
"""`Finding`: one result of a check, as text and as JSON data; and dataclasses as JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any


class Severity(Enum):
    """How bad a finding is: something is wrong, something costs, or something is worth knowing.

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
        data: dict[str, Any] = plain_data(self)
        return data if self.place else {key: value for key, value in data.items() if key != "place"}

    def __str__(self) -> str:
        more = f" ({self.count - 1} more like it)" if self.count > 1 else ""
        return f"{self.severity.value}: {self.kind}: {self.message}{more}"


def plain_data(value: object) -> Any:
    """Return a value as JSON data: dataclasses as dictionaries, enums as their values, sequences as lists.

    >>> plain_data(Finding("size", "size is 1, expected 2"))["severity"]
    'error'
    >>> plain_data({"shape": (2, 3)})
    {'shape': [2, 3]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    return value
