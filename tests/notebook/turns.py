"""Real turns to look at: an agent with a scripted model, its events, and the replies they make."""

from collections.abc import Sequence

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.scripted_llm import Answer, ScriptedLlm
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.document import Table, document
from adk_nb.notebook.view.reply_view import Notices, ReplyView, reply_document
from adk_nb.notebook.view.rows import event_table
from adk_nb.notebook.view.writers import bundle
from adk_nb.runners import InMemoryRunner
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.runtime.run_config import RunConfig, StreamingMode

USER, SESSION = "ada", "main"


class Talk:
    """A conversation with one agent."""

    def __init__(self, *answers: Answer, tools=(), state=None, **settings) -> None:
        agent = LlmAgent(name="weather", model=ScriptedLlm(*answers), tools=list(tools), **settings)
        self._runner = InMemoryRunner(agent)
        self._key = {"app_name": self._runner.app_name, "user_id": USER, "session_id": SESSION}
        self._runner.session_service.create_session(**self._key, state=state)

    def say(self, message: str | types.Content, *, streaming: bool = False) -> list[Event]:
        """The events of one turn, the user's first, pieces included."""
        mode = StreamingMode.SSE if streaming else StreamingMode.NONE
        run = self._runner.run_async(
            user_id=USER,
            session_id=SESSION,
            new_message=message,
            run_config=RunConfig(streaming_mode=mode),
            yield_user_message=True,
        )
        return list(sync.iterate(run))

    def decide(self, confirmed: bool = True, **more) -> list[Event]:
        """The events of answering the one approval that is open."""
        [one] = self.pending
        decided = ToolConfirmation(confirmed=confirmed, **more)
        return self.say(types.Content(role="user", parts=[interrupts.answer(one, decided)]))

    @property
    def events(self) -> list[Event]:
        return sync.run(self._session()).events

    @property
    def pending(self) -> list[Interrupt]:
        return open_interrupts(self.events, APPROVALS)

    async def _session(self):
        session = await self._runner.session_service.get_session(**self._key)
        assert session
        return session


def Shown(*, notice: str | None = None, **fields) -> ReplyView:
    """What a cell shows of a reply."""
    usual = {"question": None, "agent": "weather", "text": "", "magic": "%confirm", "status": "done"}
    return ReplyView(**{**usual, **fields}, notices=Notices(notice))


def reply_forms(reply: ReplyView | Reply, *, history: Sequence[Event] = ()) -> dict[str, str]:
    """A reply in the forms that a notebook keeps."""
    return bundle(reply_document(view_of_reply(reply) if isinstance(reply, Reply) else reply, history=history))


def event_forms(events: Sequence[Event], **more) -> dict[str, str]:
    """An event log in these forms."""
    return bundle(document(event_table(events, **more)))


def table_forms(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> dict[str, str]:
    """A table in these forms."""
    return bundle(document(Table(headers, rows, width)))
