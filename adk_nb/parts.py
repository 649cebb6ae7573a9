"""Contents, results and tools as the loop makes them, many a turn: copies of one that google-genai has checked.

google-genai looks at every field of whatever is made anew, which costs four times as much as a copy. A copy is not
checked: what is handed in here has the types that the signatures say.
"""

from functools import cache
from typing import Any

from adk_nb import types
from adk_nb.wire import bare, copied, copied_in_depth, prototype


def content(role: str, parts: list[types.Part]) -> types.Content:
    """A content of `parts`."""
    return copied(_content(), role=role, parts=parts)


def words(text: str) -> types.Part:
    """A part that says `text`."""
    return copied(_words(), text=text)


_TEXT = {"text"}


def copied_content(one: types.Content) -> types.Content:
    """A copy of `one` in depth; of text, which most contents are, at two thirds of the price."""
    if not one.parts or one.__class__ is not types.Content:
        return copied_in_depth(one)
    made: list[types.Part] = []
    for part in one.parts:
        if part.__pydantic_fields_set__ != _TEXT or part.__class__ is not types.Part:
            return copied_in_depth(one)
        made.append(bare(types.Part, {"text"}, part.__dict__.copy()))
    fields = one.__dict__.copy()
    fields["parts"] = made
    return bare(types.Content, one.__pydantic_fields_set__.copy(), fields)


def call(id: str | None, name: str | None, args: dict[str, Any] | None) -> types.Part:
    """A part with a call."""
    return copied(_calling(), function_call=copied(_call(), id=id, name=name, args=args))


def result(id: str | None, name: str, response: dict[str, Any]) -> types.Part:
    """A part with the result of the call `id`."""
    return copied(_part(), function_response=copied(_response(), id=id, name=name, response=response))


def tool(declarations: list[types.FunctionDeclaration]) -> types.Tool:
    """Functions that a model may call."""
    return copied(_tool(), function_declarations=declarations)


@cache
def _content() -> types.Content:
    return prototype(types.Content(role="user", parts=[]))


@cache
def _words() -> types.Part:
    return prototype(types.Part(text=""))


@cache
def _call() -> types.FunctionCall:
    return prototype(types.FunctionCall(id="", name="", args={}))


@cache
def _calling() -> types.Part:
    return prototype(types.Part(function_call=_call()))


@cache
def _response() -> types.FunctionResponse:
    return prototype(types.FunctionResponse(id="", name="", response={}))


@cache
def _part() -> types.Part:
    return prototype(types.Part(function_response=_response()))


@cache
def _tool() -> types.Tool:
    return prototype(types.Tool(function_declarations=[]))
