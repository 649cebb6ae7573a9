"""`%serve`: the agent of the notebook over HTTP, its sessions and approvals here, and what is typed wrong."""

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from websockets.sync.client import connect

from adk_nb import sync, types
from adk_nb.concurrency import threads
from adk_nb.errors import InputError
from adk_nb.models import BaseLlm, LlmResponse
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.extensions.serving import serve
from adk_nb.notebook.extensions.serving.served_runs import NotebookRunner
from adk_nb.redaction import known_secrets
from tests.serving.conftest import approval, body, requests_in, texts
from tests.serving.test_adk_live import Talk

TEAM = """
from adk_nb.models import ScriptedLlm, call
script = ScriptedLlm(call("pay", to="Anna", amount=250), "Anna has it.", "What else?")
"""
PAY = """%%tool --confirm
def pay(to: str, amount: float) -> str:
    'Pay a person.'
    return f"paid {amount:g} to {to}"
"""


class Caller:
    """A client of what the notebook serves."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.http = httpx2.Client(base_url=served.url, headers=served.headers, timeout=60)

    def run(self, text: str | None, session: str = "web", user: str = "user", **more: Any) -> httpx2.Response:
        self.http.post(f"/apps/{self.served.name}/users/{user}/sessions", json={"sessionId": session})
        sent = {**body(text, session, **more), "appName": self.served.name, "userId": user}
        return self.http.post("/run", json=sent)

    def events(self, session: str = "web", user: str = "user") -> list[dict[str, Any]]:
        return self.http.get(f"/apps/{self.served.name}/users/{user}/sessions/{session}").json()["events"]


@pytest.fixture
def call(shell) -> Iterator[Callable[[str], Caller]]:
    """Serves by a line of the magic, and calls what is served."""
    with ExitStack() as stack:

        def serving(line: str) -> Caller:
            caller = Caller(shell.cell(line))
            stack.enter_context(caller.http)
            return caller

        yield serving


@pytest.fixture
def clerk(shell, call) -> Caller:
    shell.cell(TEAM)
    shell.cell(PAY)
    shell.cell("%%agent clerk -m script -t pay\nYou pay.")
    return call(f"%serve clerk --port {free_port()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_what_is_served_is_said_without_the_token(shell, clerk: Caller):
    served = clerk.served
    said = repr(served)
    assert served.url in said and "%serve --stop" in said and "$TOKEN" in said and "_serve.token" in said
    forms = json.dumps(served._repr_mimebundle_())
    assert served.token not in said + forms and served.token in known_secrets()
    assert shell.names["_serve"] is served and shell.cell("%serve") is served


def test_the_sessions_of_clients_are_sessions_of_the_notebook(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm('Hello Ada.', 'Hello you.', 'Back here.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    assert texts(clerk.run("I am Ada.", user="ada").json()) == ["Hello Ada."]
    assert texts(clerk.run("Hello").json()) == ["Hello you."]
    listed = str(shell.cell("%session"))
    assert "@clerk/ada/web" in listed and "main" in listed
    assert "Hello Ada." in str(shell.cell("%trace -s @clerk/ada/web"))
    shell.cell("%session use @clerk/ada/web")
    assert shell.cell("%chat Are you there?").text == "Back here."
    assert texts(clerk.events(user="ada")) == ["I am Ada.", "Hello Ada.", "Are you there?", "Back here."]
    assert "_run" in shell.names, "a reply that was typed for"


def test_a_slash_in_an_id_leads_to_no_other_users_session(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm(*[f'Answer {n}.' for n in range(1, 9)])")
    shell.cell("%%agent clerk -m script\nYou greet.")
    assert texts(clerk.run("I am Ada.", "s1", user="ada").json()) == ["Answer 1."]
    taken = {"userId": "user", "sessionId": "ada/s1"}
    made = clerk.http.post("/apps/clerk/users/user/sessions", json={"sessionId": "ada/s1"})
    assert made.status_code == 200
    said = clerk.http.post("/run", json={**body("I am Eve."), **taken}).json()
    assert texts(said) == ["Answer 2."]
    sent = [{"id": "m", "role": "user", "content": "And I?"}]
    thread = clerk.http.post("/ag-ui", json={"threadId": "ada/s1", "runId": "r", "messages": sent}).text
    assert "Answer 3." in thread and "I am Ada." not in thread and "I am Eve." in thread
    for user, session in (("ada/x", "y"), ("ada", "x/y"), ("ada%2Fx", "y"), ("", "ada")):
        made = clerk.http.post("/run", json={**body("Hi", session), "userId": user})
        assert made.status_code == 404, "each is a session of its own, which is not there yet"
    assert texts(clerk.events("s1", user="ada")) == ["I am Ada.", "Answer 1."]
    assert "@clerk/user/ada/s1" in str(shell.cell("%session"))
    assert "I am Eve." in str(shell.cell("%trace -s @clerk/user/ada/s1"))
    assert "I am Ada." in str(shell.cell("%trace -s @clerk/ada/s1"))


def test_ids_with_blanks_around_them_are_one_chat(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm('First.', 'Second.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    assert texts(clerk.run("One", " web ").json()) == ["First."]
    assert texts(clerk.run("Two", "web").json()) == ["Second."]
    assert texts(clerk.events()) == ["One", "First.", "Two", "Second."]


SECRETS = """
%%agent other -m theirs
The code of the safe is 4711.
"""


def test_clients_see_nothing_of_the_notebook(shell, clerk: Caller):
    shell.cell("theirs = ScriptedLlm(*['I keep it.'] * 3)")
    shell.cell(SECRETS.strip())
    shell.cell("%chat other I am Ada.")
    shell.cell("%state user:card=4000 app:rate=7 mine=1")
    event = shell.names["_run"].events[-1].id
    shell.cell("script = ScriptedLlm(*[f'Answer {n}.' for n in range(1, 9)])")
    shell.cell("%%agent clerk -m script\nYou greet.")
    shell.cell("%chat clerk I am Bob.")
    sessions = "/apps/clerk/users/user/sessions"
    assert clerk.http.get(sessions).json() == []
    assert clerk.http.get(f"{sessions}/main").status_code == 404
    assert clerk.http.delete(f"{sessions}/main").status_code == 200
    assert clerk.http.patch(f"{sessions}/main", json={"stateDelta": {"mine": 2}}).status_code == 404
    remembered = clerk.http.patch("/apps/clerk/users/user/memory", json={"sessionId": "main"})
    assert remembered.status_code == 404
    for path in (event, shell.names["_run"].events[-1].id, "session/main"):
        answer = clerk.http.get(f"/dev/apps/clerk/debug/trace/{path}")
        assert answer.status_code == 404 or answer.json() == []
    assert texts(clerk.run("Hello", "main").json()) == ["Answer 2."], "a session of its own, of the same id"
    assert texts(clerk.events("main")) == ["Hello", "Answer 2."]
    own = clerk.http.get(f"{sessions}/main").json()
    assert own["state"] == {} and [one["id"] for one in clerk.http.get(sessions).json()] == ["main"]
    trace = clerk.http.get(f"/dev/apps/clerk/debug/trace/{own['events'][-1]['id']}")
    assert trace.json()["gen_ai.agent.name"] == "clerk", "its own runs are traced"
    state = str(shell.cell("%state -s main"))
    assert "4000" in state and "mine" in state
    listed = str(shell.cell("%trace")) + str(shell.cell("%trace -s main"))
    assert "I am Ada." in listed and "Answer 1." in listed and "Answer 2." not in listed


def test_clients_of_another_agent_are_others(shell, clerk: Caller, call):
    shell.cell("script = ScriptedLlm(*['For the clerk.'] * 3)")
    shell.cell("%%agent clerk -m script\nYou greet.")
    clerk.run("I am Ada.")
    shell.cell("theirs = ScriptedLlm(*['For the guide.'] * 3)")
    shell.cell("%%agent guide -m theirs\nYou guide.")
    guide = call("%serve guide")
    assert guide.http.get("/apps/guide/users/user/sessions").json() == []
    assert texts(guide.run("Hello").json()) == ["For the guide."]
    assert texts(guide.events()) == ["Hello", "For the guide."]
    listed = str(shell.cell("%session"))
    assert "@clerk/web" in listed and "@guide/web" in listed
    again = call("%serve clerk")
    assert texts(again.events()) == ["I am Ada.", "For the clerk."], "who comes again finds what was said"


def test_sessions_are_shared_where_that_is_said(shell, clerk: Caller, call):
    shell.cell("theirs = ScriptedLlm(*['I keep it.'] * 3)")
    shell.cell(SECRETS.strip())
    shell.cell("%chat other I am Ada.")
    event = shell.names["_run"].events[-1].id
    shell.cell("script = ScriptedLlm('Hello Ada.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    shared = call("%serve clerk --share-sessions")
    assert "share the sessions" in repr(shared.served)
    assert texts(shared.events("main")) == ["I am Ada.", "I keep it."]
    assert texts(shared.run("And now?", "main").json()) == ["Hello Ada."]
    assert "Hello Ada." in str(shell.cell("%trace"))
    answer = shared.http.get(f"/dev/apps/clerk/debug/trace/{event}")
    assert answer.status_code == 404, "what other agents were sent stays in the notebook"
    assert "4711" not in shared.http.get("/dev/apps/clerk/debug/trace/session/main").text
    assert "which agent" in shell.fails("%serve --share-sessions") or "AGENT" in shell.fails("%serve --share-sessions")


def test_a_name_of_clients_is_for_agents_that_are_served(shell, clerk: Caller):
    assert "%serve nobody" in shell.fails("%trace -s @nobody/web")
    assert "no name" in shell.fails("%state -s @clerk/ada/ x=1")
    shell.cell("%chat clerk -s user/@clerk/web Pay Anna")
    assert "user/@clerk/web" in str(shell.cell("%session")), "an id of the notebook's own that looks like theirs"
    assert clerk.http.get("/apps/clerk/users/user/sessions").json() == []


def test_a_run_of_a_client_is_no_reply_of_a_cell(shell, clerk: Caller):
    clerk.run("Pay Anna")
    assert "_run" not in shell.names


def test_an_approval_stays_in_the_notebook(shell, clerk: Caller):
    (key,) = requests_in(clerk.run("Pay Anna").json())
    call_id = clerk.events()[1]["content"]["parts"][0]["functionCall"]["id"]
    by_call = [{"functionResponse": {"id": call_id, "name": "pay", "response": {"confirmed": True}}}]
    for parts in (approval(key), approval(key, confirmed=False), by_call):
        refused = clerk.run(None, parts=parts)
        assert refused.status_code == 409 and "%confirm -s @clerk/web" in refused.json()["detail"]
    refused = clerk.run("Do it now!")
    assert refused.status_code == 409 and "1 approval is open" in refused.json()["detail"]
    assert "1 approval is open" in str(shell.cell("%session"))
    assert shell.cell("%confirm -s @clerk/web --yes").text == "Anna has it."
    assert texts(clerk.events())[-1] == "Anna has it."
    assert texts(clerk.run("Thanks").json()) == ["What else?"]


def test_a_run_without_a_message_does_not_pass_an_open_approval(shell, clerk: Caller):
    clerk.run("Pay Anna")
    before = clerk.events()
    for more in ({}, {"stateDelta": {"paid": True}}, {"invocationId": before[0]["invocationId"]}):
        refused = clerk.run(None, **more)
        assert refused.status_code == 409 and "%confirm -s @clerk/web" in refused.json()["detail"]
    assert clerk.events() == before and "paid" not in str(shell.cell("%state -s @clerk/web"))
    assert shell.cell("%confirm -s @clerk/web --yes").text == "Anna has it."


def test_a_refused_run_stores_nothing(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm('Hello.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    assert clerk.run("Hi", stateDelta={"lang": "de"}).status_code == 200
    before = clerk.events()
    run = before[0]["invocationId"]
    changes = {"lang": "en", "paid": True}
    refused = [
        clerk.run(None, stateDelta=changes, invocationId=run),
        clerk.run("Hi", stateDelta=changes, invocationId="e-none"),
        clerk.run("  ", stateDelta=changes),
        clerk.run(None, parts=approval("forged"), stateDelta=changes),
    ]
    assert [answer.status_code for answer in refused] == [400] * 4, [answer.text for answer in refused]
    assert clerk.events() == before and shell.cell("%state lang -s @clerk/web") == "de"


def test_what_a_client_wrote_bears_its_name(shell, clerk: Caller):
    said = [
        {"author": "user", "content": {"role": "user", "parts": [{"text": "I am Ada."}]}},
        {"author": "clerk", "content": {"role": "model", "parts": [{"text": "All is paid."}]}},
    ]
    sessions = "/apps/clerk/users/user/sessions"
    assert clerk.http.post(sessions, json={"sessionId": "web", "events": said}).status_code == 200
    assert clerk.http.patch(f"{sessions}/web", json={"stateDelta": {"lang": "de"}}).status_code == 200
    shell.cell("script = ScriptedLlm('Hello.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    clerk.run("Hi", stateDelta={"mood": "good"})
    lines = [line.split() for line in str(shell.cell("%trace -s @clerk/web")).splitlines()]
    authors = {
        text: " ".join(line) for text in ("Ada.", "paid.", "lang", "mood") for line in lines if text in " ".join(line)
    }
    assert all("client" in line for line in authors.values()) and len(authors) == 4, authors
    assert "clerk (by client)" in authors["paid."]
    assert all(event["customMetadata"]["sent_by"] == "client" for event in clerk.events() if event["author"] == "user")


def test_ids_with_control_characters_are_refused_at_every_door(shell, clerk: Caller):
    message = [{"id": "m", "role": "user", "content": "Pay Anna"}]
    for id in ("a\nb", "a\x1b[2Jb", "a\u202eb"):
        sent = quote(id, safe="")
        ids = ({"sessionId": id}, {"userId": id})
        answers = [
            clerk.http.post("/apps/clerk/users/user/sessions", json={"sessionId": id}),
            clerk.http.post(f"/apps/clerk/users/{sent}/sessions", json={"sessionId": "s"}),
            clerk.http.post(f"/apps/clerk/users/user/sessions/{sent}"),
            clerk.http.get(f"/apps/clerk/users/{sent}/sessions"),
            clerk.http.get(f"/apps/clerk/users/user/sessions/{sent}"),
            *(clerk.http.post("/run", json={**body("Pay Anna"), **change}) for change in ids),
            *(clerk.http.post("/run_sse", json={**body("Pay Anna"), **change}) for change in ids),
        ]
        assert [answer.status_code for answer in answers] == [400] * len(answers)
        thread = clerk.http.post("/ag-ui", json={"threadId": id, "runId": "r", "messages": message}).text
        assert "RUN_ERROR" in thread and "control character" in thread
        for line in (f"%session new '{id}'", f"%session use '{id}'", f"%chat clerk -s '{id}' Hi", f"%trace -s '{id}'"):
            assert shell.fails(line)
        with pytest.raises(InputError, match="control character"):
            Chat(shell.names["clerk"], session=id)
    assert clerk.http.get("/apps/clerk/users/user/sessions").json() == []


@pytest.mark.slow
def test_a_hint_leads_to_its_session_and_to_no_other(shell, clerk: Caller):
    ids = [
        "a b",
        "it's",
        "both ' and \"",
        "back\\slash",
        "{script}",
        "$script",
        "a=",
        "a='b",
        "#1",
        "50%",
        "-x",
        "--yes",
    ]
    ids += ["@at", "x;", "why?", "ada/s1", "日本", "a\\", "<b>"]
    shell.cell(f"script = ScriptedLlm(*[call('pay', to='Anna', amount=250), 'Anna has it.'] * {len(ids)})")
    shell.cell("%%agent clerk -m script -t pay\nYou pay.")
    for session in ids:
        assert requests_in(clerk.run("Pay Anna", session).json()), session
        detail = clerk.run("Do it now!", session).json()["detail"]
        hint = detail[detail.index("%confirm -s ") : detail.index(" or %confirm -s ")]
        assert shell.cell(hint).text == "Anna has it.", hint


def test_a_policy_of_the_notebook_approves_nothing_for_clients(shell, clerk: Caller):
    shell.cell("%config AdkNb.confirm = 'yes'")
    assert requests_in(clerk.run("Pay Anna").json())
    assert "1 approval is open" in str(shell.cell("%session"))


def test_ag_ui_says_that_an_approval_is_open_and_what_came_of_it(shell, clerk: Caller):
    def talk(**more: Any) -> list[dict[str, Any]]:
        answer = clerk.http.post("/ag-ui", json={"threadId": "t", "runId": "r", "messages": [], **more})
        return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]

    (interrupt,) = talk(messages=[{"id": "m", "role": "user", "content": "Pay Anna"}])[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    refused = talk(resume=resume)[-1]
    assert refused["type"] == "RUN_ERROR" and "in the notebook" in refused["message"]
    shell.cell("%confirm -s @clerk/t --yes")
    *_, messages, done = talk(resume=resume)
    assert done["outcome"] == {"type": "success"} and messages["messages"][-1]["content"] == "Anna has it."


class Gated(BaseLlm):
    """Answers once the gate is open."""

    word: str
    gate: Any
    begun: Any

    async def generate_content_async(self, llm_request, stream=False):
        self.begun.set()
        await sync.blocking(self.gate.wait, thread=True)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=self.word)]))


def gated(shell, *, word: str = "at last") -> tuple[threading.Event, threading.Event]:
    """An agent whose model waits for a gate; the gate, and whether the model was asked."""
    gate, begun = threading.Event(), threading.Event()
    shell.names["slow"] = Gated(model="slow", word=word, gate=gate, begun=begun)
    shell.cell("%%agent clerk -m slow\nYou take your time.")
    return gate, begun


def test_two_clients_and_a_cell_at_one_session_are_answered_in_order(shell, clerk: Caller):
    gate, begun = gated(shell)
    answers: dict[str, httpx2.Response] = {}

    def ask(word: str) -> None:
        answers[word] = clerk.run(word)

    threads = [threading.Thread(target=ask, args=[word]) for word in ("first", "second")]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    assert "still answering" in shell.fails("%chat clerk -s @clerk/web And I?")
    gate.set()
    for thread in threads:
        thread.join(60)
    assert [texts(answers[word].json()) for word in ("first", "second")] == [["at last"], ["at last"]]
    assert texts(clerk.events()) == ["first", "at last", "second", "at last"]


def test_a_client_that_goes_away_stops_its_turn_and_the_session_is_whole(shell, clerk: Caller):
    gate, begun = gated(shell)
    clerk.http.post("/apps/clerk/users/user/sessions/made")
    leaving = httpx2.Client(base_url=clerk.served.url, headers=clerk.served.headers, timeout=60)
    with leaving, leaving.stream("POST", "/run_sse", json=body("Hello", "made", streaming=True)) as answer:
        assert answer.status_code == 200 and begun.wait(30)
    gate.set()
    assert texts(clerk.run("Still there?", session="made").json()) == ["at last"]
    said = texts(clerk.events("made"))
    assert (said[0], said[-2:]) == ("Hello", ["Still there?", "at last"])
    assert shell.cell("%chat clerk -s @clerk/made And here?").text == "at last"


def test_a_new_definition_answers_from_the_next_run_on_and_open_runs_end_as_they_began(shell, clerk: Caller):
    gate, begun = gated(shell, word="the old one")
    answers: list[httpx2.Response] = []
    asking = threading.Thread(target=lambda: answers.append(clerk.run("Who are you?")))
    asking.start()
    assert begun.wait(30)
    shell.cell("new = ScriptedLlm('the new one')")
    shell.cell("%%agent clerk -m new\nYou are new.")
    gate.set()
    asking.join(60)
    assert texts(answers[0].json()) == ["the old one"]
    assert texts(clerk.run("And now?").json()) == ["the new one"]


def test_a_cell_that_waits_for_its_own_server_is_answered(shell, clerk: Caller):
    shell.names["caller"] = clerk
    shell.cell('%%tool\ndef look() -> str:\n    """Look."""\n    return "seen"')
    shell.cell("script = ScriptedLlm(call('look'), 'Seen.')")
    shell.cell("%%agent clerk -m script -t look\nYou look.")
    assert shell.cell("caller.run('Look').json()")[-1]["content"]["parts"][0]["text"] == "Seen."


def test_state_and_files_of_a_client_are_those_of_its_session(shell, clerk: Caller):
    clerk.run("Pay Anna", stateDelta={"lang": "de"})
    assert shell.cell("%state lang -s @clerk/web") == "de"
    refused = clerk.run("More", stateDelta={"lang": "fr"})
    assert refused.status_code == 409 and shell.cell("%state lang -s @clerk/web") == "de"


def test_an_error_of_a_run_is_the_clients_and_the_session_goes_on(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm(RuntimeError('the service is down'), 'Back.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    failed = clerk.run("Hello")
    assert failed.status_code == 500 and "the service is down" in failed.json()["detail"]
    assert texts(clerk.run("Again").json()) == ["Back."]


def test_a_forgotten_agent_is_not_found(shell, clerk: Caller):
    shell.cell("%agents --rm clerk")
    for answer in (clerk.run("Hello"), clerk.http.get("/list-apps?detailed=true")):
        assert answer.status_code == 404 and "clerk" in answer.json()["detail"]


def test_an_app_and_a_runner_are_served_with_their_own_sessions(shell, call):
    shell.cell(TEAM)
    shell.cell("from adk_nb import Agent, App, InMemoryRunner")
    shell.cell("shop = App(name='shop', root_agent=Agent(name='seller', model=ScriptedLlm('From the shop.')))")
    shell.cell("own = InMemoryRunner(Agent(name='keeper', model=ScriptedLlm('From the runner.', 'And again.')))")
    assert texts(call("%serve shop").run("Hello").json()) == ["From the shop."]
    caller = call("%serve own")
    assert texts(caller.run("Hello", user="ada").json()) == ["From the runner."]
    assert "ada" not in str(shell.cell("%session"))
    assert texts(caller.run("Hello", session="debug_session_id", user="debug_user_id").json()) == ["And again."]


def test_a_second_serve_replaces_the_first_and_its_clients_go_on(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm('Hello.')")
    shell.cell("%%agent greeter -m script\nYou greet.")
    first = clerk.served
    second = shell.cell("%serve greeter")
    assert (second.url, second.token) == (first.url, first.token)
    assert not first.is_running and second.is_running and "no more" in repr(first)
    assert clerk.http.get("/list-apps").json() == ["greeter"]
    port = free_port()
    third = shell.cell(f"%serve clerk --port {port}")
    assert third.port == port and not second.is_running
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(second.url)


def test_stop_frees_the_port(shell, clerk: Caller):
    assert str(clerk.served.port) in str(shell.cell("%serve --stop"))
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(clerk.served.url)
    assert "nothing is served" in shell.fails("%serve --stop")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", clerk.served.port))


def test_unloading_the_extension_stops_it(shell, clerk: Caller):
    shell.cell("%unload_ext adk_nb")
    assert not clerk.served.is_running


def test_what_is_typed_wrong_is_said_and_what_is_served_goes_on(shell, clerk: Caller):
    served = clerk.served
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is taken; name another, as --port" in shell.fails(f"%serve clerk --port {port}")
    assert "'clark'" in shell.fails("%serve clark")
    assert "clerk" in shell.fails("%serve clark")
    assert "no port" in shell.fails("%serve clerk --port 0") and "no port" in shell.fails("%serve clerk --port x")
    assert "%serve --stop" in shell.fails("%serve clerk --stop")
    assert "unexpected" in shell.fails("%serve clerk now")
    assert "no lines" in shell.fails("%%serve clerk\nHello")
    assert shell.cell("%serve") is served and clerk.http.get("/list-apps").json() == ["clerk"]


def test_nothing_is_served_at_first(shell):
    assert "type %serve AGENT" in shell.fails("%serve")
    assert "nothing is served" in shell.fails("%serve --stop")


def test_a_missing_package_is_named_with_its_extra(shell, clerk: Caller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ag_ui", None)
    message = shell.fails("%serve clerk")
    assert "'ag_ui' is not installed; type: %pip install " in message and '"ag-ui-protocol>=1"' in message
    assert clerk.served.is_running


def test_a_browser_has_no_sockets(shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serve, "has_threads", lambda: False)
    assert threads.has_threads()
    assert "sockets" in shell.fails("%serve clerk")


def test_a_task_that_outlives_a_pause_goes_on_with_the_answer_from_the_notebook(shell, clerk: Caller):
    notebook = shell.ip.adk_nb
    runner = NotebookRunner(notebook, "clerk", shows_runs=False).waiting()
    asked, seen = threading.Event(), list[str]()

    async def task() -> None:
        events = runner.run_async(user_id="user", session_id="task", new_message="Pay Anna")
        async for event in events:
            calls = [call.name for call in event.get_function_calls()]
            seen.extend([*calls, *(part.text for part in event.content.parts if part.text)])
            if event.long_running_tool_ids:
                asked.set()

    started = sync.start(task())
    assert asked.wait(30) and not started.done()
    shell.cell("%confirm -s @clerk/task --yes")
    started.result(30)
    assert seen == ["pay", "adk_request_confirmation", "Anna has it."]


def test_the_messages_of_clients_bear_their_name(shell, clerk: Caller):
    shell.cell("script = ScriptedLlm('Hello.', 'Hello.')")
    shell.cell("%%agent clerk -m script\nYou greet.")
    clerk.run("Good day")
    message = {"id": "m", "role": "user", "content": "Good day"}
    thread = {"threadId": "thread", "runId": "r", "messages": [message], "tools": [], "context": []}
    assert clerk.http.post("/ag-ui", json=thread).status_code == 200
    trace = str(shell.cell("%trace -s @clerk/web"))
    assert "client" in trace and "you" not in trace
    assert "AG-UI client" in str(shell.cell("%trace -s @clerk/thread"))


def test_a_task_that_waits_ends_when_its_caller_stops_it(shell, clerk: Caller):
    runner = NotebookRunner(shell.ip.adk_nb, "clerk", shows_runs=False).waiting()
    asked = threading.Event()

    async def task(stop: asyncio.Event) -> None:
        run = runner.run_async(user_id="user", session_id="task", new_message="Pay Anna", abort_signal=stop)
        async for event in run:
            if event.long_running_tool_ids:
                asked.set()

    stop = asyncio.Event()
    started = sync.start(task(stop))
    assert asked.wait(30)
    sync.loop().call_soon_threadsafe(stop.set)
    started.result(30)
    assert "1 approval is open" in str(shell.cell("%session"))


def test_a_live_conversation_is_a_chat_here_and_its_approvals_are_given_here(shell, clerk: Caller):
    shell.cell('script = ScriptedLlm(call("pay", to="Anna", amount=250), "It waits.", "Yes?", "Anna has it.")')
    shell.cell("%%agent clerk -m script -t pay\nYou pay.")
    clerk.http.post("/apps/clerk/users/user/sessions", json={"sessionId": "web"})
    address = clerk.served.url.replace("http", "ws", 1) + "/run_live?user_id=user&session_id=web&modalities=TEXT"
    with connect(address, additional_headers=clerk.served.headers, proxy=None) as socket:
        conversation = Talk(socket)
        conversation.say("Pay Anna 250")
        (key,) = requests_in(conversation.turn())
        conversation.say("Are you there?")
        assert texts(conversation.turn()) == ["Yes?"], "people talk on while it waits"
        conversation.say(*approval(key))
        code, reason = conversation.end()
    assert code == 1007 and "answered in the notebook" in reason
    assert "pay" in str(shell.cell("%confirm -s @clerk/web")), "it is still open"
    assert shell.cell("%confirm -s @clerk/web yes").text == "Anna has it."
    assert texts(clerk.events()) == ["Pay Anna 250", "It waits.", "Are you there?", "Yes?", "Anna has it."]
    assert all(event["customMetadata"]["sent_by"] == "client" for event in clerk.events()[:5])
