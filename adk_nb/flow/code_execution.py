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
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutorContext, File
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
        explored_names = CodeExecutorContext(ctx.session.state).get_processed_file_names()
        for file in files:
            if file.name in explored_names or not is_enabled:
                continue
            code = _EXPLORE.format(variable=file.name.partition(".")[0], name=file.name)
            content = types.Content(
                role="model", parts=[types.Part(text=f"Exploring the file `{file.name}`."), _code_part(code)]
            )
            # Copies: the request is edited below, and the events are stored.
            request.contents.append(content.model_copy(deep=True))
            yield agent_event(ctx, spec, content=content)
            result = await _run(ctx, spec, executor, code, [file], explored_file=file.name)
            if result.content:
                request.contents.append(result.content.model_copy(deep=True))
            yield result
    # Services without code execution get code and results as text; results become the user's message.
    for index, content in enumerate(request.contents):
        parts = content.parts or []
        if any(part.executable_code or part.code_execution_result for part in parts):
            only_results = all(part.code_execution_result for part in parts)
            request.contents[index] = types.Content(
                role="user" if only_results else content.role, parts=[_part_as_text(part, executor) for part in parts]
            )


def truncate_after_code(ctx: InvocationContext, executor: CodeExecutor, response: LlmResponse) -> LlmResponse:
    """Cut a complete response after its first code block, which becomes a part; unchanged if there is none to run."""
    if executor.runs_in_model or response.error_code or not response.content or response.get_function_calls():
        return response
    if not _is_enabled(ctx, executor):
        return response
    parts = response.parts
    blocks = "|".join(f"{re.escape(start)}(.+?){re.escape(end)}" for start, end in executor.code_block_delimiters)
    for index, part in enumerate(parts):
        if part.executable_code:
            if index + 1 < len(parts) and parts[index + 1].code_execution_result:
                continue  # it has run
            kept = parts[: index + 1]
        elif part.text and not part.thought and (block := re.search(blocks, part.text, re.DOTALL)):
            code = next(code for code in block.groups() if code is not None)
            text = part.text[: block.start()]
            kept = [*parts[:index], *([part.model_copy(update={"text": text})] if text else []), _code_part(code)]
        else:
            continue
        return response.model_copy(update={"content": response.content.model_copy(update={"parts": kept})})
    return response


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
    if result.failed:
        text = f"{result.stdout.rstrip()}\n\n" if result.stdout.strip() else ""
        text += result.stderr or f"the code exited with status {result.exit_code}"
    else:
        warnings = f"\nStderr:\n{result.stderr}\n" if result.stderr.strip() else ""
        is_silent = result.output_files and not (result.stdout or warnings)
        # Source of "Code execution result:": google-adk, whose clients look for it.
        text = "" if is_silent else f"Code execution result:\n{result.stdout}\n{warnings}"
    # The files that the code wrote become artifacts; the result names them.
    context, saved_names, problems = Context(ctx), list[str](), list[str]()
    for file in result.output_files:
        try:
            part = types.Part(inline_data=types.Blob(data=file.data, mime_type=file.mime_type))
            await context.save_artifact(file.name, part)
            saved_names.append(f"`{file.name}`")
        # The code has run: keep its output. ValueError: an executor's file is not base64.
        except (ConfigurationError, InputError, StorageError, ValueError) as error:
            problems.append(f"`{file.name}` was not saved: {error}")
    saved = [f"Saved artifacts:\n{','.join(saved_names)}"] if saved_names else []
    part = types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_FAILED if result.failed else types.Outcome.OUTCOME_OK,
            output=hidden(text) + "\n".join([*saved, *problems]),
        )
    )
    context.actions.state_delta.update(state.get_state_delta())
    return agent_event(ctx, spec, content=types.Content(role="model", parts=[part]), actions=context.actions)


def _is_enabled(ctx: InvocationContext, executor: CodeExecutor) -> bool:
    """True while the turn has fewer failed executions than `error_retry_attempts`."""
    failed = CodeExecutorContext(ctx.session.state).get_error_count(ctx.invocation_id)
    return failed < executor.error_retry_attempts


def _code_part(code: str) -> types.Part:
    return types.Part(executable_code=types.ExecutableCode(code=code, language=types.Language.PYTHON))


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
        parts = list(content.parts or ()) if content.role == "user" else []
        has_files = False
        for index, part in enumerate(parts):
            if part.inline_data and (data := part.inline_data.data) and part.inline_data.mime_type == _CSV:
                # By content: a file that is sent twice is one file.
                name = f"data_{hashlib.sha256(data).hexdigest()[:8]}.csv"
                files[name] = File(name=name, content=data, mime_type=_CSV)
                parts[index] = types.Part(text=f"\nAvailable file: `{name}`\n")
                has_files = True
        replaced.append(content.model_copy(update={"parts": parts}) if has_files else content)
    return replaced, list(files.values())
