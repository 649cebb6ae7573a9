"""A session with something in every table, and what can be read of it: `every_table.json` is how 8cd2881 read its own.

That version wrote `every_table.db` (SqliteSessionService) and `every_table_postgres.sql` (pg_dump --inserts). The files
stay as they are: later versions read what is stored.
"""

from pathlib import Path
from typing import Any

from adk_nb import types
from adk_nb.events import Event, EventActions
from adk_nb.sessions.journal import Intent

FOLDER = Path(__file__).parent
WHERE = {"app_name": "app", "user_id": "Zoë", "session_id": "kept"}
ODD: dict[str, Any] = {"zulu": [1e23, -0.0, 10**30, 5e-324], "a": {"long name": 1, "b": "\x00 é"}, "": None}
PAY = Intent(run_id="cut", branch="team.clerk", call_id="c\x00" * 100, name="pay", effect="once")


async def fill(service: Any) -> None:
    """Two sessions: a run of the one was cut, with an attempt that ended and two that did not."""
    await service.create_session(**WHERE | {"session_id": "other"}, state={"user:n": 0})
    session = await service.create_session(**WHERE, state=ODD | {"gone": 1, "user:odd": ODD, "app:motd": "hi"})
    lease = await service.claim(session, "whole", owner="process 1 on saturn", version="v1")
    call = types.Part(function_call=types.FunctionCall(id="c1", name="look", args=ODD))
    answer = types.Part(function_response=types.FunctionResponse(id="c1", name="look", response=ODD))
    image = types.Part(inline_data=types.Blob(data=b"\xff\x00", mime_type="image/png"))
    delta: dict[str, Any] = {"gone": {"__adk_deleted__": True}, "k": [1], "user:n": 2, "app:odd": ODD}
    rich = Event(id="e1", author="guide", invocation_id="whole", branch="a.b", timestamp=5.5, output=ODD)
    rich.content = types.Content(role="model", parts=[call, answer, image])
    rich.actions = EventActions(state_delta=delta, route=["a", 1])
    await service.append_event(session, rich)
    await service.append_event(
        session, Event(id="e2", author="user", timestamp=-1.0, message="earlier, says the clock")
    )
    await lease.release("done")
    lease = await service.claim(session, "cut", owner="process 2 on saturn (00000000)", version="v2")
    first = await lease.begin(PAY, consumes=["yes", "y" * 300])
    await lease.finish(first, ODD)
    await lease.begin(PAY)
    await lease.begin(Intent(run_id="cut", kind="model", call_id="m"))
    await lease.release()


async def look(service: Any) -> dict[str, Any]:
    """All that can be read of it, as JSON values."""
    session = await service.get_session(**WHERE)
    owner = {"app_name": "app", "user_id": "Zoë"}
    return {
        "events": [event.model_dump(mode="json", exclude_defaults=True) for event in session.events],
        "order of keys": repr([session.events[0].output, session.events[0].get_function_calls()[0].args]),
        "state": repr(session.state),
        "last_update_time": session.last_update_time,
        "sessions": sorted(each.id for each in (await service.list_sessions(**owner)).sessions),
        "user": repr(await service.get_user_state(**owner)),
        "runs": [repr(run) for run in await service.unfinished(session)],
    }
