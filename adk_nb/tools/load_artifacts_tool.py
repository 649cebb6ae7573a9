"""`load_artifacts`: the model reads the session's files when it needs them."""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import AdkNbError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.docx import DOCX, docx_text

logger = logging.getLogger(__name__)

NAME = "load_artifacts"
_STATUS = (
    "their contents are shown once, after this result, and are not kept in the conversation; "
    "to see them again, call load_artifacts again"
)
_TOLD = (
    "There are these artifacts:\n{names}\nWhen a question is about one of them, call load_artifacts before you answer, "
    "even if it was loaded before: it may have changed."
)
_SHOWN = ("image/", "audio/", "video/", "application/pdf")
_TEXT = (
    "text/",
    "application/json",
    "application/xml",
    "application/csv",
    "application/svg",
    "application/yaml",
    "image/svg",
    "image/xml",
)
_MOST_TEXT = 1_000_000  # characters


class LoadArtifactsTool(BaseTool):
    """Tells the model which artifacts there are, and shows it those that it asks for.

    What it shows is in the next request only: `Artifact NAME is:` and the part. The session keeps the names. Bytes
    that are text are shown as text; of other bytes that a model cannot read it is told what they are.
    """

    def __init__(self) -> None:
        super().__init__(name=NAME, description="Loads artifacts (files of this session or user), by their names.")
        self.effect = "pure"

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        names = {"type": "array", "items": {"type": "string"}, "description": "Names, as they are listed."}
        schema = {"type": "object", "properties": {"artifact_names": names}, "required": ["artifact_names"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        if _names_in(args) is not None:
            return None
        return f"{NAME}() was not called: artifact_names must be a list of names. Call it again with one."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        return {"artifact_names": _names_in(args), "status": _STATUS}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        if not (known := await tool_context.list_artifacts()):
            return
        llm_request.append_instructions([_TOLD.format(names=json.dumps(known, ensure_ascii=False))])
        for name in _asked_for(llm_request.contents):
            # A name is the model's choice: only one that was listed is looked up.
            part = await _loaded(name, tool_context) if name in known else None
            if part is None:
                logger.warning("the model asked for artifact %.200r, which is not there to load", name)
                continue
            shown = [types.Part(text=f"Artifact {name} is:"), await _readable(part, name)]
            llm_request.contents.append(types.Content(role="user", parts=shown))


def _asked_for(contents: Sequence[types.Content]) -> list[str]:
    """The names that the newest results of this tool tell, if nothing was said since."""
    for content in reversed(contents):
        if results := [part.function_response for part in content.parts or () if part.function_response]:
            told = [_names_in(one.response or {}) or [] for one in results if one.name == NAME]
            return list(dict.fromkeys(name for names in told for name in names))
        if content.role != "user":
            break
    return []


def _names_in(given: dict[str, Any]) -> list[str] | None:
    names = given.get("artifact_names")
    if not isinstance(names, list) or not all(isinstance(one, str) for one in cast(list[Any], names)):
        return None
    return cast(list[str], names)


async def _loaded(name: str, tool_context: ToolContext) -> types.Part | None:
    try:
        return await tool_context.load_artifact(name)
    except AdkNbError as error:
        logger.warning("artifact %r was not loaded: %s", name, error)
        return None


async def _readable(part: types.Part, name: str) -> types.Part:
    """`part` as any model can take it."""
    blob = part.inline_data
    if blob is None:
        return part
    kind, data = (blob.mime_type or "").partition(";")[0].strip().lower(), blob.data or b""
    if kind.startswith(_SHOWN) and not kind.startswith(_TEXT):
        return part
    text = await asyncio.to_thread(docx_text, data) if _may_be_docx(kind, name) else None
    if text is not None:
        return _as_text(text)
    if not kind.startswith(_TEXT) and not name.lower().endswith((".csv", ".json", ".md", ".txt", ".xml", ".yaml")):
        return types.Part(text=f"({len(data)} bytes of type {kind or 'unknown'}, which cannot be shown as text)")
    return _as_text(data.decode("utf-8", "replace"))


def _may_be_docx(kind: str, name: str) -> bool:
    return kind == DOCX or name.lower().endswith(".docx") or kind in ("", "application/octet-stream")


def _as_text(text: str) -> types.Part:
    more = f"\n... cut after {_MOST_TEXT} of {len(text)} characters" if len(text) > _MOST_TEXT else ""
    return types.Part(text=text[:_MOST_TEXT] + more)


load_artifacts = load_artifacts_tool = LoadArtifactsTool()
