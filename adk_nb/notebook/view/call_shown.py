"""A call as its approver sees it: every argument in its place, nothing invisible, only known secrets hidden."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from adk_nb.notebook.view.plain_text import (
    MOST_ARGUMENTS,
    abridged,
    exact_text,
    fitting_lengths,
    name_text,
)
from adk_nb.redaction import HIDDEN, without_known

ROOM = 2_000
"""Characters that the values of all arguments have together, before long ones are shortened."""
_LEAST = 80
"""Characters of a value that are always shown, however many arguments there are."""

Schema = Mapping[str, Any]
"""The JSON schema of a tool's parameters."""
Schemas = Mapping[str, Schema | None]
"""By the id of the approval that asks for a call of the tool."""


class ShownArgument(NamedTuple):
    """An argument as text."""

    name: str
    text: str
    """Its value as JSON."""
    left_out: int
    """Characters of the value that are not shown."""
    is_unknown: bool
    """The tool has no such parameter."""


class ShownCall(NamedTuple):
    """The arguments of a call, those that the tool knows first."""

    arguments: list[ShownArgument]
    remarks: list[str]
    """What an approver has to know beside the values."""


def shown_call(tool: str, args: Mapping[str, Any], schema: Schema | None = None) -> ShownCall:
    """A call of `tool`. `schema` None: it is not known which parameters the tool has, and none is marked."""
    ordered = sorted(args, key=lambda name: not _has_parameter(schema, name))
    texts = {name: exact_text(args[name]) for name in ordered[:MOST_ARGUMENTS]}
    most = fitting_lengths([len(text) for text in texts.values()], ROOM, _LEAST)
    arguments = [_argument(name, text, most, schema) for name, text in texts.items()]
    return ShownCall(arguments, _remarks(tool, args, ordered, schema, texts))


def call_line(tool: str, args: Mapping[str, Any], schema: Schema | None = None) -> str:
    """`refund(order="17", amount=250.0)`."""
    return f"{name_text(tool)}({arguments_line(args, schema)})"


def arguments_line(args: Mapping[str, Any], schema: Schema | None = None) -> str:
    """`order="17", amount=250.0`; an argument that the tool does not have is marked."""
    return ", ".join(map(_argument_text, shown_call("", args, schema).arguments))


def _argument_text(one: ShownArgument) -> str:
    return f"{one.name}={one.text}" + (" (unknown)" if one.is_unknown else "")


def _argument(name: str, text: str, most: int, schema: Schema | None) -> ShownArgument:
    is_unknown = not _has_parameter(schema, name)
    return ShownArgument(_name(name, is_unknown), abridged(text, most), max(0, len(text) - most), is_unknown)


def _name(name: str, is_unknown: bool) -> str:
    """An unknown name in ASCII, so that a Cyrillic letter in it does not pass for a Latin one."""
    shown = name_text(name)
    return shown.encode("ascii", "backslashreplace").decode() if is_unknown else shown


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
    if left := len(args) - len(texts):
        remarks.append(f"{left:,} more arguments are not shown")
    return remarks


def shortened_remark(call: ShownCall) -> list[str]:
    """For what cannot be opened by a click: where the values are that were shortened."""
    names = ", ".join(one.name for one in call.arguments if one.left_out)
    return [f"shortened: {names}; all of it is in .pending[...].call.args of the reply, as in _run"] if names else []
