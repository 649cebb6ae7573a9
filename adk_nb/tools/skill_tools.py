"""The tools of skills: list them, load one, read a file of one, and run a script of one.

Source of names, arguments and error codes: google-adk 2.13.
"""

import base64
import hashlib
import json
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Protocol, cast

from adk_nb import sync, types
from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import InputError, closest
from adk_nb.events.requests import LOAD_SKILL
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.runtime.instructions import inject_session_state
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.skills.catalog import ListedSkill, format_skills_as_xml
from adk_nb.skills.models import Skill
from adk_nb.tools.base_tool import BaseTool

LIST_SKILLS, LOAD_SKILL_RESOURCE = "list_skills", "load_skill_resource"
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


def activated_key(agent: str) -> str:
    """Key in the session's state: the skills with tools of their own that an agent has loaded."""
    return f"_adk_activated_skill_{agent}"


class LoadSkillTool(SkillTool):
    """Loads the instructions of a skill, after which the agent has the tools that its front matter names.

    Args:
        source: The skills.
        changes_tools: There are such tools.
    """

    def __init__(self, source: SkillSource, *, changes_tools: bool = False) -> None:
        self.changes_tools = changes_tools
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
        if self.changes_tools and skill.frontmatter.additional_tools:
            key = activated_key(tool_context.agent_name)
            loaded = list(tool_context.state.get(key) or ())
            tool_context.state[key] = list(dict.fromkeys([*loaded, skill.name]))
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


# ---- run_skill_script


RUN_SKILL_SCRIPT = "run_skill_script"
TIMEOUT = 300
"""Seconds."""
_INTERPRETERS = {".py": "python", ".sh": "bash", ".bash": "bash"}
# The script's output is copied to this code's streams, which the executor limits: a kernel does not capture the output
# of a child process.
_CODE = """
import base64, codecs, json, os, subprocess, sys, tempfile, threading

files, command, seconds = json.loads({job!r})
if command[0] == "python":
    command[0] = sys.executable

def copy(source, target):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := source.read1(65536):
        target.write(decoder.decode(chunk))

with tempfile.TemporaryDirectory(prefix="skill_") as folder:
    for name, content in files.items():
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    threads = [
        threading.Thread(target=copy, args=pair, daemon=True)
        for pair in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    ]
    for thread in threads:
        thread.start()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        print(f"the script was stopped: it ran for longer than {{seconds:g}} seconds", file=sys.stderr)
    for thread in threads:
        thread.join(2)
if code:
    sys.exit(code if code > 0 else 128 - code)
"""


class ScriptExecutor(Protocol):
    """A code executor, as scripts use it. See `code_executors.BaseCodeExecutor`."""

    @property
    def runs_in_model(self) -> bool:
        """The model's service runs code, and no script of this machine."""
        ...

    @property
    def reach(self) -> str:
        """The reach of its code, for approvers."""
        ...

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput, /
    ) -> CodeExecutionResult:
        """Run Python code."""
        ...


@dataclass(frozen=True)
class _Job:
    """A script with its arguments, and the skill as it was when the job was made."""

    skill: Skill
    path: str
    """In the skill's folder, as `scripts/report.py`."""
    command: list[str]

    @property
    def digest(self) -> str:
        """A hash of all files that the script can read, and of its path."""
        files = self.skill.resources.files
        pieces = [self.skill.name, self.path, *(piece for name in sorted(files) for piece in (name, files[name]))]
        hashes = [hashlib.sha256(piece if isinstance(piece, bytes) else piece.encode()).hexdigest() for piece in pieces]
        return hashlib.sha256("".join(hashes).encode()).hexdigest()[:32]

    @property
    def documents(self) -> dict[str, str]:
        """Path -> source of the script, and then of the skill's other scripts, which it may call."""
        scripts = self.skill.resources.scripts
        others = {f"scripts/{name}": script.src for name, script in scripts.items()}
        return {self.path: others.pop(self.path), **others}

    def code(self, seconds: float) -> str:
        """Python code that copies the skill into a folder of its own and runs the script there."""
        contents = {
            name: base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()
            for name, content in self.skill.resources.files.items()
        }
        return _CODE.format(job=json.dumps([contents, self.command, seconds]))


class RunSkillScriptTool(SkillTool):
    """Runs a script of a skill, always after an approval, which is for this script as it is and for these arguments.

    Args:
        source: The skills.
        executor: Runs the scripts. None: the agent's `code_executor` does.
        seconds: Limit of one run.
    """

    def __init__(self, source: SkillSource, executor: ScriptExecutor | None, seconds: float) -> None:
        text = {"type": "string"}
        properties: Json = {
            "skill_name": {**text, "description": "The name of the skill."},
            "file_path": {**text, "description": "The path of the script, as scripts/report.py."},
            "args": {
                "anyOf": [{"type": "object"}, {"type": "array", "items": text}],
                "description": 'Long options by name, as {"city": "Oslo"} for --city Oslo; or a list of all arguments.',
            },
            "short_options": {"type": "object", "description": "Options of one letter by name, unless args is a list."},
            "positional_args": {
                "type": "array",
                "items": text,
                "description": "Arguments after the options, unless args is a list.",
            },
        }
        description = "Runs a script of a skill, from its scripts/. A person approves each run."
        super().__init__(source, RUN_SKILL_SCRIPT, description, properties, ["skill_name", "file_path"])
        # A script may have any effect, so a resumed run asks before it runs the script again.
        self.effect = "once"
        self._executor = executor
        self._seconds = seconds
        self._approved: dict[str, _Job] = {}
        """Arguments -> the job that `call_target` hashed last. It is run even if its files have changed since."""

    def executor(self, context: ReadonlyContext | None) -> ScriptExecutor | None:
        """This tool's executor, else the agent's. None: scripts cannot run. Without `context` the agent is unknown."""
        agent: Any = cast(Any, context)._invocation_context.agent if context else None
        executor = self._executor or cast(ScriptExecutor | None, getattr(agent, "code_executor", None))
        return None if executor is None or executor.runs_in_model else executor

    def call_target(self, args: dict[str, Any]) -> str:
        job = self._job(args)
        if not isinstance(job, _Job):
            return ""
        self._approved = {_key(args): job}
        return job.digest

    @property
    def asks_to_repeat(self) -> bool:
        """False: a person is shown the script as it is now, at each run."""
        return False

    async def confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> ToolConfirmation | None:
        """Show the whole script, its command line and what it can reach. None: nothing will run."""
        job = await sync.blocking(partial(self._job, args), thread=True)
        executor = self.executor(tool_context)
        if not isinstance(job, _Job) or executor is None or IN_A_BROWSER:
            return None
        # Invisible characters must not hide an argument from the approver.
        command = " ".join(part if part.isprintable() and " " not in part else json.dumps(part) for part in job.command)
        hint = f"{command} · in a copy of the folder of skill {job.skill.name}, {executor.reach}"
        return ToolConfirmation(hint=hint, documents=job.documents)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        # The approved job, not the file as it is now: it may have been changed since.
        job = self._approved.pop(_key(args), None) or await sync.blocking(partial(self._job, args), thread=True)
        if not isinstance(job, _Job):
            return job
        executor = self.executor(tool_context)
        if executor is None:
            return error("NO_CODE_EXECUTOR", "scripts cannot be run here: the agent has no code_executor")
        if IN_A_BROWSER:
            advice = "open the notebook in JupyterLab on your machine"
            return error("NO_PROCESSES", f"{job.path} needs a process, which a browser cannot start; {advice}")
        code_input = CodeExecutionInput(code=job.code(self._seconds))
        result = await executor.execute_code_async(tool_context.get_invocation_context(), code_input)
        return {
            "skill_name": job.skill.name,
            "file_path": args["file_path"],
            "stdout": result.stdout,
            "stderr": result.stderr,
            "status": "error" if result.failed else "warning" if result.stderr else "success",
        }

    def _job(self, args: Json) -> _Job | Json:
        """The script that a call names, or an error for the model."""
        if fault := missing_arguments(args, "skill_name", "file_path"):
            return fault
        kinds: dict[str, tuple[type, ...]] = {
            "args": (dict, list),
            "short_options": (dict,),
            "positional_args": (list,),
        }
        wrong = [
            name for name, kind in kinds.items() if args.get(name) is not None and not isinstance(args[name], kind)
        ]
        if wrong:
            return error("INVALID_ARGUMENTS", f"of another type than declared: {', '.join(wrong)}")
        if isinstance(args.get("args"), list) and (args.get("short_options") or args.get("positional_args")):
            reason = "args is a list of all arguments; leave short_options and positional_args out"
            return error("INVALID_ARGUMENTS", reason)
        skill = find_skill(self.source, args["skill_name"])
        if not isinstance(skill, Skill):
            return skill
        path = f"scripts/{args['file_path'].removeprefix('scripts/')}"
        if path.removeprefix("scripts/") not in skill.resources.scripts:
            scripts = [f"scripts/{name}" for name in skill.resources.scripts]
            return missing_file(path, skill, scripts, "SCRIPT_NOT_FOUND")
        suffix = PurePosixPath(path).suffix.lower()
        if suffix not in _INTERPRETERS:
            endings = ", ".join(_INTERPRETERS)
            return error("UNSUPPORTED_SCRIPT_TYPE", f"{path} cannot be run: a script ends in {endings}")
        for name in skill.resources.files:
            # A Windows path takes both kinds of slashes for separators, so it finds `..` between either.
            windows = PureWindowsPath(name)
            if windows.drive or windows.root or PurePosixPath(name).is_absolute() or ".." in windows.parts:
                return error("INVALID_RESOURCE_PATH", f"{name!r:.200} leads out of the folder of {skill.name}")
        return _Job(skill, path, [_INTERPRETERS[suffix], path, *_arguments(args)])


def _arguments(args: Json) -> list[str]:
    """The command line. Source: google-adk 2.13."""
    options: Any = args.get("args") or {}
    if isinstance(options, list):
        return [str(value) for value in cast(list[Any], options)]
    line = [part for name, value in cast(Json, options).items() for part in (f"--{name}", str(value))]
    short: Json = args.get("short_options") or {}
    line += [part for name, value in short.items() for part in (f"-{name}", str(value))]
    positional: list[Any] = args.get("positional_args") or []
    # After `--` a value that begins with a dash is not an option.
    return [*line, "--", *map(str, positional)] if positional else line


def _key(args: Mapping[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=repr)
