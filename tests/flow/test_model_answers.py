"""What becomes of the responses of one model call: several whole ones, pieces without an end, and odd calls."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.flow.model_call import NO_CONTENT
from adk_nb.models import LlmResponse, ScriptedLlm, call
from tests.support.talk import Talk, requests, summaries

TOKENS = types.GenerateContentResponseUsageMetadata(total_token_count=7)


def response(*given: str | types.Part, role: str | None = "model", **more: Any) -> LlmResponse:
    parts = [types.Part(text=one) if isinstance(one, str) else one for one in given]
    return LlmResponse(content=types.Content(role=role, parts=parts), **more)


class Payments:
    """An agent with the tool `pay`, and what was paid."""

    def __init__(self, *answers: Any, **fields: Any) -> None:
        self.paid: list[Any] = []

        def pay(amount: Any) -> str:
            """Pays."""
            self.paid.append(amount)
            return "paid"

        self.agent = LlmAgent(name="guide", model=ScriptedLlm(*answers), tools=[pay], **fields)
        self.talk = Talk(self.agent)

    def say(self) -> list[tuple[str, str]]:
        return [words for _, words in summaries(self.talk.say())]


RESULT = "answers {'result': 'paid'}"


@pytest.mark.parametrize(
    ("responses", "paid", "after"),
    [
        ([response(call("pay", amount=1)), response("Paying.")], [1], ["Paying. .", RESULT]),
        ([response(call("pay", amount=1)), response(call("pay", amount=2))], [1, 2], [f"{RESULT}; {RESULT}"]),
        ([response("Wait."), response(call("pay", amount=1)), response("So.")], [1], ["So. .", RESULT]),
        ([response(call("pay", amount=1)), LlmResponse(turn_complete=True)], [1], [RESULT]),
        ([response(call("pay", amount=1)), response()], [1], [RESULT]),
    ],
)
def test_calls_of_all_whole_responses_run(responses: list[LlmResponse], paid: list[int], after: list[str]):
    shop = Payments(responses, "Done.")

    events = shop.say()

    assert shop.paid == paid
    assert events[-len(after) - 1 :] == [*after, "Done. ."]
    [history] = requests(shop.agent)[1:]
    assert sum("calls pay" in words for _, words in history) == len(paid)
    assert sum(words.count(RESULT) for _, words in history) == len(paid)
    assert history[-1][0] == "user"


def test_text_beside_calls_is_no_final_answer_of_the_agent():
    shop = Payments([response(call("pay", amount=1)), response("Paying.")], "Done.", output_key="last")

    events = shop.say()

    assert events == ["calls pay({'amount': 1})", "Paying. .", RESULT, "Done. => {'last': 'Done.'} ."]


def test_an_error_after_a_whole_call_ends_the_turn_once_the_call_ran():
    shop = Payments([response(call("pay", amount=1)), LlmResponse(error_code="SAFETY")])

    assert shop.say() == ["calls pay({'amount': 1})", "failed SAFETY", RESULT]
    assert (shop.paid, shop.talk.error) == ([1], None)


@pytest.mark.parametrize("trailer", [LlmResponse(turn_complete=True), response(), response("")])
def test_an_empty_response_after_an_answer_is_no_event(trailer: LlmResponse):
    shop = Payments([response("Hello."), trailer])

    assert shop.say() == ["Hello. ."]


def test_tokens_told_after_an_answer_are_kept_in_an_event_that_is_not_final():
    shop = Payments([response("Hello."), LlmResponse(usage_metadata=TOKENS, turn_complete=True)], output_key="last")

    [answer, tokens] = shop.talk.say()

    assert (answer.text, tokens.usage_metadata, tokens.model_version) == ("Hello.", TOKENS, "scripted")
    assert (tokens.is_final_response(), tokens.error_code, tokens.content) == (False, None, None)
    assert answer.id != tokens.id
    assert shop.talk.stored().state == {"last": "Hello."}


def test_tokens_told_before_an_answer_are_no_error():
    shop = Payments([LlmResponse(usage_metadata=TOKENS), response("Hello.")])

    assert shop.say() == ["Hello. ."]


def test_pieces_that_end_with_an_empty_response_are_the_answer():
    pieces = [response("Hel", partial=True), response("lo.", partial=True), LlmResponse(usage_metadata=TOKENS)]
    shop = Payments(pieces)

    events = shop.talk.say()

    assert [words for _, words in summaries(events)] == ["Hel...", "lo....", "Hello. ."]
    assert (events[-1].usage_metadata, events[-1].error_code) == (TOKENS, None)


def test_a_model_that_says_nothing_at_all_is_an_error():
    assert Payments([LlmResponse(turn_complete=True)]).say() == [f"failed {NO_CONTENT}"]


def test_calls_made_of_pieces_never_run():
    pieces = [response("I pay.", partial=True), *(response(call("pay", amount=n), partial=True) for n in (9, 90, 9000))]
    shop = Payments(pieces)

    events = shop.talk.say()

    assert shop.paid == []
    assert [event.partial for event in events] == [True] * 4 + [None]
    assert (events[-1].text, events[-1].error_code) == ("I pay.", "MALFORMED_FUNCTION_CALL")
    assert "'pay'" in (events[-1].error_message or "")
    assert events[-1].get_function_calls() == []


def test_a_whole_call_after_pieces_of_it_runs_once():
    shop = Payments([response(call("pay", amount=9), partial=True), response(call("pay", amount=9000))], "Done.")

    assert shop.say()[-2:] == [RESULT, "Done. ."]
    assert shop.paid == [9000]


@pytest.mark.parametrize("name", [None, ""])
def test_a_call_without_a_name_gets_one_and_is_refused(name: str | None):
    nameless = types.Part(function_call=types.FunctionCall(name=name, args={"amount": 1}))
    shop = Payments(nameless, "Done.")

    events = shop.talk.say()

    [asked], [refused] = events[0].get_function_calls(), events[1].get_function_responses()
    assert (asked.name, shop.paid) == (refused.name, []) == ("unnamed_tool", [])
    assert "pay" in (refused.response or {})["error"]


@pytest.mark.parametrize("role", ["user", None, "assistant"])
def test_content_of_a_model_has_the_role_model(role: str | None):
    shop = Payments([response("Hel", role=role, partial=True), response("Hello.", role=role)], "Fine.")

    events = shop.talk.say()
    shop.talk.say("And?")

    assert [event.content and event.content.role for event in events] == ["model", "model"]
    assert requests(shop.agent)[1] == [("user", "hi"), ("model", "Hello."), ("user", "And?")]


@pytest.mark.parametrize("amount", ["9\ud800", ["\udfff"], {"half \ud83d": 1}])
def test_a_call_with_half_a_character_in_an_argument_is_refused(amount: Any):
    shop = Payments(call("pay", amount=amount), "Done.")

    events = shop.talk.say()

    assert shop.paid == []
    [refused] = events[1].get_function_responses()
    assert "pay() was not" in (refused.response or {})["error"]
    assert shop.talk.stored().model_dump_json()


@pytest.mark.parametrize(("name", "call_id"), [("pay", "half \ud83d"), ("p\ud800y", None)])
def test_a_call_with_half_a_character_in_its_name_or_id_can_be_kept(name: str, call_id: str | None):
    shop = Payments(types.Part(function_call=types.FunctionCall(id=call_id, name=name, args={"amount": 1})), "Done.")

    events = shop.talk.say()

    assert shop.paid == ([1] if name == "pay" else [])
    assert events[-1].text == "Done."
    assert shop.talk.stored().model_dump_json()
