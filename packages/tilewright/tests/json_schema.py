# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that the schemas of answers use."""

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, Any] = {
    "null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list,
    "object": dict,
}  # fmt: skip
KEYWORDS = {
    "$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum", "anyOf", "properties",
    "required", "items", "additionalProperties",
}  # fmt: skip


def find_problems(
    value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = "$"
) -> Iterator[str]:
    """Yield what is wrong with a value; so is a key that an object's schema does not list, though others take it."""
    root = schema if root is None else root
    assert set(schema) <= KEYWORDS, f"this part of the schema is not checked: {sorted(set(schema) - KEYWORDS)}"
    if "$ref" in schema:
        yield from find_problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "anyOf" in schema:
        found = [list(find_problems(value, option, root, path)) for option in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    names = schema.get("type", list(TYPES))
    names = [names] if isinstance(names, str) else names
    is_bool = isinstance(value, bool)
    if not any(isinstance(value, TYPES[name]) and (name == "boolean" or not is_bool) for name in names):
        yield f"{path} is {value!r:.60}, expected {' or '.join(names)}"
        return
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        yield f"{path} is {value!r:.60}, expected {schema.get('const', schema.get('enum'))}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from find_problems(item, schema.get("items", {}), root, f"{path}[{number}]")
    if isinstance(value, dict):
        yield from (f"{path} has no {name!r}" for name in schema.get("required", ()) if name not in value)
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            if name in properties or others is not None:
                yield from find_problems(item, properties.get(name, others), root, f"{path}.{name}")
            elif "properties" in schema:
                yield f"{path} has {name!r}, which is not in the schema"
