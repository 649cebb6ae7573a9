"""Run code blocks of model answers, and send their results to the model, until an answer has none."""

import hashlib
import re
from collections.abc import AsyncGenerator, Iterable, Sequence

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.flow.spec import CodeExecutor, LlmSpec, agent_event
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.redaction import hidden
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult, CodeExecutorContext, File
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


async def prepare_request(
    ctx: InvocationContext, spec: LlmSpec, executor: CodeExecutor, request: LlmRequest
) -> AsyncGenerator[Event, None]:
    """Prepare `request` for code execution: announce it, replace data files by names, turn code and results into text.

    Yields:
        For each new data file: an event with code that explores it, and one with the result. Both are added to the
        request as well.

    Raises:
        ConfigurationError: The executor relies on the model's service, which runs no code.
    """
    if executor.runs_in_model:
        if not spec.canonical_model.capabilities.code_execution:
            raise ConfigurationError(
                f"agent {spec.name!r}: model {spec.canonical_model.model!r} cannot run code itself; "
                "write code_executor=KernelCodeExecutor(), or UnsafeLocalCodeExecutor()"
            )
        executor.process_llm_request(request)
        return
    is_enabled = _is_enabled(ctx, executor)
    if is_enabled:
        executor.process_llm_request(request)
    if executor.optimize_data_file:
        request.contents, files = _replace_csv_files(request.contents)
        async for event in _explore_files(ctx, spec, executor, files if is_enabled else []):
            if event.content:
                # A copy: the request is edited below, and the event is stored.
                request.contents.append(event.content.model_copy(deep=True))
            yield event
    request.contents = [_code_as_text(content, executor) for content in request.contents]


def truncate_after_code(ctx: InvocationContext, executor: CodeExecutor, response: LlmResponse) -> LlmResponse:
    """Cut a complete response after its first code block, which becomes a part; unchanged if there is none to run."""
    if executor.runs_in_model or response.error_code or not response.content or response.get_function_calls():
        return response
    parts = _up_to_code(response.parts, executor.code_block_delimiters) if _is_enabled(ctx, executor) else None
    if parts is None:
        return response
    return response.model_copy(update={"content": response.content.model_copy(update={"parts": parts})})


async def run_trailing_code(
    ctx: InvocationContext, spec: LlmSpec, executor: CodeExecutor, answer: Event
) -> Event | None:
    """Run the code block at the end of `answer`; return the event with its result, or None if there is none."""
    code = answer.parts[-1].executable_code if answer.parts and not answer.error_code else None
    if not code or executor.runs_in_model or not _is_enabled(ctx, executor):
        return None
    files: list[File] = []
    if executor.optimize_data_file:
        explored_names = CodeExecutorContext(ctx.session.state).get_processed_file_names()
        # The session has the files themselves; only requests have their names instead.
        _, input_files = _replace_csv_files(event.content for event in ctx.session.events if event.content)
        files = [file for file in input_files if file.name in explored_names]
    return await _run(ctx, spec, executor, code.code or "", files)


async def _explore_files(
    ctx: InvocationContext, spec: LlmSpec, executor: CodeExecutor, files: Iterable[File]
) -> AsyncGenerator[Event, None]:
    explored_names = CodeExecutorContext(ctx.session.state).get_processed_file_names()
    for file in files:
        if file.name in explored_names:
            continue
        code = _EXPLORE.format(variable=file.name.partition(".")[0], name=file.name)
        parts = [types.Part(text=f"Exploring the file `{file.name}`."), _code_part(code)]
        yield agent_event(ctx, spec, content=types.Content(role="model", parts=parts))
        yield await _run(ctx, spec, executor, code, [file], explored_file=file.name)


async def _run(
    ctx: InvocationContext,
    spec: LlmSpec,
    executor: CodeExecutor,
    code: str,
    files: Sequence[File],
    *,
    explored_file: str | None = None,
) -> Event:
    state = CodeExecutorContext(ctx.session.state)
    if executor.stateful and not state.get_execution_id():
        state.set_execution_id(ctx.session.id)
    execution_input = CodeExecutionInput(
        code=code,
        input_files=[*state.get_input_files(), *files],
        execution_id=state.get_execution_id() if executor.stateful else None,
    )
    result = await executor.execute_code_async(ctx, execution_input)
    if explored_file:
        state.add_processed_file_names([explored_file])
    if result.failed:
        state.increment_error_count(ctx.invocation_id)
    else:
        state.reset_error_count(ctx.invocation_id)
    context = Context(ctx)
    part = types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_FAILED if result.failed else types.Outcome.OUTCOME_OK,
            output=hidden(_result_text(result)) + await _save_files(context, result.output_files),
        )
    )
    context.actions.state_delta.update(state.get_state_delta())
    return agent_event(ctx, spec, content=types.Content(role="model", parts=[part]), actions=context.actions)


def _result_text(result: CodeExecutionResult) -> str:
    """The result as text for the model. Source of "Code execution result:": google-adk, whose clients look for it."""
    if result.failed:
        output = f"{result.stdout.rstrip()}\n\n" if result.stdout.strip() else ""
        return output + (result.stderr or f"the code exited with status {result.exit_code}")
    warnings = f"\nStderr:\n{result.stderr}\n" if result.stderr.strip() else ""
    if result.output_files and not (result.stdout or warnings):
        return ""
    return f"Code execution result:\n{result.stdout}\n{warnings}"


async def _save_files(context: Context, files: Sequence[File]) -> str:
    """Save the files that the code wrote as artifacts; return the lines that report it."""
    saved_names: list[str] = []
    problems: list[str] = []
    for file in files:
        try:
            part = types.Part(inline_data=types.Blob(data=file.data, mime_type=file.mime_type))
            await context.save_artifact(file.name, part)
            saved_names.append(f"`{file.name}`")
        # The code has run: keep its output. ValueError: an executor's file is not base64.
        except (ConfigurationError, InputError, StorageError, ValueError) as error:
            problems.append(f"`{file.name}` was not saved: {error}")
    lines = [f"Saved artifacts:\n{','.join(saved_names)}"] if saved_names else []
    return "\n".join([*lines, *problems])


def _is_enabled(ctx: InvocationContext, executor: CodeExecutor) -> bool:
    """True while the turn has fewer failed executions than `error_retry_attempts`."""
    failed = CodeExecutorContext(ctx.session.state).get_error_count(ctx.invocation_id)
    return failed < executor.error_retry_attempts


def _code_part(code: str) -> types.Part:
    return types.Part(executable_code=types.ExecutableCode(code=code, language=types.Language.PYTHON))


def _up_to_code(parts: Sequence[types.Part], delimiters: Sequence[tuple[str, str]]) -> list[types.Part] | None:
    """`parts` up to the first code block without a result, skipping thoughts. None: there is none."""
    for index, part in enumerate(parts):
        if part.executable_code:
            if index + 1 == len(parts) or not parts[index + 1].code_execution_result:
                return [*parts[: index + 1]]
        elif part.text and not part.thought and (block := _first_code_block(part.text, delimiters)):
            text, code = block
            text_parts = [part.model_copy(update={"text": text})] if text else []
            return [*parts[:index], *text_parts, _code_part(code)]
    return None


def _first_code_block(text: str, delimiters: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Split off the first code block of `text`: the text before it, and the code."""
    blocks = "|".join(f"{re.escape(start)}(.+?){re.escape(end)}" for start, end in delimiters)
    if not (match := re.search(blocks, text, re.DOTALL)):
        return None
    return text[: match.start()], next(code for code in match.groups() if code is not None)


def _code_as_text(content: types.Content, executor: CodeExecutor) -> types.Content:
    """Turn code and results into text, for services without code execution; results become the user's message."""
    parts = content.parts or []
    if not any(part.executable_code or part.code_execution_result for part in parts):
        return content
    text_parts = [_part_as_text(part, executor) for part in parts]
    only_results = all(part.code_execution_result for part in parts)
    return types.Content(role="user" if only_results else content.role, parts=text_parts)


def _part_as_text(part: types.Part, executor: CodeExecutor) -> types.Part:
    if code := part.executable_code:
        start, end = executor.code_block_delimiters[0]
        return types.Part(text=f"{start}{code.code or ''}{end}", thought_signature=part.thought_signature)
    if result := part.code_execution_result:
        start, end = executor.execution_result_delimiters
        return types.Part(text=f"{start}{result.output or ''}{end}")
    return part


def _replace_csv_files(contents: Iterable[types.Content]) -> tuple[list[types.Content], list[File]]:
    """`contents` with each CSV file of the user replaced by its name, and the distinct files, oldest first."""
    files: dict[str, File] = {}
    replaced: list[types.Content] = []
    for content in contents:
        parts = content.parts or []
        if content.role == "user" and any(_is_csv(part) for part in parts):
            content = content.model_copy(update={"parts": [_replace_csv_file(part, files) for part in parts]})
        replaced.append(content)
    return replaced, list(files.values())


def _is_csv(part: types.Part) -> bool:
    return bool(part.inline_data and part.inline_data.data and part.inline_data.mime_type == _CSV)


def _replace_csv_file(part: types.Part, files: dict[str, File]) -> types.Part:
    if not (_is_csv(part) and part.inline_data and part.inline_data.data):
        return part
    data = part.inline_data.data
    name = f"data_{hashlib.sha256(data).hexdigest()[:8]}.csv"  # by content: a file that is sent twice is one file
    files[name] = File(name=name, content=data, mime_type=_CSV)
    return types.Part(text=f"\nAvailable file: `{name}`\n")
