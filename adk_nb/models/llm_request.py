"""The request to a model, independent of vendors. An adapter converts it to a vendor's format."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic import ConfigDict, Field

from adk_nb import parts, types
from adk_nb.models.cache_metadata import CacheMetadata, ContextCacheConfig
from adk_nb.wire import WireModel

logger = logging.getLogger(__name__)


class DeclaredTool(Protocol):
    """A tool as a request needs it; models import no tools."""

    @property
    def name(self) -> str:
        """Name that the model calls."""
        ...

    @property
    def function_declaration(self) -> types.FunctionDeclaration | None:
        """Declaration for the model; None: the tool is not offered."""
        ...


class LlmRequest(WireModel):
    """A request to a model: history, instruction, settings and tools."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str | None = None
    contents: list[types.Content] = Field(default_factory=list[types.Content])
    """Oldest first. The list belongs to this request; its contents belong to the session and must not be changed."""
    config: types.GenerateContentConfig = Field(default_factory=types.GenerateContentConfig)
    live_connect_config: types.LiveConnectConfig | None = None
    """Settings of a live conversation, instead of `config`. None: the request is not live."""
    static_instruction: str = Field(default="", exclude=True)
    """Prefix of the system instruction that is the same for every call of the agent."""
    tools_dict: dict[str, Any] = Field(default_factory=dict[str, Any], exclude=True)
    """Name -> tool."""
    cache_config: ContextCacheConfig | None = Field(default=None, exclude=True)
    """Settings of the context cache. None: no cache."""
    cache_metadata: CacheMetadata | None = Field(default=None, exclude=True)
    """Cache metadata of the agent's last answer."""
    session_state: Mapping[str, Any] | None = Field(default=None, exclude=True)
    """The session's current state, for models that read it; read-only. None: there is no session."""
    cacheable_contents_token_count: int | None = Field(default=None, exclude=True)
    """Token count of the agent's last prompt."""

    def append_instructions(self, instructions: Sequence[str] | types.Content) -> list[types.Content]:
        """Append `instructions` to the system instruction, each after a blank line.

        A system instruction is text: other parts of a content are appended to `contents` as the user's, under an id
        that the instruction mentions: `inline_data_0`, `file_data_1`, numbered together.

        Returns:
            The contents that were appended.

        Raises:
            TypeError: `instructions` is neither a list of texts nor a content.
        """
        data: list[types.Content] = []
        if isinstance(instructions, types.Content):
            texts, data = _describe_content(instructions)
        else:
            texts = _texts(instructions)
        config: Any = self.config  # the field's type names Pillow's images, and Pillow may be missing
        present: Any = config.system_instruction
        if present and not isinstance(present, str):
            logger.warning("the system instruction is not text, so %d instructions were not added", len(texts))
            return []
        if texts:
            config.system_instruction = "\n\n".join([present, *texts] if present else texts)
        if data:
            self.contents += data
        return data

    def set_output_schema(self, output_schema: Any) -> None:
        """Request JSON of this schema: a type, a JSON Schema as a dict, or a types.Schema."""
        self.config.response_schema = output_schema
        self.config.response_mime_type = "application/json"

    def insert_before_question(self, contents: Sequence[types.Content]) -> None:
        """Insert `contents`, which are not stored in the session, before the user's last message.

        After a tool result there is no such message: they are appended, since a call and its result must not be parted.
        """
        index = len(self.contents)
        while index and self.contents[index - 1].role == "user":
            if any(part.function_response for part in self.contents[index - 1].parts or ()):
                break
            index -= 1
        self.contents[index:index] = contents

    def append_tools(self, tools: Sequence[DeclaredTool]) -> None:
        """Offer `tools` to the model. A tool without a declaration is skipped; of two with one name the later wins."""
        declarations: dict[str, types.FunctionDeclaration] = {}
        for tool in tools:
            if not (declaration := tool.function_declaration):
                continue
            if tool.name in self.tools_dict:
                logger.warning("two tools are named %r; the later one is used", tool.name)
            self.tools_dict[tool.name] = tool
            declarations[tool.name] = declaration
        if not declarations:
            return
        existing = tools_of(self)
        shared = next((tool for tool in existing if isinstance(tool, types.Tool) and tool.function_declarations), None)
        remaining = [
            function
            for function in (shared.function_declarations or [] if shared else [])
            if function.name not in declarations
        ]
        merged = parts.tool([*remaining, *declarations.values()])
        self.config.tools = [*(tool for tool in existing if tool is not shared), merged]


def tools_of(request: LlmRequest) -> list[Any]:
    """The tools in the settings of `request`: declared functions, and tools of the model's service."""
    return [*(cast(Any, request.config).tools or [])]


def _texts(instructions: Any) -> list[str]:
    if isinstance(instructions, list | tuple) and not [item for item in instructions if not isinstance(item, str)]:  # pyright: ignore[reportUnknownVariableType]
        return list(instructions)  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"instructions must be a list of texts or a types.Content, got {instructions!r:.80}")


def _describe_content(content: types.Content) -> tuple[list[str], list[types.Content]]:
    """The texts of `content`, which mention its media by name; and a content with each piece of media and its name."""
    texts: list[str] = []
    data: list[types.Content] = []
    for part in content.parts or []:
        if part.text:
            texts.append(part.text)
        elif media := part.inline_data or part.file_data:
            kind = "inline" if part.inline_data else "file"
            name = f"{kind}_data_{len(data)}"
            details = [repr(media.display_name)] if media.display_name else []
            details += [f"URI: {media.file_uri}"] if isinstance(media, types.FileData) and media.file_uri else []
            details += [f"type: {media.mime_type}"] if media.mime_type else []
            texts.append(f"[See {kind} data {name}{' (' + ', '.join(details) + ')' if details else ''}]")
            label = types.Part(text=f"This is {kind} data {name}:")
            data.append(types.Content(role="user", parts=[label, part]))
    return texts, data
