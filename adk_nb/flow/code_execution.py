"""Code in an answer is run, and what it gave is told to the model, until an answer has none."""

import hashlib
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.redaction import hidden
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult, File
from adk_nb.runtime.code_executor_context import CodeExecutorContext
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext

_CSV = "text/csv"
_EXPLORE = """\
import pandas as pd

{variable} = pd.read_csv({name!r})
with pd.option_context("display.width", 200, "display.max_columns", None, "display.max_rows", None):
    print(f"{{len({variable})}} rows, {{{variable}.shape[1]}} columns")
    print(pd.DataFrame({{
        "type": {variable}.dtypes.astype(str),
        "filled": {variable}.notna().sum(),
        "different": {variable}.nunique(),
        "for example": [str({variable}[name].dropna().unique()[:5].tolist())[:60] for name in {variable}],
    }}))
"""


class RunsCode(Protocol):
    """What the flow needs of a code executor."""

    @property
    def optimize_data_file(self) -> bool: ...
    @property
    def stateful(self) -> bool: ...
    @property
    def error_retry_attempts(self) -> int: ...
    @property
    def code_block_delimiters(self) -> Sequence[tuple[str, str]]: ...
    @property
    def execution_result_delimiters(self) -> tuple[str, str]: ...
    @property
    def runs_in_model(self) -> bool: ...

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult: ...
    def process_llm_request(self, llm_request: LlmRequest) -> None: ...


class _Coder(Protocol):
    """An agent with a code executor, as far as this file reads it."""

    @property
    def name(self) -> str: ...
    @property
    def canonical_model(self) -> BaseLlm: ...


async def prepare(
    ctx: InvocationContext, spec: _Coder, executor: RunsCode, request: LlmRequest
) -> AsyncGenerator[Event, None]:
    """Make `request` one in which code can be written: offer it, name data files, tell code and results as text.

    Yields:
        For each data file that is new: an event with code that looks into it, and one with what it gave. Both are in
        the request already.

    Raises:
        ConfigurationError: The model's service is to run the code, and does not do that.
    """
    if executor.runs_in_model:
        if not spec.canonical_model.capabilities.code_execution:
            raise ConfigurationError(
                f"agent {spec.name!r}: the service of model {spec.canonical_model.model!r} runs no code; "
                "write code_executor=KernelCodeExecutor(), or UnsafeLocalCodeExecutor()"
            )
        executor.process_llm_request(request)
        return
    offered = _offered(ctx, executor)
    if offered:
        executor.process_llm_request(request)
    if executor.optimize_data_file:
        request.contents, files = _with_files_named(request.contents)
        async for event in _explored(ctx, spec, executor, files if offered else []):
            if event.content:
                request.contents.append(event.content.model_copy(deep=True))
            yield event
    request.contents = [_as_text(content, executor) for content in request.contents]


def cut_at_code(ctx: InvocationContext, executor: RunsCode, response: LlmResponse) -> LlmResponse:
    """A whole answer up to and with its first code, as a part of its own; as it is if there is none to run."""
    if executor.runs_in_model or response.error_code or not response.content or response.get_function_calls():
        return response
    parts = _up_to_code(response.parts, executor.code_block_delimiters) if _offered(ctx, executor) else None
    if parts is None:
        return response
    return response.model_copy(update={"content": response.content.model_copy(update={"parts": parts})})


async def result_of(ctx: InvocationContext, spec: _Coder, executor: RunsCode, answer: Event) -> Event | None:
    """Run the code that `answer` ends in: the event with what it gave. None: it does not end in code to run."""
    code = answer.parts[-1].executable_code if answer.parts and not answer.error_code else None
    if not code or executor.runs_in_model or not _offered(ctx, executor):
        return None
    files: list[File] = []
    if executor.optimize_data_file:
        known = CodeExecutorContext(ctx.session.state).get_processed_file_names()
        _, sent = _with_files_named(event.content for event in ctx.session.events if event.content)
        files = [file for file in sent if file.name in known]
    return await _run(ctx, spec, executor, code.code or "", files)


async def _explored(
    ctx: InvocationContext, spec: _Coder, executor: RunsCode, files: Iterable[File]
) -> AsyncGenerator[Event, None]:
    known = CodeExecutorContext(ctx.session.state).get_processed_file_names()
    for file in files:
        if file.name in known:
            continue
        code = _EXPLORE.format(variable=file.name.partition(".")[0], name=file.name)
        asked = Event(
            author=spec.name,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            content=types.Content(
                role="model", parts=[types.Part(text=f"I look into the file `{file.name}`."), _code_part(code)]
            ),
        )
        yield asked
        yield await _run(ctx, spec, executor, code, [file], explores=file.name)


async def _run(
    ctx: InvocationContext,
    spec: _Coder,
    executor: RunsCode,
    code: str,
    files: Sequence[File],
    *,
    explores: str | None = None,
) -> Event:
    memory = CodeExecutorContext(ctx.session.state)
    if executor.stateful and not memory.get_execution_id():
        memory.set_execution_id(ctx.session.id)
    asked = CodeExecutionInput(
        code=code,
        input_files=[*memory.get_input_files(), *files],
        execution_id=memory.get_execution_id() if executor.stateful else None,
    )
    result = await executor.execute_code_async(ctx, asked)
    if explores:
        memory.add_processed_file_names([explores])
    if result.failed:
        memory.increment_error_count(ctx.invocation_id)
    else:
        memory.reset_error_count(ctx.invocation_id)
    context = Context(ctx)
    part = types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_FAILED if result.failed else types.Outcome.OUTCOME_OK,
            output=hidden(_in_words(result)) + await _kept(context, result.output_files),
        )
    )
    context.actions.state_delta.update(memory.get_state_delta())
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        content=types.Content(role="model", parts=[part]),
        actions=context.actions,
    )


def _in_words(result: CodeExecutionResult) -> str:
    """What the model is told. Source of the first line: google-adk, whose readers look for it."""
    if result.failed:
        said = f"{result.stdout.rstrip()}\n\n" if result.stdout.strip() else ""
        return said + (result.stderr or f"the code ended with status {result.exit_code}")
    warned = f"\nStderr:\n{result.stderr}\n" if result.stderr.strip() else ""
    if result.output_files and not (result.stdout or warned):
        return ""
    return f"Code execution result:\n{result.stdout}\n{warned}"


async def _kept(context: Context, files: Sequence[File]) -> str:
    """Save what the code made as artifacts, and say so."""
    saved: list[str] = []
    lost: list[str] = []
    for file in files:
        part = types.Part(inline_data=types.Blob(data=file.data, mime_type=file.mime_type))
        try:
            await context.save_artifact(file.name, part)
            saved.append(f"`{file.name}`")
        except (ConfigurationError, InputError, StorageError) as error:  # the code has run: its words are not lost
            lost.append(f"`{file.name}` was not kept: {error}")
    told = [f"Saved artifacts:\n{','.join(saved)}"] if saved else []
    return "\n".join([*told, *lost])


def _offered(ctx: InvocationContext, executor: RunsCode) -> bool:
    """Whether code may still be run in this turn."""
    failed = CodeExecutorContext(ctx.session.state).get_error_count(ctx.invocation_id)
    return failed < executor.error_retry_attempts


def _code_part(code: str) -> types.Part:
    return types.Part(executable_code=types.ExecutableCode(code=code, language=types.Language.PYTHON))


def _up_to_code(parts: Sequence[types.Part], delimiters: Sequence[tuple[str, str]]) -> list[types.Part] | None:
    """`parts` up to the first code that has no result yet. Thoughts are not looked into: they are not said."""
    for at, part in enumerate(parts):
        if part.executable_code:
            if at + 1 == len(parts) or not parts[at + 1].code_execution_result:
                return [*parts[: at + 1]]
        elif part.text and not part.thought and (found := _first_block(part.text, delimiters)):
            before, code = found
            said = [part.model_copy(update={"text": before})] if before else []
            return [*parts[:at], *said, _code_part(code)]
    return None


def _first_block(text: str, delimiters: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """What stands before the first block of code in `text`, and the code."""
    blocks = "|".join(f"{re.escape(before)}(.+?){re.escape(after)}" for before, after in delimiters)
    if not (found := re.search(blocks, text, re.DOTALL)):
        return None
    return text[: found.start()], next(code for code in found.groups() if code is not None)


def _as_text(content: types.Content, executor: RunsCode) -> types.Content:
    """A content without parts that only a model's service with code execution takes; results are the user's words."""
    parts = content.parts or []
    if not any(part.executable_code or part.code_execution_result for part in parts):
        return content
    told = [_part_as_text(part, executor) for part in parts]
    only_results = all(part.code_execution_result for part in parts)
    return types.Content(role="user" if only_results else content.role, parts=told)


def _part_as_text(part: types.Part, executor: RunsCode) -> types.Part:
    if code := part.executable_code:
        before, after = executor.code_block_delimiters[0]
        return types.Part(text=f"{before}{code.code or ''}{after}", thought_signature=part.thought_signature)
    if result := part.code_execution_result:
        before, after = executor.execution_result_delimiters
        return types.Part(text=f"{before}{result.output or ''}{after}")
    return part


def _with_files_named(contents: Iterable[types.Content]) -> tuple[list[types.Content], list[File]]:
    """`contents` with each CSV file of a user replaced by its name, and the files, oldest first, each once."""
    files: dict[str, File] = {}
    named: list[types.Content] = []
    for content in contents:
        parts = content.parts or []
        if content.role == "user" and any(_is_csv(part) for part in parts):
            content = content.model_copy(update={"parts": [_named(part, files) for part in parts]})
        named.append(content)
    return named, list(files.values())


def _is_csv(part: types.Part) -> bool:
    return bool(part.inline_data and part.inline_data.data and part.inline_data.mime_type == _CSV)


def _named(part: types.Part, files: dict[str, File]) -> types.Part:
    if not (_is_csv(part) and part.inline_data and part.inline_data.data):
        return part
    data = part.inline_data.data
    name = f"data_{hashlib.sha256(data).hexdigest()[:8]}.csv"  # the same file has the same name wherever it stands
    files[name] = File(name=name, content=data, mime_type=_CSV)
    return types.Part(text=f"\nAvailable file: `{name}`\n")
