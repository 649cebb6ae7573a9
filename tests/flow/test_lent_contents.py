"""What a callback may do to the history it is lent, and what it costs where it looks at little of it."""

import copy
import operator
from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.flow.request import LentContents
from adk_nb.models import LlmRequest, ScriptedLlm
from adk_nb.sessions import Session
from tests.support.each import each
from tests.support.talk import Talk, guide, requests


def of(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=words)])


def edit(content: types.Content) -> None:
    assert content.parts
    content.parts[0].text = "edited"
    content.parts.append(types.Part(text="more"))


WAYS: list[Callable[[list[Any]], Any]] = [
    lambda lent: edit(lent[-1]),
    lambda lent: [edit(one) for one in lent],
    lambda lent: [edit(one) for one in reversed(lent)],
    lambda lent: [edit(one) for one in lent[1:]],
    lambda lent: [edit(one) for one in list(lent)],
    lambda lent: [edit(one) for one in [*lent]],
    lambda lent: [edit(one) for one in lent.copy()],
    lambda lent: [edit(one) for one in copy.copy(lent)],
    lambda lent: [edit(one) for one in operator.add(lent, [of("x")])],
    lambda lent: [edit(one) for one in operator.add([of("x")], lent)],
    lambda lent: [edit(one) for one in [].__iadd__(lent)],
    lambda lent: edit(lent.pop()),
    lambda lent: edit(lent.pop(0)),
    lambda lent: [edit(one) for one in sorted(lent, key=str)],
    lambda lent: edit(_unpacked(*lent)[0]),
    lambda lent: edit(max(lent, key=str)),
]


def _unpacked(*contents: types.Content) -> tuple[types.Content, ...]:
    return contents


@each("way", WAYS)
def test_however_it_is_taken_out_what_is_edited_is_a_copy(way: Callable[[list[Any]], Any]):
    owned = [of("a"), of("b"), of("c")]

    way(LentContents(owned))

    assert owned == [of("a"), of("b"), of("c")]


def test_what_is_edited_is_what_is_sent():
    owned = [of("a"), of("b"), of("c")]
    lent = LentContents(owned)

    edit(lent[1])
    lent.append(of("d"))
    del lent[0]
    lent[1:1] = [of("e")]

    assert [content.parts and content.parts[0].text for content in lent.originals()] == ["edited", "e", "c", "d"]
    assert lent[0] is lent[0]
    assert lent.originals()[2] is owned[2]


def test_what_a_callback_puts_in_is_its_own():
    lent, mine = LentContents([of("a")]), of("mine")

    lent.insert(0, mine)

    assert lent[0] is mine and next(iter(lent)) is mine


def test_a_list_that_grows_while_it_is_walked_is_walked_to_its_end():
    lent = LentContents([of("a"), of("b")])

    for content in lent:
        if len(lent) < 4:
            lent.append(content)

    assert len(lent) == 4


def test_a_callback_edits_the_request_and_not_the_session():
    def shout(callback_context: Any, llm_request: LlmRequest) -> None:
        for content in llm_request.contents:
            for part in content.parts or []:
                part.text = (part.text or "").upper()

    agent = guide("one", "two", before_model_callback=shout)
    talk = Talk(agent)

    talk.say("a")
    talk.say("b")

    assert requests(agent)[1] == [("user", "A"), ("model", "ONE"), ("user", "B")]
    assert [event.text for event in talk.stored().events] == ["a", "one", "b", "two"]


def test_a_callback_that_looks_at_the_newest_has_one_content_copied():
    owned = [of(str(number)) for number in range(100)]
    lent = LentContents(owned)

    assert lent[-1].parts == owned[-1].parts

    kept = [mine is yours for mine, yours in zip(lent.originals(), owned, strict=True)]
    assert kept == [True] * 99 + [False]


def test_a_model_is_handed_the_sessions_own_contents():
    def look(callback_context: Any, llm_request: LlmRequest) -> None:
        assert llm_request.contents[-1].parts

    seen: list[types.Content] = []

    def after(callback_context: Any, llm_response: Any) -> None:
        session: Session = callback_context.session
        seen.extend(event.content for event in session.events if event.content)

    agent = guide("one", "two", before_model_callback=look, after_model_callback=after)
    talk = Talk(agent)
    talk.say("a")
    talk.say("b")

    assert isinstance(agent.model, ScriptedLlm)
    sent = agent.model.requests[1].contents
    assert sent == seen[1:] and [mine is yours for mine, yours in zip(sent, seen[1:], strict=True)] == [
        True,
        True,
        False,
    ]
