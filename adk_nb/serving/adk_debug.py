"""What Google's own dev UI asks of an ADK server beside runs and sessions, and its files.

Source: google-adk 2.13, `cli/dev_server.py` and `cli/browser`, which this package does not bring.
"""

import json
import mimetypes
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Trace, TracedRequest, TracedTool
from adk_nb.serving.adk_sessions import check_app
from adk_nb.serving.agent_service import AgentService
from adk_nb.serving.http_bodies import plain_json
from adk_nb.workflow.workflow import Workflow

_UI = "/dev-ui/"
_DEV = "/dev/apps/{app}"
_TRACES = _DEV + "/debug/trace"
_EMPTY: dict[str, Any] = {
    "/eval_sets": [],
    "/eval-sets": {"evalSetIds": []},
    "/eval_results": [],
    "/eval-results": {"evalResultIds": []},
    "/metrics-info": {"metricsInfo": []},
    "/tests": [],
}
"""Lists of the page that are empty here: cases are evaluated in the notebook."""


class AdkDebug:
    """The handlers of these paths."""

    def __init__(self, service: AgentService) -> None:
        self._service = service
        self._files = ui_folder()

    def routes(self) -> list[BaseRoute]:
        """The routes, and the page's files if google-adk is installed."""
        event = _DEV + "/users/{user}/sessions/{session}/events/{event}/graph"
        routes: list[BaseRoute] = [
            Route(_TRACES + "/session/{session}", self._session_trace, methods=["GET"]),
            Route(_TRACES + "/{event}", self._event_trace, methods=["GET"]),
            Route(_DEV + "/build_graph", self._app_info, methods=["GET"]),
            Route(_DEV + "/build_graph_image", self._picture, methods=["GET"]),
            Route(event, self._event_picture, methods=["GET"]),
            Route(_DEV + "/builder", self._builder, methods=["GET"]),
            Route("/config/telemetry", self._telemetry, methods=["GET", "POST"]),
            *(Route(_DEV + path, self._empty(value), methods=["GET"]) for path, value in _EMPTY.items()),
            Route("/", self._to_page, methods=["GET"]),
            Route(_UI.rstrip("/"), self._to_page, methods=["GET"]),
            Route(_UI + "assets/config/runtime-config.json", self._page_config, methods=["GET"]),
        ]
        if self._files is not None:
            # Windows may have another type for .js in its registry, and a page runs no module of another type.
            mimetypes.add_type("text/javascript", ".js")
            routes.append(Mount(_UI, StaticFiles(directory=self._files, html=True, follow_symlink=True)))
        return routes

    # ---- the page

    async def _to_page(self, request: Request) -> Response:
        if self._files is None:
            raise HTTPException(404, "the page comes with google-adk; type: %pip install google-adk")
        return RedirectResponse(f"{_UI}?app={self._service.name}", 303)

    async def _page_config(self, request: Request) -> Response:
        return plain_json({"backendUrl": "", "telemetry": False})

    async def _telemetry(self, request: Request) -> Response:
        return plain_json({"telemetry": False})

    async def _builder(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        return PlainTextResponse("")  # agents are edited in their cells

    def _empty(self, value: Any) -> Any:
        async def empty(request: Request) -> Response:
            check_app(self._service, request.path_params["app"])
            return plain_json(value)

        return empty

    # ---- the agent

    async def _app_info(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        return plain_json({"name": self._service.name, "root_agent": _description(self._service.agent)})

    async def _picture(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        dark = request.query_params.get("dark_mode", "").lower() == "true"
        return plain_json({"": {"dotSrc": _dot(self._service.agent, dark)}})

    async def _event_picture(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        return plain_json({"dotSrc": _dot(self._service.agent, dark=False)})

    # ---- traces

    async def _event_trace(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        event = request.path_params["event"]
        for traced in self._service.traces.merged(self._service.traces.invocation_ids).requests:
            if traced.event_id == event:
                return plain_json(_request_attributes(traced))
        raise HTTPException(404, "Trace not found")

    async def _session_trace(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        user = request.query_params.get("user_id", "user")
        session = await self._service.session(user, request.path_params["session"])
        ids = dict.fromkeys(event.invocation_id for event in session.events) if session else {}
        trace = self._service.traces.merged(ids)
        return plain_json([span for number, key in enumerate(ids, 1) for span in _spans(trace, key, number)])


def ui_folder() -> Path | None:
    """The files of the page in an installed google-adk, which is not imported; None: there is none."""
    try:
        folder = Path(str(metadata.distribution("google-adk").locate_file("google/adk/cli/browser")))
    except metadata.PackageNotFoundError:
        return None
    return folder if (folder / "index.html").is_file() else None


def _description(agent: BaseAgent) -> dict[str, Any]:
    tools = [{"name": tool.name, "type": "tool"} for tool in agent.tools_now()] if isinstance(agent, LlmAgent) else []
    described: dict[str, Any] = {
        "name": agent.name,
        "description": agent.description,
        "sub_agents": [_description(member) for member in agent.members],
        "type": "workflow" if isinstance(agent, Workflow) else "agent",
    }
    if isinstance(agent, LlmAgent):
        instruction = agent.instruction if isinstance(agent.instruction, str) else ""
        described |= {"tools": tools, "instruction": instruction}
    return described


def _dot(agent: BaseAgent, dark: bool) -> str:
    """The agent as a graph in Graphviz' language: its team with tools, or the edges of a workflow."""
    back, ink = ("#0F172A", "#E2E8F0") if dark else ("#FFFFFF", "#0F172A")
    lines = [
        f'bgcolor="{back}"; rankdir=TB;',
        f'node [shape=box, style=rounded, color="{ink}", fontcolor="{ink}", fontname=Helvetica];',
        f'edge [color="{ink}", fontcolor="{ink}", fontname=Helvetica];',
        *_dot_lines(agent),
    ]
    return "digraph {\n" + "\n".join(lines) + "\n}"


def _dot_lines(agent: BaseAgent) -> Iterator[str]:
    yield f"{_quoted(agent.name)};"
    if isinstance(agent, Workflow):
        for edges in (*agent.graph.edges_from.values(), *agent.graph.edges_to_end.values()):
            for edge in edges:
                yield f"{_quoted(str(edge.start))} -> {_quoted(str(edge.end))};"
        return
    for tool in agent.tools_now() if isinstance(agent, LlmAgent) else ():
        yield f"{_quoted(tool.name)} [shape=ellipse];"
        yield f"{_quoted(agent.name)} -> {_quoted(tool.name)} [style=dashed];"
    for member in agent.members:
        yield f"{_quoted(agent.name)} -> {_quoted(member.name)};"
        yield from _dot_lines(member)


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- spans, as the page reads them


def _spans(trace: Trace, invocation_id: str, number: int) -> Iterator[dict[str, Any]]:
    """A span for the run, and one within it for each request and each call of a tool. Times are nanoseconds."""
    requests = [traced for traced in trace.requests if traced.invocation_id == invocation_id]
    tools = [traced for traced in trace.tools if traced.invocation_id == invocation_id]
    parts: list[TracedRequest | TracedTool] = sorted([*requests, *tools], key=lambda traced: traced.began)
    if not parts:
        return
    root: dict[str, Any] = {"trace_id": number, "span_id": number * 10_000, "parent_span_id": None, "logs": []}
    end = max(traced.ended or traced.began for traced in parts)
    attributes = {"gcp.vertex.agent.invocation_id": invocation_id}
    yield {**root, "name": "invocation", **_times(parts[0].began, end), "attributes": attributes}
    for index, traced in enumerate(parts, 1):
        span = {**root, "span_id": number * 10_000 + index, "parent_span_id": root["span_id"]}
        span |= _times(traced.began, traced.ended or traced.began)
        if isinstance(traced, TracedRequest):
            yield {**span, "name": f"generate_content {traced.model}", "attributes": _request_attributes(traced)}
        else:
            yield {**span, "name": f"execute_tool {traced.tool}", "attributes": _tool_attributes(traced)}


def _times(began: float, ended: float) -> dict[str, int]:
    return {"start_time": int(began * 1e9), "end_time": int(ended * 1e9)}


def _request_attributes(traced: TracedRequest) -> dict[str, Any]:
    usage = traced.response.usage_metadata if traced.response else None
    return {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.agent.name": traced.agent,
        "gen_ai.request.model": traced.model,
        "gen_ai.usage.input_tokens": (usage and usage.prompt_token_count) or 0,
        "gen_ai.usage.output_tokens": (usage and usage.candidates_token_count) or 0,
        "gcp.vertex.agent.event_id": traced.event_id,
        "gcp.vertex.agent.invocation_id": traced.invocation_id,
        "gcp.vertex.agent.llm_request": _json(traced.request),
        "gcp.vertex.agent.llm_response": _json(traced.response) if traced.response else "{}",
    }


def _tool_attributes(traced: TracedTool) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": traced.tool,
        "gen_ai.tool.call.id": traced.call_id,
        "gen_ai.agent.name": traced.agent,
        "gcp.vertex.agent.invocation_id": traced.invocation_id,
    }


def _json(record: Any) -> str:
    included = {"model", "contents", "config"} if hasattr(record, "contents") else None
    dumped = record.model_dump(mode="json", include=included, exclude_none=True, fallback=str)
    return json.dumps(redacted(dumped))
