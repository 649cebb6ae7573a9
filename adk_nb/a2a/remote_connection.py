"""Send a message to a remote agent, and follow its task to the end, also when the connection breaks."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from adk_nb import clock
from adk_nb.a2a.agent_card import resolve_card
from adk_nb.a2a.http_client import new_client, translated_errors
from adk_nb.a2a.protocol import BINDINGS, EXTRA, WAITING, WORKING, a2a_types, state_name
from adk_nb.errors import A2AClientError, A2AConnectionError
from adk_nb.lazy import require

_RETRY_DELAYS = (0.2, 0.5, 1.0, 2.0)
"""Seconds before each attempt to find a task again."""
_POLL_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two looks at a task that does not stream; the last one repeats."""
_CANCEL_SECONDS = 5.0


class RemoteConnection:
    """A remote agent's card, and the client for it; the card is fetched once, at the first use."""

    def __init__(self, source: Any, token: str | None, seconds: float, http: Any) -> None:
        """`source`: as `resolve_card` takes it. `http`: an httpx client of the caller's. None: one for each message."""
        self._source = source
        self._token = token
        self._seconds = seconds
        self._own_http = http
        self._card: Any = None

    async def card(self) -> Any:
        """The checked card.

        Raises:
            A2AClientError: There is none.
        """
        if self._card is None:
            async with self._http() as http:
                self._card = await resolve_card(self._source, http, self._seconds)
        return self._card

    async def send(self, message: Any) -> AsyncGenerator[Any, None]:
        """Send a message, and yield the updates until its task ends or waits for another message.

        A task that is lost on the way is looked up again and followed on: a snapshot of it is an update, too.

        Raises:
            A2AConnectionError: The agent was not reached, or was lost for good.
            A2AClientError: It refused the message.
        """
        async with self._client() as client:
            try:
                async with aclosing(self._exchange(client, message)) as updates:
                    async for update in updates:
                        yield update
                return
            except A2AClientError as error:
                # Sent again only if the agent knows no such task, so it has not run.
                unknown_task = require("a2a.utils.errors", package=EXTRA).TaskNotFoundError
                if not message.task_id or not isinstance(error.__cause__, unknown_task):
                    raise
            # The server has started again, and its tasks are gone; the context may be there, with its open question.
            message.task_id = ""
            async with aclosing(self._exchange(client, message)) as updates:
                async for update in updates:
                    yield update

    async def _exchange(self, client: Any, message: Any) -> AsyncGenerator[Any, None]:
        request = a2a_types().SendMessageRequest(message=message)
        task_id, state = message.task_id, ""
        lost: A2AConnectionError | None = None
        try:
            async with aclosing(self._updates(client.send_message(request))) as updates:
                async for update in updates:
                    task_id, state = _progress(update) or (task_id, state)
                    yield update
        except A2AConnectionError as error:
            if not state:
                raise  # nobody knows whether the message arrived
            lost = error
        # The stream broke, or the server ended it while the task goes on: it is followed on from a snapshot.
        delays = iter(_RETRY_DELAYS)
        while lost or state in WORKING:
            try:
                async with aclosing(self._follow(client, task_id, polls=lost is None)) as updates:
                    async for update in updates:
                        yield update
                return
            except A2AConnectionError as error:
                lost = lost or error
                if (delay := next(delays, None)) is None:
                    lost.task_id = task_id
                    raise lost from error
                await asyncio.sleep(delay)

    async def cancel(self, task_id: str) -> None:
        """Ask the agent to stop a task; errors do not matter."""
        try:
            # A user who stops a run must not wait for a server that does not answer.
            async with asyncio.timeout(_CANCEL_SECONDS), self._client() as client:
                with translated_errors(self._url, self._seconds):
                    await client.cancel_task(a2a_types().CancelTaskRequest(id=task_id))
        except (A2AClientError, TimeoutError):
            return

    @asynccontextmanager
    async def _http(self, *, reads_forever: bool = False) -> AsyncGenerator[Any, None]:
        if self._own_http is not None:
            yield self._own_http
            return
        async with new_client(self._token, None if reads_forever else self._seconds) as http:
            yield http

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Any, None]:
        """A client of a2a-sdk; whoever uses it limits the time of each call."""
        sdk = require("a2a.client", package=EXTRA)
        card = await self.card()
        async with self._http(reads_forever=True) as http:
            config = sdk.ClientConfig(httpx_client=http, supported_protocol_bindings=list(BINDINGS))
            yield sdk.ClientFactory(config).create(card)

    @property
    def _url(self) -> str:
        return self._card.supported_interfaces[0].url

    async def _updates(self, stream: Any) -> AsyncGenerator[Any, None]:
        """The updates of a stream, each within the time limit: a server that only keeps the line open is silent.

        A task that waits for a person has all the time there is.
        """
        state = ""
        async with aclosing(stream):
            while True:
                with translated_errors(self._url, self._seconds):
                    async with asyncio.timeout(None if state in WAITING else self._seconds):
                        update = await anext(stream, None)
                if update is None:
                    return
                _, state = _progress(update) or ("", state)
                yield update

    async def _follow(self, client: Any, task_id: str, *, polls: bool) -> AsyncGenerator[Any, None]:
        """Snapshots and updates of a task until it no longer works. `polls`: the server does not stream."""
        a2a, card = a2a_types(), await self.card()
        waits, deadline = iter(_POLL_SECONDS), clock.now() + self._seconds
        snapshot: Any = None
        while True:
            with translated_errors(self._url, self._seconds):
                async with asyncio.timeout(self._seconds):
                    task = await client.get_task(a2a.GetTaskRequest(id=task_id))
            if task != snapshot:
                snapshot, deadline = task, clock.now() + self._seconds
                yield a2a.StreamResponse(task=task)
            if state_name(task.status) not in WORKING:
                return
            if clock.now() > deadline:
                raise A2AConnectionError(
                    f"{self._url!r} reported no progress of task {task_id!r} for {self._seconds:g} seconds"
                )
            if polls or not card.capabilities.streaming:
                await asyncio.sleep(next(waits, _POLL_SECONDS[-1]))
                continue
            polls = True  # after the subscription, a look at the task says how it ended
            stream = client.subscribe(a2a.SubscribeToTaskRequest(id=task_id))
            try:
                async with aclosing(self._updates(stream)) as updates:
                    async for update in updates:
                        yield update
            except A2AConnectionError:
                raise
            except A2AClientError:
                pass  # A2A: refused with UnsupportedOperationError for a task that has ended meanwhile


def _progress(update: Any) -> tuple[str, str] | None:
    """Id and state of the task that an update is about. None: it has no state."""
    kind = update.WhichOneof("payload")
    if kind == "task":
        return update.task.id, state_name(update.task.status)
    if kind == "status_update":
        return update.status_update.task_id, state_name(update.status_update.status)
    return None
