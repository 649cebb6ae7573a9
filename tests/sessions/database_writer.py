"""What a process of its own does with a database server of sessions. Imports little, as `writer`."""

import asyncio
from contextlib import suppress

from adk_nb.errors import AlreadyExistsError
from adk_nb.sessions.database_session_service import DatabaseSessionService
from tests.sessions.writer import append


def append_in_a_process(url: str, name: str, count: int) -> None:
    """`append`, from a process that may be the first that this database hears of."""

    async def run() -> None:
        service = DatabaseSessionService(url)
        with suppress(AlreadyExistsError):
            await service.create_session(app_name="app", user_id="u", session_id="shared")
        await append(service, name, count)  # pyright: ignore[reportArgumentType]
        await service.close()

    asyncio.run(run())
