"""Imported by a server of processes: each that it makes finds ready what a worker loads and builds."""

import asyncio

import dbos
import psycopg

from adk_nb.runners import InMemoryRunner
from tests.engines.shop_worker import shop

READY = (dbos, psycopg)


async def _once() -> None:
    runner = InMemoryRunner(shop(), auto_create_session=True)
    async for _ in runner.run_async(user_id="u", session_id="s", new_message="nothing"):
        pass


asyncio.run(_once())
