"""Nodes that run only with a person's yes, or only when they are let in somewhere."""

from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import Context, clock, types
from adk_nb.auth import AuthConfig, AuthCredential, AuthCredentialTypes
from adk_nb.auth.auth_schemes import APIKey
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event, RequestInput
from adk_nb.plugins import BasePlugin
from adk_nb.runtime import approvals
from adk_nb.runtime.interrupts import use_key
from adk_nb.tools import FunctionTool, LongRunningFunctionTool
from adk_nb.workflow import START, RetryConfig, ToolNode, Workflow, node
from tests.support.talk import Talk
from tests.workflow.steps import answer, asked, walked

YES, NO = {"confirmed": True}, {"confirmed": False, "reason": "too much"}
done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def wf(*edges: Any) -> Workflow:
    return Workflow(name="wf", edges=list(edges))


def s(node_input: str) -> str:
    return node_input


def pay(amount: int) -> str:
    """Pays."""
    done.append(amount)
    return f"paid {amount}"


def amount(node_input: str) -> int:
    return int(node_input)


def charge(node_input: int) -> str:
    done.append(node_input)
    return f"charged {node_input}"


def last(events: list[Event]) -> Any:
    return next(event.output for event in reversed(events) if event.output is not None)


def test_a_no_is_the_output() -> None:
    talk = Talk(wf((START, amount, node(charge, require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    said = last(talk.say(answer(key, NO)))
    assert "error" in said and "too much" in said["error"] and done == []


def test_only_what_needs_it_is_asked_about() -> None:
    talk = Talk(wf((START, amount, node(charge, require_confirmation="node_input > 100"))))
    assert last(talk.say("5")) == "charged 5"
    (key,) = asked(talk.say("500"))
    assert done == [5]
    assert last(talk.say(answer(key, YES))) == "charged 500"

    def large(node_input: int) -> bool:
        return node_input > 100

    talk = Talk(wf((START, amount, node(charge, require_confirmation=large))))
    assert last(talk.say("5")) == "charged 5" and asked(talk.say("500"))


@pytest.mark.parametrize(
    "said", ["yes", True, {"confirmed": "yes"}, {"confirmed": 1}, {"confirmed": True, "args": {}}, {}]
)
def test_what_is_not_plainly_a_yes_is_refused_and_it_stays_open(said: Any) -> None:
    talk = Talk(wf((START, amount, node(charge, require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    assert talk.say(answer(key, said)) == [] and isinstance(talk.error, ValueError) and done == []
    assert last(talk.say(answer(key, YES))) == "charged 5"


def test_a_yes_counts_once() -> None:
    talk = Talk(wf((START, amount, node(charge, require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    talk.say(answer(key, YES))
    assert asked(talk.say("6")) == [key]
    assert done == [5]
    talk.say(answer(key, YES))
    assert done == [5, 6]
    talk.say(answer(key, YES))
    assert done == [5, 6] and "not open" in str(talk.error)


def test_a_yes_comes_too_late_after_a_week_and_a_no_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, charged in ((YES, []), (NO, [])):
        talk = Talk(wf((START, amount, node(charge, require_confirmation=True))))
        (key,) = asked(talk.say("5"))
        later = clock.now() + approvals.VALID_FOR + 1
        with monkeypatch.context() as patch:
            patch.setattr(clock, "now", lambda later=later: later)
            events = talk.say(answer(key, said))
        assert done == charged and bool(events) == (said == NO)
        assert (talk.error is None) == (said == NO)
        if said == YES:
            assert "7 days" in str(talk.error) and "'confirmed': False" in str(talk.error).replace("false", "False")


def test_of_two_who_have_one_yes_at_the_same_time_one_goes_on() -> None:
    talk = Talk(wf((START, amount, node(charge, require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    question = next(event for event in talk.stored().events if key in asked([event]))
    assert talk.service.consume(talk.stored(), use_key(question.id, "approval"))  # the other process was faster
    talk.say(answer(key, YES))
    assert done == [] and "another run" in str(talk.error)


def test_a_yes_is_used_once_however_often_the_node_waits_or_fails_after_it() -> None:
    @node(require_confirmation=True, rerun_on_resume=True, retry_config=RetryConfig(initial_delay=0, jitter=0))
    def careful(ctx: Context, node_input: str) -> Any:
        done.append(1)
        if len(done) == 1:
            raise OSError("again")
        if "i1" in ctx.resume_inputs:
            yield f"{node_input} {ctx.resume_inputs['i1']}"
        else:
            yield RequestInput(interrupt_id="i1", message="how?")

    talk = Talk(wf((START, s, careful)))
    (key,) = asked(talk.say("pay"))
    assert asked(talk.say(answer(key, YES))) == ["i1"] and len(done) == 2
    assert last(talk.say(answer("i1", "now"))) == "pay now"


def test_what_a_tool_is_made_of_is_looked_at_only_where_someone_is_asked() -> None:
    looked: list[str] = []

    class Watched(FunctionTool):
        @property
        def bound_to(self) -> str:  # a part of what it is
            looked.append(self.name)
            return ""

    assert last(Talk(wf((START, amount, Watched(pay)))).say("5")) and not looked
    talk = Talk(wf((START, amount, Watched(pay, require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    assert len(looked) == 1
    assert last(talk.say(answer(key, YES))) and len(looked) == 2


def test_a_yes_is_for_the_arguments_that_were_shown() -> None:
    def charged(sum_of: int) -> str:
        done.append(sum_of)
        return f"charged {sum_of}"

    talk = Talk(wf((START, s, node(charged, require_confirmation=True))), state={"sum_of": 5})
    (key,) = asked(talk.say("q"))
    events = talk.say(answer(key, YES), state_delta={"sum_of": 5000})
    assert done == [] and asked(events) == [key]
    talk.say(answer(key, YES))
    assert done == [5000]


class Dearer(BasePlugin):
    async def before_tool_callback(self, *, tool_args: dict[str, Any], **_: Any) -> None:
        tool_args["amount"] = 9000


@pytest.mark.parametrize("condition", [True, "amount > 100"])
def test_arguments_that_a_plugin_changes_after_the_question_do_not_run(condition: Any) -> None:
    tool = FunctionTool(pay, require_confirmation=condition)
    talk = Talk(wf((START, amount, tool)), plugins=[Dearer("dearer")])
    events = talk.say("5")
    for key in asked(events):
        events = talk.say(answer(key, YES))

    assert done == [] and "changed its arguments" in last(events)["error"]


def test_a_yes_is_for_the_code_that_was_there() -> None:
    def charge(node_input: int) -> str:  # another of the same name
        done.append(("all of it", node_input))
        return "?"

    talk = Talk(wf((START, amount, node(globals()["charge"], require_confirmation=True))))
    (key,) = asked(talk.say("5"))
    talk.runner.agent = wf((START, amount, node(charge, require_confirmation=True)))
    assert asked(talk.say(answer(key, YES))) == [key] and done == []


def test_a_node_asks_for_leave_once_even_if_it_runs_again() -> None:
    @node(require_confirmation=True, rerun_on_resume=True)
    def careful(ctx: Context, node_input: str) -> Any:
        if "i1" in ctx.resume_inputs:
            yield f"{node_input} {ctx.resume_inputs['i1']}"
        else:
            yield RequestInput(interrupt_id="i1", message="how?")

    talk = Talk(wf((START, s, careful)))
    (key,) = asked(talk.say("pay"))
    assert asked(talk.say(answer(key, YES))) == ["i1"]
    assert last(talk.say(answer("i1", "now"))) == "pay now"


def test_an_answer_is_the_output_of_a_node_that_was_let_run() -> None:
    @node(require_confirmation=True)
    def careful(node_input: str) -> Any:
        done.append(1)
        yield RequestInput(interrupt_id="i1", message="how?")

    talk = Talk(wf((START, s, careful)))
    (key,) = asked(talk.say("pay"))
    talk.say(answer(key, YES))
    talk.say(answer("i1", "now"))
    assert done == [1]


def test_a_failed_attempt_needs_no_second_yes() -> None:
    @node(require_confirmation=True, retry_config={"initial_delay": 0, "jitter": 0})
    def flaky(ctx: Context) -> int:
        done.append(ctx.attempt_count)
        if ctx.attempt_count == 1:
            raise ValueError("no")
        return ctx.attempt_count

    talk = Talk(wf((START, flaky)))
    (key,) = asked(talk.say("q"))
    assert last(talk.say(answer(key, YES))) == 2 and done == [1, 2]


# -- tools


def test_a_tool_that_asks_is_never_run_without() -> None:
    talk = Talk(wf((START, amount, FunctionTool(pay, require_confirmation=True))))
    events = talk.say("5")
    (key,) = asked(events)
    assert key == "wf_tool_confirmation:wf@1/pay@1" and done == []
    (question,) = events[-2].get_function_calls()
    assert question.args and question.args["payload"] == {"tool_name": "pay", "args": {"amount": 5}}
    assert last(talk.say(answer(key, YES))) == "paid 5"


def test_nor_is_one_that_asks_on_a_condition_or_stands_in_a_node_or_a_list() -> None:
    tool = FunctionTool(pay, require_confirmation="amount > 100")
    talk = Talk(wf((START, amount, node(tool, timeout=5))))
    assert last(talk.say("5")) == "paid 5"
    assert asked(talk.say("500")) and done == [5]

    def amounts() -> list[int]:
        return [50, 500, 5000]

    talk = Talk(wf((START, amounts, node(tool, parallel_worker=True))))
    first, second = asked(talk.say("q"))
    assert done == [5, 50] and "500" not in done
    talk.say(answer(first, YES))
    assert last(talk.say(answer(second, NO)))[:2] == ["paid 50", "paid 500"] and done == [5, 50, 500]


def test_a_tool_can_ask_while_it_runs() -> None:
    def careful(amount: int, tool_context: Context) -> str:
        """Pays."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="sure?", payload={"limit": 3})
            return "asked"
        done.append(tool_context.tool_confirmation.payload)
        return f"paid {amount}"

    talk = Talk(wf((START, amount, FunctionTool(careful))))
    events = talk.say("5")
    (question,) = events[-2].get_function_calls()
    assert question.args and question.args["message"] == "sure?" and question.args["payload"]["payload"] == {"limit": 3}
    assert last(talk.say(answer(question.id or "", {"confirmed": True, "payload": {"limit": 9}}))) == "paid 5"
    assert done == [{"limit": 9}]


class Guard(BasePlugin):
    """Lets no tool pay."""

    async def before_tool_callback(self, *, tool: Any, **_: Any) -> dict[str, Any] | None:
        return {"error": f"{tool.name} is not for you"}


def test_plugins_stand_before_the_tools_of_nodes() -> None:
    talk = Talk(wf((START, amount, FunctionTool(pay))), plugins=[Guard(name="guard")])
    assert last(talk.say("5")) == {"error": "pay is not for you"} and done == []


def test_the_output_of_a_long_running_tool_is_what_comes_from_outside() -> None:
    def order(node_input: str) -> dict[str, str]:
        """Orders."""
        return {"status": "pending"}

    talk = Talk(wf((START, s, LongRunningFunctionTool(order), charge)))
    events = talk.say("tea")
    (key,) = asked(events)
    assert walked(events)[1:] == [
        "wf/order: says calls order({'node_input': 'tea'})",
        "wf/order: says answers {'status': 'pending'}",
        "wf: waits",
    ]
    assert last(talk.say(answer(key, 7, "order"))) == "charged 7"


def test_arguments_that_do_not_fit_a_tool_are_an_error_of_the_node() -> None:
    talk = Talk(wf((START, s, FunctionTool(pay))))
    talk.say("much")
    assert "'pay'" in str(talk.error) and done == []


# -- let in

KEY = "AIza-0123456789"


def config() -> AuthConfig:
    scheme = APIKey.model_validate({"type": "apiKey", "in": "header", "name": "X-Key"})
    return AuthConfig(auth_scheme=scheme, credential_key="shop")


def credential() -> dict[str, Any]:
    given = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=KEY)
    return (
        config()
        .model_copy(update={"exchanged_auth_credential": given})
        .model_dump(mode="json", by_alias=True, exclude_none=True)
    )


def uses(ctx: Context) -> str:
    assert ctx.auth_credential
    done.append(ctx.auth_credential.api_key)
    return f"used {ctx.auth_credential.api_key}"


def test_a_node_is_authenticated_before_it_runs() -> None:
    talk = Talk(wf((START, s, node(uses, auth_config=config()))))
    (key,) = asked(talk.say("q"))
    assert done == []
    events = talk.say(answer(key, credential(), "adk_request_credential"))
    assert done == [KEY] and talk.error is None
    assert last(events) == "used [secret]"
    assert KEY not in repr([event.model_dump() for event in talk.stored().events])


def test_a_tool_that_has_to_be_let_in_is_not_run_without() -> None:
    def shop(request: str, tool_context: Context) -> str:
        """Shops."""
        return uses(tool_context)

    talk = Talk(wf((START, s, FunctionTool(shop, auth_config=config()))))
    (key,) = asked(talk.say("q"))
    assert done == []
    assert last(talk.say(answer(key, credential(), "adk_request_credential"))) == "used [secret]"


def test_an_unauthenticated_tool_does_not_run() -> None:
    talk = Talk(wf((START, s, node(uses, auth_config=config()))))
    (key,) = asked(talk.say("q"))
    assert "error" in last(talk.say(answer(key, {"error": "no"}, "adk_request_credential"))) and done == []


# -- settings


class Basket(BaseModel):
    items: list[str] = []


def test_a_node_writes_only_what_its_schema_has() -> None:
    def adds(ctx: Context) -> None:
        ctx.state["items"] = "tea"

    def says() -> Event:
        return Event(state={"itms": []})

    for one in (adds, says):
        talk = Talk(wf((START, node(one, state_schema=Basket))))
        talk.say("q")
        assert isinstance(talk.error, TypeError | KeyError | ConfigurationError | ValueError), one
        assert talk.stored().state == {}


def test_an_invalid_condition_is_reported_at_once() -> None:
    with pytest.raises(ConfigurationError, match="'charge'"):
        node(charge, require_confirmation="node_input >")


def test_a_tool_node_is_one_by_its_class_too() -> None:
    assert last(Talk(wf((START, amount, ToolNode(name="till", tool=FunctionTool(pay))))).say("5")) == "paid 5"


def test_a_message_is_text_for_a_tool() -> None:
    def shout(text: str) -> str:
        """Shouts."""
        return text.upper()

    assert last(Talk(wf((START, FunctionTool(shout)))).say("tea")) == "TEA"
    assert types.Content is not None
