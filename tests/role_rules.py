"""Whether a history is one that the services of models accept, by the strictest of their rules."""

from collections.abc import Sequence

from adk_nb import types


def check_roles(contents: Sequence[types.Content]) -> None:
    """Fail for a history that one of them would refuse.

    Source: Gemini: function calling, the responses to all calls of a turn follow in the next one,
    https://ai.google.dev/gemini-api/docs/function-calling. OpenAI: a message with `tool_calls` is followed by one to
    each `tool_call_id`, https://platform.openai.com/docs/guides/function-calling. Anthropic: `tool_result` blocks for
    all `tool_use` blocks come first in the next user message, and the first message is the user's,
    https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use.
    """
    assert contents and contents[0].role == "user", "it begins with the user"
    assert contents[-1].role == "user", "nothing is left to be answered"
    open_now: list[str | None] = []
    for at, content in enumerate(contents):
        parts = content.parts or []
        assert parts, f"content {at} has no parts"
        calls = [part.function_call.id for part in parts if part.function_call]
        answered = [part.function_response.id for part in parts if part.function_response]
        assert not (calls and answered), f"content {at} has calls and results"
        assert (
            content.role == ("model" if calls else "user") if calls or answered else content.role in ("user", "model")
        )
        first = [part.function_response is not None for part in parts[: len(answered)]]
        assert all(first), f"content {at} has words before results"
        assert answered == open_now, f"content {at} answers {answered}, and {open_now} are open"
        open_now = calls
        assert len(set(calls)) == len(calls), f"content {at} has two calls of one id"
    assert not open_now
