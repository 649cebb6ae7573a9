"""Runs snippets of public tutorials on google-adk or on adk_nb and prints their results: python told_moving.py PACKAGE.

Each scene is code that moves between the two by its import prefix alone.
"""

import asyncio
import builtins
import importlib
import inspect
import io
import json
import sys
import warnings
import zipfile
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.genai import types
from pydantic import BaseModel

Names = Callable[[str], Any]
"""`names("agents.LlmAgent")`: the name in the package that is on trial."""


def names_of(package: str) -> Names:
    def get(path: str) -> Any:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(f"{package}.{module}"), name)

    return get


def scripted(names: Names, *answers: Any) -> Any:
    """A model that gives `answers`: texts, or lists of (tool, args)."""
    response = names("models.LlmResponse")
    remaining_answers = list(answers)

    class Scripted(names("models.BaseLlm")):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            answer = remaining_answers.pop(0)
            calls = [] if isinstance(answer, str) else answer
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in calls]
            yield response(content=types.Content(role="model", parts=parts or [types.Part(text=answer)]))

    return Scripted(model="scripted")


async def run(names: Names, agent: Any, *messages: str, **runner: Any) -> list[Any]:
    """The events of a new session in which `agent` gets `messages`."""
    runner = names("runners.InMemoryRunner")(agent=agent, app_name="moving", **runner)
    session = await runner.session_service.create_session(app_name="moving", user_id="u")
    events: list[Any] = []
    for message in messages:
        content = types.Content(role="user", parts=[types.Part(text=message)])
        events += [event async for event in runner.run_async(user_id="u", session_id=session.id, new_message=content)]
    return events


def texts(events: list[Any]) -> list[list[str]]:
    """Author and text of each event that has a text."""
    parts = [(event.author, part.text) for event in events if event.content for part in event.content.parts or []]
    return [[author, text] for author, text in parts if text]


def is_refused(make: Callable[[], Any]) -> bool:
    try:
        make()
    except ValueError:
        return True
    return False


def unknown_fields(names: Names) -> Any:
    response, actions = names("models.LlmResponse"), names("events.EventActions")
    confirmation, session = names("tools.tool_confirmation.ToolConfirmation"), names("sessions.Session")
    return {
        "actions": is_refused(lambda: actions(no_such=1)),
        "response": is_refused(lambda: response(txt="hello")),
        "confirmation": is_refused(lambda: confirmation(confirm=True)),
        "session": is_refused(lambda: session(id="s", app_name="a", user_id="u", owner="me")),
        "known": actions(stateDelta={"a": 1}).state_delta,
    }


def fields_of_a_response(names: Names) -> Any:
    response = names("models.LlmResponse")(environment_id="sandbox-1")
    event = names("events.Event")(author="guide", environment_id="sandbox-1")
    return [response.environment_id, event.environment_id, event.model_dump(exclude_none=True)["environment_id"]]


async def private_invocation_context(names: Names) -> Any:
    log: dict[str, Any] = {}

    def before(callback_context: Any) -> None:
        ctx = callback_context._invocation_context
        log["callback"] = [ctx.app_name, ctx.user_id, ctx.agent.name, type(ctx.session).__name__]
        log["plugins"] = [plugin.name for plugin in ctx.plugin_manager.plugins]

    def look(tool_context: Any) -> str:
        """Look."""
        ctx = tool_context._invocation_context
        log["tool"] = [ctx.user_id, ctx.invocation_id == tool_context.invocation_id, ctx.end_invocation]
        ctx.end_invocation = True
        return "seen"

    look.__annotations__["tool_context"] = names("tools.ToolContext")
    plugin = names("plugins.base_plugin.BasePlugin")(name="log")
    model = scripted(names, [("look", {})], "never said")
    agent = names("agents.LlmAgent")(name="guide", model=model, tools=[look], before_agent_callback=before)
    events = await run(names, agent, "go", plugins=[plugin])
    return log | {"texts": texts(events)}


async def contexts_of_a_run(names: Names) -> Any:
    log: list[Any] = []

    def look(tool_context: Any) -> str:
        """Look."""
        tool_context.custom_metadata["looked"] = True
        log.append(["tool", tool_context.is_aborted, tool_context.branch, tool_context.isolation_scope])
        return "seen"

    def after(callback_context: Any) -> None:
        log.append(["after", callback_context.is_aborted, dict(callback_context.custom_metadata)])

    def instruction(context: Any) -> str:
        log.append(["instruction", context.is_aborted, dict(context.custom_metadata)])
        return "Guide."

    look.__annotations__["tool_context"] = names("tools.ToolContext")
    model = scripted(names, [("look", {})], "done")
    agent = names("agents.LlmAgent")(
        name="guide", model=model, tools=[look], after_agent_callback=after, instruction=instruction
    )
    runner = names("runners.InMemoryRunner")(agent=agent, app_name="moving")
    session = await runner.session_service.create_session(app_name="moving", user_id="u")
    config = names("agents.RunConfig")(custom_metadata={"trace": "t1"})
    content = types.Content(role="user", parts=[types.Part(text="go")])
    session_key = {"user_id": "u", "session_id": session.id}
    async for _ in runner.run_async(**session_key, new_message=content, run_config=config):
        pass
    return log


async def a_context_made_by_hand(names: Names) -> Any:
    event, agent_base = names("events.Event"), names("agents.BaseAgent")
    service = names("sessions.InMemorySessionService")()
    session = await service.create_session(app_name="moving", user_id="u", state={"city": "Oslo"})
    content = types.Content(role="user", parts=[types.Part(text="go")])

    class Greeter(agent_base):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Any, None]:
            city = ctx.session.state["city"]
            yield event(author=self.name, content=types.Content(parts=[types.Part(text=f"Hello from {city}")]))

    def context(agent: Any, **fields: Any) -> Any:
        return names("agents.InvocationContext")(
            invocation_id="i", agent=agent, session=session, session_service=service, user_content=content, **fields
        )

    async def said(agent: Any, **fields: Any) -> Any:
        return texts([run_event async for run_event in agent.run_async(context(agent, **fields))])

    greeter, guide = Greeter(name="greeter"), names("agents.LlmAgent")(name="guide", model=scripted(names, "Hello"))
    everything = context(
        greeter,
        branch="a.b",
        run_config=names("agents.RunConfig")(),
        plugin_manager=names("plugins.plugin_manager.PluginManager")(),
        resumability_config=names("apps.ResumabilityConfig")(is_resumable=True),
        events_compaction_config=None,
        context_cache_config=None,
        credential_by_key={},
        end_invocation=False,
    )
    tool_context = names("tools.ToolContext")(everything, function_call_id="c1")
    tool_context.state["seen"] = True
    callback_context = names("agents.callback_context.CallbackContext")(invocation_context=everything)
    return {
        "custom": await said(greeter),
        "llm": await said(guide, run_config=names("agents.RunConfig")()),
        "fields": [everything.app_name, everything.user_id, everything.branch, everything.is_resumable],
        "aborted": everything.is_aborted,
        "state": tool_context.actions.state_delta,
        "call": tool_context.function_call_id,
        "agent": callback_context.agent_name,
    }


async def stored_sessions(names: Names) -> Any:
    service = names("sessions.InMemorySessionService")()
    session = await service.create_session(app_name="shop", user_id="ada", session_id="s1", state={"step": 1})
    event, actions = names("events.Event"), names("events.EventActions")
    stored = service.sessions
    earlier_authors = [event.author for event in stored["shop"]["ada"]["s1"].events]
    await service.append_event(session, event(author="user", actions=actions(state_delta={"step": 2})))
    s1 = stored["shop"]["ada"]["s1"]
    return {
        "before": earlier_authors,
        "after": [event.author for event in s1.events],
        "state": dict(s1.state),
        "names": [list(stored), list(stored["shop"]), list(stored["shop"]["ada"])],
        "has": ["shop" in stored, "no" in stored, stored["shop"]["ada"].get("no"), len(stored["shop"]["ada"])],
    }


async def a_node_in_a_runner(names: Names) -> Any:
    def double(node_input: str) -> str:
        return node_input * 2

    def emphasize(node_input: str) -> str:
        return f"{node_input}!"

    workflow, start = names("workflow.Workflow"), names("workflow.START")
    node = names("workflow.FunctionNode")(func=double)
    content = types.Content(role="user", parts=[types.Part(text="go")])

    async def outputs(runner: Any) -> Any:
        service = runner.session_service
        session = await service.create_session(app_name=runner.app_name, user_id="u")
        run = runner.run_async(user_id="u", session_id=session.id, new_message=content)
        return [event.output async for event in run if event.output is not None]

    graph = workflow(name="graph", edges=[(start, double, emphasize)])
    service = names("sessions.InMemorySessionService")()
    runner = names("runners.Runner")(node=graph, session_service=service)
    in_memory = names("runners.InMemoryRunner")(node=graph)
    return {
        "graph": [runner.app_name, await outputs(runner)],
        "in memory": [in_memory.app_name, await outputs(in_memory)],
        "node": await outputs(names("runners.InMemoryRunner")(node=node)),
        "two": is_refused(
            lambda: names("runners.Runner")(node=graph, agent=graph, app_name="a", session_service=service)
        ),
    }


async def tools_that_only_prepare(names: Names) -> Any:
    class Notes(names("tools.BaseTool")):
        async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
            llm_request.append_instructions(["Take notes."])

    messages: list[Any] = []

    def before(callback_context: Any, llm_request: Any) -> None:
        messages.append("Take notes." in str(llm_request.config.system_instruction))

    tool = Notes(name="notes", description="Notes.")
    agent = names("agents.LlmAgent")(
        name="guide", model=scripted(names, "Hello"), tools=[tool], before_model_callback=before
    )
    events = await run(names, agent, "go")
    try:
        await tool.run_async(args={}, tool_context=None)
    except NotImplementedError:
        messages.append("not implemented")
    return [texts(events), messages]


async def prefixed_tools(names: Names) -> Any:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    tool = names("tools.FunctionTool")(add)

    class Sums(names("tools.base_toolset.BaseToolset")):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return [tool]

    [prefixed] = await Sums(tool_name_prefix="math").get_tools_with_prefix()
    [plain] = await Sums().get_tools_with_prefix()
    return [
        [prefixed.name, prefixed._get_declaration().name],
        [plain.name, plain._get_declaration().name],
        [tool.name, tool._get_declaration().name],
    ]


async def a_model_of_the_search(names: Names) -> Any:
    tool = names("tools.google_search_tool.GoogleSearchTool")(model="gemini-2.5-pro")
    requests: list[Any] = []

    def before(callback_context: Any, llm_request: Any) -> Any:
        requests.append(
            [llm_request.model, [bool(function_tool.google_search) for function_tool in llm_request.config.tools]]
        )
        return names("models.LlmResponse")(content=types.Content(role="model", parts=[types.Part(text="found")]))

    agent = names("agents.LlmAgent")(name="guide", model="gemini-2.5-flash", tools=[tool], before_model_callback=before)
    return [texts(await run(names, agent, "go")), requests]


async def printed_lines(names: Names) -> Any:
    printed: list[str] = []
    was, builtins.print = builtins.print, lambda *args, **_: printed.append(" ".join(map(str, args)))
    try:
        agent = names("agents.LlmAgent")(name="guide", model=scripted(names, "Hello"))
        await names("runners.InMemoryRunner")(agent=agent).run_debug("Hi", quiet=False)
    finally:
        builtins.print = was
    return [line for line in printed if line.startswith("guide")]


def docx(*paragraphs: str) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    return file.getvalue()


async def loaded_files(names: Names) -> Any:
    text = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><text>Oslo</text></svg>'
    files = {
        "report.docx": (docx("Sales rose.", "By a third."), text),
        "attachment": (docx("Unnamed."), "application/octet-stream"),
        "map.svg": (svg, "image/svg+xml"),
        "plan": (svg, "application/svg+xml"),
    }
    requests: list[Any] = []

    async def keep(callback_context: Any) -> None:
        for name, (data, kind) in files.items():
            blob = types.Blob(data=data, mime_type=kind)
            await callback_context.save_artifact(name, types.Part(inline_data=blob))

    def before(callback_context: Any, llm_request: Any) -> None:
        parts = [part for content in llm_request.contents for part in content.parts if part.text]
        requests[:] = [part.text for part in parts if "Artifact" not in part.text]

    agent = names("agents.LlmAgent")(
        name="guide",
        model=scripted(names, [("load_artifacts", {"artifact_names": list(files)})], "read"),
        tools=[names("tools.load_artifacts")],
        before_agent_callback=keep,
        before_model_callback=before,
    )
    return [texts(await run(names, agent, "go")), requests]


async def scheduled_responses(names: Names) -> Any:
    class Quiet(names("tools.BaseTool")):
        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return {"done": True}

        def _get_declaration(self) -> Any:
            return types.FunctionDeclaration(name=self.name, description=self.description)

    silent = types.FunctionResponseScheduling.SILENT
    tools = [Quiet(name="quiet", description="", response_scheduling=silent), Quiet(name="loud", description="")]
    model = scripted(names, [("quiet", {}), ("loud", {})], "done")
    events = await run(names, names("agents.LlmAgent")(name="guide", model=model, tools=tools), "go")
    responses = [response for event in events for response in event.get_function_responses()]
    return [[response.name, response.scheduling and response.scheduling.value] for response in responses]


def credentials_as_parameters(names: Names) -> Any:
    helpers = importlib.import_module(names("tools.openapi_tool.auth.auth_helpers.credential_to_param").__module__)
    scheme_of, to_param = helpers.dict_to_auth_scheme, helpers.credential_to_param
    credential, http = names("auth.AuthCredential"), names("auth.auth_credential.HttpAuth")
    pair = names("auth.auth_credential.HttpCredentials")
    kinds = names("auth.AuthCredentialTypes")

    def summary(found: Any) -> Any:
        param, values = found
        return param and [param.original_name, param.param_location, param.py_name, values]

    basic = http(scheme="basic", credentials=pair(username="ada", password="lovelace"))
    bearer = http(scheme="bearer", credentials=pair(token="t-1"))
    scheme = scheme_of({"type": "http", "scheme": "basic"})
    open_id = scheme_of({"type": "openIdConnect", "openIdConnectUrl": "https://a/.well-known/openid-configuration"})
    colon = http(scheme="basic", credentials=pair(username="a:b", password="c"))
    return {
        "query": summary(to_param(*helpers.token_to_scheme_credential("apikey", "query", "key", "k-1"))),
        "cookie": summary(to_param(*helpers.token_to_scheme_credential("apikey", "cookie", "key", "k-1"))),
        "token": summary(to_param(*helpers.token_to_scheme_credential("oauth2Token", None, None, "t-1"))),
        "basic": summary(to_param(scheme, credential(auth_type=kinds.HTTP, http=basic))),
        "open id": summary(to_param(open_id, credential(auth_type=kinds.HTTP, http=bearer))),
        "none": summary(to_param(scheme, None)),
        "no token yet": summary(to_param(open_id, credential(auth_type=kinds.OPEN_ID_CONNECT))),
        "no key": is_refused(
            lambda: to_param(
                scheme_of({"type": "apiKey", "in": "header", "name": "k"}), credential(auth_type=kinds.API_KEY)
            )
        ),
        "colon": is_refused(lambda: to_param(scheme, credential(auth_type=kinds.HTTP, http=colon))),
    }


async def open_id_by_url(names: Names) -> Any:
    fetch = names("tools.openapi_tool.auth.auth_helpers.openid_url_to_scheme_credential")
    document = {
        "issuer": "http://127.0.0.1",
        "authorization_endpoint": "https://id.example/authorize",
        "token_endpoint": "https://id.example/token",
        "scopes_supported": ["openid"],
    }
    answers = {"/found": (200, json.dumps(document)), "/none": (404, "{}"), "/page": (200, "<html>")}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        status, body = answers[path]
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = {"client_id": "me", "client_secret": "hush-hush", "redirect_uri": "http://127.0.0.1/back"}

    async def refused(path: str) -> bool:
        try:
            await asyncio.to_thread(fetch, f"{url}{path}", ["openid"], client)
        except Exception:
            return True
        return False

    scheme, credential = await asyncio.to_thread(fetch, f"{url}/found", ["openid", "mail"], client)
    refusals = [await refused(path) for path in ("/none", "/page")]
    server.close()
    return [
        [scheme.authorization_endpoint, scheme.token_endpoint, scheme.scopes],
        [credential.auth_type.value, credential.oauth2.client_id, credential.oauth2.redirect_uri],
        refusals,
    ]


async def agents_as_nodes(names: Names) -> Any:
    agent, retry = names("agents.LlmAgent"), names("workflow.RetryConfig")
    response, remaining_texts = names("models.LlmResponse"), ["fails", "fails", "done"]

    class Flaky(names("models.BaseLlm")):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            answer = remaining_texts.pop(0)
            if answer == "fails":
                raise ConnectionError("no line")
            yield response(content=types.Content(role="model", parts=[types.Part(text=answer)]))

    class Slow(names("models.BaseLlm")):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            await asyncio.Event().wait()
            yield response()

    async def outcome(node: Any) -> Any:
        graph = names("workflow.Workflow")(name="graph", edges=[(names("workflow.START"), node)])
        try:
            return texts(await run(names, graph, "go"))
        except Exception as error:
            return type(error).__name__

    config = retry(max_attempts=3, initial_delay=0.001, jitter=0)
    flaky = agent(name="flaky", model=Flaky(model="m"), retry_config=config)
    return {
        "retried": [await outcome(flaky), remaining_texts],
        "late": await outcome(agent(name="slow", model=Slow(model="m"), timeout=0.05)),
        "fields": [flaky.retry_config.max_attempts, flaky.timeout],
        "taken": agent(name="a", rerun_on_resume=True, wait_for_output=True).wait_for_output,
    }


def a_node_of_a_function(names: Names) -> Any:
    node = names("workflow.FunctionNode")

    class Trip(BaseModel):
        city: str
        days: int = 1

    def plan(node_input: Trip) -> Trip:
        """Plan a trip."""
        return node_input

    def many(node_input: str) -> AsyncGenerator[Trip, None]: ...

    def price(city: str, days: int = 2) -> str:
        """Price of a trip."""
        return city

    def name_of(schema: Any) -> Any:
        return getattr(schema, "__name__", schema)

    built = node(func=plan)
    bound = node(func=price, parameter_binding="node_input")
    return {
        "names": [built.name, built.description, node(func=plan, name="other").name],
        "schemas": [name_of(built.input_schema), name_of(built.output_schema)],
        "items": [name_of(schema) for schema in (node(func=many).input_schema, node(func=many).output_schema)],
        "bound": [sorted(bound.input_schema["properties"]), bound.input_schema["required"]],
    }


async def transfers_there_and_back(names: Names) -> Any:
    agent = names("agents.LlmAgent")

    def to(name: str) -> list[Any]:
        return [("transfer_to_agent", {"agent_name": name})]

    leaf = agent(name="leaf", description="Leaf.", model=scripted(names, to("middle"), "leaf again"))
    middle = agent(
        name="middle",
        description="Middle.",
        model=scripted(names, to("leaf"), to("root"), to("leaf")),
        sub_agents=[leaf],
    )
    root = agent(
        name="root", model=scripted(names, to("middle"), "back at the root", to("middle")), sub_agents=[middle]
    )
    events = await run(names, root, "go", "and again")
    return [
        [event.author, event.actions.transfer_to_agent, [part.text for part in event.content.parts if part.text]]
        for event in events
        if event.content and not event.get_function_calls()
    ]


SCENES: list[Callable[[Names], Any]] = [
    unknown_fields,
    fields_of_a_response,
    private_invocation_context,
    contexts_of_a_run,
    a_context_made_by_hand,
    stored_sessions,
    a_node_in_a_runner,
    tools_that_only_prepare,
    prefixed_tools,
    a_model_of_the_search,
    printed_lines,
    loaded_files,
    scheduled_responses,
    credentials_as_parameters,
    open_id_by_url,
    agents_as_nodes,
    a_node_of_a_function,
    transfers_there_and_back,
]


async def tell(names: Names) -> dict[str, Any]:
    lines: dict[str, Any] = {}
    for scene in SCENES:
        result = scene(names)
        lines[scene.__name__] = await result if inspect.isawaitable(result) else result
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(tell(names_of(sys.argv[1])))))
