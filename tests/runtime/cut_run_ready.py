"""Imported by a server of processes: each that it makes finds ready what a first run loads and builds."""

import asyncio
import tempfile
from pathlib import Path

from adk_nb.runners import InMemoryRunner
from tests.runtime.cut_run import Points, clerk


async def _once(folder: Path) -> None:
    runner = InMemoryRunner(clerk(folder, Points(0)), auto_create_session=True)
    async for _ in runner.run_async(user_id="u", session_id="s", new_message="go"):
        pass


with tempfile.TemporaryDirectory() as made:
    asyncio.run(_once(Path(made)))
