"""What Google's own dev UI asks of an ADK server beside runs and sessions, and its files.

Source: google-adk 2.13, `cli/dev_server.py` and `cli/browser`, which this package does not bring.
"""

import json
import mimetypes
from collections.abc import Callable, Iterator
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
from adk_nb.runtime.trace import TracedRequest
from adk_nb.serving.adk_sessions import check_app
from adk_nb.serving.agent_service import AgentService
from adk_nb.serving.http_bodies import always, plain_json
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

_PAGE_CONFIG = {"backendUrl": "", "telemetry": False}


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
            Route(event, self._picture, methods=["GET"]),
            # Agents are edited in their cells.
            Route(_DEV + "/builder", self._fixed(PlainTextResponse, ""), methods=["GET"]),
            *(Route(_DEV + path, self._fixed(plain_json, value), methods=["GET"]) for path, value in _EMPTY.items()),
            Route("/config/telemetry", always({"telemetry": False}), methods=["GET", "POST"]),
            Route("/", self._to_page, methods=["GET"]),
            Route(_UI.rstrip("/"), self._to_page, methods=["GET"]),
            Route(_UI + "assets/config/runtime-config.json", always(_PAGE_CONFIG), methods=["GET"]),
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

    def _fixed(self, new_response: Callable[[Any], Response], value: Any) -> Any:
        """A handler that answers with this value for the agent that is served."""

        async def handler(request: Request) -> Response:
            check_app(self._service, request.path_params["app"])
            return new_response(value)

        return handler

    async def _app_info(self, request: Request) -> Response:
        check_app(self._service, request.path_params["app"])
        return plain_json({"name": self._service.name, "root_agent": _description(self._service.agent)})

    async def _picture(self, request: Request) -> Response:
        """The agent as a graph, for a page in light or dark; or as it is shown beside an event."""
        check_app(self._service, request.path_params["app"])
        dark = request.query_params.get("dark_mode", "").lower() == "true"
        if "event" in request.path_params:
            return plain_json({"dotSrc": _dot(self._service.agent, dark=False)})
        return plain_json({"": {"dotSrc": _dot(self._service.agent, dark)}})

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
        spans: list[dict[str, Any]] = []
        for number, invocation_id in enumerate(ids, 1):
            traced = [each for each in (*trace.requests, *trace.tools) if each.invocation_id == invocation_id]
            if not traced:
                continue
            traced.sort(key=lambda each: each.began)
            # A span for the run, and one within it for each request and each call of a tool.
            root: dict[str, Any] = {"trace_id": number, "span_id": number * 10_000, "parent_span_id": None, "logs": []}
            end = max(each.ended or each.began for each in traced)
            attributes = {"gcp.vertex.agent.invocation_id": invocation_id}
            spans.append(root | _span("invocation", traced[0].began, end, attributes))
            for index, each in enumerate(traced, 1):
                if isinstance(each, TracedRequest):
                    name, attributes = f"generate_content {each.model}", _request_attributes(each)
                else:
                    name = f"execute_tool {each.tool}"
                    attributes = {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": each.tool,
                        "gen_ai.tool.call.id": each.call_id,
                        "gen_ai.agent.name": each.agent,
                        "gcp.vertex.agent.invocation_id": each.invocation_id,
                    }
                child = root | {"span_id": number * 10_000 + index, "parent_span_id": root["span_id"]}
                spans.append(child | _span(name, each.began, each.ended or each.began, attributes))
        return plain_json(spans)


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


def _span(name: str, began: float, ended: float, attributes: dict[str, Any]) -> dict[str, Any]:
    nanoseconds = {"start_time": int(began * 1e9), "end_time": int(ended * 1e9)}
    return {"name": name, **nanoseconds, "attributes": attributes}


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


def _json(record: Any) -> str:
    included = {"model", "contents", "config"} if hasattr(record, "contents") else None
    dumped = record.model_dump(mode="json", include=included, exclude_none=True, fallback=str)
    return json.dumps(redacted(dumped))
