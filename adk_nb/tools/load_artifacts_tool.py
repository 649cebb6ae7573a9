"""`load_artifacts`: the model reads artifacts on demand."""

import io
import json
import logging
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, cast
from xml.etree import ElementTree

from adk_nb import sync, types
from adk_nb.artifacts.base_artifact_service import USER
from adk_nb.errors import AdkNbError
from adk_nb.lazy import require, require_installed
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool

logger = logging.getLogger(__name__)

NAME = "load_artifacts"
_STATUS = (
    "their contents are shown once, after this result, and are not kept in the conversation; "
    "to see them again, call load_artifacts again"
)
_INSTRUCTION = (
    "There are these artifacts:\n{names}\nWhen a question is about one of them, call load_artifacts before you answer, "
    "even if it was loaded before: it may have changed."
)
_MEDIA_TYPES = ("image/", "audio/", "video/", "application/pdf")
# SVG is sent as text: models do not take it as an image.
_TEXT_TYPES = (
    "text/",
    "application/json",
    "application/xml",
    "application/csv",
    "application/svg",
    "application/yaml",
    "image/svg",
    "image/xml",
)
_SPREADSHEETS = (
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-excel",
)
_MAX_ROWS = 100
"""Rows of a sheet that the model gets."""
_MAX_TEXT = 1_000_000
"""Characters of an artifact that the model gets."""


class LoadArtifactsTool(BaseTool):
    """Lists the artifacts in the instruction, and loads those that the model asks for.

    The content is part of the next request only: `Artifact NAME is:` and the part. The session stores only the names.
    Bytes that are text are sent as text; for other bytes that a model cannot read it gets type and size.
    """

    def __init__(
        self,
        *,
        process_artifact: Callable[[types.Part, str], types.Part | Awaitable[types.Part | None] | None] | None = None,
        enable_spreadsheet_parsing: bool = False,
    ) -> None:
        """Make the tool.

        Args:
            process_artifact: Gets each part and the name under which it was loaded, and returns what the model gets, or
                None for nothing; plain or async. The conversions above are then its business. An artifact for which it
                raises is left out, and logged.
            enable_spreadsheet_parsing: Show the sheets of `.xlsx` and `.xls` files as tables, of 100 rows each.

        Raises:
            MissingExtraError: pandas is not installed, which reads spreadsheets.
        """
        if enable_spreadsheet_parsing:
            require_installed("pandas", package="pandas openpyxl")
        self._process_artifact = process_artifact
        self._enable_spreadsheet_parsing = enable_spreadsheet_parsing
        super().__init__(name=NAME, description="Loads artifacts (files of this session or user), by their names.")
        self.effect = "pure"

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        names = {"type": "array", "items": {"type": "string"}, "description": "Names, as they are listed."}
        schema = {"type": "object", "properties": {"artifact_names": names}, "required": ["artifact_names"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        """Check that `artifact_names` is a list of strings."""
        if _names_in(args) is not None:
            return None
        return f"{NAME}() was not called: artifact_names must be a list of names. Call it again with one."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return the requested names; the contents follow in the next request."""
        if message := self.check(args):
            return {"error": message}
        return {"artifact_names": _names_in(args), "status": _STATUS}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """List the artifacts in the instruction, and append the contents that the model asked for."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        if not (names := await tool_context.list_artifacts()):
            return
        llm_request.append_instructions([_INSTRUCTION.format(names=json.dumps(names, ensure_ascii=False))])
        for asked in _requested_names(llm_request.contents):
            name = _listed_name(asked, names)
            part = await _load(name, tool_context) if name else None
            if name is None or part is None:
                logger.warning("the model requested artifact %.200r, which cannot be loaded", asked)
            elif (shown := await self._shown(part, name)) is not None:
                parts = [types.Part(text=f"Artifact {asked} is:"), shown]
                llm_request.contents.append(types.Content(role="user", parts=parts))

    async def _shown(self, part: types.Part, name: str) -> types.Part | None:
        """What the model gets of an artifact; None for nothing."""
        if self._process_artifact is None:
            return await self._readable(part, name)
        try:
            answer = self._process_artifact(part, name)
            return await answer if isinstance(answer, Awaitable) else answer
        except Exception as error:  # of the author's function: the turn goes on without the artifact
            logger.warning(
                "artifact %r is left out: process_artifact raised %s: %s",
                name,
                type(error).__name__,
                error,
                exc_info=True,
            )
            return None

    async def _readable(self, part: types.Part, name: str) -> types.Part:
        """`part` in a form that any model accepts."""
        blob = part.inline_data
        if blob is None:
            return part
        kind, data = (blob.mime_type or "").partition(";")[0].strip().lower(), blob.data or b""
        if kind.startswith(_MEDIA_TYPES) and not kind.startswith(_TEXT_TYPES):
            return part
        if kind in (DOCX, "", "application/octet-stream") or name.lower().endswith(".docx"):
            text = await sync.blocking(partial(docx_text, data), thread=True)
            if text is not None:
                return _as_text(text)
        if self._enable_spreadsheet_parsing and (kind in _SPREADSHEETS or name.lower().endswith((".xlsx", ".xls"))):
            return _as_text(await sync.blocking(partial(sheets_text, data), thread=True))
        if not kind.startswith(_TEXT_TYPES) and not name.lower().endswith(
            (".csv", ".json", ".md", ".txt", ".xml", ".yaml")
        ):
            return types.Part(text=f"({len(data)} bytes of type {kind or 'unknown'}, which cannot be shown as text)")
        return _as_text(data.decode("utf-8", "replace"))


def _requested_names(contents: Sequence[types.Content]) -> list[str]:
    """Names in the newest results of this tool, unless the user or the model has spoken since."""
    for content in reversed(contents):
        if results := [part.function_response for part in content.parts or () if part.function_response]:
            name_lists = [_names_in(response.response or {}) or [] for response in results if response.name == NAME]
            return list(dict.fromkeys(name for names in name_lists for name in names))
        if content.role != "user":
            break
    return []


def _names_in(args: dict[str, Any]) -> list[str] | None:
    names = args.get("artifact_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast(list[Any], names)):
        return None
    return cast(list[str], names)


def _listed_name(asked: str, listed: Collection[str]) -> str | None:
    """The listed name that the model means: it may leave out `user:`. What is not listed is not loaded."""
    return next((name for name in (asked, USER + asked) if name in listed), None)


async def _load(name: str, tool_context: ToolContext) -> types.Part | None:
    try:
        return await tool_context.load_artifact(name)
    except AdkNbError as error:
        logger.warning("artifact %r was not loaded: %s", name, error)
        return None


def _as_text(text: str) -> types.Part:
    more = f"\n... cut after {_MAX_TEXT} of {len(text)} characters" if len(text) > _MAX_TEXT else ""
    return types.Part(text=text[:_MAX_TEXT] + more)


load_artifacts = load_artifacts_tool = LoadArtifactsTool()


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_XML_BYTES = 10_000_000
"""Limit of the document's main part, unpacked; the rest is not read."""
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SIGNS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def docx_text(data: bytes) -> str | None:
    """The paragraphs of a Word document, a line each, without empty ones. None: `data` is not a Word document."""
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("word/document.xml") as part:
            xml = part.read(MAX_XML_BYTES)
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, RuntimeError, NotImplementedError, EOFError):
        return None
    if b"<!DOCTYPE" in xml:  # Word writes none, and its entities could expand without limit
        return None
    return "\n".join(_paragraphs(xml))


def sheets_text(data: bytes) -> str:
    """The sheets of a spreadsheet as markdown tables, or the reason why they cannot be shown."""
    pandas: Any = require("pandas", package="pandas openpyxl")
    try:
        frames: dict[str, Any] = pandas.read_excel(io.BytesIO(data), sheet_name=None)
    except ImportError as error:  # pandas reads them with another package
        return f"(a spreadsheet that cannot be shown: {str(error).partition('.')[0]})"
    except Exception as error:  # of a file that a user sent, from either package
        return f"(a spreadsheet that cannot be read: {type(error).__name__}: {str(error)[:200]})"
    sheets: list[str] = []
    for name, frame in frames.items():
        if not len(frame):
            continue
        shown = frame.head(_MAX_ROWS).astype(object)
        rows = [list(shown.columns), *shown.where(shown.notna(), "").values.tolist()]
        cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in rows]
        lines = [f"| {' | '.join(row)} |" for row in cells]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        more = f"\n\n(the first {_MAX_ROWS} of {len(frame)} rows)" if len(frame) > _MAX_ROWS else ""
        sheets.append(f"### {name}\n\n" + "\n".join(lines) + more)
    return "\n\n".join(sheets) or "(an empty spreadsheet)"


def _paragraphs(xml: bytes) -> Iterator[str]:
    new_parser: Any = ElementTree.XMLPullParser
    parser, text = new_parser(("end",)), ""
    for start in range(0, len(xml), 65536):
        try:
            parser.feed(xml[start : start + 65536])
        except ElementTree.ParseError:
            break
        for _, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
            text += element.text or "" if element.tag == f"{_W}t" else _SIGNS.get(element.tag, "")
            if element.tag == f"{_W}p":
                if text:
                    yield text
                text = ""
            element.clear()  # a large document is not kept in memory
    if text:
        yield text
