"""`RemoteA2aAgent`: an agent of another process, as an agent of ours."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic import PrivateAttr

from adk_nb import sync
from adk_nb.a2a.agent_card import is_url, load_card
from adk_nb.a2a.protocol import a2a_types
from adk_nb.a2a.remote_answer import RemoteAnswer
from adk_nb.a2a.remote_connection import RemoteConnection
from adk_nb.a2a.remote_turn import RemoteTurn
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import A2AClientError, A2AConnectionError, ConfigurationError
from adk_nb.events.event import Event
from adk_nb.flow.history.contents import break_marks
from adk_nb.redaction import hidden, remember, remember_url
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.mcp_tool.content import clean_text
from adk_nb.wire import fast_private_attributes

DEFAULT_TIMEOUT = 600.0
_DESCRIPTION = 1_000
"""Characters of a description that another agent's card gives."""


@fast_private_attributes
class RemoteA2aAgent(BaseAgent):
    """An agent that works in another process, reached by the A2A protocol (1.0 or 0.3).

    It works like any agent: in a chat, as a sub-agent, in a graph, or as an AgentTool. Each session here is a context
    there, and its id is kept in the events, so that the conversation goes on after a restart. A message carries what
    the agent has not seen yet: the user's text, and what other agents said, quoted. If the other agent asks or needs an
    approval, the run is interrupted here, and the answer goes on with its task. State is not shared. If it is not
    reached or fails, that is an error event, and the run goes on, as in google-adk.

    Raises:
        ConfigurationError: `agent_card` is none; or only the address was given, and no agent is there.
        MissingExtraError: a2a-sdk is not installed.
    """

    agent_card: Any = None
    """As it was given."""

    _connection: RemoteConnection = PrivateAttr()
    _background: set["asyncio.Task[None]"] = PrivateAttr(default_factory=set["asyncio.Task[None]"])
    """Cancellations that are under way."""

    def __init__(
        self,
        name: str,
        agent_card: Any = None,
        *,
        description: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        token: str | None = None,
        httpx_client: Any = None,
        **fields: Any,
    ) -> None:
        """Nothing is sent yet, if there is a name and a card.

        Args:
            name: Its name here. With no `agent_card`: the address of the agent, which is asked for its name and
                description at once.
            agent_card: Address of the agent or of its card, path of the card's JSON, or an AgentCard.
            description: Its task, for other agents. Empty: the card's, once it is known.
            timeout: The longest silence of the other agent, in seconds. While a person there decides, time does not
                count.
            token: Sent as `Authorization: Bearer`; it is hidden in all output.
            httpx_client: A client of your own, for example with a proxy or other headers; you close it.
            **fields: Of BaseAgent.
        """
        a2a_types()  # else the first message would be refused
        remember(token)
        if agent_card is None:
            name, agent_card = "", name
        source = agent_card.strip() if isinstance(agent_card, str) else agent_card
        if not source:
            raise ConfigurationError("agent_card is empty; write RemoteA2aAgent('http://localhost:8001')")
        connection = RemoteConnection(source, token, timeout, httpx_client)
        card = None
        if is_url(source):
            remember_url(source)
            if not name:
                try:
                    card = sync.run(connection.card())
                except A2AClientError as error:
                    raise ConfigurationError(str(error)) from error
        else:
            card = load_card(source)
        description = description or (_description(card) if card else "")
        super().__init__(name=name or _name(card), description=description, agent_card=source, **fields)
        self._connection = connection

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """The other agent's events; the last one says the error if it was not reached, or failed."""
        turn = RemoteTurn(self.name, ctx)
        answer = RemoteAnswer(self.name, turn.new_event, turn.earlier)
        try:
            card = await self._connection.card()
            self.description = self.description or _description(card)
            async with aclosing(self._connection.send(turn.message())) as updates:
                async for event in _events(updates, turn, answer):
                    if not event.partial or ctx.run_config.streams:
                        yield event
            for event in answer.finish():
                yield event
        except A2AClientError as error:
            for event in answer.remainder():
                yield event
            is_lost = isinstance(error, A2AConnectionError) and error.task_id
            note = f"; task {error.task_id!r} may go on there" if is_lost else ""
            # Without metadata: the next message carries what this one did.
            yield turn.new_event(error_code=error.code, error_message=hidden(str(error)) + note)
        except (asyncio.CancelledError, GeneratorExit):
            if answer.is_working:
                self._cancel(answer.task_id)
            raise

    def _cancel(self, task_id: str) -> None:
        """Stop a remote task that nobody reads any more, in the background."""
        task = asyncio.get_running_loop().create_task(self._connection.cancel(task_id))
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _events(
    updates: AsyncGenerator[Any, None], turn: RemoteTurn, answer: RemoteAnswer
) -> AsyncGenerator[Event, None]:
    """The events of the updates; once the message has arrived, first that which closes what it answers."""
    is_first = True
    async for update in updates:
        for event in turn.closing_events() if is_first else ():
            yield event
        is_first = False
        for event in answer.read(update):
            yield event


def _description(card: Any) -> str:
    """The card's description: text of another, which models here read."""
    text = " ".join(break_marks(clean_text(card.description)).split())
    return text if len(text) <= _DESCRIPTION else f"{text[:_DESCRIPTION]} ..."


def _name(card: Any) -> str:
    """A name for an agent that has none here: that of its card."""
    name = re.sub(r"\W+", "_", card.name).strip("_")
    return name if name.isidentifier() and name != "user" else f"agent_{name}"[:60].rstrip("_")
