"""The part of a chat that goes back in time: rewind, ask again, fork."""

from collections.abc import Callable
from copy import copy
from typing import Any, Self, cast

from adk_nb import sync, types
from adk_nb.errors import AlreadyExistsError, InputError
from adk_nb.events.event import Event
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.error_hints import waited_for
from adk_nb.notebook.past_turns import PastTurn, Rewound, turns_of, words_of
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.turn import TurnRunner
from adk_nb.runtime.trace import Traces
from adk_nb.sessions.session_file import check_name


class GoesBack:
    """What `Chat` can do with what was said before. Nothing is taken out of the session: what is undone stays in it,
    with one more event that says so, and can still be traced.
    """

    traces: Traces
    """What models and tools were asked in the newest turns."""
    magic: Callable[[], str]
    """Returns the `%confirm` that reaches this session, empty if only Python has this chat."""
    _talk: TurnRunner
    _conversation: Conversation

    @property
    def turns(self) -> list[PastTurn]:
        """What the user has said so far, with all that came of it, oldest first; undone turns too."""
        with self._conversation.history(self._events()) as history:
            return turns_of(history)

    def rewind(self, to: int | str | Event = 1, *, dry_run: bool = False) -> Rewound:
        """Undo turns of the user's: agents no longer see them, state and files are as before, what waits is closed.

        Args:
            to: How many, counted from the last; or an event, or the id of one or of a run: its turn, and what came
                after it.
            dry_run: Nothing is done; only say what would be undone.

        Raises:
            InputError: There are not so many, or no such event, or it is undone already.
            SessionBusyError: Another kernel is at work in the session.
        """
        self.refuse_while_busy()
        told = sync.run(self._conversation.rewind(to.id if isinstance(to, Event) else to, dry_run=dry_run))
        if not dry_run:
            self.let_go(told)
        return told

    def rerun(self, event: int | str | Event = 1) -> Reply:
        """Undo the turn of `event` and what came after it, and say again what the user said there.

        To keep what is there now, do it in a fork: `chat.fork().rerun(event)`.

        Args:
            event: As `to` of `rewind`; 1 is the last turn.

        Raises:
            InputError: There is no such event, or it is undone already.
            UserError: As `ask`.
        """
        return self.say_again(self.rewind(event).message)

    def fork(self, name: str | None = None, *, at: str | Event | None = None) -> Self:
        """A chat with the same agent in a copy of the session; this one stays as it is.

        Args:
            name: The copy's. None: this one's, with a number behind it.
            at: The last event that is copied, or its id. None: all are.

        Raises:
            InputError: Nothing was said yet, or there is no such event, or there is a session of that name.
        """
        self.refuse_while_busy()
        key = at.id if isinstance(at, Event) else at
        try:
            made = sync.run(self._conversation.fork(None if name is None else check_name(name), key))
        except AlreadyExistsError as error:
            raise InputError(f"{error}, and it stays as it is; write chat.fork('another')") from error
        return self._in_session(made)

    def _in_session(self, session_id: str) -> Self:
        chat = copy(self)
        chat.magic = str
        chat._conversation = self._conversation.in_session(session_id)
        chat._talk = TurnRunner(cast(Any, chat), chat._conversation)
        chat._talk.max_cost = self._talk.max_cost
        return chat

    def say_again(self, message: types.Content) -> Reply:
        """Say what was said before, as it was, and wait for what comes of it."""
        return waited_for(self._talk.again(message, self._talk.on_show(words_of(message) or None)))

    async def rerun_in_a_fork(self, event_id: str) -> Reply:
        """`fork().rerun(event_id)` for where nobody can wait, as after a click; its reply is shown where that is."""
        self.refuse_while_busy()
        await self._conversation.rewind(event_id, dry_run=True)  # no copy is made for what cannot be undone
        made = await self._conversation.fork(None, None)
        chat = self._in_session(made)
        told = await chat._conversation.rewind(event_id, dry_run=False)
        shown = chat._talk.on_show(words_of(told.message) or None)
        shown.resumed = True
        where = f"Rerun: asked again in session {made!r}, a copy; %session use {made} goes on there"
        shown.notices.add(where, is_chip=True)
        return await chat._talk.again(told.message, shown)

    def let_go(self, told: Rewound) -> None:
        """Close what waited in turns that were undone."""
        self._talk.cards.undone(told.closed)

    def refuse_while_busy(self) -> None:
        """Raise an InputError while a turn is under way."""
        self._talk.refuse_while_busy()

    def _events(self) -> list[Event]:
        session = sync.run(self._conversation.loaded())
        return list(session.events) if session else []
