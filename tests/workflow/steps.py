"""What a graph did, one line an event, and the answers that people give to it."""

from collections.abc import Iterable
from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm
from tests.support.talk import part_summary

ASKS = "adk_request_input"
APPROVES = "adk_request_confirmation"


def walked(events: Iterable[Event]) -> list[str]:
    """`path: what [on branch] [for graphs]`: what is `gives VALUE`, `says WORDS`, `asks MESSAGE`, `failed CODE`, or
    `waits` for the event that tells where a graph stands, and behind it what is written and chosen.
    """
    return [_line(event) for event in events if _line(event)]


def _line(event: Event) -> str:
    where = event.node_info.path.replace("@1", "")
    words = [f"gives {event.output!r}"] if event.output is not None else []
    for part in event.parts:
        if part.function_call and part.function_call.name == ASKS:
            words.append(f"asks {(part.function_call.args or {}).get('message')}")
        elif not (words and event.node_info.output_for):
            words.append(f"says {part_summary(part)}")
    words += [f"failed {event.error_code}"] if event.error_code else []
    words += ["waits"] if "workflow" in (event.actions.agent_state or {}) else []
    words += [f"=> {event.actions.state_delta}"] if event.actions.state_delta else []
    words += [f"-> {event.actions.route}"] if event.actions.route is not None else []
    words += [f"on {event.branch.replace('@1', '')}"] if event.branch else []
    outer = [path.replace("@1", "") for path in event.node_info.output_for or () if path != event.node_info.path]
    words += [f"for {', '.join(outer)}"] if outer else []
    return f"{where}: {' '.join(words)}" if words else ""


def answer(interrupt_id: str, value: Any, name: str = ASKS) -> types.Content:
    return answers({interrupt_id: value}, name)


def answers(given: dict[str, Any], name: str = ASKS) -> types.Content:
    """A message that answers each of these questions; a dict is the response itself."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(
                id=key, name=name, response=value if isinstance(value, dict) else {"result": value}
            )
        )
        for key, value in given.items()
    ]
    return types.Content(role="user", parts=parts)


def asked(events: Iterable[Event]) -> list[str]:
    """The ids of the calls that wait for an answer from outside."""
    return [
        call.id or ""
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ())
    ]


def step(name: str, *script: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*script), **fields)
