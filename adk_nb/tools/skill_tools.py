"""The tools that show skills to a model: list them, load one, and read a file of one.

Source of names, arguments and error codes: google-adk 2.13.
"""

import mimetypes
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from adk_nb import sync, types
from adk_nb.errors import InputError, closest
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.skills.catalog import ListedSkill, format_skills_as_xml
from adk_nb.skills.models import Skill
from adk_nb.tools.base_tool import BaseTool

LIST_SKILLS, LOAD_SKILL, LOAD_SKILL_RESOURCE = "list_skills", "load_skill", "load_skill_resource"
MAX_TEXT = 100_000
"""Characters of a file that a model gets."""
_ATTACHED = "its content is shown once, after this result, and is not kept in the conversation"
_MEDIA_TYPES = ("image/", "audio/", "video/", "application/pdf")
_SKILL_NAME = {"type": "string", "description": "The name of the skill."}
_MAX_NAMES = 20
"""Limit of names in an error message."""

Json = dict[str, Any]


class SkillSource(Protocol):
    """The source of skills: `SkillCatalog`, or `FixedSkills`."""

    @property
    def skills(self) -> dict[str, ListedSkill]:
        """The skills that can be loaded, by name, as at the last `refresh`."""
        ...

    @property
    def problems(self) -> dict[str, str]:
        """Name of a skill that is left out -> the reason."""
        ...

    def refresh(self) -> None:
        """Look for changes."""
        ...

    def load(self, name: str) -> Skill | None:
        """The skill of that name, as it is now. Raises InputError: it cannot be used."""
        ...


def error(code: str, message: str) -> Json:
    """The result of a call that failed."""
    return {"error": message, "error_code": code}


def find_skill(source: SkillSource, name: str) -> Skill | Json:
    """The skill of that name, or the error for the model."""
    try:
        skill = source.load(name)
    except (InputError, OSError) as fault:
        return error("SKILL_REFUSED", f"skill {name!r} cannot be used: {fault}")
    if skill:
        return skill
    if reason := source.problems.get(name):
        return error("SKILL_REFUSED", f"skill {name!r} cannot be used: {reason}")
    return error("SKILL_NOT_FOUND", f"there is no skill {name!r:.80}; {_hint(name, list(source.skills))}")


def missing_arguments(args: Json, *names: str) -> Json | None:
    """An error for the arguments that are missing or not text. None: there is none."""
    if missing := [name for name in names if not isinstance(args.get(name), str) or not args[name]]:
        return error("INVALID_ARGUMENTS", f"missing: {', '.join(missing)}; call it again with a text for each")
    return None


def missing_file(path: str, skill: Skill, files: Sequence[str], code: str) -> Json:
    """The error for a path that names no file of a skill."""
    return error(code, f"skill {skill.name!r} has no file {path!r:.200}; {_hint(path, files)}")


def _hint(name: str, names: Sequence[str]) -> str:
    if suggestion := closest(name, names):
        return f"did you mean {suggestion!r}?"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"there is: {', '.join(names[:_MAX_NAMES]) or 'none'}{more}"


class SkillTool(BaseTool):
    """A tool of a skill toolset.

    Args:
        source: The skills.
        name: Name of the tool.
        description: Description for the model.
        properties: Name -> JSON Schema of each argument.
        required: Names of the arguments that a call must have.
    """

    def __init__(
        self,
        source: SkillSource,
        name: str,
        description: str,
        properties: Json | None = None,
        required: Sequence[str] = (),
    ) -> None:
        super().__init__(name=name, description=description)
        self.source = source
        self.effect = "pure"
        self._properties = properties or {}
        self._required = list(required)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema: Json = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)


class ListSkillsTool(SkillTool):
    """Lists names and descriptions of all skills."""

    def __init__(self, source: SkillSource) -> None:
        super().__init__(source, LIST_SKILLS, "Lists all skills with their names and descriptions.")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return format_skills_as_xml(skill.frontmatter for skill in self.source.skills.values())


class LoadSkillTool(SkillTool):
    """Loads the instructions of a skill."""

    def __init__(self, source: SkillSource) -> None:
        description = "Loads a skill: the instructions for a particular task."
        super().__init__(source, LOAD_SKILL, description, {"skill_name": _SKILL_NAME}, ["skill_name"])

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if fault := missing_arguments(args, "skill_name"):
            return fault
        skill = await sync.blocking(partial(find_skill, self.source, args["skill_name"]), thread=True)
        if not isinstance(skill, Skill):
            return skill
        instructions = skill.instructions
        if skill.frontmatter.metadata.get("adk_inject_state"):
            instructions = await inject_session_state(instructions, tool_context)
        return {
            "skill_name": skill.name,
            "instructions": instructions,
            "frontmatter": skill.frontmatter.model_dump(mode="json"),
        }


class LoadSkillResourceTool(SkillTool):
    """Reads a file of a skill. Images, sound and PDF are attached to the next request, and to no later one."""

    def __init__(self, source: SkillSource) -> None:
        path = "The path in the skill's folder, as references/guide.md, assets/form.txt or scripts/report.py."
        properties = {"skill_name": _SKILL_NAME, "file_path": {"type": "string", "description": path}}
        description = "Reads a file of a skill, from its references/, assets/ or scripts/."
        super().__init__(source, LOAD_SKILL_RESOURCE, description, properties, list(properties))

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if fault := missing_arguments(args, "skill_name", "file_path"):
            return fault
        path: str = args["file_path"]
        if not path.startswith(("references/", "assets/", "scripts/")):
            message = f"a path must begin with references/, assets/ or scripts/, got {path!r:.200}"
            return error("INVALID_RESOURCE_PATH", message)
        skill = await sync.blocking(partial(find_skill, self.source, args["skill_name"]), thread=True)
        if not isinstance(skill, Skill):
            return skill
        files = skill.resources.files
        if path not in files:
            return missing_file(path, skill, list(files), "RESOURCE_NOT_FOUND")
        return {"skill_name": skill.name, "file_path": path, **_content(path, files[path])}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and attach the media files that the model has just loaded."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        newest = llm_request.contents[-1].parts if llm_request.contents else None
        for response in [part.function_response for part in newest or () if part.function_response]:
            result = response.response or {}
            if response.name != self.name or result.get("status") != _ATTACHED:
                continue
            skill = await sync.blocking(partial(find_skill, self.source, str(result.get("skill_name"))), thread=True)
            path = str(result.get("file_path"))
            content = skill.resources.files.get(path) if isinstance(skill, Skill) else None
            if isinstance(content, bytes):
                blob = types.Blob(data=content, mime_type=_mime_type(path))
                parts = [types.Part(text=f"The file {path} is:"), types.Part(inline_data=blob)]
                llm_request.contents.append(types.Content(role="user", parts=parts))


def _content(path: str, content: str | bytes) -> Json:
    """Fields of the result: the text, the note that media are attached, or an error."""
    if isinstance(content, str):
        more = f"\n... cut after {MAX_TEXT:,} of {len(content):,} characters" if len(content) > MAX_TEXT else ""
        return {"content": content[:MAX_TEXT] + more}
    if _mime_type(path).startswith(_MEDIA_TYPES):
        return {"status": _ATTACHED}
    return error("UNREADABLE_RESOURCE", f"{path} is not text: {len(content):,} bytes of type {_mime_type(path)}")


def _mime_type(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"
