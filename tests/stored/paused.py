"""Agents whose runs pause, and the files in which version 0.1.0 at 8cd2881 left them: `paused.db` and `*.json`.

Only the fingerprint of `pay` in them is newer: an approval counts for the tool that was shown, and a fingerprint covers
more than it did. The files stay as they are: later versions read what is stored. To write such files with another
version, run this module as `python -m tests.stored.paused FOLDER`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import SqliteSessionService, session_file
from adk_nb.tools import FunctionTool, ToolContext, request_input
from adk_nb.workflow import Workflow

FOLDER = Path(__file__).parent
KEY = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
PAID: list[int] = []
READ: list[Any] = []


def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return "paid"


def mail(tool_context: ToolContext) -> str:
    """Read the mail."""
    READ.append(tool_context.auth_credential and tool_context.auth_credential.api_key)
    return "one mail"


def order(node_input: str) -> dict[str, Any]:
    """The first node of the graph."""
    return {"amount": 5}


def numbered(name: str, **args: Any) -> types.Part:
    """A call as services number it that begin again with each answer."""
    return types.Part(function_call=types.FunctionCall(id="call_0", name=name, args=args))


GATED = FunctionTool(pay, require_confirmation=True)
LET_IN = FunctionTool(mail, auth_config=KEY)


def approval(*answers: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=ScriptedLlm(*answers or [numbered("pay", amount=5)]), tools=[GATED])


def credential(*answers: Any) -> LlmAgent:
    return LlmAgent(name="postman", model=ScriptedLlm(*answers or [numbered("mail")]), tools=[LET_IN])


def question(*answers: Any) -> LlmAgent:
    asks = call("adk_request_input", message="Who are you?")
    return LlmAgent(name="host", model=ScriptedLlm(*answers or [asks]), tools=[request_input])


def team(*answers: Any, inside: tuple[Any, ...] = ()) -> LlmAgent:
    """What pauses is inside a sub-agent."""
    books = LlmAgent(
        name="books", mode="single_turn", model=ScriptedLlm(*inside or [numbered("pay", amount=5)]), tools=[GATED]
    )
    model = ScriptedLlm(*answers or [numbered("books", request="book")])
    return LlmAgent(name="lead", model=model, sub_agents=[books], tools=[GATED])


def graph(*_: Any) -> Workflow:
    return Workflow(name="graph", edges=[("START", order, GATED)])


PAUSES = {"approval": approval, "credential": credential, "question": question, "team": team, "graph": graph}


def reused(*answers: Any) -> LlmAgent:
    """Two calls that are open at once, under one id: as no session has them any more."""
    return approval(*answers or [numbered("pay", amount=5), numbered("pay", amount=9000)])


async def _write(folder: Path) -> None:
    service = SqliteSessionService(folder / "paused.db")
    for name, make in {**PAUSES, "reused": reused}.items():
        await service.create_session(app_name="app", user_id="u", session_id=name)
        async with Runner(app_name="app", agent=make(), session_service=service) as runner:
            for words in ("Please begin", "And this")[: 1 + (name == "reused")]:
                async for _ in runner.run_async(user_id="u", session_id=name, new_message=words):
                    pass
        session = await service.get_session(app_name="app", user_id="u", session_id=name)
        if session:
            session_file.write(session, folder / f"{name}.json", replace=True)
    await service.close()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1])))
