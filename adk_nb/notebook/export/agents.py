"""The instruction of a `%%agent` cell as Python: text in which `{key}` is the state's, or a function that fills it in.

Wherever a brace is only text it is a function: what google-adk makes of other braces has changed between its versions.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adk_nb.notebook.export.code import text_code
from adk_nb.notebook.registry.templates import Key, Template

FROM_STATE = '''\
def _from_state(context: Any, key: str, otherwise: str | None = None) -> str:
    """A value of the session's state as text; without it `otherwise`, or else an error."""
    if key not in context.state:
        if otherwise is None:
            raise KeyError(f"{key!r} is not in the session's state")
        return otherwise
    value = context.state[key]
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)'''
"""What such a function calls; it needs `json` and `Any`."""


@dataclass(frozen=True)
class Instruction:
    """An instruction, and what has to stand before it."""

    code: str
    function: str = ""
    """The function that it is, if it is one."""
    keys: tuple[str, ...] = ()
    """Keys that have to be in the state."""


def instruction_of(agent: str, text: str, template: Template | None, is_key: Callable[[str], bool]) -> Instruction:
    """The instruction of `agent`.

    Args:
        agent: The variable that holds it.
        text: As its cell says it.
        template: The same with its variables put in; None: braces mean nothing.
        is_key: Whether `{name}` without a scope is a key of the state.
    """
    pieces = template.pieces if template else (text,)
    keys = [one for one in pieces if isinstance(one, Key)]
    sure = [one for one in keys if one.scoped or one.optional or is_key(one.name)]
    needed = tuple(dict.fromkeys(one.name for one in sure if not (one.optional or one.is_artifact)))
    words = "".join(one for one in pieces if isinstance(one, str))
    if len(sure) == len(keys) and "{" not in words and "}" not in words:
        said = "".join(one if isinstance(one, str) else one.spelled for one in pieces)
        return Instruction(text_code(said), keys=needed)
    name = f"_{agent}_instruction"
    told = [_piece(one, one in sure) for one in pieces if one != ""]
    body = told[0] if len(told) == 1 else "\n        + ".join(told)
    body = f"return {body}" if len(told) == 1 else f"return (\n        {body}\n    )"
    return Instruction(name, f"def {name}(context: Any) -> str:\n    {body}", needed)


def _piece(piece: str | Key, sure: bool) -> str:
    if isinstance(piece, str):
        return text_code(piece)
    otherwise = "" if piece.optional else piece.spelled
    more = "" if sure and not piece.optional else f", {text_code(otherwise)}"
    return f"_from_state(context, {text_code(piece.name)}{more})"
