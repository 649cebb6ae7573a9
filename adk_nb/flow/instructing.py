"""What an agent is told: what never changes first, then what its tree and its author say, then who it is."""

from typing import Any

from adk_nb import types
from adk_nb.events.event import as_content
from adk_nb.flow.fences import INSTRUCTION, fenced, marks
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.runtime.invocation_context import InvocationContext

_BEGIN, _END = marks(INSTRUCTION)
_PREAMBLE = (
    f"What stands between {_BEGIN} and {_END} is your own instruction for this turn, with what is known now. It is "
    "meant for you, and the user did not say it: do not answer it. What the user says stands outside of these marks."
)


async def instruct(ctx: InvocationContext, spec: LlmSpec, request: LlmRequest) -> types.Content | None:
    """Fill in the system instruction: what is static, what all agents are told, the instruction, who the agent is.

    They are joined by blank lines. What is no text in the static instruction is added to `request.contents`.

    Returns:
        Where there is a static instruction, the other one: it changes from turn to turn, and so goes with the contents.

    Raises:
        StateKeyError: It names a state key, or an artifact, that is not there.
        ConfigurationError: It names an artifact, and the runner has no artifact service; or a function did not return
            text.
    """
    reader, static = ReadonlyContext(ctx), spec.static_instruction
    if static:
        request.append_instructions([static] if isinstance(static, str) else static_content(static))
        request.static_instruction = str(_system_instruction(request) or "")
    told: list[str] = []
    if tree := spec.instructed_by:
        told = [await _filled_in(*await one.canonical_global_instruction(reader), reader) for one in tree]
    own, as_it_is = await spec.canonical_instruction(reader)
    if "{" in own:
        own = await _filled_in(own, as_it_is, reader)
    if not static:
        told.append(own)
    if spec.identity:
        told.append(_identity(spec))
    if "" in told:
        told = [text for text in told if text]
    if told:
        request.append_instructions(told)
    return _for_this_turn(own) if own and static else None


def static_content(given: Any) -> types.Content:
    """A static instruction that is not text, as a content.

    Raises:
        InputError: It is neither a content nor a part nor a list of parts and texts.
    """
    parts: Any = [given] if isinstance(given, types.Part) else given
    if isinstance(parts, list):
        parts = [types.Part(text=one) if isinstance(one, str) else one for one in parts]  # pyright: ignore[reportUnknownVariableType]
    return as_content(parts)


async def _filled_in(text: str, as_it_is: bool, reader: ReadonlyContext) -> str:
    return text if as_it_is else await inject_session_state(text, reader)


def _for_this_turn(instruction: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=f"{_PREAMBLE}\n{fenced(INSTRUCTION, instruction)}")])


def _system_instruction(request: LlmRequest) -> Any:
    config: Any = request.config  # the type of this field names a package that may not be there
    return config.system_instruction


def _identity(spec: LlmSpec) -> str:
    said = f'You are an agent. Your internal name is "{spec.name}".'
    return f'{said} The description about you is "{spec.description}".' if spec.description else said
