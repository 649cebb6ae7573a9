"""The calls of an evaluation or a table that wait: the list of them, its cards, and answers for what was listed."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, cast

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.evaluation.waiting_calls import AlikeCalls, alike_calls, approval_label, call_key, chosen_calls
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.chat.desk import lacks_tool
from adk_nb.notebook.extensions.evaluation.tables import waiting_blocks
from adk_nb.notebook.place import Mode, this_cell
from adk_nb.notebook.view.cell_output import OriginCell
from adk_nb.notebook.view.display import show_run
from adk_nb.notebook.view.document import Block, Text, document
from adk_nb.notebook.view.interrupt_text import Verdict, prompt_text
from adk_nb.notebook.view.run_view import Clicks, OpenCards, RunView, TerminalRun, TurnInfo
from adk_nb.notebook.view.writers import bundle
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

MOST_LISTED = 500
"""Sets of alike calls of a tool that are listed at once, in text and on a card; the next come after an answer."""


class WaitingList:
    """What an evaluation or a table has shown of its calls that wait. An answer covers what was listed, no call more.

    Args:
        magic: Answers in a cell, followed by `approve` and the tool.
        agent: Of the runs.
        newest: Returns the agent as it is defined now.
        mode: The notebook's setting `display`.
        waiting: Returns the open approvals.
        events_of: Returns the events of the run that waits for an approval.
        answer: Gives a decision for the approvals with these keys.
        result: Returns what a cell shows after an answer.
    """

    def __init__(
        self,
        magic: str,
        agent: BaseAgent,
        mode: Mode,
        *,
        newest: Callable[[], BaseAgent],
        waiting: Callable[[], Sequence[Interrupt]],
        events_of: Callable[[Interrupt], Awaitable[Sequence[Event]]],
        answer: Callable[[Collection[str], ToolConfirmation], Awaitable[None]],
        result: Callable[[], Any],
    ) -> None:
        self._magic, self._agent, self._newest = magic, agent, newest
        self._mode: Mode = mode
        self._waiting, self._events_of, self._answer, self._result = waiting, events_of, answer, result
        self._listed: set[str] = set()
        """Keys of the approvals that the notebook has shown."""
        self._cards: dict[tuple[RunView, str], list[AlikeCalls]] = {}
        """View and id of an open card -> what it lists."""

    async def show(self) -> None:
        """List what waits and was not listed: on cards, or as text where no page can click.

        What was left unticked on a card is on a new one.
        """
        view = show_run(self._agent, None, None, _no_edits, self._mode)
        has_cards = view.is_live and not isinstance(view, TerminalRun)
        on_cards = {call for groups in self._cards.values() for group in groups for call in group.keys}
        seen = on_cards if has_cards else self._listed
        found = alike_calls(call for call in self._waiting() if call_key(call) not in seen)
        if not found:
            return
        listed = {label: groups[:MOST_LISTED] for label, groups in found.items()}
        left_out = {label: len(groups) - len(listed[label]) for label, groups in found.items()}
        self._listed.update(call for groups in listed.values() for group in groups for call in group.keys)
        blocks: list[Block] = []
        for label, groups in listed.items():
            blocks += waiting_blocks(label, groups, left_out[label], self._magic)
        if not has_cards:
            display(bundle(document(*blocks)), raw=True)
            return
        events = list[Event]()
        cards = {groups[0].calls[0].id: groups for groups in listed.values()}
        for groups in listed.values():
            events += await self._events_of(groups[0].calls[0])
        self._cards |= {(view, key): groups for key, groups in cards.items()}
        turn = TurnInfo(open_interrupts=lambda: [groups[0].calls[0] for groups in cards.values()])
        session = Session(id="approvals", app_name="approvals", user_id="user", events=events)
        requests = bundle(document(*blocks))
        clicks = self._clicks(view)
        view.show_open_cards(OpenCards(keys=set(cards), session=session, clicks=clicks, turn=turn, requests=requests))
        for key, groups in cards.items():
            label, rest = groups[0].label, left_out[groups[0].label]
            note = f"{rest:,} more kinds of calls of {label} are listed next" if rest else ""
            fields = {"alike": _on_card(groups), "how": f"{self._magic} approve {label}", "note": note}
            view.patch_card(key, fields)

    async def chosen(self, action: str, tool: str | None) -> set[str] | None:
        """Keys of the listed approvals that an answer for `tool` covers.

        None: it would cover calls that nobody has seen; they are listed now, with what to type.

        Raises:
            InputError: No call waits, or none of `tool`.
        """
        waiting = self._waiting()
        labels = dict.fromkeys(map(approval_label, waiting))
        if not waiting or tool not in (None, *labels):
            raise InputError(
                f"no call{f' of {tool!r}' if tool else ''} waits for approval"
                + (f"; there is: {', '.join(labels)}" if waiting else "")
            )
        chosen = chosen_calls(waiting, tool)
        if not chosen:
            raise InputError(f"these calls may have taken effect already, name each: {', '.join(labels)}")
        if chosen <= self._listed:
            return chosen
        await self.show()
        typed = f"{self._magic} {action}{f' {tool}' if tool else ''}"
        line = f"nothing was answered: more calls came, and are listed now; type {typed} again to answer all of them"
        display(bundle(document(Text(line))), raw=True)
        return None

    async def check(self, keys: Collection[str], decision: ToolConfirmation) -> None:
        """Refuse to approve calls of a tool that the agent does not have any more.

        Raises:
            InputError: It has no such tool now, or was removed.
        """
        agent = self._newest() if decision.confirmed else None
        one_of_each = {
            (call.agent, call.branch, *call.names): call for call in self._waiting() if call_key(call) in keys
        }
        for call in one_of_each.values() if agent else ():
            if agent and lacks_tool(call, agent, History(await self._events_of(call))):
                raise InputError(
                    f"{call.agent} has no tool {call.call.name} any more; give it back to the agent, or type "
                    f"{self._magic} reject {approval_label(call)}"
                )

    def answered(self, keys: set[str], decision: ToolConfirmation, *, is_click: bool = False) -> None:
        """Close the cards that listed these approvals, each with what of it was decided."""
        place = "" if is_click else this_cell()
        state = "approved" if decision.confirmed else "rejected"
        views = dict[RunView, dict[str, Verdict]]()
        for (view, key), groups in list(self._cards.items()):
            decided = [group for group in groups if not keys.isdisjoint(group.keys)]
            if decided:
                alike = tuple((len(group.calls), group.calls[0].asked_args) for group in decided)
                reason = decision.reason or ""
                verdict = Verdict(state, reason, place, remark=reason, is_click=is_click, alike=alike)
                views.setdefault(view, {})[key] = verdict
                view.patch_card(key, {"alike": _on_card(decided)})
                del self._cards[view, key]
        open_ = {view for view, _ in self._cards}
        for view, verdicts in views.items():
            view.answered_elsewhere(verdicts, last=view not in open_)
            if view not in open_:
                view.close()

    def _clicks(self, view: RunView) -> Clicks:
        cell, shown = OriginCell(), list[Any]()

        def reopen(key: str, reason: str) -> None:
            view.patch_card(key, {"alike": _on_card(self._cards[view, key])})  # the click left only what was ticked
            view.reopen_card(key, reason)

        async def answer(key: str, keys: set[str], decision: ToolConfirmation) -> None:
            try:
                await self.check(keys, decision)
                await self._answer(keys, decision)
            except UserError as error:
                reopen(key, str(error))
                return
            self.answered(keys, decision, is_click=True)
            with cell.displays_here():
                if shown:
                    shown[0].update(self._result())
                else:
                    shown.append(display(self._result(), display_id=True))
            await self.show()

        def answered(key: str, value: Any, /, *, as_asked: bool = False) -> None:
            decided = cast(dict[str, Any], value) if isinstance(value, dict) else {"confirmed": value}
            groups = self._cards[view, key]
            ticked = decided.get("alike")
            keys = {call for group in groups if ticked is None or group.key in ticked for call in group.keys}
            if decided.get("args"):
                reopen(key, "arguments can be edited for one call only; approve or reject the calls as asked")
            elif not keys:
                reopen(key, "no call is ticked; tick what is to be answered")
            else:
                confirmed, reason = bool(decided.get("confirmed")), decided.get("reason")
                decision = ToolConfirmation(confirmed=confirmed, reason=reason, by="a click")
                view.resume_in_cell(lambda: answer(key, keys, decision))

        return Clicks(stop=lambda: None, answered=answered)


def _no_edits(interrupt: Interrupt) -> None:
    """Return no schema of arguments, so that they cannot be edited: the answer is for many calls."""


def _on_card(groups: Sequence[AlikeCalls]) -> list[dict[str, Any]]:
    """The field `alike` of a card; a question stands beside the calls where theirs differ."""
    asks = len({group.calls[0].prompt for group in groups}) > 1
    return [
        {
            "key": group.key,
            "count": len(group.calls),
            "args": group.calls[0].asked_args,
            "hint": prompt_text(group.calls[0]) if asks else "",
        }
        for group in groups
    ]
