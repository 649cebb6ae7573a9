"""A schema that a server wrote cannot hold up the process that checks against it."""

import time
from typing import Any

from adk_nb.tools.json_arguments import JsonArguments
from tests.support.each import each

BACKTRACKING = "^(a+)+$"
HOSTILE = "a" * 40 + "!"


def wrong(schema: dict[str, Any], value: Any) -> str | None:
    return JsonArguments(schema, "adk-nb[openapi]").error_message(value)


def doubling(levels: int) -> dict[str, Any]:
    """A schema of references that takes 2 ** levels steps."""
    both = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**both, f"l{levels}": {"type": "object"}}}


@each(
    "schema",
    [
        {"properties": {"x": {"pattern": BACKTRACKING}}},
        {"properties": {"x": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": BACKTRACKING}}},
        {"patternProperties": {BACKTRACKING: False}},
        {"patternProperties": {BACKTRACKING: {}}, "additionalProperties": False},
        {"patternProperties": {BACKTRACKING: {}}, "unevaluatedProperties": False},
        {"propertyNames": {"pattern": BACKTRACKING}},
        {"properties": {"x": {"pattern": "(x{1,250}){1,100}y"}}},
        {"properties": {"x": {"pattern": "((x?){1,20}){1,50}y"}}},
        {"properties": {"many": {"uniqueItems": True}}},
        doubling(60),
        {"$ref": "#"},
    ],
)
def test_no_schema_takes_longer_than_its_limit(schema: dict[str, Any]):
    many = [{"n": n} for n in range(4_000)]
    began = time.process_time()

    wrong(schema, {"x": HOSTILE, HOSTILE: 1, "many": many, "y": "x" * 100_000})
    wrong(schema, {"x": "x" * 9_000})

    assert time.process_time() - began < 5  # each of them took minutes


@each(
    "schema, value, told",
    [
        ({"properties": {"day": {"pattern": r"^\d{4}-\d\d-\d\d$"}}}, {"day": "2026-1-1"}, "'2026-1-1' does not match"),
        ({"properties": {"day": {"pattern": r"^\d{4}-\d\d-\d\d$"}}}, {"day": "2026-01-01"}, None),
        ({"properties": {"day": {"pattern": "(?=never)"}}}, {"day": "x"}, None),
        ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": "x"}, "n_a: 'x' is not of type 'number'"),
        ({"patternProperties": {"^n_": {}}, "additionalProperties": False}, {"n_a": 1, "b": 2}, "'b' was unexpected"),
        ({"patternProperties": {"^n_": {}}, "additionalProperties": False}, {"n_a": 1}, None),
        (
            {"patternProperties": {"^n_": {}}, "additionalProperties": {"type": "string"}},
            {"n_a": 1, "b": 2},
            "b: 2 is not of type 'string'",
        ),
        ({"unevaluatedProperties": False, "properties": {"a": {}}}, {"a": 1, "b": 2}, "'b' was unexpected"),
        ({"items": {"type": "integer"}, "uniqueItems": True}, [1, 1], "non-unique"),
        (doubling(3), 1, "1 is not of type 'object'"),
    ],
)
def test_rules_hold_as_they_did(schema: dict[str, Any], value: Any, told: str | None):
    found = wrong(schema, value)

    assert found is None if told is None else told in (found or "")
