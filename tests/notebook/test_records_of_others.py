"""What somebody else wrote into the file of the sessions stops no magic: it is a row that says so."""

from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.events.event import Event
from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.sessions.sqlite_session_service import SqliteSessionService
from tests.notebook.conftest import Shell

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("adk_request_confirmation", {"originalFunctionCall": {"name": "pay", "args": "x"}}),
    ("adk_request_confirmation", {"originalFunctionCall": [{"name": "<b>pay</b>"}]}),
    ("adk_request_credential", {"authConfig": {"authScheme": "none"}}),
]


@pytest.mark.parametrize(("name", "args"), REQUESTS)
def test_a_malformed_request_in_the_file_stops_no_magic(
    bare: Shell, tmp_path: Path, name: str, args: dict[str, Any]
) -> None:
    bare.cell("%load_ext adk_nb")
    bare.names["model"] = ScriptedLlm("Hello.", "Still here.", "And here.")
    bare.cell(f'%config AdkNb.sessions = "sqlite:///{tmp_path}/nb.db"')
    bare.cell("%%agent clerk -m model\nPay what is due.")
    bare.cell("%chat clerk Hi.")
    bare.cell("%session new other")
    bare.cell("%chat clerk Hi.")
    service = SqliteSessionService(tmp_path / "nb.db")

    async def write() -> None:
        session = await service.get_session(app_name="notebook", user_id="user", session_id="main")
        assert session is not None
        part = types.Part(function_call=types.FunctionCall(id="r1", name=name, args=args))
        content = types.Content(role="model", parts=[part])
        run = session.events[-1].invocation_id
        event = Event(author="clerk", invocation_id=run, content=content, long_running_tool_ids={"r1"})
        await service.append_event(session, event)

    sync.run(write())
    sync.run(service.close())

    assert "other" in str(bare.cell("%session list"))
    bare.cell("%session use main")
    assert "cannot be read" in str(bare.cell("%trace -1"))
    bare.cell("%confirm")
    assert bare.cell("%chat clerk And now?").text == "And here."
    bare.cell("%rewind")
