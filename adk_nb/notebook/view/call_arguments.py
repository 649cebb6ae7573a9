"""The arguments of a call for its approver: each in its place, nothing invisible, only known secrets hidden."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from adk_nb.notebook.view.plain_text import (
    MOST_ARGUMENTS,
    abridged,
    ascii_escaped,
    exact_text,
    fair_length,
    name_text,
)
from adk_nb.redaction import HIDDEN, without_known

VALUES_LIMIT = 2_000
"""Characters that the values of all arguments may have together; longer values are shortened."""
_LEAST = 80
"""Characters of a value that are always shown, however many arguments there are."""

_IN_A_TABLE = 200
"""Characters of a value in a table of calls."""
MOST_ON_PAGE = 20_000
"""Characters of a call and its schema that go to the page with its card; it asks for longer ones."""
Schema = Mapping[str, Any]
"""The JSON schema of a tool's parameters."""
Schemas = Mapping[str, Schema | None]
"""Id of an approval -> the schema of the tool that it is about."""


class DisplayedArgument(NamedTuple):
    """An argument as text."""

    name: str
    text: str
    """Its value as JSON."""
    left_out: int
    """Characters of the value that are not shown."""
    note: Literal["", "unknown", "default"] = ""
    """`unknown`: the tool has no such parameter. `default`: the call leaves it out, and the tool uses this default."""


class DisplayedCall(NamedTuple):
    """The arguments of a call, those that the tool knows first."""

    arguments: list[DisplayedArgument]
    remarks: list[str]
    """Warnings for the approver, beside the values."""


def displayed_call(tool: str, args: Mapping[str, Any], schema: Schema | None = None) -> DisplayedCall:
    """A call of `tool` for its approver. `schema` None: its parameters are not known, so no argument is marked."""
    ordered = _ordered(args, schema)
    texts = {name: exact_text(args[name]) for name in ordered[:MOST_ARGUMENTS]}
    most = fair_length([len(text) for text in texts.values()], VALUES_LIMIT, _LEAST)
    arguments = [_argument(name, text, most, schema) for name, text in texts.items()]
    return DisplayedCall(arguments, _remarks(tool, args, ordered, schema, texts))


def default_arguments(args: Mapping[str, Any], schema: Schema | None) -> list[DisplayedArgument]:
    """The parameters that a call leaves out and that have a default."""
    properties = (schema or {}).get("properties")
    parameters = cast(dict[str, Any], properties) if isinstance(properties, dict) else {}
    left_out: list[tuple[str, Any]] = []
    for name, parameter in parameters.items():
        default = cast(dict[str, Any], parameter).get("default") if isinstance(parameter, dict) else None
        if name not in args and default is not None:
            left_out.append((name, default))
    return [
        DisplayedArgument(name_text(name), abridged(exact_text(value), _LEAST), 0, "default")
        for name, value in left_out[:MOST_ARGUMENTS]
    ]


def card_for_page(card: dict[str, Any]) -> dict[str, Any]:
    """The card of a call for the page: its arguments as text, and, if they are small, the values to edit and schema."""
    args, schema = card["args"], card["schema"]
    call = displayed_call(card["tool"], _listed(card), schema)
    whole = editable_call(card)
    if len(json.dumps(whole, default=str)) > MOST_ON_PAGE:
        whole = {"args": None, "schema": None}
    alike: list[dict[str, Any]] = []
    for calls in card["alike"]:  # calls with equal arguments, for a row of a table
        names = list(calls["args"])[:MOST_ARGUMENTS]
        texts = [_argument(name, exact_text(calls["args"][name]), _IN_A_TABLE, None)._asdict() for name in names]
        row = {"key": calls["key"], "count": calls["count"], "arguments": texts, "hint": calls.get("hint", "")}
        alike.append(row)
    return {
        **card,
        **whole,
        "arguments": [argument._asdict() for argument in [*call.arguments, *default_arguments(args, schema)]],
        "alike": alike,
        "remarks": call.remarks,
        "destructive": bool(schema and schema.get("x-destructive")),
    }


def editable_call(card: dict[str, Any]) -> dict[str, Any]:
    """Arguments and schema for the page's editor: `{"args", "schema"}`, known secrets hidden."""
    return {"args": without_known(card["args"]), "schema": card["schema"]}


def full_values(card: dict[str, Any]) -> list[str]:
    """The values of a card's shown arguments, none shortened."""
    listed = _listed(card)
    return [exact_text(listed[name]) for name in _ordered(listed, card["schema"])[:MOST_ARGUMENTS]]


def _listed(card: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a card, without those that it tells otherwise."""
    return {name: value for name, value in card["args"].items() if name not in card.get("told", ())}


def full_alike_values(card: dict[str, Any]) -> dict[str, list[str]]:
    """The values in a card's table of calls, none shortened, by the key of the row."""
    values = {row["key"]: list(row["args"].values())[:MOST_ARGUMENTS] for row in card["alike"]}
    return {key: list(map(exact_text, of_row)) for key, of_row in values.items()}


def call_line(tool: str, args: Mapping[str, Any], schema: Schema | None = None) -> str:
    """`refund(order="17", amount=250.0)`."""
    return f"{name_text(tool)}({arguments_line(args, schema)})"


def arguments_line(args: Mapping[str, Any], schema: Schema | None = None) -> str:
    """`order="17", amount=250.0`; an argument that the tool does not have is marked."""
    arguments = displayed_call("", args, schema).arguments
    return ", ".join(f"{item.name}={item.text}" + (f" ({item.note})" if item.note else "") for item in arguments)


def _ordered(args: Mapping[str, Any], schema: Schema | None) -> list[str]:
    return sorted(args, key=lambda name: not _has_parameter(schema, name))


def _argument(name: str, text: str, most: int, schema: Schema | None) -> DisplayedArgument:
    is_unknown = not _has_parameter(schema, name)
    note = "unknown" if is_unknown else ""
    return DisplayedArgument(_name(name, is_unknown), abridged(text, most), max(0, len(text) - most), note)


def _name(name: str, is_unknown: bool) -> str:
    """An unknown name in ASCII, so that a Cyrillic letter in it does not pass for a Latin one."""
    return ascii_escaped(name_text(name)) if is_unknown else name_text(name)


def _has_parameter(schema: Schema | None, name: str) -> bool:
    properties = schema.get("properties") if schema else None
    if schema is None or not isinstance(properties, dict) or schema.get("additionalProperties"):
        return True
    return name in cast(dict[str, Any], properties)


def _remarks(
    tool: str, args: Mapping[str, Any], ordered: list[str], schema: Schema | None, texts: Mapping[str, str]
) -> list[str]:
    remarks: list[str] = []
    if unknown := [name for name in ordered if not _has_parameter(schema, name)]:
        names = ", ".join(_name(name, True) for name in unknown[:5]) + (", …" if len(unknown) > 5 else "")
        remarks.append(f"{name_text(tool)} has no argument {names}")
    if any(HIDDEN in text and without_known(args[name]) != args[name] for name, text in texts.items()):
        remarks.append(f"{HIDDEN} stands for a known secret, which is hidden here and sent to the tool as it is")
    if hidden_count := len(args) - len(texts):
        remarks.append(f"{hidden_count:,} more arguments are not shown")
    return remarks


def shortened_remark(call: DisplayedCall) -> list[str]:
    """For forms without clicks: where the full values of shortened arguments are."""
    names = ", ".join(argument.name for argument in call.arguments if argument.left_out)
    return [f"shortened: {names}; the reply has them in full, as in _run.interrupts[0].call.args"] if names else []
