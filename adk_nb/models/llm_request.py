"""What we ask a model: neutral between vendors. An adapter turns it into one vendor's wire format."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic import ConfigDict, Field

from adk_nb import parts, types
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.models.context_cache_config import ContextCacheConfig
from adk_nb.wire import WireModel

logger = logging.getLogger(__name__)


class Declared(Protocol):
    """What a request needs of a tool. Stated here, by its user, so that models import no tools."""

    @property
    def name(self) -> str: ...

    @property
    def declaration(self) -> types.FunctionDeclaration | None: ...


class LlmRequest(WireModel):
    """One question to a model: history, instruction, settings, and the tools it may call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str | None = None
    contents: list[types.Content] = Field(default_factory=list[types.Content])
    """Oldest first. The list is this request's own; the contents in it are the session's and are not to be changed."""
    config: types.GenerateContentConfig = Field(default_factory=types.GenerateContentConfig)
    live_connect_config: types.LiveConnectConfig | None = None
    """The settings of a live conversation, instead of `config`. None: the request is not for one."""
    static_instruction: str = Field(default="", exclude=True)
    """How the system instruction begins at every call of the agent; what is told to all agents comes after it."""
    tools_dict: dict[str, Any] = Field(default_factory=dict[str, Any], exclude=True)
    """Name -> the tool that answers to it."""
    cache_config: ContextCacheConfig | None = Field(default=None, exclude=True)
    """How long the service may keep the beginning of this. None: it is not asked to."""
    cache_metadata: CacheMetadata | None = Field(default=None, exclude=True)
    """What the agent's last answer left to remember of its cache."""
    session_state: Mapping[str, Any] | None = Field(default=None, exclude=True)
    """What the session's state is now, for a model that is told it; to be read only. None: there is no session."""
    cacheable_contents_token_count: int | None = Field(default=None, exclude=True)
    """Tokens of the agent's last prompt."""

    def append_instructions(self, instructions: Sequence[str] | types.Content) -> list[types.Content]:
        """Join `instructions` onto the system instruction, each after a blank line.

        A system instruction is text, so what is no text in a content is added to `contents` as the user's, under an id
        that the instruction names: `inline_data_0`, `file_data_1`, numbered together.

        Returns:
            What was added to `contents`.

        Raises:
            TypeError: `instructions` is neither a list of texts nor a content.
        """
        data: list[types.Content] = []
        if isinstance(instructions, types.Content):
            texts, data = _told(instructions)
        else:
            texts = _texts(instructions)
        config: Any = self.config  # the type of this field names a package that may not be there
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
        """Ask for JSON of this schema: a type, a JSON Schema as a dict, or a types.Schema."""
        self.config.response_schema = output_schema
        self.config.response_mime_type = "application/json"

    def insert_before_question(self, contents: Sequence[types.Content]) -> None:
        """Put `contents`, which the session is not to keep, before what the user said last.

        After a tool's result nothing was asked: there they stand last, since nothing may part a call and its result.
        """
        at = len(self.contents)
        while at and _is_question(self.contents[at - 1]):
            at -= 1
        self.contents[at:at] = contents

    def append_tools(self, tools: Sequence[Declared]) -> None:
        """Offer `tools` to the model. One without a declaration is skipped; of one name the later tool wins."""
        declarations: dict[str, types.FunctionDeclaration] = {}
        for tool in tools:
            if not (declared := tool.declaration):
                continue
            if tool.name in self.tools_dict:
                logger.warning("two tools are named %r; the later one is used", tool.name)
            self.tools_dict[tool.name] = tool
            declarations[tool.name] = declared
        if not declarations:
            return
        before: list[Any] = [*(cast(Any, self.config).tools or [])]
        shared = next((one for one in before if isinstance(one, types.Tool) and one.function_declarations), None)
        kept = [one for one in (shared.function_declarations or [] if shared else []) if one.name not in declarations]
        together = parts.tool([*kept, *declarations.values()])
        self.config.tools = [*(one for one in before if one is not shared), together]


def _is_question(content: types.Content) -> bool:
    return content.role == "user" and not any(part.function_response for part in content.parts or ())


def _texts(instructions: Any) -> list[str]:
    if isinstance(instructions, list | tuple) and not [one for one in instructions if not isinstance(one, str)]:  # pyright: ignore[reportUnknownVariableType]
        return list(instructions)  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"instructions are a list of texts or a types.Content, and not {instructions!r:.80}")


def _told(content: types.Content) -> tuple[list[str], list[types.Content]]:
    """What `content` says, in text that names the data in it; and the data, each under its name."""
    texts: list[str] = []
    data: list[types.Content] = []
    for part in content.parts or []:
        if part.text:
            texts.append(part.text)
        elif one := part.inline_data or part.file_data:
            kind = "inline" if part.inline_data else "file"
            name = f"{kind}_data_{len(data)}"
            about = [repr(one.display_name)] if one.display_name else []
            about += [f"URI: {one.file_uri}"] if isinstance(one, types.FileData) and one.file_uri else []
            about += [f"type: {one.mime_type}"] if one.mime_type else []
            texts.append(f"[See {kind} data {name}{' (' + ', '.join(about) + ')' if about else ''}]")
            named = types.Part(text=f"This is {kind} data {name}:")
            data.append(types.Content(role="user", parts=[named, part]))
    return texts, data
