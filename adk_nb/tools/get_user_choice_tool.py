"""`get_user_choice`: the model lets the user choose one of several options."""

from adk_nb.events.requests import CHOICE
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.long_running_tool import LongRunningFunctionTool


def _get_user_choice(options: list[str], tool_context: ToolContext, prompt: str = "") -> None:
    """Let the user choose one of several options, and wait for the answer. The prompt is what the user is asked."""
    # As in google-adk: the model is called again only with the user's answer.
    tool_context.actions.skip_summarization = True


get_user_choice = get_user_choice_tool = LongRunningFunctionTool(_get_user_choice, effect="pure", name=CHOICE)
"""Lets the model ask the user to choose. Its call ends the run. The user answers with the next chat message (an option
or its number), or with a `types.FunctionResponse` that has the id and name of the call."""
