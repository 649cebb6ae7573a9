"""Imported by a server of processes: each that it makes finds ready what a first run loads and builds."""

import asyncio
import tempfile
from pathlib import Path

from tests.faults.clerk import Desk, Points


async def _once(folder: Path) -> None:
    desk = Desk(folder, Points())
    await desk.finish("s")
    await desk.service.close()


with tempfile.TemporaryDirectory() as made:
    asyncio.run(_once(Path(made)))
