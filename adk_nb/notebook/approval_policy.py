"""Approvals of a turn that are answered without the user: `%chat --yes`, `%config AdkNb.confirm`."""

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

from adk_nb.errors import InputError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.reply import Reply

Decisions = dict[str, ToolConfirmation]
"""By the id of the approval."""
Confirm = Literal["ask", "yes", "no"]
"""Calls that wait for approval are left open, run, or are refused."""
MOST_ROUNDS = 32
"""Of approvals that are answered by themselves in one turn."""


def check_policy(confirm: str) -> None:
    """Refuse an unknown policy.

    Raises:
        InputError: It is none.
    """
    if confirm not in get_args(Confirm):
        raise InputError(f"confirm={confirm!r} says not what happens to approvals; write 'ask', 'yes' or 'no'")


def check_decisions(decisions: Any) -> None:
    """Refuse what is no dict of decisions.

    Raises:
        InputError: It is none.
    """
    values = cast(dict[Any, Any], decisions).values() if isinstance(decisions, dict) else [None]
    if not all(isinstance(decided, ToolConfirmation) for decided in values):
        raise InputError(
            "decisions are a dict of approval ids and what was decided; write "
            "chat.decide({chat.pending[0].id: ToolConfirmation(confirmed=True)}), or chat.approve() for one"
        )


def settled(reply: Reply, decide: Callable[[Decisions], Reply], confirm: Confirm, by: str) -> Reply:
    """The reply after all approvals of a turn were answered by the policy, those that come up then too.

    Args:
        reply: Of the turn.
        decide: Of its chat.
        confirm: The policy.
        by: Where it was set, for the log.
    """
    for _ in range(MOST_ROUNDS):
        if not (decisions := by_policy(reply, confirm, by)):
            break
        reply = decide(decisions)
    return reply


def by_policy(reply: Reply, confirm: Confirm, by: str) -> Decisions:
    """The decisions of the policy on the approvals of `reply`; empty if there are none. `by`: as of `settled`."""
    if confirm == "ask" or reply.status != "pending":
        return {}
    return {approval.id: ToolConfirmation(confirmed=confirm == "yes", by=by) for approval in reply.pending}
